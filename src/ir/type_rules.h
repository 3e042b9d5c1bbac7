#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ir/ir.h"

// The types that operations give, for whoever builds operations and for the verifier.
namespace tilewright::ir {

// A type, or what is wrong with the operands.
struct TypeOrProblem {
  Type type;
  std::string problem;

  bool ok() const { return problem.empty(); }
};

// The dtype of an elementwise function's result, for operands of these dtypes; `to` is cast's.
struct DTypeOrProblem {
  DType dtype = DType::f32;
  std::string problem;
};
DTypeOrProblem elementwise_dtype(Op op, const std::vector<DType>& operands, DType to = DType::f32);

// Scalars and tiles: tiles of equal rank broadcast along axes of size 1, scalars broadcast to any
// tile. The result carries no layout.
TypeOrProblem elementwise_type(Op op, const std::vector<Type>& operands, DType to = DType::f32);

// The dtype that products of elements accumulate in.
DType accumulator_dtype(DType element);

// Axes, none of size 1, that a reshape makes of others: as few together as have the same elements
// before and behind it.
struct ReshapedAxes {
  std::vector<std::size_t> from, to;
};
std::vector<ReshapedAxes> reshaped_axes(const std::vector<std::int64_t>& from,
                                        const std::vector<std::int64_t>& to);

// "{64, 128}", as messages show shapes.
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace tilewright::ir
