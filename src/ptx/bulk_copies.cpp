#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ptx/typed.h"
#include "simulator/evaluate_elementwise.h"
#include "support/number_formats.h"

// Bulk copies: of tensors' boxes, and of bytes in a row.
namespace tilewright::ptx {

namespace {

using Place = BarrierPlace;

std::size_t map_at(Execution& x, std::uint64_t address) {
  std::uint64_t words[3];
  for (int i = 0; i < 3; ++i) {
    std::memcpy(&words[i], x.machine.memory(x, Space::generic, address + 8 * i, 8, 0), 8);
  }
  const auto handle = handle_of(words[1]);
  if (std::memcmp(handle.data(), words, sizeof(words)) != 0 ||
      words[1] >= x.machine.input.maps.size()) {
    x.fail("tensor_map", fmt::format("of {:#x}, where no tensor map is", address));
  }
  return words[1];
}

std::int64_t box_bytes(const TensorMap& map) {
  std::int64_t bytes = size_of(map.type);
  for (int axis = 0; axis < map.rank; ++axis) bytes *= map.box[axis];
  return bytes;
}

// Calls `visit(shared address, global address, bytes)` for the pieces of a box that lie in 16 bytes
// of shared memory; global address 0 stands for what is outside of the tensor. Bytes in a row are
// one piece.
template <typename Visit>
void for_pieces(const Piece& all, std::uint64_t shared, Visit visit) {
  if (!all.map) return void(visit(shared, all.outside, all.bytes));
  const TensorMap& map = *all.map;
  const std::array<std::int64_t, 5>& start = all.start;
  const std::int64_t element = size_of(map.type), per_chunk = 16 / element;
  const std::int64_t row_bytes = map.box[0] * element;
  const std::int64_t rows = box_bytes(map) / row_bytes;
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t rest = row, offset = 0;
    bool inside = true;
    for (int axis = 1; axis < map.rank; ++axis) {
      const std::int64_t at = start[axis] + rest % map.box[axis];
      rest /= map.box[axis];
      inside = inside && at >= 0 && at < map.sizes[axis];
      offset += at * map.strides[axis];
    }
    for (std::int64_t column = 0; column < map.box[0]; column += per_chunk) {
      std::uint64_t to = shared + static_cast<std::uint64_t>(row * row_bytes + column * element);
      // The chunk's number in its row of `swizzle` bytes, by the number of the 128 bytes.
      if (map.swizzle != 0) to ^= (to >> 7 & static_cast<std::uint64_t>(map.swizzle / 16 - 1)) << 4;
      const std::int64_t from = start[0] + column, end = from + per_chunk;
      const std::int64_t low = std::clamp<std::int64_t>(0, from, end);
      const std::int64_t high = std::clamp<std::int64_t>(map.sizes[0], low, end);
      const auto piece = [&](std::int64_t first, std::int64_t last, bool exists) {
        if (first >= last) return;
        const std::uint64_t global =
            exists ? map.base + static_cast<std::uint64_t>(offset + first * element) : 0;
        visit(to + static_cast<std::uint64_t>((first - from) * element), global,
              (last - first) * element);
      };
      piece(from, low, false);
      piece(low, high, inside);
      piece(high, end, false);
    }
  }
}

void check_copy(Execution& x, const TensorMap& map, std::uint64_t address,
                std::size_t coordinates) {
  const int axes = x.instruction.has(Modifier::d1)   ? 1
                   : x.instruction.has(Modifier::d2) ? 2
                   : x.instruction.has(Modifier::d3) ? 3
                   : x.instruction.has(Modifier::d4) ? 4
                                                     : 5;
  if (map.rank != axes || coordinates != static_cast<std::size_t>(axes)) {
    x.fail("tensor_map", fmt::format("of {} axes and {} coordinates, of {} of {} axes", axes,
                                     coordinates, map.name, map.rank));
  }
  const std::uint64_t alignment =
      map.swizzle == 0 ? 128 : static_cast<std::uint64_t>(map.swizzle) * 8;
  if (address % alignment != 0) {
    x.fail("misaligned", fmt::format("of shared {:#x}, not a multiple of {}", address, alignment));
  }
}

std::array<std::int64_t, 5> coordinates_of(Execution& x, const Operand& operand, int lane,
                                           std::vector<std::int64_t>& values) {
  std::array<std::int64_t, 5> start{};
  for (std::size_t i = 1; i < operand.parts.size() && i <= start.size(); ++i) {
    start[i - 1] = static_cast<std::int32_t>(x.read(operand.parts[i], 0)[lane]);
    values.push_back(start[i - 1]);
  }
  return start;
}

// Bytes that a piece moves, into shared memory or out of it.
std::int64_t bytes_of(const Piece& piece) {
  return piece.map ? box_bytes(*piece.map) : piece.bytes;
}

void finish_load(Machine& machine, const Load& load) {
  Cta& cta = *load.to;
  for_pieces(
      load.piece, load.address + kSharedBase,
      [&](std::uint64_t shared, std::uint64_t outside, std::int64_t bytes) {
        std::byte* const to = cta.shared.data() + (shared - kSharedBase);
        const auto size = static_cast<std::size_t>(bytes);
        if (load.piece.from) {
          std::memcpy(to, load.piece.from->shared.data() + outside, size);
          return;
        }
        if (outside == 0) return void(std::memset(to, 0, size));
        const std::byte* const from = machine.find(outside, bytes);
        if (!from) {
          throw Failure{{"out_of_bounds", load.instruction->line,
                         "out of bounds: a bulk load " + machine.describe_outside(outside, bytes)}};
        }
        std::memcpy(to, from, size);
      });
  const std::int64_t bytes = bytes_of(load.piece);
  std::fill_n(cta.held.begin() + static_cast<std::ptrdiff_t>(load.address), bytes, 1);
  Mbarrier& barrier = load.signalled->barriers[load.barrier];
  join(barrier.arriving, load.known);
  barrier.bytes -= bytes;
  if (barrier.bytes < -kMostPending) {
    throw Failure{
        {"mbarrier", load.instruction->line, "mbarrier: copies bring more than is expected"}};
  }
  complete_if_due(barrier);
}

// To one CTA.
void begin_load(Execution& x, Load made) {
  Cta& cta = *made.to;
  if (cta.live == 0) x.fail("exit", fmt::format("to CTA {}, which has ended", cta.index));
  if (!made.signalled) made.signalled = &cta;
  barrier_at(x, {made.signalled, made.barrier});
  const std::int64_t bytes = bytes_of(made.piece);
  std::fill_n(cta.held.begin() + static_cast<std::ptrdiff_t>(made.address), bytes, 0);
  touch(x, cta, made.address, bytes, Accessor::bulk_load);
  if (!made.piece.from) {
    for_pieces(made.piece, made.address + kSharedBase,
               [&](std::uint64_t, std::uint64_t global, std::int64_t size) {
                 if (global != 0) touch_global(x, {global, size, false, false, 0, true});
               });
  }
  release(x, made.known);
  if (x.machine.input.timing == Timing::early) return finish_load(x.machine, made);
  Machine& machine = x.machine;
  machine.under_way.push_back(
      {&cta, made.instruction, [&machine, made] { finish_load(machine, made); }});
}

// To each of the CTAs. With .cta_group::2 the barrier is in that CTA of each pair that has the
// place in it of the one that the address names.
void begin_loads(Execution& x, const Load& made, std::uint64_t receivers) {
  const auto& ctas = x.cta().cluster->ctas;
  if (receivers >> ctas.size() != 0 || receivers == 0) {
    x.fail("out_of_bounds",
           fmt::format("to CTAs {:#x} of a cluster of {}", receivers, ctas.size()));
  }
  for (const auto& each : ctas) {
    if (!(receivers >> each->rank & 1)) continue;
    Load own = made;
    own.to = each.get();
    if (made.signalled) own.signalled = ctas[(each->rank & ~1) | (made.signalled->rank & 1)].get();
    begin_load(x, std::move(own));
  }
}

bool begins_before(const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  return std::any_of(start.begin(), start.begin() + map.rank,
                     [](std::int64_t at) { return at < 0; });
}

// To load a box of which nothing exists, or that begins before an axis, hardware touches the
// address where the map begins.
void touch_base(Execution& x, const TensorMap& map, const std::array<std::int64_t, 5>& start) {
  bool touches = begins_before(map, start);
  for (int axis = 0; axis < map.rank; ++axis) touches |= start[axis] >= map.sizes[axis];
  if (!touches || x.machine.find(map.base, 1)) return;
  x.fail("out_of_bounds",
         fmt::format("of a box that begins before {} or lies outside of it, whose map begins {}",
                     map.name, x.machine.describe_outside(map.base, 1)));
}

void load_box(Execution& x, int lane) {
  const Instruction& i = x.instruction;
  const Operand& source = x.operand(1);
  const std::uint64_t to = x.addresses(x.operand(0))[lane];
  const std::size_t map = map_at(x, x.addresses(source)[lane]);
  const TensorMap& described = x.machine.input.maps[map];
  check_copy(x, described, to & kSharedMask, source.parts.size() - 1);
  const auto [cta, at] = x.machine.shared(x, to, box_bytes(described));
  if (!x.has(2) || x.operand(2).kind != Operand::Kind::address) x.unsupported();
  const Place barrier = barrier_place(x, x.operand(2), lane);
  std::uint64_t receivers = std::uint64_t{1} << cta->rank;
  const bool multicast = i.has(Modifier::multicast);
  if (multicast) receivers = x.read(3)[lane] & 0xffff;
  std::vector<std::int64_t> values{static_cast<std::int64_t>(map), static_cast<std::int64_t>(at),
                                   static_cast<std::int64_t>(barrier.at),
                                   multicast ? static_cast<std::int64_t>(receivers) : 0,
                                   described.rank};
  const auto start = coordinates_of(x, source, lane, values);
  touch_base(x, described, start);
  x.record(EventKind::tensor_load, std::move(values));
  Load made{&i, cta, {&described, start}, at, barrier.at};
  if (i.has(Modifier::cta_group_2)) made.signalled = barrier.cta;
  begin_loads(x, made, receivers);
}

void read_source(Warp& warp, Store& store) {
  if (store.read) return;
  store.read = true;
  const std::int64_t bytes = bytes_of(store.piece);
  const auto held = warp.cta->held.begin() + static_cast<std::ptrdiff_t>(store.address);
  if (std::find(held, held + bytes, 0) != held + bytes) {
    throw Failure{{"uninitialised", store.instruction->line,
                   "uninitialised: a bulk store of shared memory that has not been written"}};
  }
  const auto from = warp.cta->shared.begin() + static_cast<std::ptrdiff_t>(store.address);
  store.data.assign(from, from + bytes);
}

void combine(const Instruction& by, Type type, const std::byte* brought, std::byte* memory,
             std::int64_t bytes) {
  const bool adds = by.has(Modifier::add), least = by.has(Modifier::min);
  const int element = size_of(type);
  for (std::int64_t at = 0; at < bytes; at += element) {
    std::uint64_t a = 0, b = 0;
    std::memcpy(&a, memory + at, static_cast<std::size_t>(element));
    std::memcpy(&b, brought + at, static_cast<std::size_t>(element));
    const auto pick = [&](auto u, auto v) {
      return adds ? u + v : least ? (v < u ? v : u) : (u < v ? v : u);
    };
    std::uint64_t result = 0;
    if (type == Type::f32) {
      result = to_bits(pick(from_bits<float>(a), from_bits<float>(b)));
    } else if (type == Type::f16) {
      result = float_to_f16(pick(f16_to_float(static_cast<std::uint16_t>(a)),
                                 f16_to_float(static_cast<std::uint16_t>(b))));
    } else if (type == Type::bf16) {
      result = float_to_bf16(pick(bf16_to_float(static_cast<std::uint16_t>(a)),
                                  bf16_to_float(static_cast<std::uint16_t>(b))));
    } else if (is_signed(type) && element == 4) {
      result = to_bits(static_cast<std::int32_t>(pick(std::int64_t{from_bits<std::int32_t>(a)},
                                                      std::int64_t{from_bits<std::int32_t>(b)})));
    } else if (is_signed(type)) {
      result = to_bits(pick(from_bits<std::int64_t>(a), from_bits<std::int64_t>(b)));
    } else {
      result = pick(a, b);
    }
    std::memcpy(memory + at, &result, static_cast<std::size_t>(element));
  }
}

void write_target(Machine& machine, Store& store) {
  if (store.written) return;
  store.written = true;
  const Piece& piece = store.piece;
  const Instruction& by = *store.instruction;
  for_pieces(
      piece, store.address + kSharedBase,
      [&](std::uint64_t shared, std::uint64_t global, std::int64_t bytes) {
        if (global == 0) return;
        std::byte* const to = machine.find(global, bytes);
        if (!to) {
          throw Failure{{"out_of_bounds", by.line,
                         "out of bounds: a bulk store " + machine.describe_outside(global, bytes)}};
        }
        const std::byte* const from = store.data.data() + (shared - kSharedBase - store.address);
        if (by.record->name.starts_with("cp.reduce")) {
          return combine(by, piece.map ? piece.map->type : by.type, from, to, bytes);
        }
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      });
}

void begin_store(Execution& x, Store made) {
  const std::int64_t bytes = bytes_of(made.piece);
  touch(x, x.cta(), made.address, bytes, Accessor::bulk_store,
        static_cast<std::uint32_t>(x.warp.store_groups[made.lane] + 1));
  const bool reduces = x.instruction.record->name.starts_with("cp.reduce");
  for_pieces(made.piece, made.address + kSharedBase,
             [&](std::uint64_t, std::uint64_t global, std::int64_t size) {
               if (global != 0) touch_global(x, {global, size, true, false, 0, true, reduces});
             });
  if (x.machine.input.timing == Timing::early) {
    read_source(x.warp, made);
    write_target(x.machine, made);
  }
  x.warp.stores.push_back(std::move(made));
}

void store_box(Execution& x, int lane) {
  const Instruction& i = x.instruction;
  const Operand& target = x.operand(0);
  if (x.operand(1).kind != Operand::Kind::address) x.unsupported();
  const std::uint64_t from = x.addresses(x.operand(1))[lane];
  const std::size_t map = map_at(x, x.addresses(target)[lane]);
  const TensorMap& described = x.machine.input.maps[map];
  check_copy(x, described, from & kSharedMask, target.parts.size() - 1);
  const auto [cta, at] = x.machine.shared(x, from, box_bytes(described));
  if (cta != &x.cta()) x.fail("out_of_bounds", "of another CTA's shared memory");
  const int reduction = i.has(Modifier::add)   ? 1
                        : i.has(Modifier::min) ? 2
                        : i.has(Modifier::max) ? 3
                                               : 0;
  std::vector<std::int64_t> values{static_cast<std::int64_t>(map), static_cast<std::int64_t>(at),
                                   reduction, described.rank};
  Store made;
  made.instruction = &i;
  made.lane = lane;
  made.piece.map = &described;
  made.piece.start = coordinates_of(x, target, lane, values);
  // Hardware does not execute it, also where the box reaches into the tensor.
  if (begins_before(described, made.piece.start)) {
    x.fail("out_of_bounds", fmt::format("of a store that begins before {}", described.name));
  }
  made.address = at;
  x.record(EventKind::tensor_store, std::move(values));
  begin_store(x, std::move(made));
}

void copy_box(Execution& x) {
  const bool loads = x.instruction.has(Modifier::complete_tx);
  if (loads == x.instruction.has(Modifier::bulk_group)) x.unsupported();
  for_lanes(x.lanes, [&](int lane) { loads ? load_box(x, lane) : store_box(x, lane); });
}

// Bytes in a row, whose number is operand 2. No machine form has such copies to and from global
// memory: those are not recorded.
std::int64_t row_bytes(Execution& x, int lane, std::uint64_t to, std::uint64_t from) {
  const auto bytes = static_cast<std::int64_t>(x.read(2)[lane] & 0xffffffff);
  if (bytes % 16 != 0 || to % 16 != 0 || from % 16 != 0) {
    x.fail("misaligned", fmt::format("of {} bytes from {:#x} to {:#x}, not all multiples of 16",
                                     bytes, from, to));
  }
  return bytes;
}

// The memory of a CTA of the cluster, at an address that may be a generic one.
Place shared_place(Execution& x, std::uint64_t address, std::int64_t bytes) {
  const auto [cta, at] = x.machine.shared(x, address & kWindowMask, bytes);
  return {cta, at};
}

void load_row(Execution& x, int lane) {
  const Instruction& i = x.instruction;
  const std::uint64_t to = x.addresses(x.operand(0))[lane], from = x.addresses(x.operand(1))[lane];
  const std::int64_t bytes = row_bytes(x, lane, to, from);
  if (!x.has(3) || x.operand(3).kind != Operand::Kind::address) x.unsupported();
  const Place place = shared_place(x, to, bytes), barrier = barrier_place(x, x.operand(3), lane);
  Load made{&i, place.cta, {}, place.at, barrier.at};
  made.piece.bytes = bytes;
  if (i.has(Modifier::global)) {
    made.piece.outside = from;
    if (bytes > 0 && !x.machine.find(from, bytes)) {
      x.fail("out_of_bounds", x.machine.describe_outside(from, bytes));
    }
    const bool multicast = i.has(Modifier::multicast);
    return begin_loads(x, made,
                       multicast ? x.read(4)[lane] & 0xffff : std::uint64_t{1} << place.cta->rank);
  }
  // Of this CTA's shared memory, which is read until the other one's barrier says so.
  const Place source = shared_place(x, from, bytes);
  if (source.cta != &x.cta()) x.fail("out_of_bounds", "of another CTA's shared memory");
  if (barrier.cta != place.cta) x.fail("mbarrier", "in another CTA than the copy's target");
  const auto held = source.cta->held.begin() + static_cast<std::ptrdiff_t>(source.at);
  if (std::find(held, held + bytes, 0) != held + bytes) {
    x.fail("uninitialised", "of shared memory that has not been written");
  }
  x.record(EventKind::cluster_copy,
           {static_cast<std::int64_t>(source.at), static_cast<std::int64_t>(place.at), bytes,
            static_cast<std::int64_t>(barrier.at), place.cta->rank});
  touch(x, *source.cta, source.at, bytes, Accessor::bulk_source, epoch_of(x.warp));
  made.piece.outside = source.at;
  made.piece.from = source.cta;
  begin_load(x, std::move(made));
}

void store_row(Execution& x, int lane) {
  const std::uint64_t to = x.addresses(x.operand(0))[lane], from = x.addresses(x.operand(1))[lane];
  const std::int64_t bytes = row_bytes(x, lane, to, from);
  const Place source = shared_place(x, from, bytes);
  if (source.cta != &x.cta()) x.fail("out_of_bounds", "of another CTA's shared memory");
  if (bytes > 0 && !x.machine.find(to, bytes)) {
    x.fail("out_of_bounds", x.machine.describe_outside(to, bytes));
  }
  Store made;
  made.instruction = &x.instruction;
  made.lane = lane;
  made.address = source.at;
  made.piece.outside = to;
  made.piece.bytes = bytes;
  begin_store(x, std::move(made));
}

void copy_row(Execution& x) {
  const bool loads = x.instruction.has(Modifier::complete_tx);
  if (loads == x.instruction.has(Modifier::bulk_group)) x.unsupported();
  const bool reduces = x.instruction.record->name.starts_with("cp.reduce");
  if (loads && reduces) x.unsupported();
  for_lanes(x.lanes, [&](int lane) { loads ? load_row(x, lane) : store_row(x, lane); });
}

void commit_stores(Execution& x) {
  x.record(EventKind::bulk_commit);
  for_lanes(x.lanes, [&](int lane) {
    for (Store& each : x.warp.stores) {
      if (each.lane == lane && each.group < 0) each.group = x.warp.store_groups[lane];
    }
    ++x.warp.store_groups[lane];
  });
}

void wait_stores(Execution& x) {
  const bool read_alone = x.instruction.has(Modifier::read);
  const auto pending = static_cast<std::int64_t>(x.uniform(0));
  x.record(read_alone ? EventKind::bulk_wait_read : EventKind::bulk_wait, {pending});
  for_lanes(x.lanes, [&](int lane) {
    for (Store& each : x.warp.stores) {
      if (each.lane != lane || each.group < 0 ||
          each.group >= x.warp.store_groups[lane] - pending) {
        continue;
      }
      read_source(x.warp, each);
      each.waited = true;
      if (read_alone) continue;
      write_target(x.machine, each);
      for_pieces(each.piece, each.address + kSharedBase,
                 [&](std::uint64_t, std::uint64_t global, std::int64_t size) {
                   if (global != 0) land_global(x, global, size);
                 });
    }
    complete_groups(x, Agent::bulk_stores, x.warp.store_groups[lane] - pending);
  });
  std::erase_if(x.warp.stores, [](const Store& each) { return each.written && each.waited; });
}

void prefetch(Execution&) {}

constexpr Record kBulkRecords[] = {
    {"prefetch.tensormap", "a", "", "", prefetch},
    {"cp.async.bulk.tensor", "aa?ass",
     "1d 2d 3d 4d 5d shared::cluster shared::cta global tile mbarrier::complete_tx::bytes "
     "bulk_group "
     "multicast::cluster cta_group::1 cta_group::2 L2::cache_hint",
     "", copy_box},
    {"cp.reduce.async.bulk.tensor", "aa?s",
     "1d 2d 3d 4d 5d global shared::cta add min max tile bulk_group L2::cache_hint", "", copy_box},
    {"cp.async.bulk", "aas?ass",
     "shared::cluster shared::cta global mbarrier::complete_tx::bytes bulk_group "
     "multicast::cluster L2::cache_hint",
     "", copy_row},
    {"cp.reduce.async.bulk", "aas?s",
     "global shared::cta add min max noftz bulk_group L2::cache_hint",
     "f16 bf16 f32 u32 s32 u64 s64", copy_row},
    {"cp.async.bulk.prefetch.L2", "as?s", "global L2::cache_hint", "", prefetch},
    {"cp.async.bulk.commit_group", "", "", "", commit_stores},
    {"cp.async.bulk.wait_group", "s", "read", "", wait_stores},
};

}  // namespace

void finish_all_stores(Machine& machine, Warp& warp) {
  for (Store& store : warp.stores) {
    if (!store.waited) {
      throw Failure{{"bulk", store.instruction->line,
                     "bulk: a store may still read shared memory when its warp ends, with no wait "
                     "for its group, " +
                         machine.describe(warp)}};
    }
    read_source(warp, store);
    write_target(machine, store);
  }
  warp.stores.clear();
}

std::span<const Record> bulk_records() { return kBulkRecords; }

}  // namespace tilewright::ptx
