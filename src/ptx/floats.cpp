#include <cmath>
#include <limits>

#include "ptx/typed.h"
#include "simulator/evaluate_elementwise.h"
#include "support/number_formats.h"

// Floats. What the hardware approximates has the simulator's results.
namespace tilewright::ptx {
namespace {

using ir::Op;

float flushed(float value) {
  return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
}
double flushed(double value) { return value; }

// PTX has one NaN.
template <typename T>
T canonical(T value) {
  if constexpr (std::is_same_v<T, float>) {
    if (value != value) return from_bits<float>(0x7fffffff);
  }
  return value;
}

template <typename T>
T finished(const Execution& x, T value) {
  if (x.instruction.has(Modifier::ftz)) value = flushed(value);
  if (x.instruction.has(Modifier::sat)) value = value > 0 ? (value < 1 ? value : T{1}) : T{0};
  return canonical(value);
}
template <typename T>
T entering(const Execution& x, T value) {
  return x.instruction.has(Modifier::ftz) ? flushed(value) : value;
}

// Of doubles that are the exact result, the nearest of a format of 16 bits: by a float that is odd
// where it is not exact, which no second rounding can mistake.
float odd_float(double exact) {
  const auto nearest = static_cast<float>(exact);
  if (static_cast<double>(nearest) == exact || nearest != nearest) return nearest;
  const std::uint64_t bits = to_bits(nearest);
  if (bits & 1) return nearest;
  const bool too_large = std::abs(static_cast<double>(nearest)) > std::abs(exact);
  return from_bits<float>(too_large ? bits - 1 : bits + 1);
}

template <typename F>
std::uint64_t halves(Type type, std::uint64_t a, std::uint64_t b, std::uint64_t c, F f) {
  const bool brain = type == Type::bf16 || type == Type::bf16x2;
  const int count = size_of(type) / 2;
  std::uint64_t result = 0;
  for (int i = 0; i < count; ++i) {
    const auto value = [&](std::uint64_t bits) -> double {
      const auto half = static_cast<std::uint16_t>(bits >> 16 * i);
      return brain ? bf16_to_float(half) : f16_to_float(half);
    };
    const float sum = odd_float(f(value(a), value(b), value(c)));
    result |= std::uint64_t{brain ? float_to_bf16(sum) : float_to_f16(sum)} << 16 * i;
  }
  return result;
}

// operand 0 = f(operands), whatever the float type.
template <typename F>
void compute(Execution& x, int count, F f) {
  const Type type = x.instruction.type;
  const Lanes& a = x.read(1);
  const Lanes& b = count > 1 ? x.read(2) : a;
  const Lanes& c = count > 2 ? x.read(3) : a;
  Lanes& d = x.target(0);
  const bool plain = !x.instruction.has(Modifier::ftz) && !x.instruction.has(Modifier::sat);
  const auto whole = [&]<typename T>(T) {
    const auto value = [](const Lanes& of, int lane) { return from_bits<T>(of[lane]); };
    if (plain) {
      return for_lanes(x.lanes, [&](int lane) {
        d[lane] = to_bits(canonical<T>(f(value(a, lane), value(b, lane), value(c, lane))));
      });
    }
    for_lanes(x.lanes, [&](int lane) {
      const auto in = [&](const Lanes& of) { return entering(x, value(of, lane)); };
      d[lane] = to_bits(finished<T>(x, f(in(a), in(b), in(c))));
    });
  };
  if (type == Type::f32) return whole(float{});
  if (type == Type::f64) return whole(double{});
  if (type == Type::f32x2) {
    return for_lanes(x.lanes, [&](int lane) {
      std::uint64_t both = 0;
      for (int half = 0; half < 64; half += 32) {
        const auto value = [half](std::uint64_t bits) {
          return from_bits<float>(static_cast<std::uint32_t>(bits >> half));
        };
        const float result = f(value(a[lane]), value(b[lane]), value(c[lane]));
        both |= to_bits(finished<float>(x, result)) << half;
      }
      d[lane] = both;
    });
  }
  if (!plain) x.unsupported();
  for_lanes(x.lanes, [&](int lane) { d[lane] = halves(type, a[lane], b[lane], c[lane], f); });
}

// What a sum of two is too small by.
float error_of_sum(float a, float b, float sum) {
  const float part = sum - a;
  return (a - (sum - part)) + (b - part);
}

// The nearest value moved to the one towards zero, by the sign of what it is too small by.
float towards_zero(float nearest, float error) {
  if (std::isinf(nearest)) return std::copysign(std::numeric_limits<float>::max(), nearest);
  const bool too_large = error != 0 && std::signbit(error) != std::signbit(nearest);
  return too_large ? std::nextafter(nearest, 0.0f) : nearest;
}

void float_add_truncating(Execution& x) {
  each2<float>(x, [&](float a, float b) {
    a = entering(x, a), b = entering(x, b);
    const float sum = a + b;
    if (std::isinf(a) || std::isinf(b) || sum != sum) return finished(x, sum);
    return finished(x, towards_zero(sum, error_of_sum(a, b, sum)));
  });
}
void float_add_down(Execution& x) {
  each2<float>(x, [&](float a, float b) {
    a = entering(x, a), b = entering(x, b);
    const float sum = a + b;
    if (std::isinf(sum) || sum != sum) return finished(x, sum);
    const bool too_large = error_of_sum(a, b, sum) < 0;
    constexpr float kLeast = -std::numeric_limits<float>::infinity();
    return finished(x, too_large ? std::nextafter(sum, kLeast) : sum);
  });
}
void float_multiply_truncating(Execution& x) {
  each2<float>(x, [&](float a, float b) {
    a = entering(x, a), b = entering(x, b);
    const float product = a * b;
    if (std::isinf(a) || std::isinf(b) || product != product) return finished(x, product);
    const double exact = double{a} * b;
    return finished(x, towards_zero(product, static_cast<float>(exact - product)));
  });
}

void float_add(Execution& x) {
  compute(x, 2, [](auto a, auto b, auto) { return a + b; });
}
void float_subtract(Execution& x) {
  compute(x, 2, [](auto a, auto b, auto) { return a - b; });
}
void float_multiply(Execution& x) {
  compute(x, 2, [](auto a, auto b, auto) { return a * b; });
}
void float_fma(Execution& x) {
  compute(x, 3, [](auto a, auto b, auto c) { return std::fma(a, b, c); });
}
void float_divide(Execution& x) {
  compute(x, 2, [](auto a, auto b, auto) { return a / b; });
}

// +0 is above -0; a number is taken before a NaN unless NaNs are asked for.
template <bool kMax>
void extreme(Execution& x) {
  const bool keeps = x.instruction.has(Modifier::nan);
  compute(x, 2, [keeps](auto a, auto b, auto) {
    if (a != a || b != b) return keeps ? (a != a ? a : b) : (a != a ? b : a);
    if (a == b) return std::signbit(a) != kMax ? a : b;
    return (a < b) != kMax ? a : b;
  });
}

// Of sign and other bits alone.
void float_negate(Execution& x) {
  const Type type = x.instruction.type;
  const std::uint64_t sign = type == Type::f64    ? std::uint64_t{1} << 63
                             : type == Type::f32  ? 0x80000000u
                             : size_of(type) == 4 ? 0x80008000u
                                                  : 0x8000u;
  each1<std::uint64_t>(x, [&](std::uint64_t a) {
    if (type == Type::f32) return to_bits(entering(x, from_bits<float>(a ^ sign)));
    return a ^ sign;
  });
}
void float_abs(Execution& x) {
  compute(x, 1, [](auto a, auto, auto) { return std::abs(a); });
}
void copy_sign(Execution& x) {  // of operand 1 to operand 2
  compute(x, 2, [](auto a, auto b, auto) { return std::copysign(b, a); });
}

void approximate(Execution& x, Op op) {
  if (x.instruction.type != Type::f32) x.unsupported();
  float in[kLanes], out[kLanes];
  const Lanes& a = x.read(1);
  for (int lane = 0; lane < kLanes; ++lane) in[lane] = entering(x, from_bits<float>(a[lane]));
  const float* const operands[] = {in};
  simulator::evaluate({op, DType::f32, {}}, kLanes, operands, out);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = to_bits(finished(x, out[lane])); });
}
void exp2_of(Execution& x) { approximate(x, Op::exp2); }
void log2_of(Execution& x) { approximate(x, Op::log2); }
void reciprocal(Execution& x) { approximate(x, Op::rcp); }
void square_root(Execution& x) { approximate(x, Op::sqrt); }
void reciprocal_root(Execution& x) { approximate(x, Op::rsqrt); }
void tanh_of(Execution& x) { approximate(x, Op::tanh); }
void sine(Execution& x) { approximate(x, Op::sin); }
void cosine(Execution& x) { approximate(x, Op::cos); }

