#include <fmt/format.h>

#include <functional>

#include "codegen/cuda/expressions.h"
#include "codegen/cuda/operations.h"
#include "target/target.h"

namespace tilewright::codegen {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

std::string at(const std::string& index, int next) {
  return next == 0 ? index : fmt::format("{} + {}", index, next);
}

// destination[i] = value(i) for every element, as an unrolled loop over its registers.
void assign(Emitter& emitter, ValueId destination,
            const std::function<std::string(const std::string& i)>& value) {
  const ir::Type& type = emitter.type(destination);
  const int per_register = packing(type.dtype);
  const std::int64_t elements = type.elements();
  const auto statement = [&](const std::string& i) {
    std::vector<std::string> values;
    for (int next = 0; next < per_register; ++next) {
      // An array may end inside a register.
      const bool exists = i != "0" || next < elements;
      values.push_back(exists ? value(i == "0" ? std::to_string(next) : at(i, next))
                              : std::string(nothing(type.dtype)));
    }
    const std::string target =
        i == "0" || per_register == 1 ? i : fmt::format("i / {}", per_register);
    emitter.line(fmt::format("{}{}[{}] = {};", i == "0" ? "" : "  ", emitter.name(destination),
                             target, packed(type.dtype, values)));
  };
  if (elements <= per_register) return statement("0");
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; {})", elements,
                           per_register == 1 ? "++i" : fmt::format("i += {}", per_register)));
  statement("i");
}

bool is_identity(const ir::IndexMap& map, std::int64_t count) {
  return index_text(map, "i", count) == "i";
}

// Bytes become halves by whole registers, without the unit that converts one number at a time.
bool print_halves_of_bytes(Emitter& emitter, const Operation& operation) {
  const ValueId to = operation.operands[0], from = operation.operands[1];
  const ir::Type &halves = emitter.type(to), &bytes = emitter.type(from);
  constexpr int kBytes = 4;
  if (operation.attributes.function() != Op::cast || bytes.is_scalar() ||
      size_of(bytes.dtype) != 1 || bytes.dtype == DType::boolean ||
      (halves.dtype != bf16 && halves.dtype != f16) || halves.elements() % kBytes != 0 ||
      !is_identity(operation.attributes.maps().at(0), halves.elements())) {
    return false;
  }
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; ++i) {}_of_{}({} + 2 * i, {}[i]);",
                           halves.elements() / kBytes, name_of(halves.dtype), name_of(bytes.dtype),
                           emitter.name(to), emitter.name(from)));
  return true;
}

// Whether elements 2 j and 2 j + 1 of the operand lie side by side, or are the same one.
bool is_of_pairs(const Emitter& emitter, ValueId source, const ir::IndexMap& map,
                 std::int64_t count) {
  if (emitter.type(source).dtype != DType::f32) return false;
  if (emitter.type(source).is_scalar()) return true;
  bool beside = true, same = true;
  for (std::int64_t i = 0; i < count; i += 2) {
    const std::int64_t step = ir::evaluate(map, i + 1) - ir::evaluate(map, i);
    beside = beside && step == 1;
    same = same && step == 0;
  }
  return beside || same;
}

// Products and sums of f32 two at a time, where the target has instructions for it.
bool print_pairs(Emitter& emitter, const Operation& operation) {
  const Op function = operation.attributes.function();
  const bool has_instruction =
      function == Op::add || function == Op::sub || function == Op::mul || function == Op::fma;
  const ValueId destination = operation.operands[0];
  const std::int64_t count = emitter.type(destination).elements();
  if (!has_instruction || count % 2 != 0 || emitter.type(destination).dtype != DType::f32 ||
      !target::target_of(emitter.kernel()).float_pairs) {
    return false;
  }
  const std::vector<ir::IndexMap>& maps = operation.attributes.maps();
  std::string operands;
  for (std::size_t k = 1; k < operation.operands.size(); ++k) {
    const ValueId source = operation.operands[k];
    const ir::IndexMap& map = maps.at(k - 1);
    if (!is_of_pairs(emitter, source, map, count)) return false;
    if (source == destination && !is_identity(map, count)) return false;
    for (const char* i : {"i", "i + 1"}) {
      operands += ", " + (emitter.type(source).is_scalar()
                              ? operand(emitter, source)
                              : element(emitter, source, index_text(map, i, count)));
    }
  }
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; i += 2) {}_pair({} + i{});", count,
                           ir::info(function).name, emitter.name(destination), operands));
  return true;
}

// A copy of the array under another name, for an operation that reads it after writing it.
std::string copied(Emitter& emitter, ValueId array) {
  const std::string copy = emitter.name(array) + "_before";
  const std::int64_t count = register_count(emitter.type(array));
  emitter.line(fmt::format("{} {}[{}];", register_type(emitter.type(array).dtype), copy, count));
  emitter.line("#pragma unroll");
  emitter.line(
      fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {}[i];", count, copy, emitter.name(array)));
  return copy;
}

}  // namespace

void print_registers(Emitter& emitter, const Operation& operation) {
  const ValueId array = operation.results[0];
  const ir::Type& type = emitter.type(array);
  emitter.set_name(array, emitter.named(operation));
  emitter.line(fmt::format("{} {}[{}];", register_type(type.dtype), emitter.name(array),
                           register_count(type)));
}

void print_fill(Emitter& emitter, const Operation& operation) {
  const std::string value = operand(emitter, operation.operands[1]);
  assign(emitter, operation.operands[0], [&](const std::string&) { return value; });
}

