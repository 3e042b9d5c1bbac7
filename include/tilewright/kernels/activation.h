#pragma once

#include <cstdint>

#include "tilewright/kernel.h"
#include "tilewright/program.h"

// What stands behind a product: activations, their gradients, and sums over rows, which are
// gradients of biases. What a function below refuses is a usage error at its caller's line,
// `where`.
namespace tilewright::kernels {

enum class Activation : std::uint8_t {
  none,
  relu,
  gelu,       // z times the part of a normal distribution below z
  gelu_tanh,  // gelu, approximated with tanh
  silu,       // z sigmoid(z)
};
// Of a tile of f32, and its derivative.
Tile activate(Activation activation, const Tile& z);
Tile derivative(Activation activation, const Tile& z);

// dZ from Z and dY {rows, columns}, and with `bias` the sums of dZ over the rows, dbias {columns}.
struct ActivationBackward {
  DType dtype = bf16;
  Activation activation = Activation::relu;
  bool bias = false;
};
Program activation_backward(const ActivationBackward& of, SourceLocation where = here());

// S {columns} from X {rows, columns}: the sums over the rows, in f32.
Program column_sums(DType dtype, SourceLocation where = here());

}  // namespace tilewright::kernels
