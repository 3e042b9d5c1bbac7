#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "ptx/typed.h"
#include "support/number_formats.h"

// Loads, stores and atomics of threads, and matrices that a warp loads or stores together.
namespace tilewright::ptx {
namespace {

Space space_of(const Instruction& i) {
  if (i.has(Modifier::global) || i.has(Modifier::constant)) return Space::global;
  if (i.has(Modifier::shared) || i.has(Modifier::shared_cta) || i.has(Modifier::shared_cluster)) {
    return Space::shared;
  }
  if (i.has(Modifier::local)) return Space::local;
  if (i.has(Modifier::param)) return Space::param;
  return Space::generic;
}

// 0 weak, 1 relaxed, 2 acquire, 3 release, 4 both.
int semantics_of(const Instruction& i) {
  if (i.has(Modifier::acq_rel)) return 4;
  if (i.has(Modifier::release)) return 3;
  if (i.has(Modifier::acquire)) return 2;
  return i.has(Modifier::relaxed) || i.has(Modifier::volatile_) ? 1 : 0;
}
int scope_of(const Instruction& i) {
  if (i.has(Modifier::volatile_)) return 3;
  return i.has(Modifier::cta) ? 0 : i.has(Modifier::cluster) ? 1 : i.has(Modifier::sys) ? 3 : 2;
}

WordOrder order_of(const Instruction& i) {
  const int semantics = semantics_of(i);
  return {semantics == 2 || semantics == 4, semantics == 3 || semantics == 4, false, scope_of(i)};
}

std::size_t parts_of(const Operand& operand) {
  return operand.kind == Operand::Kind::vector ? operand.parts.size() : 1;
}
const Operand& part_of(const Operand& operand, std::size_t part) {
  return operand.kind == Operand::Kind::vector ? operand.parts[part] : operand;
}

bool is_shared(Space space, std::uint64_t address) {
  return space == Space::shared ||
         (space == Space::generic && (address & ~kWindowMask) == kSharedWindow);
}

bool is_global(Space space, std::uint64_t address) {
  const std::uint64_t window = address & ~kWindowMask;
  return space == Space::global || (space == Space::generic && window != kSharedWindow &&
                                    window != kLocalWindow && window != kParamWindow);
}

void check_held(Execution& x, std::uint64_t address, std::int64_t bytes, bool orders = true) {
  const auto [cta, at] = x.machine.shared(x, address & kWindowMask, bytes);
  if (std::find(cta->held.begin() + static_cast<std::ptrdiff_t>(at),
                cta->held.begin() + static_cast<std::ptrdiff_t>(at) + bytes,
                0) != cta->held.begin() + static_cast<std::ptrdiff_t>(at) + bytes) {
    x.fail("uninitialised", fmt::format("of {} bytes at shared {:#x}, which has not been written",
                                        bytes, address & kWindowMask));
  }
  if (orders) touch(x, *cta, at, bytes, Accessor::load);
}
void hold(Execution& x, std::uint64_t address, std::int64_t bytes) {
  const auto [cta, at] = x.machine.shared(x, address & kWindowMask, bytes);
  std::fill_n(cta->held.begin() + static_cast<std::ptrdiff_t>(at), bytes, 1);
  touch(x, *cta, at, bytes, Accessor::store);
}

// Whether a strong load finds at these addresses what it found there before, so that it waits.
bool finds_the_same(Execution& x, Space space, const Lanes& addresses, std::int64_t bytes) {
  std::vector<std::byte> found;
  for_lanes(x.lanes, [&](int lane) {
    const auto* const at = reinterpret_cast<const std::byte*>(&addresses[lane]);
    const std::byte* const word = x.machine.memory(x, space, addresses[lane], bytes, lane);
    found.insert(found.end(), at, at + sizeof(addresses[lane]));
    found.insert(found.end(), word, word + bytes);
  });
  return polls_in_vain(x, found.data(), found.size());
}

// Loads and stores that order others, as the machine form counts them: of one word. An atomic one
// that says nothing is relaxed. Those of a tile's elements, which it does not count, are printed
// with their state space and as no u32.
void record_word(Execution& x, EventKind kind, std::uint64_t address, std::int64_t value) {
  if (x.instruction.has(Modifier::global) && x.instruction.type != Type::u32) return;
  const auto word = static_cast<std::int64_t>(address);
  const Instruction& i = x.instruction;
  const int semantics = std::max(semantics_of(i), kind == EventKind::word_add ? 1 : 0);
  std::vector<std::int64_t> values{semantics, scope_of(i), word};
  if (kind != EventKind::word_read) {
    values.push_back(value);
  } else if (const std::vector<Event>& events = *x.warp.events;
             !events.empty() && events.back().kind == kind && events.back().values == values) {
    return;  // what is asked again and again is said once
  }
  x.record(kind, std::move(values));
}

void load_lanes(Execution& x) {
  const Instruction& i = x.instruction;
  const Space space = space_of(i);
  const Operand& to = x.operand(0);
  const Lanes addresses = x.addresses(x.operand(1));
  const int bytes = size_of(i.type);
  const std::size_t parts = parts_of(to);
  const std::int64_t all = bytes * static_cast<std::int64_t>(parts);
  if (semantics_of(i) != 0) {
    if (finds_the_same(x, space, addresses, all)) return;
    record_word(x, EventKind::word_read, addresses[x.first_lane()], 0);
  }
  std::array<std::array<std::byte, 32>, kLanes> read{};
  if (all > 32) x.unsupported();
  for_lanes(x.lanes, [&](int lane) {
    const std::byte* from = x.machine.memory(x, space, addresses[lane], all, lane);
    if (is_shared(space, addresses[lane])) check_held(x, addresses[lane], all);
    if (is_global(space, addresses[lane])) {
      const WordOrder order = order_of(i);
      const bool strong = semantics_of(i) != 0;
      if (strong) take_from_word(x, addresses[lane], order);
      touch_global(x, {addresses[lane], all, false, strong, order.scope});
    }
    std::memcpy(read[lane].data(), from, static_cast<std::size_t>(all));
  });
  for (std::size_t part = 0; part < parts; ++part) {
    const Operand& each = part_of(to, part);
    Lanes& d = x.target(each);
    const int wide =
        each.kind == Operand::Kind::reg ? size_of(x.machine.kernel.register_types[each.index]) : 8;
    for_lanes(x.lanes, [&](int lane) {
      std::uint64_t value = 0;
      std::memcpy(&value, read[lane].data() + part * static_cast<std::size_t>(bytes),
                  std::min(static_cast<std::size_t>(bytes), sizeof value));
      if (is_signed(i.type) && value >> (8 * bytes - 1)) {
        value |= bytes == 8 ? 0 : ~std::uint64_t{0} << 8 * bytes;
        if (wide < 8) value &= (std::uint64_t{1} << 8 * wide) - 1;
      }
      d[lane] = value;
    });
  }
}

void store_lanes(Execution& x) {
  const Instruction& i = x.instruction;
  const Space space = space_of(i);
  const Lanes addresses = x.addresses(x.operand(0));
  const Operand& from = x.operand(1);
  const int bytes = size_of(i.type);
  const std::size_t parts = parts_of(from);
  const std::int64_t all = bytes * static_cast<std::int64_t>(parts);
  if (semantics_of(i) != 0) {
    const std::uint32_t lane = x.first_lane();
    const auto value = static_cast<std::int32_t>(x.read(part_of(from, 0), 0)[lane]);
    record_word(x, EventKind::word_write, addresses[lane], value);
  }
  for_lanes(x.lanes, [&](int lane) {
    x.machine.memory(x, space, addresses[lane], all, lane);
    if (is_shared(space, addresses[lane])) hold(x, addresses[lane], all);
    if (is_global(space, addresses[lane])) {
      const WordOrder order = order_of(i);
      const bool strong = semantics_of(i) != 0;
      touch_global(x, {addresses[lane], all, true, strong, order.scope});
      if (strong) hand_on_by_word(x, addresses[lane], order);
    }
  });
  for (std::size_t part = 0; part < parts; ++part) {
    const Lanes& value = x.read(part_of(from, part), 0);
    for_lanes(x.lanes, [&](int lane) {
      std::byte* to = x.machine.memory(x, space, addresses[lane], all, lane);
      std::memcpy(to + part * static_cast<std::size_t>(bytes), &value[lane],
                  static_cast<std::size_t>(bytes));
    });
  }
}

// What the word becomes.
template <typename T>
T combined(Execution& x, T old, T value, T other) {
  const Instruction& i = x.instruction;
  if (i.has(Modifier::add)) {
    if constexpr (std::is_integral_v<T>) {
      return from_bits<T>(std::uint64_t(old) + std::uint64_t(value));
    } else {
      return old + value;
    }
  }
  if (i.has(Modifier::min)) return value < old ? value : old;
  if (i.has(Modifier::max)) return old < value ? value : old;
  if (i.has(Modifier::exch)) return value;
  if (i.has(Modifier::cas)) return old == value ? other : old;
  if constexpr (std::is_integral_v<T>) {
    if (i.has(Modifier::and_)) return static_cast<T>(old & value);
    if (i.has(Modifier::or_)) return static_cast<T>(old | value);
    if (i.has(Modifier::xor_)) return static_cast<T>(old ^ value);
    if (i.has(Modifier::inc)) return old >= value ? T{0} : static_cast<T>(old + 1);
    if (i.has(Modifier::dec)) return old == 0 || old > value ? value : static_cast<T>(old - 1);
  }
  x.unsupported();
}

// Elements of 16 bits, one or two, each rounded to nearest even.
std::uint64_t add_halves(Execution& x, std::uint64_t old, std::uint64_t value) {
  const Instruction& i = x.instruction;
  if (!i.has(Modifier::add) || !i.has(Modifier::noftz)) x.unsupported();
  const bool brain = i.type == Type::bf16 || i.type == Type::bf16x2;
  std::uint64_t result = 0;
  for (int at = 0; at < 8 * size_of(i.type); at += 16) {
    const auto a = static_cast<std::uint16_t>(old >> at),
               b = static_cast<std::uint16_t>(value >> at);
    const std::uint16_t sum = brain ? float_to_bf16(bf16_to_float(a) + bf16_to_float(b))
                                    : float_to_f16(f16_to_float(a) + f16_to_float(b));
    result |= std::uint64_t{sum} << at;
  }
  return result;
}

// The bits of what the word becomes.
std::uint64_t becomes(Execution& x, std::uint64_t old, std::uint64_t value, std::uint64_t other) {
  std::uint64_t result = 0;
  const auto compute = [&]<typename T>(T) {
    result = to_bits(combined(x, from_bits<T>(old), from_bits<T>(value), from_bits<T>(other)));
  };
  if (x.instruction.type == Type::f16x2 || x.instruction.type == Type::bf16x2 ||
      x.instruction.type == Type::f16 || x.instruction.type == Type::bf16) {
    return add_halves(x, old, value);
  }
  if (x.instruction.type == Type::f32) {
    compute(float{});
  } else if (x.instruction.type == Type::f64) {
    compute(double{});
  } else {
    with_integer(x, x.instruction.type, compute);
  }
  return result;
}

// Whether no lane's word becomes another, as where a lock is taken already.
bool changes_nothing(Execution& x, Space space, const Lanes& addresses, const Lanes& values,
                     const Lanes& others) {
  const int bytes = size_of(x.instruction.type);
  bool same = true;
  for_lanes(x.lanes, [&](int lane) {
    std::uint64_t old = 0;
    std::memcpy(&old, x.machine.memory(x, space, addresses[lane], bytes, lane),
                static_cast<std::size_t>(bytes));
    same = same && becomes(x, old, values[lane], others[lane]) == old;
  });
  return same;
}

// Whether it is another warp's turn to change the word.
bool is_early(Execution& x, std::uint64_t address) {
  const auto found = x.machine.turns.find(address);
  if (found == x.machine.turns.end()) return false;
  std::deque<WordTurn>& turns = found->second;
  if (!turns.empty() &&
      (turns.front().cta != x.cta().index || turns.front().warp != x.warp.index)) {
    return true;
  }
  if (!turns.empty()) turns.pop_front();
  return false;
}

void update(Execution& x, bool returns) {
  const Instruction& i = x.instruction;
  const Space space = space_of(i);
  const std::size_t at = returns ? 1 : 0;
  const Lanes addresses = x.addresses(x.operand(at));
  const Lanes values = x.read(at + 1);
  const Lanes others = x.has(at + 2) ? x.read(at + 2) : values;
  Lanes olds{};
  const int bytes = size_of(i.type);
  if (returns && changes_nothing(x, space, addresses, values, others) &&
      finds_the_same(x, space, addresses, bytes)) {
    return;
  }
  x.again = is_early(x, addresses[x.first_lane()]);
  if (x.again) return;
  for_lanes(x.lanes, [&](int lane) {
    std::byte* word = x.machine.memory(x, space, addresses[lane], bytes, lane);
    // Atomics do not race with each other, and are not held against other accesses.
    if (is_shared(space, addresses[lane])) check_held(x, addresses[lane], bytes, false);
    if (is_global(space, addresses[lane])) {
      WordOrder order = order_of(i);
      order.updates = true;
      take_from_word(x, addresses[lane], order);
      touch_global(x, {addresses[lane], bytes, true, true, order.scope, false, true});
      hand_on_by_word(x, addresses[lane], order);
    }
    std::memcpy(&olds[lane], word, static_cast<std::size_t>(bytes));
    const std::uint64_t result = becomes(x, olds[lane], values[lane], others[lane]);
    std::memcpy(word, &result, static_cast<std::size_t>(bytes));
  });
  const std::uint32_t first = x.first_lane();
  // Numbers are summed, words are counted: these order what stands beside them.
  if (i.type < Type::f16) {
    record_word(x, EventKind::word_add, addresses[first], static_cast<std::int32_t>(values[first]));
  }
  if (!returns) return;
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = olds[lane]; });
}
void atomic(Execution& x) { update(x, true); }

