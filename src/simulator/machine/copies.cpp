#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ir/multicast.h"
#include "simulator/evaluate_elementwise.h"
#include "simulator/machine/launch.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

// Calls `visit(row, whether it exists, bytes from the tensor's data to its element 0)` for the rows
// of a box.
template <typename Visit>
void for_rows(const TensorMap& map, const std::array<std::int64_t, 5>& start, Visit visit) {
  const std::int64_t rows = map.box_bytes() / map.row_bytes();
  std::array<std::int64_t, 5> place{};
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t offset = map.origin;
    bool exists = true;
    for (int axis = 1; axis < map.rank; ++axis) {
      const std::int64_t at = start[axis] + place[axis];
      exists = exists && at >= 0 && at < map.extents[axis];
      offset += at * map.strides[axis];
    }
    visit(row, exists, offset);
    for (int axis = 1; axis < map.rank && ++place[axis] == map.box[axis]; ++axis) place[axis] = 0;
  }
}

// Calls `visit(shared address, global pointer, bytes)` for the 16-byte chunks of a box, in order
// of the shared addresses before the swizzle. `bytes` are those inside the tensor, from the
// chunk's start on unless `skip` bytes before them lie outside.
template <typename Visit>
void for_chunks(const TensorMap& map, std::byte* data, std::int64_t address,
                const std::array<std::int64_t, 5>& start, Visit visit) {
  const std::int64_t per_chunk = 16 / map.element_bytes;
  for_rows(map, start, [&](std::int64_t row, bool exists, std::int64_t offset) {
    if (exists && start[0] >= 0 && start[0] + map.box[0] <= map.extents[0]) {
      std::byte* const global = data + offset + start[0] * map.element_bytes;
      for (std::int64_t byte = 0; byte < map.row_bytes(); byte += 16) {
        const std::int64_t linear = address + row * map.row_bytes() + byte;
        visit(map.swizzled(linear), global + byte, 0, 16);
      }
      return;
    }
    for (std::int64_t column = 0; column < map.box[0]; column += per_chunk) {
      const std::int64_t first = start[0] + column;
      const std::int64_t low = std::clamp<std::int64_t>(-first, 0, per_chunk);
      const std::int64_t high =
          exists ? std::clamp<std::int64_t>(map.extents[0] - first, low, per_chunk) : low;
      const std::int64_t linear = address + row * map.row_bytes() + column * map.element_bytes;
      std::byte* global = high > low ? data + offset + (first + low) * map.element_bytes : nullptr;
      visit(map.swizzled(linear), global, low * map.element_bytes,
            (high - low) * map.element_bytes);
    }
  });
}

// The elements in memory become the function of them and of those that are brought.
void combine(const Elementwise& how, std::int64_t bytes, const std::byte* brought,
             std::byte* memory) {
  const auto count = static_cast<std::size_t>(bytes / size_of(how.dtype));
  if (is_float(how.dtype)) {
    float a[8], b[8];
    to_float(how.dtype, memory, a, count);
    to_float(how.dtype, brought, b, count);
    const float* const operands[] = {a, b};
    evaluate(how, count, operands, a);
    return from_float(how.dtype, a, memory, count);
  }
  for (std::int64_t at = 0; at < bytes; at += size_of(how.dtype)) {
    std::int64_t a = to_integer(how.dtype, memory + at), b = to_integer(how.dtype, brought + at);
    const std::int64_t* const operands[] = {&a, &b};
    evaluate(how, 1, operands, &a);
    from_integer(how.dtype, a, memory + at);
  }
}