void print_copy(Emitter& emitter, const Operation& operation) {
  const ValueId to = operation.operands[0], from = operation.operands[1];
  const DType dtype = emitter.type(to).dtype;
  const std::int64_t offset = operation.attributes.integer_or(Key::offset, 0);
  const auto shifted = [](std::int64_t by, const std::string& i) {
    return by == 0 ? i : fmt::format("{} + {}", by, i);
  };
  if (offset % packing(dtype) != 0) {
    return assign(emitter, to,
                  [&](const std::string& i) { return element(emitter, from, shifted(offset, i)); });
  }
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {}[{}];",
                           register_count(emitter.type(to)), emitter.name(to), emitter.name(from),
                           shifted(offset / packing(dtype), "i")));
}

void print_compute(Emitter& emitter, const Operation& operation) {
  if (print_halves_of_bytes(emitter, operation) || print_pairs(emitter, operation)) return;
  const ValueId destination = operation.operands[0];
  const std::vector<ir::IndexMap>& maps = operation.attributes.maps();
  const Op function = operation.attributes.function();
  const std::int64_t count = emitter.type(destination).elements();
  const std::string name = emitter.name(destination);
  bool scoped = false;
  bool nonnegative = true;
  for (std::size_t k = 1; k < operation.operands.size(); ++k) {
    const ValueId source = operation.operands[k];
    nonnegative = nonnegative && emitter.nonnegative(source);
    if (source != destination || is_identity(maps.at(k - 1), count) || scoped) continue;
    scoped = true;
    emitter.open("");
    emitter.set_name(destination, copied(emitter, destination));
  }
  const std::string before = emitter.name(destination);
  const auto value = [&](const std::string& i) {
    std::vector<std::string> operands;
    emitter.set_name(destination, before);
    for (std::size_t k = 1; k < operation.operands.size(); ++k) {
      const ValueId source = operation.operands[k];
      operands.push_back(emitter.type(source).is_scalar()
                             ? operand(emitter, source)
                             : element(emitter, source, index_text(maps.at(k - 1), i, count)));
    }
    emitter.set_name(destination, name);
    return function_text(function, emitter.type(operation.operands.back()).dtype,
                         emitter.type(destination).dtype, operands, nonnegative);
  };
  assign(emitter, destination, value);
  emitter.set_name(destination, name);
  if (scoped) emitter.close();
}

void print_coordinate(Emitter& emitter, const Operation& operation) {
  const ir::RegisterLayout& layout = operation.attributes.register_layout();
  const int axis = static_cast<int>(operation.attributes.integer(Key::axis));
  const ValueId destination = operation.operands[0];
  const std::int64_t count = emitter.type(destination).elements();
  const std::vector<ir::IndexTerm> terms = coordinate_terms(layout.registers, axis);
  const std::string thread = thread_coordinate(emitter, layout, axis);
  assign(emitter, destination, [&](const std::string& i) {
    return sum_text({index_text(terms, i, count), thread});
  });
}

void print_reduce_registers(Emitter& emitter, const Operation& operation) {
  const ValueId destination = operation.operands[0], source = operation.operands[1];
  const Op function = operation.attributes.function();
  const DType dtype = emitter.type(destination).dtype;
  const std::int64_t count = emitter.type(source).elements();
  const std::int64_t results = emitter.type(destination).elements();
  const std::string to = index_text(operation.attributes.maps().at(0), "i", count);
  emitter.open("");
  // Sums of packed elements are rounded once, when they are complete.
  const std::string sums = "sums";
  emitter.line(
      fmt::format("{} {}[{}];", is_float(dtype) ? "float" : scalar_type(dtype), sums, results));
  if (function == Op::add) {
    // The negative zero is what adds nothing to any number.
    emitter.line("#pragma unroll");
    emitter.line(fmt::format("for (int i = 0; i < {}; ++i) {}[i] = {};", results, sums,
                             is_float(dtype) ? "-0.0f" : "0"));
  } else {
    // Downwards, so that what remains is the first element of each.
    emitter.line("#pragma unroll");
    emitter.line(fmt::format("for (int i = {}; i >= 0; --i) {}[{}] = {};", count - 1, sums, to,
                             element(emitter, source, "i")));
  }
  const std::string target = fmt::format("{}[{}]", sums, to);
  emitter.line("#pragma unroll");
  emitter.line(
      fmt::format("for (int i = 0; i < {}; ++i) {} = {};", count, target,
                  function_text(function, dtype, dtype, {target, element(emitter, source, "i")})));
  assign(emitter, destination,
         [&](const std::string& i) { return fmt::format("{}[{}]", sums, i); });
  emitter.close();
}

void print_reduce_lanes(Emitter& emitter, const Operation& operation) {
  const ValueId array = operation.operands[0];
  const DType dtype = emitter.type(array).dtype;
  const Op function = operation.attributes.function();
  for (const std::int64_t mask : operation.attributes.integers(Key::masks)) {
    assign(emitter, array, [&](const std::string& i) {
      const std::string value = element(emitter, array, i);
      return function_text(
          function, dtype, dtype,
          {value, fmt::format("__shfl_xor_sync(0xffffffffu, {}, {})", value, mask)});
    });
  }
}

void print_any_register(Emitter& emitter, const Operation& operation) {
  const ValueId array = operation.operands[0];
  const std::string result = emitter.name(operation.results[0]);
  const std::string own = result + "_of_lane";
  emitter.line(fmt::format("bool {} = false;", own));
  emitter.line("#pragma unroll");
  emitter.line(fmt::format("for (int i = 0; i < {}; ++i) {} |= {};", emitter.type(array).shape[0],
                           own, element(emitter, array, "i")));
  emitter.line(fmt::format("const bool {} = __any_sync(0xffffffffu, {});", result, own));
}

}  // namespace tilewright::codegen
