#include "kernels/row_blocks.h"
#include "kernels/row_softmax.h"

namespace tilewright::kernels {

Kernel softmax(const Softmax& s, SourceLocation where) {
  check_blocks(s.blocks, {"softmax", where});
  Kernel kernel("softmax");
  const Dim rows = kernel.dim("rows"), columns = RowColumns::declare(kernel, s.blocks);
  const Tensor X = kernel.in("X", s.dtype, {rows, columns});
  const Tensor Y = kernel.out("Y", s.dtype, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, s.blocks.rows));
  const Block own = rows.block(i, s.blocks.rows);
  const RowColumns all_columns(columns, s.blocks);
  const auto read = [&](const Block& cols) { return load(X(own, cols)).cast(f32); };
  const RowSum sum(own, all_columns, read);
  const Tile factor = 1 / sum.sum;
  all_columns.each([&](const Block& cols) {
    store(Y(own, cols), (sum.exponentials(read(cols)) * factor).cast(s.dtype));
  });
  return kernel;
}

Kernel softmax_backward(const Softmax& s, SourceLocation where) {
  check_blocks(s.blocks, {"softmax_backward", where});
  Kernel kernel("softmax_backward");
  const Dim rows = kernel.dim("rows"), columns = RowColumns::declare(kernel, s.blocks);
  const Tensor Y = kernel.in("Y", s.dtype, {rows, columns});
  const Tensor dY = kernel.in("dY", s.dtype, {rows, columns});
  const Tensor dX = kernel.out("dX", s.dtype, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, s.blocks.rows));
  const Block own = rows.block(i, s.blocks.rows);
  const RowColumns all_columns(columns, s.blocks);
  const auto read = [&](const Tensor& tensor, const Block& cols) {
    return load(tensor(own, cols)).cast(f32);
  };
  const Tile sum =
      all_columns.sum(own, [&](const Block& cols) { return read(Y, cols) * read(dY, cols); });
  all_columns.each([&](const Block& cols) {
    store(dX(own, cols), (read(Y, cols) * (read(dY, cols) - sum)).cast(s.dtype));
  });
  return kernel;
}

}  // namespace tilewright::kernels
