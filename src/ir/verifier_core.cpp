#include <algorithm>

#include "ir/core_window.h"
#include "ir/type_rules.h"
#include "ir/verifier_context.h"

// Cores with explicit memories: what holds whatever the machine. What a machine's record allows,
// target::verify asks.
namespace tilewright::ir {
namespace {

Extent2 seen_by(const VerifierContext& context, std::size_t operand) {
  const Operation* made = context.defined_by(context.operation().operands[operand]);
  if (made == nullptr || made->op != Op::window) {
    context.fail("{} is no window of a memory", context.operand_text(operand));
  }
  return seen_extent(*made, context.operand(operand));
}

// Operands behind the tensor and the window are a start and a limit of each axis.
void verify_core_box(const VerifierContext& context, std::size_t tensor, std::size_t window) {
  const Parameter& parameter = context.tensor_of(context.operation().operands[tensor]);
  const std::vector<std::int64_t>& sizes = context.attributes().integers(Key::sizes);
  const std::size_t rank = parameter.shape.size();
  if (sizes.size() != rank || context.operand_count() != 2 + 2 * rank) {
    context.fail("{} sizes and {} starts and limits, expected {} and {} for {}", sizes.size(),
                 context.operand_count() - 2, rank, 2 * rank, parameter.name);
  }
  constexpr std::int64_t kMostOfAnAxis = 1 << 20;
  std::int64_t axes = 0;
  for (const std::int64_t size : sizes) {
    context.require(size >= 0 && size <= kMostOfAnAxis, "a size of {}", size);
    axes += size != 0;
  }
  context.require(axes >= 1 && axes <= kBoxAxes, "{} axes of {}, expected 1 to {}", axes,
                  parameter.name, kBoxAxes);
  const Extent2 there = seen_by(context, window), part = box_extent(sizes, there);
  if (part != there) {
    context.fail("the part of {} is {}, the window {}", parameter.name, to_string(part),
                 to_string(there));
  }
}

void verify_core_matmul(const VerifierContext& context) {
  const Extent2 result = seen_by(context, 0), left = seen_by(context, 1),
                right = seen_by(context, 2);
  const bool fits =
      left.columns == right.rows && result.rows == left.rows && result.columns == right.columns;
  if (!fits) {
    context.fail("{} x {} gives {}, and the result is {}", to_string(left), to_string(right),
                 to_string({left.rows, right.columns}), to_string(result));
  }
}

void verify_core_vector(const VerifierContext& context) {
  const Op function = context.attributes().function();
  const OpInfo& record = info(function);
  const std::size_t count = context.operand_count() - 1;
  if (!record.elementwise() || static_cast<int>(count) != record.arity) {
    context.fail("{} of {} operands", record.name, count);
  }
  std::vector<Type> operands;
  for (std::size_t i = 1; i <= count; ++i) {
    const Type& type = context.operand(i);
    if (type.is_scalar()) {
      operands.push_back(type);
      continue;
    }
    const Extent2 extent = seen_by(context, i);
    operands.push_back(Type::tile(type.dtype, {extent.rows, extent.columns}));
  }
  const Type& result = context.operand(0);
  const Extent2 there = seen_by(context, 0);
  const TypeOrProblem made = elementwise_type(function, operands, result.dtype);
  if (!made.ok()) context.fail("{}: {}", record.name, made.problem);
  const Type wanted = Type::tile(result.dtype, {there.rows, there.columns});
  const bool fits = made.type.is_scalar() ? made.type.dtype == result.dtype : made.type == wanted;
  if (!fits) {
    context.fail("{} gives {}, and the result is {}", record.name, made.type.to_string(),
                 wanted.to_string());
  }
}

void verify_core_reduce(const VerifierContext& context) {
  const std::int64_t axis = context.integer(Key::axis);
  context.require(axis == 0 || axis == 1, "axis {}, expected 0 or 1", axis);
  Extent2 wanted = seen_by(context, 1);
  (axis == 0 ? wanted.rows : wanted.columns) = 1;
  if (seen_by(context, 0) != wanted) {
    context.fail("the result is {}, expected {}", to_string(seen_by(context, 0)),
                 to_string(wanted));
  }
  verify_combined(context, context.operand(1).dtype);
}

}  // namespace

void verify_core_memory(const VerifierContext& context) {
  const Type& type = context.result();
  const bool is_whole =
      type.shape.size() == 3 && std::all_of(type.shape.begin(), type.shape.end(),
                                            [](std::int64_t extent) { return extent > 0; });
  if (!is_whole || type.shape[0] != context.integer(Key::stages)) {
    context.fail("{} is {}, expected {} stages of rows and columns",
                 context.attributes().text(Key::name), type.to_string(),
                 context.integer(Key::stages));
  }
}

void verify_core_window(const VerifierContext& context) {
  const Type &memory = context.operand(0), &window = context.result();
  const std::string name = context.operand_text(0);
  context.require(window.shape.size() == 2 && window.shape[0] > 0 && window.shape[1] > 0,
                  "a window of rank {} of {}", window.shape.size(), name);
  context.require(window.dtype == memory.dtype, "a window of {} of {}, which is {}",
                  name_of(window.dtype), name, name_of(memory.dtype));
  const char* const axes[] = {"stages", "rows", "columns"};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::int64_t size = axis == 0 ? 1 : window.shape[axis - 1];
    const std::int64_t first = context.constant_operand(axis + 1).value_or(0);
    if (first >= 0 && first + size <= memory.shape[axis]) continue;
    context.fail("{} {} from {} of the {} of {}", size, axes[axis], first, memory.shape[axis],
                 name);
  }
}

void verify_core_copy(const VerifierContext& context) {
  switch (as<CoreCopyOp>(context.operation().op)) {
    case CoreCopyOp::core_load:
      return verify_core_box(context, 1, 0);
    case CoreCopyOp::core_store: {
      const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
      context.require(tensor.kind != Parameter::Kind::in, "writes {}, which is an input",
                      tensor.name);
      return verify_core_box(context, 0, 1);
    }
    case CoreCopyOp::core_move:
      if (seen_by(context, 0) != seen_by(context, 1)) {
        context.fail("from {} to {}", to_string(seen_by(context, 1)),
                     to_string(seen_by(context, 0)));
      }
      return;
  }
}

void verify_core_compute(const VerifierContext& context) {
  switch (as<CoreComputeOp>(context.operation().op)) {
    case CoreComputeOp::core_matmul:
      return verify_core_matmul(context);
    case CoreComputeOp::core_vector:
      return verify_core_vector(context);
    case CoreComputeOp::core_reduce:
      return verify_core_reduce(context);
    case CoreComputeOp::core_fill:
      context.require(context.operand(1).dtype == context.operand(0).dtype,
                      "{} to every element of {}", name_of(context.operand(1).dtype),
                      name_of(context.operand(0).dtype));
      return;
    case CoreComputeOp::core_iota: {
      const std::int64_t axis = context.integer(Key::axis);
      context.require(axis == 0 || axis == 1, "axis {}, expected 0 or 1", axis);
      context.require(context.operand(0).dtype == DType::i32, "to {}, expected i32",
                      name_of(context.operand(0).dtype));
      return;
    }
  }
}

}  // namespace tilewright::ir
