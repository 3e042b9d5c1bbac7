#include "kernels/row_blocks.h"

namespace tilewright::kernels {

void check_blocks(const RowBlocks& blocks, const Caller& caller) {
  caller.check_positive("blocks.rows", blocks.rows);
  caller.check_positive("blocks.columns", blocks.columns);
}

Dim RowColumns::declare(Kernel& kernel, const RowBlocks& blocks) {
  return blocks.whole ? kernel.dim("columns", at_most(blocks.columns)) : kernel.dim("columns");
}

void RowColumns::each(FunctionRef<void(const Block& columns)> body) const {
  if (const std::optional<Block> whole = all()) return body(*whole);
  for (Block columns : tilewright::blocks(count_, blocks_.columns)) body(columns);
}

std::optional<Block> RowColumns::all() const {
  return blocks_.whole ? std::optional(count_.block(0, blocks_.columns)) : std::nullopt;
}

Tile RowColumns::sum(const Block& own, FunctionRef<Tile(const Block& columns)> terms) const {
  Var sum{zeros({own, 1})};
  each([&](const Block& columns) { sum = sum + reduce_sum(terms(columns), 1); });
  return sum;
}

Tile RowColumns::mean(const Block& own, FunctionRef<Tile(const Block& columns)> terms) const {
  return sum(own, terms) / count();
}

Tile RowColumns::count() const { return Tile({1, 1}, max(count_, 1)).cast(f32); }

Tile load_column(const Tensor& tensor, const Block& own) {
  return load(tensor(own)).reshape({own.size(), 1});
}

void store_column(const Tensor& tensor, const Block& own, const Tile& column) {
  store(tensor(own), column.reshape({own.size()}));
}

Tile load_row(const Tensor& tensor, const Block& columns) {
  return load(tensor(columns)).cast(f32).reshape({1, columns.size()});
}

Dim row_parts(const Dim& rows) {
  constexpr int kMost = 64;
  return max(min(ceil_div(rows, kRowsOfRun), kMost), 1);
}

BlockRange runs_of_part(const Dim& rows, const Dim& parts, const Index& part) {
  const Dim runs = ceil_div(rows, kRowsOfRun), each = ceil_div(runs, parts);
  return blocks(rows, kRowsOfRun, part * each, min(part * each + each, runs));
}

Kernel sum_of_parts(const std::string& name, DType dtype) {
  constexpr int kColumns = 128, kParts = 16;
  Kernel kernel(name);
  const Dim parts = kernel.dim("parts"), columns = kernel.dim("columns");
  const Tensor P = kernel.in("P", f32, {parts, columns});
  const Tensor S = kernel.out("S", dtype, {columns});
  const auto [x] = kernel.grid(ceil_div(columns, kColumns));
  const Block own = columns.block(x, kColumns);
  Var sum{zeros({1, own})};
  for (Block some : blocks(parts, kParts)) sum = sum + reduce_sum(load(P(some, own)), 0);
  const Tile total = sum;
  store(S(own), total.reshape({kColumns}).cast(dtype));
  return kernel;
}

}  // namespace tilewright::kernels
