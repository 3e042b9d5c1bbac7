#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "ptx/typed.h"

// Integers, bits, predicates and choices.
namespace tilewright::ptx {
namespace {

constexpr std::string_view kIntegers = "u16 u32 u64 s16 s32 s64";
constexpr std::string_view kBits = "pred b16 b32 b64";

template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4,
                       std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;
// Sums wrap around.
template <typename T>
T wrapped(std::uint64_t bits) {
  return from_bits<T>(bits);
}

void multiply(Execution& x, bool adds) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    const Lanes &a = x.read(1), &b = x.read(2);
    const Lanes* c = adds ? &x.read(3) : nullptr;
    Lanes& d = x.target(0);
    const bool high = x.instruction.has(Modifier::hi), wide = x.instruction.has(Modifier::wide);
    for_lanes(x.lanes, [&](int lane) {
      const auto product = static_cast<Wide<T>>(from_bits<T>(a[lane])) * from_bits<T>(b[lane]);
      const std::uint64_t more = c ? (*c)[lane] : 0;
      if (wide) {
        const auto sum = static_cast<std::uint64_t>(product) + more;
        d[lane] = sizeof(T) == 2 ? sum & 0xffffffff : sum;
      } else {
        const auto part = high ? static_cast<std::uint64_t>(product >> (8 * sizeof(T)))
                               : static_cast<std::uint64_t>(product);
        d[lane] = to_bits(wrapped<T>(part + more));
      }
    });
  });
}

void integer_add(Execution& x) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    if (x.instruction.has(Modifier::sat)) {
      if constexpr (!std::is_same_v<T, std::int32_t>) x.unsupported();
      return each2<T>(x, [](T a, T b) {
        return static_cast<T>(std::clamp<std::int64_t>(std::int64_t(a) + std::int64_t(b),
                                                       std::numeric_limits<std::int32_t>::min(),
                                                       std::numeric_limits<std::int32_t>::max()));
      });
    }
    each2<T>(x, [](T a, T b) { return wrapped<T>(std::uint64_t(a) + std::uint64_t(b)); });
  });
}

void integer_subtract(Execution& x) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    if (x.instruction.has(Modifier::sat)) x.unsupported();
    each2<T>(x, [](T a, T b) { return wrapped<T>(std::uint64_t(a) - std::uint64_t(b)); });
  });
}

void divide(Execution& x, bool remainder) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    const Lanes& divisors = x.read(2);
    for_lanes(x.lanes, [&](int lane) {
      if (from_bits<T>(divisors[lane]) == 0) {
        x.fail("division", fmt::format("lane {} divides by 0, of which PTX says nothing", lane));
      }
    });
    // The least number by -1 wraps around.
    each2<T>(x, [&](T a, T b) -> T {
      if (std::is_signed_v<T> && b == static_cast<T>(-1)) {
        return remainder ? T{0} : wrapped<T>(0 - std::uint64_t(a));
      }
      return static_cast<T>(remainder ? a % b : a / b);
    });
  });
}

void integer_min(Execution& x) {
  with_integer(x, x.instruction.type,
               [&]<typename T>(T) { each2<T>(x, [](T a, T b) { return std::min(a, b); }); });
}
void integer_max(Execution& x) {
  with_integer(x, x.instruction.type,
               [&]<typename T>(T) { each2<T>(x, [](T a, T b) { return std::max(a, b); }); });
}

void integer_negate(Execution& x) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    each1<T>(x, [](T a) { return wrapped<T>(0 - std::uint64_t(a)); });
  });
}
void integer_abs(Execution& x) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    each1<T>(x, [](T a) { return a < 0 ? wrapped<T>(0 - std::uint64_t(a)) : a; });
  });
}