// Whether hardware takes the map of the tensor at `data` and the address; else a fault.
bool valid(Launch& launch, const Warp& warp, const Instruction& instruction, const TensorMap& map,
           const std::byte* data, std::int64_t address) {
  const auto refuse = [&](const std::string& what) {
    launch.log.add({"tensor_map",
                    instruction.where(),
                    map.where,
                    fmt::format("tensor map of {}: {}\n{}", map.name, what,
                                launch.access("copy", instruction, warp)),
                    {}});
    return false;
  };
  if (map.row_bytes() % 16 != 0) {
    return refuse(fmt::format("rows of {} bytes, not a multiple of 16", map.row_bytes()));
  }
  if (map.swizzle != 0 && map.row_bytes() != map.swizzle) {
    return refuse(
        fmt::format("rows of {} bytes with a swizzle of {}", map.row_bytes(), map.swizzle));
  }
  for (int axis = 0; axis < map.rank; ++axis) {
    if (map.box[axis] < 1 || map.box[axis] > 256) {
      return refuse(fmt::format("a box of {} elements on axis {}, not 1 to 256", map.box[axis],
                                map.rank - 1 - axis));
    }
    if (axis > 0 && map.strides[axis] % 16 != 0) {
      return refuse(fmt::format("a stride of {} bytes, not a multiple of 16: pad its rows",
                                map.strides[axis]));
    }
  }
  if (const std::uintptr_t past = reinterpret_cast<std::uintptr_t>(data) % 16; past != 0) {
    return refuse(fmt::format("the tensor begins {} bytes past a multiple of 16", past));
  }
  const std::int64_t alignment = map.swizzle == 0 ? 128 : map.swizzle * 8;
  if (address % alignment != 0) {
    return refuse(fmt::format("shared address {:#x} is not a multiple of {}", address, alignment));
  }
  return true;
}

std::array<std::int64_t, 5> coordinates(const Warp& warp, const Transfer& transfer) {
  std::array<std::int64_t, 5> at{};
  for (std::size_t i = 0; i < transfer.coordinates.size(); ++i) {
    at[i] = warp.integer(transfer.coordinates[i]);
  }
  return at;
}

// A ragged map begins before its tensor, so that TMA reaches what lies there: a fault.
bool begins_inside(Launch& launch, const Warp& warp, const Instruction& instruction,
                   const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  if (map.ragged_axis < 0) return true;
  const int last = map.rank - 1;
  const std::int64_t row = start[map.ragged_axis] + start[last] - (map.extents[last] - 1);
  if (row >= 0) return true;
  launch.log.add({"out_of_bounds",
                  instruction.where(),
                  map.where,
                  fmt::format("out of bounds: row {} of {}, by a copy that ends before it does\n{}",
                              row, map.name, launch.access("copy", instruction, warp)),
                  {}});
  return false;
}

// Where nothing of the box exists.
bool is_outside(const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  for (int axis = 0; axis < map.rank; ++axis) {
    if (start[axis] >= map.extents[axis] || start[axis] + map.box[axis] <= 0) return true;
  }
  return false;
}

// Hardware does not execute a store that begins before any axis, also where it reaches into it.
bool stores_from_inside(Launch& launch, const Warp& warp, const Instruction& instruction,
                        const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  const auto before =
      std::find_if(start.begin(), start.begin() + map.rank, [](std::int64_t at) { return at < 0; });
  if (before == start.begin() + map.rank) return true;
  const auto axis = static_cast<int>(before - start.begin());
  const auto rank = static_cast<int>(map.tensor->shape.size());
  const std::string where = axis == rank
                                ? fmt::format("ends at {}", *before)
                                : fmt::format("begins at {} on axis {}", *before, rank - 1 - axis);
  launch.log.add({"out_of_bounds", instruction.where(), map.where,
                  fmt::format("out of bounds: a store by TMA to {} that {}: hardware takes no "
                              "negative number there\n{}",
                              map.name, where, launch.access("write", instruction, warp)),
                  "a condition (when) that leaves it out, or a store from registers"});
  return false;
}