// Vectors of f32 in global memory, each element at once (PTX, red: .vec_32_bit).
void add_vectors(Execution& x) {
  const Instruction& i = x.instruction;
  if (space_of(i) != Space::global || i.type != Type::f32 || !i.has(Modifier::add)) x.unsupported();
  const Lanes addresses = x.addresses(x.operand(0));
  const Operand& from = x.operand(1);
  const std::size_t parts = parts_of(from);
  const auto all = static_cast<std::int64_t>(sizeof(float) * parts);
  for_lanes(x.lanes, [&](int lane) {
    x.machine.memory(x, Space::global, addresses[lane], all, lane);
    touch_global(x, {addresses[lane], all, true, true, scope_of(i), false, true});
  });
  for (std::size_t part = 0; part < parts; ++part) {
    const Lanes& values = x.read(part_of(from, part), 0);
    for_lanes(x.lanes, [&](int lane) {
      std::byte* to =
          x.machine.memory(x, Space::global, addresses[lane], all, lane) + part * sizeof(float);
      float sum = 0;
      std::memcpy(&sum, to, sizeof sum);
      sum += from_bits<float>(values[lane]);
      std::memcpy(to, &sum, sizeof sum);
    });
  }
}

void reduction(Execution& x) {
  const bool vectors = x.instruction.has(Modifier::v2) || x.instruction.has(Modifier::v4);
  vectors ? add_vectors(x) : update(x, false);
}

