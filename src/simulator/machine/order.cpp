#include "simulator/machine/order.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/machine/world.h"

namespace tilewright::simulator {
namespace {

// Whether threads read shared memory that copies write.
bool reads_copies(const PreparedKernel& kernel) {
  const auto uses = [&](const Instruction& instruction, bool by_copy) {
    if (is_flow(instruction.code)) return false;
    const ir::OpInfo& record = ir::info(instruction.op);
    return by_copy ? record.writes(ir::Memory::shared, ir::Proxy::async)
                   : record.reads(ir::Memory::shared, ir::Proxy::generic);
  };
  const auto overlaps = [&](const Instruction& one, const Instruction& other) {
    const int i = kernel.allocation_of(one), j = kernel.allocation_of(other);
    if (i < 0 || j < 0) return true;
    const Allocation &a = kernel.allocations[i], &b = kernel.allocations[j];
    return a.offset < b.offset + b.bytes() && b.offset < a.offset + a.bytes();
  };
  return std::any_of(kernel.code.begin(), kernel.code.end(), [&](const Instruction& copy) {
    return uses(copy, true) &&
           std::any_of(kernel.code.begin(), kernel.code.end(), [&](const Instruction& read) {
             return uses(read, false) && overlaps(copy, read);
           });
  });
}

}  // namespace

Order::Order(Launch& launch, const MachineOptions& options)
    : launch_(launch),
      strict_(options.strict),
      enabled_(options.check_order),
      issue_order_(options.issue_order),
      announces_(enabled_ && reads_copies(launch.kernel)) {
  const PreparedKernel& kernel = launch.kernel;
  agents_.warps = kernel.warps;
  agents_.barriers = kernel.barriers;
  agents_.ctas = static_cast<int>(kernel.cluster);
  if (!kernel.tensor_memories.empty()) agents_.kinds = Agents::kWithTensorMemory;
  const auto add = [&](TensorArgument tensor) {
    if (!enabled_) return;
    launch.world.memory.add_written(GlobalMemory::range_of(tensor));
    for (std::byte* peer : tensor.peers) {
      tensor.data = peer;
      launch.world.memory.add_written(GlobalMemory::range_of(tensor));
    }
  };
  std::size_t next = 0;
  for (const ir::Parameter& parameter : kernel.source->parameters) {
    if (!parameter.is_tensor()) continue;
    const TensorArgument& tensor = launch.arguments.tensors[next++];
    if (parameter.kind != ir::Parameter::Kind::in) add(tensor);
  }
}

int Order::own_agent(const Warp& warp, bool elected) const {
  return agents_.at(warp.cta->cluster_rank(),
                    elected ? Agents::Kind::elected_lane : Agents::Kind::lanes, warp.index);
}

void Order::start(Warp& warp) const {
  if (!enabled_) return;
  warp.lanes = View(agents_.count());
  warp.elected = View(agents_.count());
  warp.lanes.generic[own_agent(warp, false)] = 1;
  warp.elected.generic[own_agent(warp, true)] = 1;
  warp.lanes.beyond = warp.elected.beyond = launch_.place.known;
  launch_.timing.start(warp);
}

View Order::release(Warp& warp, bool elected) const {
  if (!enabled_) return {};
  View handed = warp.view(elected);
  ++warp.view(elected).generic[own_agent(warp, elected)];
  return handed;
}

void Order::release_into(View& to, Warp& warp, bool elected) const {
  if (!enabled_) return;
  View& view = warp.view(elected);
  to.join(view);
  ++view.generic[own_agent(warp, elected)];
}

void Order::announce_into(View& to, Warp& warp, bool elected) const {
  if (announces_) to.announced.join(warp.view(elected).generic);
  release_into(to, warp, elected);
}

void Order::release_beyond_into(View& to, Warp& warp, bool elected) const {
  if (!enabled_) return;
  View& view = warp.view(elected);
  if (view.beyond) to.join_beyond(view.beyond);
  const int units = agents_.per_cta() - agents_.threads();
  for (int first = 0; first < agents_.count(); first += agents_.per_cta()) {
    to.generic.join(view.generic, first + agents_.threads(), units);
  }
  to.async.join(view.async);
  to.remote.join(view.cluster);
  to.timed.join(view.timed);
  ++view.generic[own_agent(warp, elected)];
}

void Order::acquire(Warp& warp, bool elected, const View& view, Scope scope) const {
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& own = warp.view(lane);
    own.join(view);
    if (scope < Scope::cluster) continue;
    own.generic.join(own.remote);
    own.cluster.join(view.generic);
  }
}

void Order::meet(Warp& warp) const {
  warp.lanes.join(warp.elected);
  Clock tensor = std::move(warp.elected.tensor);
  warp.elected = warp.lanes;
  tensor.join(warp.elected.tensor);
  warp.elected.tensor = std::move(tensor);
  count_up(warp);
}

void Order::count_up(Warp& warp) const {
  if (!enabled_) return;
  ++warp.lanes.generic[own_agent(warp, false)];
  ++warp.elected.generic[own_agent(warp, true)];
}

void Order::fence_proxy(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = warp.view(lane);
    view.async.join(view.generic);
    ++view.generic[own_agent(warp, lane)];
  }
}

void Order::fence_cluster(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = warp.view(lane);
    view.generic.join(view.remote);
    view.cluster.join(view.generic);
    ++view.generic[own_agent(warp, lane)];
  }
}

