#include "simulator/machine/order.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/machine/gpu.h"

namespace tilewright::simulator {
namespace {

using Kind = Agents::Kind;

// First and last byte of a tensor, whatever the signs of its strides.
template <typename Range>
Range memory_of(const TensorArgument& tensor) {
  std::int64_t low = 0, high = size_of(tensor.dtype);
  for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
    if (tensor.shape[axis] == 0) return {tensor.data, tensor.data};
    const std::int64_t reach =
        (tensor.shape[axis] - 1) * tensor.strides[axis] * size_of(tensor.dtype);
    (reach < 0 ? low : high) += reach;
  }
  return {tensor.data + low, tensor.data + high};
}

View& view_of(Warp& warp, bool elected) { return elected ? warp.elected : warp.lanes; }
const View& view_of(const Warp& warp, bool elected) { return elected ? warp.elected : warp.lanes; }

int own_agent(const Agents& agents, const Warp& warp, bool elected) {
  return agents.at(warp.cta->rank(), elected ? Kind::elected_lane : Kind::lanes, warp.index);
}

// First and last of the bytes, in their block.
std::pair<std::int64_t, std::int64_t> extent(Bytes bytes) {
  std::int64_t first = 0, last = 63;
  while (!(bytes.cells >> first & 1)) ++first;
  while (!(bytes.cells >> last & 1)) --last;
  std::int64_t low = 0, high = 15;
  while (!(bytes.mask >> low & 1)) ++low;
  while (!(bytes.mask >> high & 1)) --high;
  return {first * ShadowBlock::kCell + low, last * ShadowBlock::kCell + high};
}

}  // namespace

Order::Order(Gpu& gpu, bool strict, bool enabled) : gpu_(gpu), strict_(strict), enabled_(enabled) {
  const Program& program = gpu.program;
  agents_.warps = program.warps;
  agents_.barriers = program.barriers;
  agents_.ctas = static_cast<int>(program.cluster);
  const auto add = [&](const TensorArgument& tensor) {
    written_.push_back(memory_of<Range>(tensor));
  };
  for (const Instruction& instruction : program.code) {
    if (instruction.code == Code::store_registers) {
      add(*program.global_accesses[instruction.detail].tensor);
    } else if (instruction.code == Code::tma_store) {
      add(*program.maps[program.transfers[instruction.detail].map].tensor);
    } else if (instruction.code == Code::atomic_add) {
      add(gpu.arguments.tensors[instruction.object]);
    }
  }
}

void Order::start(Warp& warp) const {
  if (!enabled_) return;
  warp.lanes = View(agents_.count());
  warp.elected = View(agents_.count());
  warp.lanes.generic[own_agent(agents_, warp, false)] = 1;
  warp.elected.generic[own_agent(agents_, warp, true)] = 1;
}

View Order::release(Warp& warp, bool elected) const {
  if (!enabled_) return {};
  View handed = view_of(warp, elected);
  ++view_of(warp, elected).generic[own_agent(agents_, warp, elected)];
  return handed;
}

View Order::release_remote(Warp& warp, bool elected) const {
  View handed = release(warp, elected);
  if (!enabled_) return handed;
  for (int first = 0; first < agents_.count(); first += agents_.per_cta()) {
    handed.generic.forget(first, agents_.threads());
  }
  handed.remote = handed.cluster;
  handed.cluster = Clock(agents_.count());
  return handed;
}

void Order::release_into(View& to, Warp& warp, bool elected) const {
  if (!enabled_) return;
  View& view = view_of(warp, elected);
  to.join(view);
  ++view.generic[own_agent(agents_, warp, elected)];
}

void Order::acquire(Warp& warp, bool elected, const View& view) const {
  warp.elected.join(view);
  if (!elected) warp.lanes.join(view);
}

void Order::meet(Warp& warp) const {
  warp.lanes.join(warp.elected);
  warp.elected = warp.lanes;
  count_up(warp);
}

void Order::count_up(Warp& warp) const {
  if (!enabled_) return;
  ++warp.lanes.generic[own_agent(agents_, warp, false)];
  ++warp.elected.generic[own_agent(agents_, warp, true)];
}

void Order::fence_proxy(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = view_of(warp, lane);
    view.async.join(view.generic);
    ++view.generic[own_agent(agents_, warp, lane)];
  }
}

void Order::fence_cluster(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = view_of(warp, lane);
    view.generic.join(view.remote);
    view.cluster.join(view.generic);
    ++view.generic[own_agent(agents_, warp, lane)];
  }
}

void Order::acquire_cluster(Warp& warp, const View& view) const {
  acquire(warp, false, view);
  for (View* own : {&warp.lanes, &warp.elected}) {
    own->generic.join(own->remote);
    own->cluster.join(view.generic);
  }
}

void Order::complete(Warp& warp, bool elected, Kind kind, int index, std::int64_t count) const {
  if (!enabled_) return;
  const int agent = agents_.at(warp.cta->rank(), kind, index);
  const auto epoch = static_cast<Epoch>(std::max<std::int64_t>(count, 0));
  warp.elected.generic[agent] = std::max(warp.elected.generic[agent], epoch);
  if (!elected) warp.lanes.generic[agent] = std::max(warp.lanes.generic[agent], epoch);
}