// Matrices of 8 rows of 16 bytes: lane 8 m + r says where row r of matrix m lies; lane l holds of
// each matrix the elements 2 (l % 4) and the next of row l / 4, or of column l / 4 with .trans.
template <bool kStores>
void matrix(Execution& x) {
  x.need_whole_warp();
  const Instruction& i = x.instruction;
  const Operand& where = x.operand(kStores ? 0 : 1);
  const Operand& values = x.operand(kStores ? 1 : 0);
  const std::size_t count = i.has(Modifier::x4) ? 4 : i.has(Modifier::x2) ? 2 : 1;
  if (parts_of(values) != count || !i.has(Modifier::m8n8)) x.unsupported();
  const Lanes addresses = x.addresses(where);
  for (std::size_t m = 0; m < count; ++m) {
    std::byte* rows[8];
    for (int row = 0; row < 8; ++row) {
      const int lane = static_cast<int>(m) * 8 + row;
      rows[row] = x.machine.memory(x, Space::shared, addresses[lane], 16, lane);
      if (kStores) {
        hold(x, addresses[lane], 16);
      } else {
        check_held(x, addresses[lane], 16);
      }
    }
    const Operand& part = part_of(values, m);
    Lanes value = kStores ? x.read(part, 0) : Lanes{};
    for (int lane = 0; lane < kLanes; ++lane) {
      for (int e = 0; e < 2; ++e) {
        const int along = lane % 4 * 2 + e, across = lane / 4;
        const bool transposed = i.has(Modifier::trans);
        std::byte* element = transposed ? rows[along] + 2 * across : rows[across] + 2 * along;
        auto bits = static_cast<std::uint16_t>(value[lane] >> 16 * e);
        if (kStores) {
          std::memcpy(element, &bits, 2);
        } else {
          std::memcpy(&bits, element, 2);
          value[lane] |= std::uint64_t{bits} << 16 * e;
        }
      }
    }
    if (!kStores) x.target(part) = value;
  }
}

