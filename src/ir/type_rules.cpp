#include "ir/type_rules.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::ir {
namespace {

bool is_number(DType type) { return type != DType::boolean; }
bool is_boolean(DType type) { return type == DType::boolean; }
bool is_anything(DType) { return true; }

struct Expected {
  bool (*accepts)(DType);
  std::string_view name;
};

Expected expected_of(Domain domain) {
  switch (domain) {
    case Domain::number:
      return {is_number, "a number"};
    case Domain::integer:
      return {is_integer, "an integer"};
    case Domain::floating:
      return {is_float, "a floating-point number"};
    case Domain::boolean:
      return {is_boolean, "a boolean"};
    case Domain::anything:
      break;
  }
  return {is_anything, "anything"};
}

}  // namespace

DTypeOrProblem elementwise_dtype(Op op, const std::vector<DType>& operands, DType to) {
  const std::size_t arity = info(op).arity;
  if (operands.size() != arity) {
    return {to, fmt::format("{} operands, expected {}", operands.size(), arity)};
  }
  std::size_t first = 0;
  if (op == Op::select) {
    if (!is_boolean(operands[0])) {
      return {to, fmt::format("the condition is {}, expected bool", name_of(operands[0]))};
    }
    first = 1;
  }
  const Expected allowed = expected_of(info(op).domain);
  const bool moves = op == Op::select || op == Op::cast;
  for (std::size_t i = first; i < arity; ++i) {
    if (!allowed.accepts(operands[i])) {
      return {to,
              fmt::format("operand {} is {}, expected {}", i, name_of(operands[i]), allowed.name)};
    }
    if (is_memory_format(operands[i]) && !moves) {
      return {to,
              fmt::format("operand {} is {}, a format of memory alone", i, name_of(operands[i]))};
    }
    if (operands[i] != operands[first]) {
      return {to, fmt::format("operand {} is {} but operand {} is {}", first,
                              name_of(operands[first]), i, name_of(operands[i]))};
    }
  }
  if (op == Op::cast) {
    return {to, is_boolean(to) ? "cast to bool; compare with zero instead" : ""};
  }
  return {info(op).is_comparison() ? DType::boolean : operands[first], {}};
}

TypeOrProblem elementwise_type(Op op, const std::vector<Type>& operands, DType to) {
  std::vector<DType> dtypes;
  const Type* shaped = nullptr;
  std::vector<std::int64_t> shape;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Type& type = operands[i];
    dtypes.push_back(type.dtype);
    if (type.is_scalar()) continue;
    if (!type.is_tile()) {
      return {{},
              fmt::format("operand {} is {}, expected a scalar or a tile", i, type.to_string())};
    }
    if (shaped && type.shape.size() != shape.size()) {
      return {{},
              fmt::format("operands of ranks {} and {}: {} and {}", shape.size(), type.shape.size(),
                          shape_text(shape), shape_text(type.shape))};
    }
    if (!shaped) shape = type.shape;
    shaped = &type;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis] != type.shape[axis] && shape[axis] != 1 && type.shape[axis] != 1) {
        return {
            {},
            fmt::format("axis {} has sizes {} and {}, which do not broadcast: {} and {}", axis,
                        shape[axis], type.shape[axis], shape_text(shape), shape_text(type.shape))};
      }
      shape[axis] = shape[axis] == 1 ? type.shape[axis] : shape[axis];
    }
  }
  DTypeOrProblem dtype = elementwise_dtype(op, dtypes, to);
  if (!dtype.problem.empty()) return {{}, std::move(dtype.problem)};
  return {shaped ? Type::tile(dtype.dtype, std::move(shape)) : Type::scalar(dtype.dtype), {}};
}

DType accumulator_dtype(DType element) { return is_float(element) ? DType::f32 : DType::i32; }

std::vector<ReshapedAxes> reshaped_axes(const std::vector<std::int64_t>& from,
                                        const std::vector<std::int64_t>& to) {
  std::vector<ReshapedAxes> groups;
  std::size_t i = 0, j = 0;
  // Takes the next axis that is not of size 1.
  const auto take = [](const std::vector<std::int64_t>& shape, std::size_t& next,
                       std::vector<std::size_t>& axes) -> std::int64_t {
    while (next < shape.size() && shape[next] == 1) ++next;
    if (next == shape.size()) return 0;
    axes.push_back(next);
    return shape[next++];
  };
  while (true) {
    ReshapedAxes group;
    std::int64_t before = take(from, i, group.from), behind = take(to, j, group.to);
    if (before == 0 || behind == 0) return groups;
    while (before != behind) {
      const std::int64_t more = before < behind ? take(from, i, group.from) : take(to, j, group.to);
      if (more == 0) return groups;
      (before < behind ? before : behind) *= more;
    }
    groups.push_back(std::move(group));
  }
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("{{{}}}", fmt::join(shape, ", "));
}

}  // namespace tilewright::ir
