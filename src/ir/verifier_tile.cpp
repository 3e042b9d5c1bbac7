#include <algorithm>
#include <numeric>

#include "ir/type_rules.h"
#include "ir/verifier_context.h"
#include "support/number_formats.h"

// The types of operations on tiles and scalars.
namespace tilewright::ir {
namespace {

using Shape = std::vector<std::int64_t>;

void require_type(const VerifierContext& context, const Type& have, const Type& want) {
  if (have.kind == want.kind && have.dtype == want.dtype && have.shape == want.shape) return;
  context.fail("gives {}, expected {}", have.to_string(), want.to_string());
}

// Tensor operand 0, starts and limits from operand `first`; the tile has the sizes that are not 0.
void verify_access(const VerifierContext& context, std::size_t first, const Type& tile) {
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  const std::size_t rank = tensor.shape.size();
  const Shape& sizes = context.attributes().integers(Key::sizes);
  context.require(context.operand_count() - first == 2 * rank,
                  "{} starts and limits, expected {}: {} has rank {}",
                  context.operand_count() - first, 2 * rank, tensor.name, rank);
  context.require(sizes.size() == rank, "{} sizes, but {} has rank {}", sizes.size(), tensor.name,
                  rank);
  Shape shape;
  std::copy_if(sizes.begin(), sizes.end(), std::back_inserter(shape),
               [](std::int64_t size) { return size != 0; });
  if (shape != tile.shape) {
    context.fail("the tile has shape {}, but the sizes on {} are {}", shape_text(tile.shape),
                 tensor.name, shape_text(sizes));
  }
  context.require(tile.dtype == tensor.dtype, "the tile is {}, but {} is {}", name_of(tile.dtype),
                  tensor.name, name_of(tensor.dtype));
}

// A layout of the result's shape: in the scheduled form, and where an author declares it.
void verify_chosen_layout(const VerifierContext& context) {
  const bool declared = context.operation().op == Op::convert;
  const bool tile_form = context.kernel().form == Form::tile;
  if (!context.attributes().has(Key::layout)) {
    return context.require(!declared || !tile_form, "has no layout in the tile form");
  }
  const RegisterLayout& layout = context.attributes().register_layout();
  context.require(declared || !tile_form, "has a layout in the tile form");
  if (const auto problem = layout.problem()) {
    context.fail("layout {}: {}", layout.to_string(), *problem);
  }
  if (layout.shape == context.result().shape) return;
  context.fail("the tile has shape {}, but its layout is of shape {}",
               shape_text(context.result().shape), shape_text(layout.shape));
}

void verify_store(const VerifierContext& context) {
  verify_access(context, 2, context.operand(1));
  const Parameter& tensor = context.tensor_of(context.operation().operands[0]);
  context.require(tensor.kind != Parameter::Kind::in, "writes {}, which is an input", tensor.name);
  verify_element_order(context, tensor);
  if (context.operation().op == Op::atomic_tile) {
    require_type(context, context.result(), context.operand(1));
  }
}

std::size_t verified_axis(const VerifierContext& context, const Shape& shape) {
  const std::int64_t axis = context.integer(Key::axis);
  context.require(axis >= 0 && axis < static_cast<std::int64_t>(shape.size()),
                  "axis {} of a tile of rank {}", axis, shape.size());
  return static_cast<std::size_t>(axis);
}

void verify_reduction_function(const VerifierContext& context, DType dtype) {
  verify_combined(context, dtype);
  context.require(dtype != DType::boolean, "reduces booleans, expected numbers");
  context.require(!is_memory_format(dtype), "reduces {}, a format of memory alone", name_of(dtype));
}

void verify_reduce(const VerifierContext& context) {
  Type expected = context.operand(0);
  verify_reduction_function(context, expected.dtype);
  expected.shape[verified_axis(context, expected.shape)] = 1;
  require_type(context, context.result(), expected);
}

void verify_transpose(const VerifierContext& context) {
  const Type& from = context.operand(0);
  const Shape& permutation = context.attributes().integers(Key::permutation);
  Shape sorted = permutation, axes(from.shape.size()), shape;
  std::sort(sorted.begin(), sorted.end());
  std::iota(axes.begin(), axes.end(), 0);
  if (sorted != axes) {
    context.fail("{} is no permutation of {} axes", shape_text(permutation), axes.size());
  }
  for (const std::int64_t axis : permutation) shape.push_back(from.shape[axis]);
  require_type(context, context.result(), Type::tile(from.dtype, shape));
}

void verify_reshape(const VerifierContext& context) {
  const Type &from = context.operand(0), &to = context.result();
  context.require(from.dtype == to.dtype, "from {} to {}", name_of(from.dtype), name_of(to.dtype));
  if (from.elements() != to.elements()) {
    context.fail("{} has {} elements, {} has {}", shape_text(from.shape), from.elements(),
                 shape_text(to.shape), to.elements());
  }
}

void verify_slice(const VerifierContext& context) {
  const Type &from = context.operand(0), &to = context.result();
  const Shape& offsets = context.attributes().integers(Key::offsets);
  context.require(from.dtype == to.dtype, "from {} to {}", name_of(from.dtype), name_of(to.dtype));
  context.require(offsets.size() == from.shape.size() && to.shape.size() == from.shape.size(),
                  "{} offsets and a result of rank {}, of a tile of rank {}", offsets.size(),
                  to.shape.size(), from.shape.size());
  for (std::size_t axis = 0; axis < offsets.size(); ++axis) {
    context.require(offsets[axis] >= 0 && offsets[axis] <= from.shape[axis] - to.shape[axis],
                    "axis {}: {} elements from {} of {}", axis, to.shape[axis], offsets[axis],
                    from.shape[axis]);
  }
}

}  // namespace

void verify_elementwise(const VerifierContext& context) {
  std::vector<Type> operands;
  for (std::size_t i = 0; i < context.operand_count(); ++i) {
    operands.push_back(context.operand(i));
    context.require(context.kernel().form != Form::machine || operands.back().is_scalar(),
                    "operand {} is no scalar; in the machine form register arrays use compute", i);
  }
  const TypeOrProblem expected =
      elementwise_type(context.operation().op, operands, context.result().dtype);
  if (!expected.ok()) context.fail("{}", expected.problem);
  require_type(context, context.result(), expected.type);
}

void verify_constant(const VerifierContext& context) {
  const bool number = std::holds_alternative<double>(*context.attributes().find(Key::value));
  const DType dtype = context.result().dtype;
  context.require(number == is_float(dtype), "the value is {}, but the result is {}",
                  number ? "a number" : "an integer", name_of(dtype));
  if (number) return;
  const std::int64_t value = context.integer(Key::value);
  const IntegerRange range = dtype == DType::boolean ? IntegerRange{0, 1} : range_of(dtype);
  context.require(value >= range.low && value <= range.high,
                  "the value is {}, expected {} to {} for {}", value, range.low, range.high,
                  name_of(dtype));
}

void verify_tile_access(const VerifierContext& context) {
  if (info(context.operation().op).writes(Memory::global)) return verify_store(context);
  verify_chosen_layout(context);
  verify_access(context, 1, context.result());
  verify_element_order(context, context.tensor_of(context.operation().operands[0]));
}

void verify_dot(const VerifierContext& context) {
  const Type &a = context.operand(0), &b = context.operand(1);
  if (a.shape.size() != 2 || b.shape.size() != 2 || a.shape[1] != b.shape[0]) {
    context.fail("inner dimensions differ: {} {} x {} {}", context.operand_text(0),
                 shape_text(a.shape), context.operand_text(1), shape_text(b.shape));
  }
  context.require(a.dtype == b.dtype && a.dtype != DType::boolean && !is_memory_format(a.dtype),
                  "a is {} and b is {}", name_of(a.dtype), name_of(b.dtype));
  const Type expected = Type::tile(accumulator_dtype(a.dtype), {a.shape[0], b.shape[1]});
  if (context.operand_count() == 3) {
    const Type& c = context.operand(2);
    if (c.dtype != expected.dtype || c.shape != expected.shape) {
      context.fail("the accumulator is {}, expected {}", c.to_string(), expected.to_string());
    }
  }
  require_type(context, context.result(), expected);
}

void verify_tile(const VerifierContext& context) {
  verify_chosen_layout(context);
  switch (as<TileOp>(context.operation().op)) {
    case TileOp::splat:
      return require_type(context, context.result(),
                          Type::tile(context.operand(0).dtype, context.result().shape));
    case TileOp::iota:
      verified_axis(context, context.result().shape);
      return require_type(context, context.result(),
                          Type::tile(DType::i32, context.result().shape));
    case TileOp::reduce:
      return verify_reduce(context);
    case TileOp::complete:
      verify_reduction_function(context, context.operand(0).dtype);
      return require_type(context, context.result(), context.operand(0));
    case TileOp::transpose:
      return verify_transpose(context);
    case TileOp::reshape:
      return verify_reshape(context);
    case TileOp::convert:
      if (context.kernel().form == Form::tile) {
        context.require(!context.attributes().has(Key::offsets) &&
                            !context.attributes().has(Key::first) && context.operand_count() == 1,
                        "of the scheduled form");
        return require_type(context, context.result(), context.operand(0));
      }
      if (!context.attributes().has(Key::offsets)) return verify_reshape(context);
      return verify_slice(context);
    case TileOp::slice:
      return verify_slice(context);
    case TileOp::any:
      return context.require(context.operand(0).dtype == DType::boolean, "of {}, expected bool",
                             name_of(context.operand(0).dtype));
  }
}

}  // namespace tilewright::ir
