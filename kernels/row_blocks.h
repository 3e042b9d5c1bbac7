#pragma once

#include <optional>
#include <string>

#include "kernels/caller.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/rows.h"

// The pieces of functions of rows.
namespace tilewright::kernels {

void check_blocks(const RowBlocks& blocks, const Caller& caller);

// The columns of a block's rows, a run at a time.
class RowColumns {
 public:
  RowColumns(const Dim& count, const RowBlocks& blocks) : count_(count), blocks_(blocks) {}
  // The dim of the columns, with what a launch has to hold.
  static Dim declare(Kernel& kernel, const RowBlocks& blocks);

  void each(FunctionRef<void(const Block& columns)> body) const;
  // All of them, where a run has these.
  std::optional<Block> all() const;
  // Over each of the rows `own`, of {rows, columns} tiles: {rows, 1}.
  Tile sum(const Block& own, FunctionRef<Tile(const Block& columns)> terms) const;
  Tile mean(const Block& own, FunctionRef<Tile(const Block& columns)> terms) const;
  Tile count() const;  // {1, 1} of f32, at least 1

 private:
  const Dim& count_;
  const RowBlocks& blocks_;
};

// Of the rows `own`: one number each, {rows, 1}.
Tile load_column(const Tensor& tensor, const Block& own);
void store_column(const Tensor& tensor, const Block& own, const Tile& column);
// {1, columns} of f32.
Tile load_row(const Tensor& tensor, const Block& columns);

// Sums over all rows are made in two kernels: of each part of the rows, and of the parts. So many
// parts there are, which have runs of so many rows.
inline constexpr int kRowsOfRun = 64;
Dim row_parts(const Dim& rows);
BlockRange runs_of_part(const Dim& rows, const Dim& parts, const Index& part);
// S {columns} from P {parts, columns} of f32.
Kernel sum_of_parts(const std::string& name, DType dtype);

}  // namespace tilewright::kernels