// How two values may stand to each other.
enum Relation : unsigned { kLess = 1, kEqual = 2, kGreater = 4, kUnordered = 8 };

// Those in which the comparison that the name says holds.
unsigned relations(Execution& x) {
  const Instruction& i = x.instruction;
  if (i.has(Modifier::num)) return kLess | kEqual | kGreater;
  if (i.has(Modifier::isnan)) return kUnordered;
  const auto either = [&](Modifier ordered, Modifier unordered, unsigned relations) {
    if (i.has(unordered)) return relations | kUnordered;
    return i.has(ordered) ? relations : 0u;
  };
  const unsigned all = either(Modifier::eq, Modifier::equ, kEqual) |
                       either(Modifier::ne, Modifier::neu, kLess | kGreater) |
                       either(Modifier::lt, Modifier::ltu, kLess) |
                       either(Modifier::le, Modifier::leu, kLess | kEqual) |
                       either(Modifier::gt, Modifier::gtu, kGreater) |
                       either(Modifier::ge, Modifier::geu, kGreater | kEqual);
  if (all == 0) x.unsupported();
  return all;
}

void set_predicate(Execution& x) {
  const Instruction& i = x.instruction;
  const Lanes &a = x.read(1), &b = x.read(2);
  const Lanes* const c = x.has(3) ? &x.read(3) : nullptr;
  const Operand& to = x.operand(0);
  Lanes& p = x.target(to);
  Lanes* const q = to.second >= 0 ? &x.warp.registers[to.second] : nullptr;
  const unsigned wanted = relations(x);
  const auto combined = [&](bool value, int lane) {
    if (!c) return value;
    const bool other = (*c)[lane] & 1;
    return i.has(Modifier::and_)  ? value && other
           : i.has(Modifier::or_) ? value || other
                                  : value != other;
  };
  const auto compare = [&]<typename T>(T) {
    for_lanes(x.lanes, [&](int lane) {
      T u = from_bits<T>(a[lane]), v = from_bits<T>(b[lane]);
      if constexpr (std::is_floating_point_v<T>) u = entering(x, u), v = entering(x, v);
      const unsigned relation = u < v ? kLess : u == v ? kEqual : u > v ? kGreater : kUnordered;
      const bool is = (wanted & relation) != 0;
      p[lane] = combined(is, lane);
      if (q) (*q)[lane] = combined(!is, lane);
    });
  };
  if (i.type == Type::f32) return compare(float{});
  if (i.type == Type::f64) return compare(double{});
  if (i.type == Type::pred) x.unsupported();
  with_integer(x, i.type, compare);
}