void Order::complete(Warp& warp, bool elected, Agents::Kind kind, int index,
                     std::int64_t count) const {
  if (!enabled_) return;
  const int agent = agents_.at(warp.cta->cluster_rank(), kind, index);
  const auto epoch = static_cast<Epoch>(std::max<std::int64_t>(count, 0));
  warp.elected.generic[agent] = std::max(warp.elected.generic[agent], epoch);
  if (!elected) warp.lanes.generic[agent] = std::max(warp.lanes.generic[agent], epoch);
}

bool Order::knows(const Warp& warp, bool elected, int agent, Epoch epoch) const {
  return warp.view(elected).generic[agent] >= epoch;
}

Access Order::by_threads(const Warp& warp, const Instruction& instruction, AccessKind kind) const {
  const int agent = own_agent(warp, instruction.elected);
  return by_unit(warp, instruction, kind, agent,
                 enabled_ ? warp.view(instruction.elected).generic[agent] : 0);
}

Access Order::by_unit(const Warp& warp, const Instruction& instruction, AccessKind kind, int agent,
                      Epoch epoch) const {
  Access access;
  access.instruction = &instruction;
  access.agent = agent;
  access.epoch = epoch;
  if (enabled_) access.issued = warp.elected.generic[own_agent(warp, true)];
  access.cluster = warp.cta->cluster->number;
  access.iteration = launch_.iteration(warp, instruction);
  access.cta = static_cast<std::int32_t>(warp.cta->index);
  access.warp = static_cast<std::int16_t>(warp.index);
  access.role = static_cast<std::int16_t>(warp.role);
  access.write = kind.write;
  access.async = kind.async;
  access.atomic = kind.atomic;
  access.rank = static_cast<std::int16_t>(launch_.place.rank);
  return access;
}

Order::Verdict Order::judge(const Warp& warp, const Access& earlier, const Access& access,
                            bool global) const {
  const View& view = warp.view(access.instruction->elected);
  if (earlier.cluster != access.cluster) return judge_beyond(view.beyond.get(), earlier, access);
  // A read behind a proxy fence is over for asynchronous writes, also of other CTAs that hear of
  // it.
  const bool fenced =
      global ? fenced_globally(view, earlier) : view.async[earlier.agent] >= earlier.epoch;
  if (access.async && !earlier.async && !earlier.write && fenced) return Verdict::ordered;
  if (view.generic[earlier.agent] < earlier.epoch) return Verdict::race;
  // Threads' accesses reach the async proxy through a fence. Reads before asynchronous writes want
  // it too; pipelines do without where an mbarrier stands between the two.
  if (!access.async || earlier.async || fenced) return Verdict::ordered;
  if (earlier.write || strict_) return Verdict::proxy;
  const bool accepted = global || view.announced[earlier.agent] >= earlier.epoch;
  return accepted ? Verdict::ordered : Verdict::proxy;
}

void Order::shared(const Warp& warp, const Access& access, Cta& cta, int allocation,
                   const BlockRun& run) {
  if (launch_.recorder) launch_.recorder->ordered(launch_, access, ir::Memory::shared);
  cta.shadow.touch(access, run, [&](const ShadowBlock::Record& earlier, std::int64_t block) {
    const Verdict verdict = judge(warp, earlier, access, /*global=*/false);
    if (verdict == Verdict::ordered) return;
    Bytes both{run.bytes.cells & earlier.bytes.cells,
               static_cast<std::uint16_t>(run.bytes.mask & earlier.bytes.mask)};
    const Allocation& place = launch_.kernel.allocations[allocation];
    const auto [first, last] = both.extent();
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
    BlockRun run;
    run.first = address / ShadowBlock::kBytes;
    const std::int64_t offset = address % ShadowBlock::kBytes;
    std::int64_t stop = std::min(end, (run.first + 1) * ShadowBlock::kBytes);
    if (offset == 0 && stop < end) {
      run.count = (end - address) / ShadowBlock::kBytes;
      stop = address + run.count * ShadowBlock::kBytes;
    }
    const std::int64_t cells = std::min(stop - address, ShadowBlock::kBytes) / ShadowBlock::kCell;
    run.bytes.cells = ~std::uint64_t{0} >> (64 - cells) << offset / ShadowBlock::kCell;
    shared(warp, access, cta, allocation, run);
    address = stop;
  }
}

void Order::shared(const Warp& warp, const Access& access, Cta& cta, int allocation, ByteSet& set) {
  if (!enabled_) return set.clear();
  set.drain([&](std::uint64_t block, Bytes touched) {
    shared(warp, access, cta, allocation,
           BlockRun{static_cast<std::int64_t>(block) / ShadowBlock::kBytes, 1, touched});
  });
}

bool Order::is_written(const std::byte* data) const {
  return enabled_ && launch_.world.memory.is_written(data);
}

void Order::global(const Warp& warp, const Access& access, ByteSet& set) {
  if (launch_.recorder) launch_.recorder->ordered(launch_, access, ir::Memory::global);
  set.drain([&](std::uint64_t block, Bytes touched) {
    launch_.world.memory.shadow(block).touch(
        access, touched, [&](const ShadowBlock::Record& earlier) {
          launch_.world.note_read(access, earlier);
          const Verdict verdict = judge(warp, earlier, access, /*global=*/true);
          if (verdict == Verdict::ordered) return;
          Bytes both{touched.cells & earlier.bytes.cells,
                     static_cast<std::uint16_t>(touched.mask & earlier.bytes.mask)};
          report(warp, earlier, access, verdict, describe_global(block, both), -1);
        });
  });
}

}  // namespace tilewright::simulator
