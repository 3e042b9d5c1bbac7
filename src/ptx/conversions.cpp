#include <algorithm>
#include <cmath>
#include <limits>

#include "ptx/typed.h"
#include "support/number_formats.h"

// Moves, and values of one type as those of another.
namespace tilewright::ptx {
namespace {

bool is_float(Type type) {
  return type == Type::f32 || type == Type::f64 || type == Type::f16 || type == Type::bf16;
}

bool is_number(Type type) {
  return is_float(type) || is_signed(type) || type == Type::u8 || type == Type::u16 ||
         type == Type::u32 || type == Type::u64;
}

double float_of(Type type, std::uint64_t bits) {
  if (type == Type::f64) return from_bits<double>(bits);
  if (type == Type::f32) return from_bits<float>(bits);
  return type == Type::f16 ? f16_to_float(static_cast<std::uint16_t>(bits))
                           : bf16_to_float(static_cast<std::uint16_t>(bits));
}

std::uint64_t bits_of(Execution& x, Type type, double value) {
  const bool is_nan = value != value;
  if (type == Type::f64) return to_bits(value);
  const auto narrow = static_cast<float>(value);
  if (type == Type::f32) return is_nan ? 0x7fffffff : to_bits(narrow);
  // What is no float would be rounded twice.
  if (!is_nan && static_cast<double>(narrow) != value) x.unsupported();
  return type == Type::f16 ? float_to_f16(narrow) : float_to_bf16(narrow);
}

double integral(const Execution& x, double value) {
  if (x.instruction.has(Modifier::rni)) return std::nearbyint(value);
  if (x.instruction.has(Modifier::rzi)) return std::trunc(value);
  if (x.instruction.has(Modifier::rmi)) return std::floor(value);
  if (x.instruction.has(Modifier::rpi)) return std::ceil(value);
  return value;
}

struct Range {
  std::int64_t low;
  std::uint64_t high;
};
Range range_of(Type type) {
  const int bits = 8 * size_of(type);
  if (!is_signed(type)) return {0, bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1};
  const auto high = static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1);
  return {-high - 1, static_cast<std::uint64_t>(high)};
}

std::int64_t sign_extended(std::uint64_t bits, int bytes) {
  const int above = 64 - 8 * bytes;
  return static_cast<std::int64_t>(bits << above) >> above;
}

// Into a register of `bytes`, which may be wider than the type.
std::uint64_t widened(Type type, std::uint64_t value, int bytes) {
  const int own = size_of(type);
  const auto all = is_signed(type) ? static_cast<std::uint64_t>(sign_extended(value, own))
                   : own == 8      ? value
                                   : value & ((std::uint64_t{1} << 8 * own) - 1);
  return bytes == 8 ? all : all & ((std::uint64_t{1} << 8 * bytes) - 1);
}

std::uint64_t integer_of_float(Type to, double value) {
  const Range range = range_of(to);
  if (value != value) return 0;
  if (value <= static_cast<double>(range.low)) return static_cast<std::uint64_t>(range.low);
  if (value >= static_cast<double>(range.high)) return range.high;
  return is_signed(to) ? static_cast<std::uint64_t>(static_cast<std::int64_t>(value))
                       : static_cast<std::uint64_t>(value);
}

std::uint64_t integer_of_integer(Type to, Type from, std::uint64_t bits, bool saturates) {
  const bool is_negative = is_signed(from) && sign_extended(bits, size_of(from)) < 0;
  const std::uint64_t value = is_signed(from)
                                  ? static_cast<std::uint64_t>(sign_extended(bits, size_of(from)))
                                  : widened(from, bits, 8);
  if (!saturates) return value;
  const Range range = range_of(to);
  if (is_negative) {
    return static_cast<std::uint64_t>(std::max(static_cast<std::int64_t>(value), range.low));
  }
  return std::min(value, range.high);
}

// Two narrow floats of two f32, the first one above.
void pack(Execution& x) {
  const Type to = x.instruction.type;
  const Lanes &high = x.read(1), &low = x.read(2);
  Lanes& d = x.target(0);
  const auto narrow = [&](std::uint64_t bits) -> std::uint64_t {
    const auto value = from_bits<float>(bits);
    if (to == Type::bf16x2) return float_to_bf16(value);
    if (to == Type::f16x2) return float_to_f16(value);
    if (to != Type::e4m3x2 || !x.instruction.has(Modifier::satfinite)) x.unsupported();
    return float_to_f8e4m3(value);
  };
  const int shift = to == Type::e4m3x2 ? 8 : 16;
  for_lanes(x.lanes, [&](int lane) { d[lane] = narrow(high[lane]) << shift | narrow(low[lane]); });
}

void unpack(Execution& x) {
  each1<std::uint64_t>(x, [](std::uint64_t bits) {
    const auto half = [&](int shift) -> std::uint64_t {
      return float_to_f16(f8e4m3_to_float(static_cast<std::uint8_t>(bits >> shift)));
    };
    return half(8) << 16 | half(0);
  });
}

void convert(Execution& x) {
  const Instruction& i = x.instruction;
  const Type to = i.type, from = i.second;
  if (x.has(2)) return from == Type::f32 ? pack(x) : x.unsupported();
  if (to == Type::f16x2 && from == Type::e4m3x2) return unpack(x);
  const Operand& target = x.operand(0);
  const int bytes = target.kind == Operand::Kind::reg
                        ? size_of(x.machine.kernel.register_types[target.index])
                        : 8;
  const bool saturates = i.has(Modifier::sat);
  const auto flush = [&](Type type, double value) {
    if (!i.has(Modifier::ftz) || type != Type::f32) return value;
    return std::abs(value) < 0x1p-126 ? std::copysign(0.0, value) : value;
  };
  if (!is_number(to) || !is_number(from)) x.unsupported();
  const Lanes& a = x.read(1);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    if (is_float(from)) {
      double value = integral(x, flush(from, float_of(from, a[lane])));
      if (!is_float(to)) return void(d[lane] = widened(to, integer_of_float(to, value), bytes));
      if (saturates) value = value > 0 ? std::min(value, 1.0) : 0;
      d[lane] = bits_of(x, to, flush(to, value));
    } else if (is_float(to)) {
      const std::uint64_t value = integer_of_integer(from, from, a[lane], false);
      const bool is_wide = to == Type::f64;
      const double wide = is_signed(from) ? static_cast<double>(static_cast<std::int64_t>(value))
                                          : static_cast<double>(value);
      const float narrow = is_signed(from) ? static_cast<float>(static_cast<std::int64_t>(value))
                                           : static_cast<float>(value);
      d[lane] = bits_of(x, to, is_wide ? wide : double{narrow});
    } else {
      d[lane] = widened(to, integer_of_integer(to, from, a[lane], saturates), bytes);
    }
  });
}