bool Order::knows(const Warp& warp, bool elected, int agent, Epoch epoch) const {
  return view_of(warp, elected).generic[agent] >= epoch;
}

Access Order::by_threads(const Warp& warp, const Instruction& instruction, AccessKind kind) const {
  const int agent = own_agent(agents_, warp, instruction.elected);
  return by_unit(warp, instruction, kind, agent,
                 enabled_ ? view_of(warp, instruction.elected).generic[agent] : 0);
}

Access Order::by_unit(const Warp& warp, const Instruction& instruction, AccessKind kind, int agent,
                      Epoch epoch) const {
  Access access;
  access.instruction = &instruction;
  access.agent = agent;
  access.epoch = epoch;
  if (enabled_) access.issued = warp.elected.generic[own_agent(agents_, warp, true)];
  access.cluster = warp.cta->cluster->number;
  access.iteration = gpu_.iteration(warp, instruction);
  access.cta = static_cast<std::int32_t>(warp.cta->index);
  access.warp = static_cast<std::int16_t>(warp.index);
  access.role = static_cast<std::int16_t>(warp.role);
  access.write = kind.write;
  access.async = kind.async;
  access.atomic = kind.atomic;
  return access;
}

Order::Verdict Order::judge(const Warp& warp, const Access& earlier, const Access& access,
                            bool global) const {
  if (earlier.cluster != access.cluster) return Verdict::race;
  const View& view = view_of(warp, access.instruction->elected);
  // A read behind a proxy fence is over for asynchronous writes, also of other CTAs that hear of
  // it.
  const bool fenced = !global && view.async[earlier.agent] >= earlier.epoch;
  if (access.async && !earlier.async && !earlier.write && fenced) return Verdict::ordered;
  if (view.generic[earlier.agent] < earlier.epoch) return Verdict::race;
  // Threads' accesses reach the async proxy through a fence, of which there is one for shared
  // memory. Reads before asynchronous writes want it too; most pipelines do without.
  if (!access.async || earlier.async || !(earlier.write || strict_)) return Verdict::ordered;
  return fenced ? Verdict::ordered : Verdict::proxy;
}

void Order::shared_block(const Warp& warp, const Access& access, Cta& cta, int allocation,
                         std::int64_t block, Bytes bytes) {
  cta.shadow[block].touch(access, bytes, [&](const ShadowBlock::Record& earlier) {
    const Verdict verdict = judge(warp, earlier, access, /*global=*/false);
    if (verdict == Verdict::ordered) return;
    Bytes both{bytes.cells & earlier.bytes.cells,
               static_cast<std::uint16_t>(bytes.mask & earlier.bytes.mask)};
    const Allocation& place = gpu_.program.allocations[allocation];
    const auto [first, last] = extent(both);
    const std::int64_t address = block * ShadowBlock::kBytes + first;
    report(warp, earlier, access, verdict, "shared " + place.describe(address, last - first + 1),
           place.stage_of(address));
  });
}

void Order::shared(const Warp& warp, const Access& access, Cta& cta, int allocation,
                   std::int64_t address, std::int64_t count) {
  if (!enabled_) return;
  if (address % ShadowBlock::kCell != 0 || count % ShadowBlock::kCell != 0) {
    bytes.add(address, count);
    return shared(warp, access, cta, allocation, bytes);
  }
  for (const std::int64_t end = address + count; address < end;) {
    const std::int64_t block = address / ShadowBlock::kBytes;
    const std::int64_t first = address % ShadowBlock::kBytes / ShadowBlock::kCell;
    const std::int64_t stop = std::min(end, (block + 1) * ShadowBlock::kBytes);
    const std::int64_t cells = (stop - address) / ShadowBlock::kCell;
    shared_block(warp, access, cta, allocation, block,
                 {~std::uint64_t{0} >> (64 - cells) << first, Bytes::kWhole});
    address = stop;
  }
}

void Order::shared(const Warp& warp, const Access& access, Cta& cta, int allocation, ByteSet& set) {
  if (!enabled_) return set.clear();
  set.drain([&](std::uint64_t block, Bytes touched) {
    shared_block(warp, access, cta, allocation,
                 static_cast<std::int64_t>(block) / ShadowBlock::kBytes, touched);
  });
}

bool Order::is_written(const std::byte* data) const {
  return enabled_ && std::any_of(written_.begin(), written_.end(), [&](const Range& range) {
           return data >= range.begin && data < range.end;
         });
}

void Order::global(const Warp& warp, const Access& access, ByteSet& set) {
  set.drain([&](std::uint64_t block, Bytes touched) {
    global_[block / ShadowBlock::kBytes].touch(
        access, touched, [&](const ShadowBlock::Record& earlier) {
          const Verdict verdict = judge(warp, earlier, access, /*global=*/true);
          if (verdict == Verdict::ordered) return;
          Bytes both{touched.cells & earlier.bytes.cells,
                     static_cast<std::uint16_t>(touched.mask & earlier.bytes.mask)};
          report(warp, earlier, access, verdict, describe_global(block, both), -1);
        });
  });
}

