#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ptx/typed.h"
#include "simulator/evaluate_elementwise.h"
#include "support/number_formats.h"

// mbarriers, and bulk copies of tensors' boxes.
namespace tilewright::ptx {
namespace {

constexpr std::int64_t kMostBytes = (std::int64_t{1} << 20) - 1;

struct Place {
  Cta* cta;
  std::uint64_t at;
};

Place barrier_place(Execution& x, const Operand& operand, int lane) {
  const std::uint64_t address = x.addresses(operand)[lane];
  if (address % 8 != 0) x.fail("misaligned", fmt::format("of a barrier at {:#x}", address));
  const auto [cta, at] = x.machine.shared(x, address, 8);
  return {cta, at};
}

Mbarrier& barrier_at(Execution& x, Place place) {
  const auto found = place.cta->barriers.find(place.at);
  if (found == place.cta->barriers.end()) {
    x.fail("mbarrier",
           fmt::format("of shared {:#x}, where no barrier is initialised", place.at + kSharedBase));
  }
  return found->second;
}

void complete_if_due(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.complete = barrier.arriving;
}

// Calls `f(lane, value)` for each lane, with the value of an operand.
template <typename F>
void for_values(Execution& x, std::size_t operand, std::int64_t otherwise, F f) {
  Lanes values;
  values.fill(static_cast<std::uint64_t>(otherwise));
  if (x.has(operand)) values = x.read(operand);
  for_lanes(x.lanes,
            [&](int lane) { f(lane, static_cast<std::int64_t>(values[lane] & 0xffffffff)); });
}

void init(Execution& x) {
  for_values(x, 1, 0, [&](int lane, std::int64_t count) {
    const Place place = barrier_place(x, x.operand(0), lane);
    x.record(EventKind::mbarrier_init, {static_cast<std::int64_t>(place.at), count});
    if (count < 1 || count > kMostBytes) {
      x.fail("mbarrier", fmt::format("with {} arrivals", count));
    }
    if (place.cta->barriers.contains(place.at)) {
      x.fail("mbarrier", fmt::format("of shared {:#x} a second time", place.at + kSharedBase));
    }
    Mbarrier& made = place.cta->barriers[place.at];
    made.expected = made.pending = count;
  });
}

void invalidate(Execution& x) {
  for_lanes(x.lanes, [&](int lane) {
    const Place place = barrier_place(x, x.operand(0), lane);
    barrier_at(x, place);
    place.cta->barriers.erase(place.at);
  });
}

void arrive_on(Execution& x, Place place, std::int64_t count) {
  Mbarrier& barrier = barrier_at(x, place);
  if (barrier.pending < count) {
    x.fail("mbarrier", fmt::format("of shared {:#x}, which has got all {} arrivals of phase {}",
                                   place.at + kSharedBase, barrier.expected, barrier.phase));
  }
  barrier.pending -= count;
  release(x, barrier.arriving);
  complete_if_due(barrier);
}

void arrive(Execution& x) {
  if (x.operand(0).kind != Operand::Kind::sink) x.unsupported();
  const bool remote = x.instruction.has(Modifier::shared_cluster);
  for_values(x, 2, 1, [&](int lane, std::int64_t count) {
    const Place place = barrier_place(x, x.operand(1), lane);
    if (remote) {
      x.record(EventKind::mbarrier_arrive_remote,
               {static_cast<std::int64_t>(place.at), place.cta->rank});
    } else {
      x.record(EventKind::mbarrier_arrive, {static_cast<std::int64_t>(place.at), count});
    }
    arrive_on(x, place, count);
  });
}

void expect(Execution& x, Place place, std::int64_t bytes) {
  Mbarrier& barrier = barrier_at(x, place);
  barrier.bytes += bytes;
  if (barrier.bytes > kMostBytes) x.fail("mbarrier", fmt::format("of {} bytes", barrier.bytes));
}

void arrive_expect(Execution& x) {
  if (x.operand(0).kind != Operand::Kind::sink) x.unsupported();
  for_values(x, 2, 0, [&](int lane, std::int64_t bytes) {
    const Place place = barrier_place(x, x.operand(1), lane);
    x.record(EventKind::mbarrier_expect_tx, {static_cast<std::int64_t>(place.at), bytes});
    expect(x, place, bytes);
    arrive_on(x, place, 1);
  });
}

void expect_alone(Execution& x) {
  for_values(x, 1, 0, [&](int lane, std::int64_t bytes) {
    const Place place = barrier_place(x, x.operand(0), lane);
    x.record(EventKind::mbarrier_expect_tx, {static_cast<std::int64_t>(place.at), bytes});
    expect(x, place, bytes);
  });
}

// A try may end without success. It does so once in a row, which a loop around it has to bear;
// tried again it waits, so that who never comes is seen.
void wait_parity(Execution& x) {
  if (!x.instruction.has(Modifier::parity)) x.unsupported();
  const std::uint32_t first = x.first_lane();
  const Place place = barrier_place(x, x.operand(1), static_cast<int>(first));
  const auto parity = static_cast<std::int64_t>(x.uniform(2) & 0xffffffff);
  const Lanes addresses = x.addresses(x.operand(1));
  for_lanes(x.lanes, [&](int lane) {
    if (addresses[lane] != addresses[first]) x.fail("divergence", "waits for several barriers");
  });
  if (parity > 1) x.fail("mbarrier", fmt::format("for parity {}", parity));
  const Mbarrier& barrier = barrier_at(x, place);
  const bool complete = static_cast<std::int64_t>(barrier.phase & 1) != parity;
  x.again = !complete && x.path.tried == x.path.pc;
  if (x.again) return;
  x.path.tried = complete ? -1 : x.path.pc;
  if (complete) {
    x.record(EventKind::mbarrier_wait, {static_cast<std::int64_t>(place.at), parity});
    acquire(x, barrier.complete);
  }
  Lanes& p = x.target(0);
  for_lanes(x.lanes, [&](int lane) { p[lane] = complete; });
}

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
// of shared memory; global address 0 stands for what is outside of the tensor.
template <typename Visit>
void for_pieces(const TensorMap& map, std::uint64_t shared,
                const std::array<std::int64_t, 5>& start, Visit visit) {
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
  x.record(EventKind::tensor_load, std::move(values));
  const auto& ctas = x.cta().cluster->ctas;
  if (receivers >> ctas.size() != 0 || receivers == 0) {
    x.fail("out_of_bounds",
           fmt::format("to CTAs {:#x} of a cluster of {}", receivers, ctas.size()));
  }
  for (const auto& each : ctas) {
    if (!(receivers >> each->rank & 1)) continue;
    if (each->live == 0) x.fail("exit", fmt::format("to CTA {}, which has ended", each->index));
    barrier_at(x, {each.get(), barrier.at});
    std::fill_n(each->held.begin() + static_cast<std::ptrdiff_t>(at), box_bytes(described), 0);
    touch(x, *each, at, box_bytes(described), Accessor::bulk_load);
    Load made{&i, each.get(), map, at, barrier.at, start};
    release(x, made.known);
    if (x.machine.input.timing == Timing::late) {
      x.machine.loads.push_back(made);
    } else {
      finish_load(x.machine, made);
    }
  }
}

void read_source(Machine& machine, Warp& warp, Store& store) {
  if (store.read) return;
  store.read = true;
  const std::int64_t bytes = box_bytes(machine.input.maps[store.map]);
  const auto held = warp.cta->held.begin() + static_cast<std::ptrdiff_t>(store.address);
  if (std::find(held, held + bytes, 0) != held + bytes) {
    throw Failure{{"uninitialised", store.instruction->line,
                   "uninitialised: a bulk store of shared memory that has not been written"}};
  }
  const auto from = warp.cta->shared.begin() + static_cast<std::ptrdiff_t>(store.address);
  store.data.assign(from, from + bytes);
}

void combine(const Instruction& by, const TensorMap& map, const std::byte* brought,
             std::byte* memory, std::int64_t bytes) {
  const bool adds = by.has(Modifier::add), least = by.has(Modifier::min);
  const int element = size_of(map.type);
  for (std::int64_t at = 0; at < bytes; at += element) {
    std::uint64_t a = 0, b = 0;
    std::memcpy(&a, memory + at, static_cast<std::size_t>(element));
    std::memcpy(&b, brought + at, static_cast<std::size_t>(element));
    const auto pick = [&](auto u, auto v) {
      return adds ? u + v : least ? (v < u ? v : u) : (u < v ? v : u);
    };
    std::uint64_t result = 0;
    if (map.type == Type::f32) {
      result = to_bits(pick(from_bits<float>(a), from_bits<float>(b)));
    } else if (map.type == Type::f16) {
      result = float_to_f16(pick(f16_to_float(static_cast<std::uint16_t>(a)),
                                 f16_to_float(static_cast<std::uint16_t>(b))));
    } else if (map.type == Type::bf16) {
      result = float_to_bf16(pick(bf16_to_float(static_cast<std::uint16_t>(a)),
                                  bf16_to_float(static_cast<std::uint16_t>(b))));
    } else if (is_signed(map.type) && element == 4) {
      result = to_bits(static_cast<std::int32_t>(pick(std::int64_t{from_bits<std::int32_t>(a)},
                                                      std::int64_t{from_bits<std::int32_t>(b)})));
    } else {
      result = pick(a, b);
    }
    std::memcpy(memory + at, &result, static_cast<std::size_t>(element));
  }
}

void write_target(Machine& machine, Store& store) {
  if (store.written) return;
  store.written = true;
  const TensorMap& map = machine.input.maps[store.map];
  for_pieces(
      map, store.address + kSharedBase, store.start,
      [&](std::uint64_t shared, std::uint64_t global, std::int64_t bytes) {
        if (global == 0) return;
        std::byte* const to = machine.find(global, bytes);
        if (!to) {
          throw Failure{{"out_of_bounds", store.instruction->line,
                         "out of bounds: a bulk store " + machine.describe_outside(global, bytes)}};
        }
        const std::byte* const from = store.data.data() + (shared - kSharedBase - store.address);
        if (store.instruction->record->name == "cp.reduce.async.bulk.tensor") {
          return combine(*store.instruction, map, from, to, bytes);
        }
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      });
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
  touch(x, *cta, at, box_bytes(described), Accessor::bulk_store,
        static_cast<std::uint32_t>(x.warp.store_groups[lane] + 1));
  Store made;
  made.start = coordinates_of(x, target, lane, values);
  x.record(EventKind::tensor_store, std::move(values));
  made.instruction = &i;
  made.lane = lane;
  made.map = map;
  made.address = at;
  if (x.machine.input.timing == Timing::early) {
    read_source(x.machine, x.warp, made);
    write_target(x.machine, made);
  }
  x.warp.stores.push_back(std::move(made));
}

void copy(Execution& x) {
  const bool loads = x.instruction.has(Modifier::complete_tx);
  if (loads == x.instruction.has(Modifier::bulk_group)) x.unsupported();
  for_lanes(x.lanes, [&](int lane) { loads ? load_box(x, lane) : store_box(x, lane); });
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
      read_source(x.machine, x.warp, each);
      if (!read_alone) write_target(x.machine, each);
      each.waited = true;
    }
    complete_groups(x, Agent::bulk_stores, x.warp.store_groups[lane] - pending);
  });
  std::erase_if(x.warp.stores, [](const Store& each) { return each.written && each.waited; });
}