template <typename F>
void bitwise(Execution& x, F f) {
  const Lanes &a = x.read(1), &b = x.read(2);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = f(a[lane], b[lane]); });
}
// A constant operand may have more bits than the type.
std::uint64_t cut(const Execution& x, std::uint64_t bits) {
  const int bytes = size_of(x.instruction.type);
  if (x.instruction.type == Type::pred) return bits & 1;
  return bytes == 8 ? bits : bits & ((std::uint64_t{1} << bytes * 8) - 1);
}
void bit_and(Execution& x) {
  bitwise(x, [&](std::uint64_t a, std::uint64_t b) { return cut(x, a & b); });
}
void bit_or(Execution& x) {
  bitwise(x, [&](std::uint64_t a, std::uint64_t b) { return cut(x, a | b); });
}
void bit_xor(Execution& x) {
  bitwise(x, [&](std::uint64_t a, std::uint64_t b) { return cut(x, a ^ b); });
}
void bit_not(Execution& x) {
  each1<std::uint64_t>(x, [&](std::uint64_t a) { return cut(x, ~a); });
}

void shift(Execution& x, bool left) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    const Lanes &a = x.read(1), &b = x.read(2);
    Lanes& d = x.target(0);
    constexpr std::uint64_t kBits = 8 * sizeof(T);
    for_lanes(x.lanes, [&](int lane) {
      const std::uint64_t by = b[lane] & 0xffffffff;
      const T value = from_bits<T>(a[lane]);
      const bool all = by >= kBits;
      if (left) {
        d[lane] = to_bits(all ? T{0} : wrapped<T>(std::uint64_t(value) << by));
      } else {
        d[lane] = to_bits(static_cast<T>(all ? (value < 0 ? -1 : 0) : value >> by));
      }
    });
  });
}
void shift_left(Execution& x) { shift(x, true); }
void shift_right(Execution& x) { shift(x, false); }

// 32 of 64 bits, b above a.
void funnel(Execution& x) {
  const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3);
  Lanes& d = x.target(0);
  const bool clamps = x.instruction.has(Modifier::clamp), left = x.instruction.has(Modifier::l);
  for_lanes(x.lanes, [&](int lane) {
    const std::uint64_t amount = c[lane] & 0xffffffff;
    const std::uint64_t by = clamps ? std::min<std::uint64_t>(amount, 32) : amount & 31;
    const std::uint64_t both = b[lane] << 32 | (a[lane] & 0xffffffff);
    d[lane] = (left ? both << by >> 32 : both >> by) & 0xffffffff;
  });
}

void population(Execution& x) {
  each1<std::uint64_t>(
      x, [&](std::uint64_t a) { return static_cast<std::uint64_t>(std::popcount(cut(x, a))); });
}
void leading_zeros(Execution& x) {
  each1<std::uint64_t>(x, [&](std::uint64_t a) {
    const int above = 64 - 8 * size_of(x.instruction.type);
    return static_cast<std::uint64_t>(std::countl_zero(cut(x, a)) - above);
  });
}
void reverse_bits(Execution& x) {
  const int bits = 8 * size_of(x.instruction.type);
  each1<std::uint64_t>(x, [&](std::uint64_t a) {
    std::uint64_t to = 0;
    for (int i = 0; i < bits; ++i) to |= (a >> i & 1) << (bits - 1 - i);
    return to;
  });
}

void extract_bits(Execution& x) {
  with_integer(x, x.instruction.type, [&]<typename T>(T) {
    const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3);
    Lanes& d = x.target(0);
    constexpr int kBits = 8 * sizeof(T);
    for_lanes(x.lanes, [&](int lane) {
      const int from = static_cast<int>(b[lane] & 0xff), count = static_cast<int>(c[lane] & 0xff);
      const auto bit = [&](int i) { return a[lane] >> std::min(i, kBits - 1) & 1; };
      const bool fill = std::is_signed_v<T> && count > 0 && bit(from + count - 1);
      std::uint64_t value = 0;
      for (int i = 0; i < kBits; ++i) {
        const bool set = i < count && from + i < kBits ? bit(from + i) != 0 : fill;
        value |= std::uint64_t{set} << i;
      }
      d[lane] = value;
    });
  });
}