// An address of this CTA's shared memory as another one's of the cluster.
void map_address(Execution& x) {
  const Lanes &a = x.read(1), &rank = x.read(2);
  const bool generic = !x.instruction.has(Modifier::shared_cluster);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    const std::uint64_t to = rank[lane] & 0xffffffff;
    if (to >= x.cta().cluster->ctas.size()) {
      x.fail("out_of_bounds",
             fmt::format("of CTA {} of a cluster of {}", to, x.cta().cluster->ctas.size()));
    }
    d[lane] = (generic ? kSharedWindow : 0) | (a[lane] & kSharedMask) | to << kRankShift;
  });
}

constexpr std::string_view kStored = "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64";
constexpr std::string_view kLoaded = "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64";
constexpr Record kMemoryRecords[] = {
    {"ld", "va",
     "global shared shared::cta shared::cluster local param const nc L1::no_allocate "
     "L1::evict_first L1::evict_last L2::64B L2::128B L2::256B v2 v4 weak relaxed acquire volatile "
     "cta cluster gpu sys ca cg cs",
     kLoaded, load_lanes},
    {"st", "av",
     "global shared shared::cta shared::cluster local param v2 v4 weak relaxed release volatile "
     "cta "
     "cluster gpu sys",
     kStored, store_lanes},
    {"atom", "das?s",
     "global shared shared::cta add min max exch cas and or xor inc dec relaxed acquire release "
     "acq_rel cta cluster gpu sys noftz",
     "b32 b64 u32 u64 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2", atomic},
    {"red", "av",
     "global shared shared::cta add min max and or xor inc dec relaxed release cta cluster gpu sys "
     "v2 v4 noftz",
     "b32 b64 u32 u64 s32 s64 f32 f64 f16 f16x2 bf16 bf16x2", reduction},
    {"ldmatrix", "va", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta", "b16", matrix<false>},
    {"stmatrix", "av", "sync aligned m8n8 x1 x2 x4 trans shared shared::cta", "b16", matrix<true>},
    {"mapa", "dss", "shared::cluster", "u32 u64", map_address},
};

}  // namespace

std::span<const Record> memory_records() { return kMemoryRecords; }

}  // namespace tilewright::ptx