void prefetch(Execution&) {}

constexpr std::string_view kBarrier =
    "shared shared::cta shared::cluster release relaxed cta cluster";
constexpr Record kUnitRecords[] = {
    {"mbarrier.init", "as", "shared shared::cta", "b64", init},
    {"mbarrier.inval", "a", "shared shared::cta", "b64", invalidate},
    {"mbarrier.arrive", "da?s", kBarrier, "b64", arrive},
    {"mbarrier.arrive.expect_tx", "das", kBarrier, "b64", arrive_expect},
    {"mbarrier.expect_tx", "as", kBarrier, "b64", expect_alone},
    {"mbarrier.try_wait", "das?s", "parity shared shared::cta acquire relaxed cta cluster", "b64",
     wait_parity},
    {"mbarrier.test_wait", "das", "parity shared shared::cta acquire relaxed cta cluster", "b64",
     wait_parity},
    {"prefetch.tensormap", "a", "", "", prefetch},
    {"cp.async.bulk.tensor", "aa?ass",
     "1d 2d 3d 4d 5d shared::cluster shared::cta global tile mbarrier::complete_tx::bytes "
     "bulk_group "
     "multicast::cluster L2::cache_hint",
     "", copy},
    {"cp.reduce.async.bulk.tensor", "aa?s",
     "1d 2d 3d 4d 5d global shared::cta add min max tile bulk_group L2::cache_hint", "", copy},
    {"cp.async.bulk.commit_group", "", "", "", commit_stores},
    {"cp.async.bulk.wait_group", "s", "read", "", wait_stores},
};

}  // namespace