// For a load whose box lies wholly outside, or begins before an axis, TMA touches the address where
// the map begins, and a ragged one begins before its tensor, where there may be no memory. Boxes
// outside take the map that begins with the tensor; no other does.
bool through_right_map(Launch& launch, const Warp& warp, const Instruction& instruction,
                       const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  const Slot chosen = launch.kernel.transfers[instruction.detail].outside;
  if (chosen == ir::kNoValue) return true;
  const auto& shape = map.tensor->shape;
  if (std::count(shape.begin(), shape.end(), 0) != 0) return true;  // both begin elsewhere
  const bool loads = ir::info(instruction.op).writes(ir::Memory::shared);
  const bool outside = is_outside(map, start), for_outside = warp.integer(chosen) != 0;
  const bool begins_before =
      std::any_of(start.begin(), start.begin() + map.rank, [](std::int64_t at) { return at < 0; });
  std::string what;
  if (for_outside && !outside) {
    what = fmt::format("a box that reaches {} is {} bytes behind it in the map for boxes outside",
                       map.name, -map.origin);
  } else if (!for_outside && loads && (outside || begins_before)) {
    what = fmt::format(
        "a box that {} {} makes TMA touch the address where its map begins, {} bytes "
        "before the tensor",
        outside ? "lies wholly outside of" : "begins before", map.name, -map.origin);
  } else {
    return true;
  }
  launch.log.add(
      {"out_of_bounds", instruction.where(), map.where,
       fmt::format("out of bounds: {}\n{}", what, launch.access("copy", instruction, warp)),
       outside || for_outside ? "ragged_map by whether the box lies wholly outside"
                              : "a block that begins in the tensor on every axis"});
  return false;
}

// The access to the part of the tensor that the box covers.
void order_tensor(Launch& launch, const Warp& warp, const Access& access, const TensorMap& map,
                  std::byte* data, const std::array<std::int64_t, 5>& start) {
  if (!launch.order.is_written(data)) return;
  const std::int64_t low = std::max<std::int64_t>(start[0], 0);
  const std::int64_t high = std::min(start[0] + map.box[0], map.extents[0]);
  for_rows(map, start, [&](std::int64_t, bool exists, std::int64_t offset) {
    if (!exists || low >= high) return;
    launch.order.bytes.add(reinterpret_cast<std::uint64_t>(data + offset + low * map.element_bytes),
                           (high - low) * map.element_bytes);
  });
  launch.order.global(warp, access, launch.order.bytes);
}

// The CTAs of the cluster that receive a copy, a bit each.
std::uint64_t receivers_of(const Warp& warp, const Transfer& transfer) {
  const auto rank = static_cast<int>(warp.cta->cluster_rank());
  if (transfer.source >= 0) return std::uint64_t{1} << warp.integer(transfer.cta);
  if (transfer.multicast == 0) return std::uint64_t{1} << rank;
  const int group = transfer.multicast_group;
  if (group == 0) return transfer.multicast;
  return transfer.multicast << (rank / group * group +
                                rank % ir::multicast_stride(transfer.multicast));
}

// What every copy names: its box of the tensor, and where that lies in shared memory.
struct IssuedCopy {
  const TensorMap* map;  // null: from `source` in shared memory
  std::byte* data;       // of the tensor
  std::int64_t address;
  std::array<std::int64_t, 5> start;
  std::int64_t source = 0;
};

// The shared memory from which a copy to another CTA comes. It has to be there until the barrier of
// that CTA says so.
void order_source(Launch& launch, const Warp& warp, const Instruction& instruction,
                  const Access& access, std::int64_t address) {
  const Transfer& transfer = launch.kernel.transfers[instruction.detail];
  launch.order.shared(warp, access, *warp.cta, transfer.source, address, transfer.bytes);
  ForeignUse use;
  use.access = access;
  use.verb = "read";
  use.barrier = access.agent;
  use.phase = access.epoch;
  use.by_access = false;
  warp.cta->foreign_uses.add(std::move(use));
}

// Whose barrier hears of what the CTA receives.
Cta& signalled_by(const Transfer& transfer, Cta& receiver) {
  return transfer.pair && !receiver.is_first() ? receiver.peer() : receiver;
}