std::string Order::describe_global(std::uint64_t block, Bytes bytes) const {
  const auto [first, last] = extent(bytes);
  const auto* begin = reinterpret_cast<const std::byte*>(block + first);
  for (const TensorArgument& tensor : gpu_.arguments.tensors) {
    const Range range = memory_of<Range>(tensor);
    if (begin < range.begin || begin >= range.end) continue;
    const std::int64_t offset = begin - range.begin;
    return fmt::format("global {} +{:#x}..{:#x}", tensor.name, offset, offset + last - first);
  }
  return "global memory";
}

void Order::report(const Warp& warp, const Access& earlier, const Access& access, Verdict verdict,
                   const std::string& what, std::int64_t stage) const {
  const auto line = [&](const Access& each) {
    return gpu_.access_line(each.write ? "write" : "read", each);
  };
  Fault fault;
  fault.kind = verdict == Verdict::proxy ? "proxy" : "race";
  fault.first = earlier.instruction->where();
  fault.second = access.instruction->where();
  fault.message = fmt::format("{}: {}\n{}\n{}", fault.kind, what, line(earlier), line(access));
  fault.missing = verdict == Verdict::proxy
                      ? "fence_proxy_async between them, by the threads that made the first access"
                      : missing(warp, earlier, access, stage);
  gpu_.log.add(std::move(fault));
}

std::string Order::missing(const Warp& warp, const Access& earlier, const Access& access,
                           std::int64_t stage) const {
  if (earlier.cluster != access.cluster) {
    return "blocks of one launch are not ordered: what one writes, no other may use";
  }
  const bool elected = access.instruction->elected;
  const std::int64_t rank = earlier.agent / agents_.per_cta();
  const Cta& owner_cta = *warp.cta->cluster->ctas[rank];
  const Kind kind = agents_.kind(earlier.agent);
  if (kind == Kind::phases) {
    return fmt::format("a wait for {} phase {} between them",
                       gpu_.barrier_name(agents_.index(earlier.agent)), earlier.epoch - 1);
  }
  const Warp& owner = owner_cta.warps[agents_.index(earlier.agent)];
  const int hands_on = agents_.at(rank, Kind::elected_lane, owner.index);
  const bool handed_on = &owner == &warp || knows(warp, elected, hands_on, earlier.issued);
  if (handed_on && kind == Kind::products) {
    return fmt::format("wgmma_wait in {} for this product before the warp signals or goes on",
                       gpu_.describe(earlier.role, earlier.warp, earlier.cta));
  }
  if (handed_on && kind == Kind::store_reads) {
    return "bulk_commit and bulk_wait {count, read = 1} between them";
  }
  if (handed_on && kind == Kind::store_writes) {
    return "bulk_commit and bulk_wait {count} between them, without read";
  }
  if (&owner == &warp) return "warp_sync between them: one lane does not wait for the others";
  if (handed_on && kind == Kind::lanes) {
    return fmt::format(
        "warp_sync in {} between its access and its arrival: one lane does not wait for the others",
        gpu_.describe(earlier.role, earlier.warp, earlier.cta));
  }
  if (&owner_cta != warp.cta) {
    return "cluster_sync between them, or fence_cluster before the arrival at the other CTA's "
           "barrier and fence_cluster behind the wait for it";
  }
  return missing_barrier(warp, earlier, stage);
}

std::string Order::missing_barrier(const Warp& warp, const Access& earlier,
                                   std::int64_t stage) const {
  const Program& program = gpu_.program;
  const Cta& cta = *warp.cta;
  const auto named = [&](int barrier, std::uint64_t phase) {
    return fmt::format("a wait for {} phase {} between them", gpu_.barrier_name(barrier), phase);
  };
  // A phase that is handed on already, or is being so.
  for (int barrier = 0; barrier < program.barriers; ++barrier) {
    const Mbarrier& state = cta.barriers[barrier];
    if (!state.initialised) continue;
    if (state.completed.generic[earlier.agent] >= earlier.epoch) {
      return named(barrier, state.phase - 1);
    }
    if (state.accumulated.generic[earlier.agent] >= earlier.epoch) {
      return named(barrier, state.phase);
    }
  }
  // One on which the earlier warp's role is to arrive: at best the one that this role waits for.
  const BarrierArray* best = nullptr;
  for (const BarrierArray& array : program.barrier_arrays) {
    const auto has = [](const std::vector<int>& roles, int role) {
      return std::find(roles.begin(), roles.end(), role) != roles.end();
    };
    if (!has(array.signallers, earlier.role) || has(array.signallers, warp.role)) continue;
    if (!best || has(array.waiters, warp.role)) best = &array;
  }
  if (!best) return "a barrier between them: an arrival behind the first, a wait before the second";
  const int index = stage >= 0 && stage < best->count ? static_cast<int>(stage) : 0;
  return named(best->first + index, cta.barriers[best->first + index].phase);
}

}  // namespace tilewright::simulator