void finish_load(Machine& machine, const Load& load) {
  const TensorMap& map = machine.input.maps[load.map];
  Cta& cta = *load.to;
  for_pieces(
      map, load.address + kSharedBase, load.start,
      [&](std::uint64_t shared, std::uint64_t global, std::int64_t bytes) {
        std::byte* const to = cta.shared.data() + (shared - kSharedBase);
        if (global == 0) return void(std::memset(to, 0, static_cast<std::size_t>(bytes)));
        const std::byte* const from = machine.find(global, bytes);
        if (!from) {
          throw Failure{{"out_of_bounds", load.instruction->line,
                         "out of bounds: a bulk load " + machine.describe_outside(global, bytes)}};
        }
        std::memcpy(to, from, static_cast<std::size_t>(bytes));
      });
  const std::int64_t bytes = box_bytes(map);
  std::fill_n(cta.held.begin() + static_cast<std::ptrdiff_t>(load.address), bytes, 1);
  Mbarrier& barrier = cta.barriers[load.barrier];
  join(barrier.arriving, load.known);
  barrier.bytes -= bytes;
  if (barrier.bytes < -kMostBytes) {
    throw Failure{
        {"mbarrier", load.instruction->line, "mbarrier: copies bring more than is expected"}};
  }
  complete_if_due(barrier);
}

void finish_all_stores(Machine& machine, Warp& warp) {
  for (Store& store : warp.stores) {
    if (!store.waited) {
      throw Failure{{"bulk", store.instruction->line,
                     "bulk: a store may still read shared memory when its warp ends, with no wait "
                     "for its group, " +
                         machine.describe(warp)}};
    }
    read_source(machine, warp, store);
    write_target(machine, store);
  }
  warp.stores.clear();
}

std::span<const Record> unit_records() { return kUnitRecords; }

}  // namespace tilewright::ptx