// The copy's part that one CTA receives: its accesses, and when it completes.
void issue_to(Cta& cta, Launch& launch, Warp& warp, const Instruction& instruction,
              const IssuedCopy& load, int barrier) {
  const Transfer& transfer = launch.kernel.transfers[instruction.detail];
  const std::int64_t bytes = transfer.bytes;
  Cta& signalled = signalled_by(transfer, cta);
  const int agent =
      launch.order.agents().at(signalled.cluster_rank(), Agents::Kind::phases, barrier);
  const auto epoch = static_cast<Epoch>(signalled.barriers[barrier].phase + 1);
  AccessKind kind;
  kind.async = true;
  const Access read = launch.order.by_unit(warp, instruction, kind, agent, epoch);
  if (load.map) {
    order_tensor(launch, warp, read, *load.map, load.data, load.start);
  } else {
    order_source(launch, warp, instruction, read, load.source);
  }
  kind.write = true;
  const Access access = launch.order.by_unit(warp, instruction, kind, agent, epoch);
  launch.order.shared(warp, access, cta, instruction.object, load.address, bytes);
  ForeignUse use;
  use.access = access;
  use.verb = "write";
  use.barrier = agent;
  use.phase = epoch;
  use.by_access = false;
  if (&signalled != &cta) signalled.foreign_uses.add(use);
  cta.foreign_uses.add(std::move(use));
  cta.shared.poison(load.address, bytes);
  Event event;
  event.kind = Event::Kind::load;
  event.issuer = &warp;
  event.instruction = &instruction;
  event.destination = &cta;
  event.signalled = &signalled;
  event.address = load.address;
  event.source = load.source;
  event.data = load.data;
  event.coordinates = load.start;
  event.access = access;
  event.barrier = barrier;
  event.phase = signalled.barriers[barrier].phase;
  event.timed =
      launch.timing.issue(warp, instruction, signalled, barrier, bytes, transfer.is_for_others());
  if (launch.recorder) launch.recorder->load_issued(event);
  launch.add_event(std::move(event));
}

void issue_load(Launch& launch, Warp& warp, const Instruction& instruction,
                const IssuedCopy& copy) {
  const Transfer& transfer = launch.kernel.transfers[instruction.detail];
  const int barrier = find_barrier(launch, warp, instruction, transfer.barriers,
                                   warp.integer(transfer.barrier_index));
  if (barrier < 0) return;
  const std::uint64_t receivers = receivers_of(warp, transfer);
  for (const auto& cta : warp.cta->cluster->ctas) {
    if (!(receivers >> cta->cluster_rank() & 1)) continue;
    Cta& signalled = signalled_by(transfer, *cta);
    if (cta->live == 0 || signalled.live == 0) {
      launch.log.add({"exit",
                      instruction.where(),
                      {},
                      fmt::format("exit: a copy to CTA {}, which has ended\n{}",
                                  cta->live == 0 ? cta->index : signalled.index,
                                  launch.access("write", instruction, warp)),
                      "cluster_sync before the kernel ends"});
      continue;
    }
    if (!usable(launch, warp, instruction, signalled, barrier)) continue;
    issue_to(*cta, launch, warp, instruction, copy, barrier);
  }
}

void issue_store(Launch& launch, Warp& warp, const Instruction& instruction,
                 const IssuedCopy& copy) {
  auto store = std::make_shared<Store>();
  store->instruction = &instruction;
  store->address = copy.address;
  store->to = copy.data;
  store->coordinates = copy.start;
  const auto group = [&](Agents::Kind kind, AccessKind made) {
    return launch.order.by_unit(
        warp, instruction, made,
        launch.order.agents().at(warp.cta->cluster_rank(), kind, warp.index),
        static_cast<Epoch>(warp.store_groups + 1));
  };
  launch.order.shared(warp, group(Agents::Kind::store_reads, {false, true, false}), *warp.cta,
                      instruction.object, copy.address, copy.map->box_bytes());
  // What reads elements to write them does so atomically for the GPU, in any order.
  const bool reduces = ir::info(instruction.op).reads(ir::Memory::global);
  order_tensor(launch, warp, group(Agents::Kind::store_writes, {true, true, reduces}), *copy.map,
               copy.data, copy.start);
  warp.stores.push_back(store);
  Event event;
  event.kind = Event::Kind::store;
  event.issuer = &warp;
  event.store = std::move(store);
  launch.add_event(std::move(event));
}

