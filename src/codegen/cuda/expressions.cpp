#include "codegen/cuda/expressions.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "support/diagnostic.h"
#include "support/number_formats.h"

namespace tilewright::codegen {

using ir::Op;

std::string_view scalar_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return "float";
    case DType::i32:
      return "int";
    case DType::i64:
      return "i64";
    case DType::boolean:
      return "bool";
    case DType::f16:
    case DType::bf16:
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
    case DType::u32:
      break;
  }
  return "u32";
}

std::string_view memory_type(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return "u16";
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
    case DType::boolean:
      return "u8";
    case DType::f32:
    case DType::i32:
    case DType::i64:
    case DType::u32:
      break;
  }
  return scalar_type(dtype);
}

namespace {

double number(const ir::Attribute& value) {
  const auto* integer = std::get_if<std::int64_t>(&value);
  return integer ? static_cast<double>(*integer) : std::get<double>(value);
}

std::string float_literal(float value) {
  if (!std::isfinite(value)) {
    return fmt::format("__int_as_float({:#x})", std::bit_cast<std::uint32_t>(value));
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text + "f";
}

// Of the packed dtypes' conversions in the prelude.
std::string_view suffix(DType dtype) { return dtype == DType::f8e4m3 ? "e4m3" : name_of(dtype); }

std::string integer_division(Op function, const std::string& a, const std::string& b,
                             bool nonnegative) {
  if (function == Op::ceildiv) {
    return nonnegative ? fmt::format("unsigned_div({} + {} - 1, {})", a, b, b)
                       : fmt::format("ceil_div({}, {})", a, b);
  }
  return fmt::format("{}_{}({}, {})", nonnegative ? "unsigned" : "floor",
                     function == Op::div ? "div" : "mod", a, b);
}

std::string cast_text(DType from, DType to, const std::string& a) {
  if (is_float(to)) return is_float(from) ? a : fmt::format("(float){}", a);
  if (is_memory_format(to)) {
    const std::string_view wider = from == DType::boolean ? "(int)"
                                   : from == DType::u32   ? "(i64)"
                                                          : "";
    return fmt::format("{}_{}({}{})", is_float(from) ? "round" : "saturate", name_of(to), wider, a);
  }
  if (is_float(from)) {
    return fmt::format("{}({})", to == DType::i64 ? "__float2ll_rn" : "__float2int_rn", a);
  }
  return fmt::format("({}){}", scalar_type(to), a);
}

}  // namespace

std::string literal(DType dtype, const ir::Attribute& value) {
  switch (dtype) {
    case DType::f32:
      return float_literal(static_cast<float>(number(value)));
    case DType::bf16:
      return fmt::format("{:#x}u", float_to_bf16(static_cast<float>(number(value))));
    case DType::f16:
      return fmt::format("{:#x}u", float_to_f16(static_cast<float>(number(value))));
    case DType::f8e4m3:
      return fmt::format("{:#x}u", float_to_f8e4m3(static_cast<float>(number(value))));
    case DType::i8:
    case DType::u8:
      return fmt::format("{:#x}u", std::get<std::int64_t>(value) & 0xff);
    case DType::u32:
      return fmt::format("{}u", std::get<std::int64_t>(value) & 0xffffffff);
    case DType::boolean:
      return number(value) != 0 ? "true" : "false";
    case DType::i32:
    case DType::i64:
      break;
  }
  const std::int64_t integer = std::get<std::int64_t>(value);
  // The most negative numbers have no literal of their own.
  if (dtype == DType::i64) {
    return integer == INT64_MIN ? "(-9223372036854775807ll - 1)" : fmt::format("{}ll", integer);
  }
  if (integer == INT32_MIN) return "(-2147483647 - 1)";
  return integer < 0 ? fmt::format("({})", integer) : std::to_string(integer);
}

int packing(DType dtype) {
  switch (dtype) {
    case DType::f16:
    case DType::bf16:
      return 2;
    case DType::f8e4m3:
    case DType::i8:
    case DType::u8:
      return 4;
    case DType::f32:
    case DType::i32:
    case DType::i64:
    case DType::u32:
    case DType::boolean:
      break;
  }
  return 1;
}

std::int64_t register_count(const ir::Type& registers) {
  const int per_register = packing(registers.dtype);
  return (registers.elements() + per_register - 1) / per_register;
}

std::string_view register_type(DType dtype) { return scalar_type(dtype); }

std::string element(const Emitter& emitter, ir::ValueId registers, const std::string& index) {
  const DType dtype = emitter.type(registers).dtype;
  if (packing(dtype) == 1) return fmt::format("{}[{}]", emitter.name(registers), index);
  return fmt::format("{}_at({}, {})", suffix(dtype), emitter.name(registers), index);
}

std::string operand(const Emitter& emitter, ir::ValueId scalar) {
  const DType dtype = emitter.type(scalar).dtype;
  if (packing(dtype) == 1) return emitter.name(scalar);
  return fmt::format("from_{}({})", suffix(dtype), emitter.name(scalar));
}

std::string packed(DType dtype, const std::vector<std::string>& values) {
  if (packing(dtype) == 1) return values[0];
  return fmt::format("pack_{}({})", is_byte_integer(dtype) ? "bytes" : suffix(dtype),
                     fmt::join(values, ", "));
}

std::string_view nothing(DType dtype) { return is_byte_integer(dtype) ? "0" : "0.0f"; }

namespace {

using Operands = std::vector<std::string>;

std::string arithmetic_text(Op function, const Operands& o, bool floating, bool nonnegative) {
  switch (ir::as<ir::ArithmeticFunction>(function)) {
    case ir::ArithmeticFunction::add:
      return fmt::format("{} + {}", o[0], o[1]);
    case ir::ArithmeticFunction::sub:
      return fmt::format("{} - {}", o[0], o[1]);
    case ir::ArithmeticFunction::mul:
      return fmt::format("{} * {}", o[0], o[1]);
    case ir::ArithmeticFunction::div:
      return floating ? fmt::format("div_full({}, {})", o[0], o[1])
                      : integer_division(function, o[0], o[1], nonnegative);
    case ir::ArithmeticFunction::min:
      return fmt::format("{}({}, {})", floating ? "fminf" : "minimum", o[0], o[1]);
    case ir::ArithmeticFunction::max:
      return fmt::format("{}({}, {})", floating ? "fmaxf" : "maximum", o[0], o[1]);
    case ir::ArithmeticFunction::fma:
      return floating ? fmt::format("__fmaf_rn({}, {}, {})", o[0], o[1], o[2])
                      : fmt::format("{} * {} + {}", o[0], o[1], o[2]);
    case ir::ArithmeticFunction::neg:
      return fmt::format("-{}", o[0]);
    case ir::ArithmeticFunction::abs:
      return floating ? fmt::format("fabsf({})", o[0])
                      : fmt::format("maximum({}, -{})", o[0], o[0]);
  }
  return {};
}

std::string real_text(Op function, const std::string& x) {
  const std::string_view name = ir::info(function).name;
  switch (ir::as<ir::RealFunction>(function)) {
    case ir::RealFunction::exp:
      return fmt::format("exp2_approx({} * 1.44269504f)", x);
    case ir::RealFunction::log:
      return fmt::format("log2_approx({}) * 0.693147181f", x);
    case ir::RealFunction::exp2_polynomial:
      return fmt::format("exp2_polynomial({})", x);
    case ir::RealFunction::exp2:
    case ir::RealFunction::log2:
    case ir::RealFunction::sqrt:
    case ir::RealFunction::rsqrt:
    case ir::RealFunction::rcp:
    case ir::RealFunction::tanh:
    case ir::RealFunction::sin:
    case ir::RealFunction::cos:
      return fmt::format("{}_approx({})", name, x);
    case ir::RealFunction::log1p:
    case ir::RealFunction::expm1:
    case ir::RealFunction::erf:
    case ir::RealFunction::floor:
    case ir::RealFunction::ceil:
    case ir::RealFunction::rint:
      return fmt::format("{}f({})", name, x);
  }
  return {};
}

std::string_view sign_of(ir::ComparisonFunction function) {
  switch (function) {
    case ir::ComparisonFunction::lt:
      return "<";
    case ir::ComparisonFunction::le:
      return "<=";
    case ir::ComparisonFunction::eq:
      return "==";
    case ir::ComparisonFunction::ne:
      return "!=";
  }
  return {};
}

// Without short circuits: no branches in unrolled code.
std::string logic_text(Op function, const Operands& o) {
  switch (ir::as<ir::LogicFunction>(function)) {
    case ir::LogicFunction::logical_and:
      return fmt::format("{} & {}", o[0], o[1]);
    case ir::LogicFunction::logical_or:
      return fmt::format("{} | {}", o[0], o[1]);
    case ir::LogicFunction::logical_not:
      return fmt::format("!{}", o[0]);
  }
  return {};
}

std::string bits_text(Op function, const Operands& o) {
  switch (ir::as<ir::BitFunction>(function)) {
    case ir::BitFunction::bit_and:
      return fmt::format("{} & {}", o[0], o[1]);
    case ir::BitFunction::bit_or:
      return fmt::format("{} | {}", o[0], o[1]);
    case ir::BitFunction::bit_xor:
      return fmt::format("{} ^ {}", o[0], o[1]);
    case ir::BitFunction::bit_not:
      return fmt::format("~{}", o[0]);
    case ir::BitFunction::shift_left:
    case ir::BitFunction::shift_right:
      return fmt::format("{}({}, {})", ir::info(function).name, o[0], o[1]);
  }
  return {};
}

}  // namespace

std::string function_text(Op function, DType from, DType to, const std::vector<std::string>& o,
                          bool nonnegative) {
  switch (ir::info(function).kind) {
    case ir::FunctionKind::arithmetic:
      return arithmetic_text(function, o, is_float(from), nonnegative);
    case ir::FunctionKind::division:
      return integer_division(function, o[0], o[1], nonnegative);
    case ir::FunctionKind::real:
      return real_text(function, o[0]);
    case ir::FunctionKind::comparison:
      return fmt::format("{} {} {}", o[0], sign_of(ir::as<ir::ComparisonFunction>(function)), o[1]);
    case ir::FunctionKind::logic:
      return logic_text(function, o);
    case ir::FunctionKind::bits:
      return bits_text(function, o);
    case ir::FunctionKind::choice:
      break;
  }
  switch (ir::as<ir::ChoiceFunction>(function)) {
    case ir::ChoiceFunction::select:
      return fmt::format("{} ? {} : {}", o[0], o[1], o[2]);
    case ir::ChoiceFunction::cast:
      return cast_text(from, to, o[0]);
  }
  return {};
}

std::string sum_text(const std::vector<std::string>& terms) {
  std::string text;
  for (const std::string& term : terms) {
    if (term != "0") text += (text.empty() ? "" : " + ") + term;
  }
  return text.empty() ? "0" : text;
}

std::string index_text(const std::vector<ir::IndexTerm>& terms, const std::string& i,
                       std::int64_t count) {
  std::vector<std::string> parts;
  const bool number = i.find_first_not_of("0123456789") == std::string::npos;
  if (number) return std::to_string(ir::evaluate(terms, std::stoll(i)));
  const bool compound = i.find(' ') != std::string::npos;
  for (const ir::IndexTerm& term : terms) {
    if (term.modulus == 1 || term.stride == 0 || term.divisor >= count) continue;
    const bool wraps = (count - 1) / term.divisor >= term.modulus;
    const bool bare = term.divisor == 1 && !wraps && term.stride == 1;
    std::string text = compound && !bare ? "(" + i + ")" : i;
    if (term.divisor != 1) text += fmt::format(" / {}", term.divisor);
    if (wraps) text += fmt::format(" % {}", term.modulus);
    if (term.stride != 1) text += fmt::format(" * {}", term.stride);
    parts.push_back(std::move(text));
  }
  return sum_text(parts);
}

std::vector<ir::IndexTerm> coordinate_terms(const std::vector<ir::Mode>& modes, int axis) {
  std::vector<ir::IndexTerm> terms;
  std::int64_t divisor = 1;
  for (const ir::Mode& mode : modes) {
    if (mode.kind == ir::ModeKind::distribute && mode.axis == axis) {
      terms.push_back({divisor, mode.size, mode.stride});
    }
    divisor *= mode.size;
  }
  return terms;
}

std::string owner_condition(const Emitter& emitter, const ir::RegisterLayout& layout) {
  std::string text;
  const auto add = [&](const std::vector<ir::Mode>& modes, const std::string& index,
                       std::int64_t threads) {
    std::int64_t divisor = 1;
    for (const ir::Mode& mode : modes) {
      if (mode.kind == ir::ModeKind::replicate && mode.size > 1) {
        text += fmt::format("{}{} == 0", text.empty() ? "" : " && ",
                            index_text({{divisor, mode.size, 1}}, index, threads));
      }
      divisor *= mode.size;
    }
  };
  add(layout.lanes, "lane", 32);
  add(layout.warps, emitter.first_warp == 0 ? "warp" : fmt::format("warp - {}", emitter.first_warp),
      emitter.kernel().threads / 32);
  return text;
}

std::string thread_coordinate(const Emitter& emitter, const ir::RegisterLayout& layout, int axis) {
  const std::int64_t warps = layout.warp_count();
  std::string warp =
      emitter.first_warp == 0 ? "warp" : fmt::format("warp - {}", emitter.first_warp);
  if (warps == 4 && emitter.first_warp % 4 == 0) warp = "warp";
  const std::int64_t others =
      emitter.role_warps > 0 ? emitter.role_warps : emitter.kernel().threads / 32;
  // A bound of the index: its remainder is left out where it cannot exceed the layout's warps.
  const std::int64_t bound = warp == "warp" ? emitter.kernel().threads / 32 : others;
  std::vector<ir::IndexTerm> by_warp = coordinate_terms(layout.warps, axis);
  return sum_text({index_text(coordinate_terms(layout.lanes, axis), "lane", 32),
                   index_text(by_warp, warp, std::max(bound, warps))});
}

}  // namespace tilewright::codegen
