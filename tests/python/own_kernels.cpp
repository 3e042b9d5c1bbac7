// A plug-in for own_test.py and torch_own_test.py.

#include "tilewright/plugin.h"

using namespace tilewright;

namespace {

// Y = factor X^2, and the SUM of each row of Y.
Kernel squares() {
  Kernel kernel("squares");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", {.maximum = 64});
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor Y = kernel.out("Y", f32, {rows, columns});
  const Tensor SUM = kernel.out("SUM", f32, {rows});
  const Scalar factor = kernel.scalar("factor", f32);
  const auto [x] = kernel.grid(ceil_div(rows, 8));
  const Block own = rows.block(x, 8);
  const Tile t = load(X(own, columns.block(0, 64)));
  const Tile y = t * t * factor;
  store(Y(own, columns.block(0, 64)), y);
  store(SUM(own), reduce_sum(y, 1).reshape({8}));
  return kernel;
}

Kernel squares_backward() {
  Kernel kernel("squares_backward");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", {.maximum = 64});
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor dY = kernel.in("dY", f32, {rows, columns});
  const Tensor dSUM = kernel.in("dSUM", f32, {rows});
  const Tensor dX = kernel.out("dX", f32, {rows, columns});
  const Scalar factor = kernel.scalar("factor", f32);
  const auto [x] = kernel.grid(ceil_div(rows, 8));
  const Block own = rows.block(x, 8);
  const Tile t = load(X(own, columns.block(0, 64)));
  const Tile d = load(dY(own, columns.block(0, 64))) + load(dSUM(own)).reshape({8, 1});
  store(dX(own, columns.block(0, 64)), 2 * t * d * factor);
  return kernel;
}

// The tensors' extents differ.
Kernel mistaken() {
  Kernel kernel("mistaken");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 8});
  const Tensor Y = kernel.out("Y", f32, {rows, 16});
  const auto [x] = kernel.grid(ceil_div(rows, 8));
  store(Y(rows.block(x, 8), all), load(X(rows.block(x, 8), all)));
  return kernel;
}

Kernel thrown() { throw 7; }

}  // namespace

TILEWRIGHT_PLUGIN(squares, squares_backward, mistaken, thrown)