// From this CTA's shared memory to that of a CTA of the cluster.
void issue_cluster_copy(Launch& launch, Warp& warp, const Instruction& instruction,
                        std::int64_t address) {
  const Transfer& transfer = launch.kernel.transfers[instruction.detail];
  const std::int64_t source =
      launch.kernel.allocations[transfer.source].offset + warp.integer(transfer.source_offset);
  if (!launch.inside(warp, instruction, transfer.source, source, transfer.bytes) ||
      !launch.aligned(warp, instruction, transfer.source, source, 16) ||
      !launch.aligned(warp, instruction, instruction.object, address, 16)) {
    return;
  }
  const std::int64_t cta = warp.integer(transfer.cta), ctas = launch.kernel.cluster;
  if (cta < 0 || cta >= ctas) {
    launch.log.add({"out_of_bounds",
                    instruction.where(),
                    {},
                    fmt::format("out of bounds: a copy to CTA {} of a cluster of {}\n{}", cta, ctas,
                                launch.access("copy", instruction, warp)),
                    fmt::format("the rank of a CTA of the cluster: 0 to {}", ctas - 1)});
    return;
  }
  launch.check_held(warp, instruction, *warp.cta, transfer.source, source, transfer.bytes);
  issue_load(launch, warp, instruction, {nullptr, nullptr, address, {}, source});
}

}  // namespace

void issue_copy(Launch& launch, Warp& warp, const Instruction& instruction) {
  const Transfer& transfer = launch.kernel.transfers[instruction.detail];
  const std::int64_t address = launch.kernel.allocations[instruction.object].offset +
                               warp.integer(transfer.offset) + transfer.step;
  if (!launch.inside(warp, instruction, instruction.object, address, transfer.bytes)) return;
  if (transfer.map < 0) return issue_cluster_copy(launch, warp, instruction, address);
  const TensorMap& map = launch.kernel.maps[transfer.map];
  std::byte* const data = data_in_rank(launch, warp, instruction, *map.tensor, transfer.rank);
  if (!data || !valid(launch, warp, instruction, map, data, address)) return;
  const std::array<std::int64_t, 5> start = coordinates(warp, transfer);
  const bool load = ir::info(instruction.op).writes(ir::Memory::shared);
  if (!begins_inside(launch, warp, instruction, map, start) ||
      !(load || stores_from_inside(launch, warp, instruction, map, start)) ||
      !through_right_map(launch, warp, instruction, map, start)) {
    return;
  }
  for (const analysis::AxisCheck& check : transfer.checks) {
    const std::int64_t at = start[map.tensor->shape.size() - 1 - check.axis];
    launch.fits(warp, instruction, *map.tensor, check, at, map.tensor->shape[check.axis]);
  }
  (load ? issue_load : issue_store)(launch, warp, instruction, {&map, data, address, start});
}

void finish_load(Launch& launch, const Event& event) {
  if (launch.recorder) launch.recorder->load_finished(event);
  if (launch.provenance) launch.provenance->load(event);
  const Transfer& transfer = launch.kernel.transfers[event.instruction->detail];
  SharedMemory& shared = event.destination->shared;
  const auto put = [&](std::int64_t address, const std::byte* global, std::int64_t skip,
                       std::int64_t bytes) {
    if (bytes == 16) return shared.put_chunk(address, global);
    std::byte chunk[16] = {};
    if (bytes > 0) std::memcpy(chunk + skip, global, bytes);
    shared.put_chunk(address, chunk);
  };
  if (launch.kernel.valued && transfer.map >= 0) {
    for_chunks(launch.kernel.maps[transfer.map], event.data, event.address, event.coordinates, put);
  } else if (launch.kernel.valued) {
    const std::byte* const from = event.issuer->cta->shared.at(event.source);
    for (std::int64_t at = 0; at < transfer.bytes; at += 16) {
      shared.put_chunk(event.address + at, from + at);
    }
  }
  shared.hold(event.address, transfer.bytes);
  // Of a pair the first CTA expects the bytes, before its own copies.
  const bool early =
      transfer.multicast != 0 || transfer.source >= 0 || event.issuer->cta != event.signalled;
  complete_tx(launch, event, transfer.bytes, early);
}

