#include "tilewright/kernels/activation.h"
#include "tilewright/function_ref.h"

#include <optional>
#include <string>
#include <vector>

#include "kernels/row_blocks.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr double kRootOfHalf = 0.7071067811865476;
constexpr double kNormalAtZero = 0.3989422804014327;  // 1 / sqrt(2 pi)
constexpr double kTanhScale = 0.7978845608028654;     // sqrt(2 / pi)
constexpr double kTanhCube = 0.044715;

Tile normal_below(const Tile& z) { return erf(z * kRootOfHalf) * 0.5 + 0.5; }

Tile gelu_tanh_of(const Tile& z) { return tanh(z * (z * z * kTanhCube + 1) * kTanhScale); }

}  // namespace

Tile activate(Activation activation, const Tile& z) {
  switch (activation) {
    case Activation::none:
      break;  // only callers: entries of the library leave it out
    case Activation::relu:
      return max(z, 0);
    case Activation::gelu:
      return z * normal_below(z);
    case Activation::gelu_tanh:
      return z * (gelu_tanh_of(z) * 0.5 + 0.5);
    case Activation::silu:
      return z * sigmoid(z);
  }
  return z;  // only callers
}

Tile derivative(Activation activation, const Tile& z) {
  switch (activation) {
    case Activation::none:
      break;  // only callers
    case Activation::relu:
      return (z > 0).cast(f32);
    case Activation::gelu:
      return normal_below(z) + z * exp(z * z * -0.5) * kNormalAtZero;
    case Activation::gelu_tanh: {
      const Tile t = gelu_tanh_of(z);
      const Tile slope = (z * z * (3 * kTanhCube) + 1) * kTanhScale;
      return t * 0.5 + 0.5 + z * (1 - t * t) * slope * 0.5;
    }
    case Activation::silu: {
      const Tile s = sigmoid(z);
      return s * (z * (1 - s) + 1);
    }
  }
  return z * 0 + 1;  // only callers
}

namespace {

constexpr int kColumnsOfBlock = 64;

// Goes over the rows of a part, `term` by `term`, and adds each up in `sums` where there are any.
void sum_part(const Dim& rows, const Dim& columns, const Dim& parts, Kernel& kernel,
              const std::optional<Tensor>& sums,
              FunctionRef<Tile(const Block& rows, const Block& columns)> term) {
  const auto [x, part] = kernel.grid(ceil_div(columns, kColumnsOfBlock), parts);
  const Block own = columns.block(x, kColumnsOfBlock);
  Var sum{zeros({1, own})};
  for (Block some : runs_of_part(rows, parts, part)) {
    const Tile value = term(some, own);
    if (sums) sum = sum + reduce_sum(value, 0);
  }
  const Tile total = sum;
  if (sums) store((*sums)(part, own), total.reshape({kColumnsOfBlock}));
}

Kernel activation_backward_parts(const ActivationBackward& of) {
  Kernel kernel("activation_backward_parts");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Dim parts = row_parts(rows);
  const Tensor Z = kernel.in("Z", of.dtype, {rows, columns});
  const Tensor dY = kernel.in("dY", of.dtype, {rows, columns});
  const Tensor dZ = kernel.out("dZ", of.dtype, {rows, columns});
  std::optional<Tensor> sums;
  if (plan_case("sums for a bias", of.bias)) sums = kernel.out("P", f32, {parts, columns});
  sum_part(rows, columns, parts, kernel, sums, [&](const Block& some, const Block& cols) {
    const Tile z = load(Z(some, cols)).cast(f32);
    const Tile dz = load(dY(some, cols)).cast(f32) * derivative(of.activation, z);
    store(dZ(some, cols), dz.cast(of.dtype));
    return dz;
  });
  return kernel;
}

Kernel column_sums_parts(DType dtype) {
  Kernel kernel("column_sums_parts");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Dim parts = row_parts(rows);
  const Tensor X = kernel.in("X", dtype, {rows, columns});
  const Tensor sums = kernel.out("P", f32, {parts, columns});
  sum_part(rows, columns, parts, kernel, sums,
           [&](const Block& some, const Block& cols) { return load(X(some, cols)).cast(f32); });
  return kernel;
}

}  // namespace

Program activation_backward(const ActivationBackward& of, SourceLocation where) {
  if (of.activation == Activation::none) {
    Caller{"activation_backward", where}.refuse("the activation is none",
                                                "its gradient is dY itself: take column_sums");
  }
  Program program("activation_backward");
  const Dim rows = program.dim("rows"), columns = program.dim("columns"), parts = row_parts(rows);
  std::vector<Part> tensors = {program.in("Z", of.dtype, {rows, columns}),
                               program.in("dY", of.dtype, {rows, columns}),
                               program.out("dZ", of.dtype, {rows, columns})};
  if (of.bias) tensors.push_back(program.scratch("P", f32, {parts, columns}));
  const Stream stream = program.rank(0).stream();
  stream.launch(activation_backward_parts(of), tensors, {}, where);
  if (of.bias) {
    stream.launch(sum_of_parts("activation_backward_bias", of.dtype),
                  {tensors.back(), program.out("dbias", of.dtype, {columns})});
  }
  return program;
}

Program column_sums(DType dtype, SourceLocation) {
  Program program("column_sums");
  const Dim rows = program.dim("rows"), columns = program.dim("columns"), parts = row_parts(rows);
  const Buffer X = program.in("X", dtype, {rows, columns});
  const Buffer S = program.out("S", dtype, {columns});
  const Buffer P = program.scratch("P", f32, {parts, columns});
  const Stream stream = program.rank(0).stream();
  stream.launch(column_sums_parts(dtype), {X, P});
  stream.launch(sum_of_parts("column_sums_all", dtype), {P, S});
  return program;
}

}  // namespace tilewright::kernels