// Also of vectors: four bytes or two halves into one register, and apart again.
void move(Execution& x) {
  const Operand &to = x.operand(0), &from = x.operand(1);
  const auto bits_in = [&](const Operand& part, std::size_t parts) {
    return part.kind == Operand::Kind::reg
               ? 8 * size_of(x.machine.kernel.register_types[part.index])
               : 8 * size_of(x.instruction.type) / static_cast<int>(parts);
  };
  if (from.kind == Operand::Kind::vector) {
    Lanes whole{};
    int shift = 0;
    for (const Operand& part : from.parts) {
      const Lanes& value = x.read(part, 0);
      const int bits = bits_in(part, from.parts.size());
      for (int lane = 0; lane < kLanes; ++lane) {
        whole[lane] |= (value[lane] & ((std::uint64_t{1} << bits) - 1)) << shift;
      }
      shift += bits;
    }
    Lanes& d = x.target(to);
    return for_lanes(x.lanes, [&](int lane) { d[lane] = whole[lane]; });
  }
  const Lanes value = x.read(from, 0);
  if (to.kind == Operand::Kind::vector) {
    int shift = 0;
    for (const Operand& part : to.parts) {
      const int bits = bits_in(part, to.parts.size());
      Lanes& d = x.target(part);
      for_lanes(x.lanes, [&](int lane) {
        d[lane] = value[lane] >> shift & ((std::uint64_t{1} << bits) - 1);
      });
      shift += bits;
    }
    return;
  }
  Lanes& d = x.target(to);
  const int bytes = size_of(x.instruction.type);
  const std::uint64_t mask = x.instruction.type == Type::pred ? 1
                             : bytes == 8                     ? ~std::uint64_t{0}
                                                              : (std::uint64_t{1} << 8 * bytes) - 1;
  for_lanes(x.lanes, [&](int lane) { d[lane] = value[lane] & mask; });
  // A product's register keeps being one wherever it is moved.
  if (from.kind == Operand::Kind::reg && to.kind == Operand::Kind::reg) {
    x.warp.product_of[to.index] = x.warp.product_of[from.index];
  }
}

void convert_address(Execution& x) {
  const Instruction& i = x.instruction;
  const bool shared =
      i.has(Modifier::shared) || i.has(Modifier::shared_cta) || i.has(Modifier::shared_cluster);
  const std::uint64_t window = shared                   ? kSharedWindow
                               : i.has(Modifier::local) ? kLocalWindow
                               : i.has(Modifier::param) ? kParamWindow
                                                        : 0;
  each1<std::uint64_t>(x, [&](std::uint64_t address) {
    if (!i.has(Modifier::to)) return address | window;
    if (window == 0) return address;
    if ((address & ~kWindowMask) != window) x.fail("address", "of an address of another space");
    return address & kWindowMask;
  });
}

constexpr std::string_view kConverted =
    "b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f16 bf16 f32 f64 f16x2 bf16x2 e4m3x2";
constexpr Record kConversionRecords[] = {
    {"cvt", "ds?s", "rn rni rzi rmi rpi ftz sat satfinite", kConverted, convert},
    {"mov", "vv", "", "pred b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64", move},
    {"cvta", "ds", "to global shared shared::cta shared::cluster local param const", "u64",
     convert_address},
};

}  // namespace

std::span<const Record> conversion_records() { return kConversionRecords; }

}  // namespace tilewright::ptx