void advance_store(Launch& launch, Warp& warp, Store& store, Store::Stage stage) {
  const Instruction& instruction = *store.instruction;
  const TensorMap& map = launch.kernel.maps[launch.kernel.transfers[instruction.detail].map];
  if (store.stage == Store::Stage::issued) {
    const Cta& cta = *warp.cta;
    launch.check_held(warp, instruction, cta, instruction.object, store.address, map.box_bytes());
    if (launch.kernel.valued) {
      const std::byte* from = cta.shared.at(store.address);
      store.data.assign(from, from + map.box_bytes());
    }
    store.stage = Store::Stage::read;
  }
  if (store.stage == Store::Stage::read && stage == Store::Stage::written) {
    const ir::Attributes& attributes = instruction.operation->attributes;
    bool cut = false;
    for_chunks(map, store.to, store.address, store.coordinates,
               [&](std::int64_t address, std::byte* global, std::int64_t skip, std::int64_t bytes) {
                 cut |= skip == 0 && bytes > 0 && bytes < 16;
                 const std::byte* chunk = store.data.data() + (address - store.address);
                 if (bytes == 0 || !launch.kernel.valued) return;
                 if (!attributes.has(ir::Key::function)) {
                   return void(std::memcpy(global, chunk + skip, bytes));
                 }
                 // Integers run over.
                 combine({attributes.function(), map.tensor->dtype, {}, /*may_not_exist=*/true},
                         bytes, chunk + skip, global);
               });
    store.stage = Store::Stage::written;
    // Seen on an H200: what follows the row is overwritten.
    if (cut) {
      launch.log.add(
          {"out_of_bounds",
           instruction.where(),
           {},
           fmt::format("out of bounds: TMA writes whole 16 bytes, and rows of the tensor end "
                       "inside of them\n{}",
                       launch.access("write", instruction, warp)),
           "a last axis whose size in bytes is a multiple of 16, or a store from registers"});
    }
  }
}

void bulk_commit(Warp& warp) {
  for (const auto& store : warp.stores) {
    if (store->group < 0) store->group = warp.store_groups;
  }
  ++warp.store_groups;
}

void bulk_wait(Launch& launch, Warp& warp, const Instruction& instruction) {
  const Store::Stage stage = instruction.detail ? Store::Stage::read : Store::Stage::written;
  const auto awaited = [&](const std::shared_ptr<Store>& store) {
    return store->group >= 0 && store->group < warp.store_groups - instruction.value;
  };
  for (const auto& store : warp.stores) {
    if (!awaited(store)) continue;
    advance_store(launch, warp, *store, stage);
    store->freed = true;
  }
  const auto over = [](const std::shared_ptr<Store>& store) {
    return store->freed && store->stage == Store::Stage::written;
  };
  const std::int64_t over_groups = warp.store_groups - instruction.value;
  launch.order.complete(warp, instruction.elected, Agents::Kind::store_reads, warp.index,
                        over_groups);
  if (!instruction.detail) {
    launch.order.complete(warp, instruction.elected, Agents::Kind::store_writes, warp.index,
                          over_groups);
  }
  warp.stores.erase(std::remove_if(warp.stores.begin(), warp.stores.end(), over),
                    warp.stores.end());
}

}  // namespace tilewright::simulator