void insert_bits(Execution& x) {
  const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3), &e = x.read(4);
  Lanes& d = x.target(0);
  const int bits = 8 * size_of(x.instruction.type);
  for_lanes(x.lanes, [&](int lane) {
    const int to = static_cast<int>(c[lane] & 0xff), count = static_cast<int>(e[lane] & 0xff);
    std::uint64_t value = b[lane];
    for (int i = 0; i < count && to + i < bits; ++i) {
      value = (value & ~(std::uint64_t{1} << (to + i))) | (a[lane] >> i & 1) << (to + i);
    }
    d[lane] = value;
  });
}

// Four of eight bytes; a selector's bit 3 takes the byte's sign instead.
void permute(Execution& x) {
  const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    const std::uint64_t both = b[lane] << 32 | (a[lane] & 0xffffffff);
    std::uint64_t value = 0;
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t selector = c[lane] >> 4 * i & 0xf;
      std::uint64_t byte = both >> 8 * (selector & 7) & 0xff;
      if (selector & 8) byte = byte & 0x80 ? 0xff : 0;
      value |= byte << 8 * i;
    }
    d[lane] = value;
  });
}

void logic3(Execution& x) {
  const Lanes &a = x.read(1), &b = x.read(2), &c = x.read(3);
  const std::uint64_t table = x.uniform(4);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      if (!(table >> i & 1)) continue;
      value |= (i & 4 ? a[lane] : ~a[lane]) & (i & 2 ? b[lane] : ~b[lane]) &
               (i & 1 ? c[lane] : ~c[lane]);
    }
    d[lane] = value & 0xffffffff;
  });
}

// What integers and floats have by one name is told apart by the type.
void select(Execution& x) {
  const Lanes &a = x.read(1), &b = x.read(2), &p = x.read(3);
  Lanes& d = x.target(0);
  const Type type = x.instruction.type;
  const std::uint64_t mask =
      size_of(type) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * size_of(type)) - 1;
  for_lanes(x.lanes, [&](int lane) { d[lane] = (p[lane] & 1 ? a[lane] : b[lane]) & mask; });
}

void multiply_low(Execution& x) { multiply(x, false); }
void multiply_add(Execution& x) { multiply(x, true); }
void quotient(Execution& x) { divide(x, false); }
void remainder(Execution& x) { divide(x, true); }

constexpr Record kArithmeticRecords[] = {
    {"add", "dss", "sat", kIntegers, integer_add},
    {"sub", "dss", "sat", kIntegers, integer_subtract},
    {"mul", "dss", "lo hi wide", kIntegers, multiply_low},
    {"mad", "dsss", "lo hi wide", kIntegers, multiply_add},
    {"div", "dss", "", kIntegers, quotient},
    {"rem", "dss", "", kIntegers, remainder},
    {"min", "dss", "", kIntegers, integer_min},
    {"max", "dss", "", kIntegers, integer_max},
    {"neg", "ds", "", "s16 s32 s64", integer_negate},
    {"abs", "ds", "", "s16 s32 s64", integer_abs},
    {"and", "dss", "", kBits, bit_and},
    {"or", "dss", "", kBits, bit_or},
    {"xor", "dss", "", kBits, bit_xor},
    {"not", "ds", "", kBits, bit_not},
    {"shl", "dss", "", "b16 b32 b64", shift_left},
    {"shr", "dss", "", "b16 b32 b64 u16 u32 u64 s16 s32 s64", shift_right},
    {"shf", "dsss", "l r wrap clamp", "b32", funnel},
    {"popc", "ds", "", "b32 b64", population},
    {"clz", "ds", "", "b32 b64", leading_zeros},
    {"brev", "ds", "", "b32 b64", reverse_bits},
    {"bfe", "dsss", "", "u32 u64 s32 s64", extract_bits},
    {"bfi", "dssss", "", "b32 b64", insert_bits},
    {"prmt", "dsss", "", "b32", permute},
    {"lop3", "dssss", "", "b32", logic3},
    {"selp", "dsss", "", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", select},
};

}  // namespace

std::span<const Record> arithmetic_records() { return kArithmeticRecords; }

}  // namespace tilewright::ptx