constexpr std::string_view kPlain = "f32 f64 f16 f16x2 bf16 bf16x2";
constexpr std::string_view kPaired = "f32 f64 f16 f16x2 bf16 bf16x2 f32x2";
constexpr Record kFloatRecords[] = {
    {"add", "dss", "rn ftz sat", kPaired, float_add},
    {"sub", "dss", "rn ftz sat", kPaired, float_subtract},
    {"mul", "dss", "rn ftz sat", kPaired, float_multiply},
    {"add", "dss", "rm ftz sat", "f32", float_add_down},
    {"add", "dss", "rz ftz sat", "f32", float_add_truncating},
    {"mul", "dss", "rz ftz sat", "f32", float_multiply_truncating},
    {"fma", "dsss", "rn ftz sat", kPaired, float_fma},
    {"div", "dss", "rn full approx ftz", "f32 f64", float_divide},
    {"min", "dss", "ftz NaN", kPlain, extreme<false>},
    {"max", "dss", "ftz NaN", kPlain, extreme<true>},
    {"neg", "ds", "ftz", kPlain, float_negate},
    {"abs", "ds", "ftz", kPlain, float_abs},
    {"copysign", "dss", "", "f32 f64", copy_sign},
    {"ex2", "ds", "approx ftz", "f32", exp2_of},
    {"lg2", "ds", "approx ftz", "f32", log2_of},
    {"rcp", "ds", "approx rn ftz", "f32", reciprocal},
    {"sqrt", "ds", "approx rn ftz", "f32", square_root},
    {"rsqrt", "ds", "approx ftz", "f32", reciprocal_root},
    {"tanh", "ds", "approx", "f32", tanh_of},
    {"sin", "ds", "approx ftz", "f32", sine},
    {"cos", "ds", "approx ftz", "f32", cosine},
    {"setp", "pss?s", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan and or xor ftz",
     "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", set_predicate},
};

}  // namespace

std::span<const Record> float_records() { return kFloatRecords; }

}  // namespace tilewright::ptx
