#include <string>

#include "kernels/row_blocks.h"
#include "kernels/row_softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

void check_loss(const CrossEntropy& c, const Caller& caller) {
  check_blocks(c.blocks, caller);
  if (c.smoothing >= 0 && c.smoothing <= 1) return;
  caller.refuse("smoothing is " + std::to_string(c.smoothing), "take a number from 0 to 1");
}

// The targets of a block's rows, {rows, 1} of i32.
class Targets {
 public:
  Targets(const Tensor& targets, const Block& own, const CrossEntropy& c)
      : numbers_(load_column(targets, own).cast(i32)), ignored_(numbers_ == c.ignore_index) {}
  // {rows, columns}: where a column is its row's target.
  Tile are(const Block& columns) const { return columns.as_row() == numbers_; }
  Tile or_zero(const Tile& value) const { return where(ignored_, 0, value); }

 private:
  Tile numbers_, ignored_;
};

}  // namespace

Kernel cross_entropy(const CrossEntropy& c, SourceLocation where) {
  check_loss(c, {"cross_entropy", where});
  Kernel kernel("cross_entropy");
  const Dim rows = kernel.dim("rows"), columns = RowColumns::declare(kernel, c.blocks);
  const Tensor X = kernel.in("X", c.dtype, {rows, columns});
  const Tensor targets = kernel.in("targets", i64, {rows});
  const Tensor loss = kernel.out("loss", f32, {rows}), LSE = kernel.out("LSE", f32, {rows});
  const auto [i] = kernel.grid(ceil_div(rows, c.blocks.rows));
  const Block own = rows.block(i, c.blocks.rows);
  const Targets target(targets, own, c);
  const RowColumns all_columns(columns, c.blocks);

  // What no column is keeps -inf, so that its loss is infinite.
  Var picked{full({own, 1}, kNone)}, total{zeros({own, 1})};
  const bool is_smooth = plan_case("smooth labels", c.smoothing > 0);
  const RowSum sum(own, all_columns, [&](const Block& cols) {
    const Tile x = load(X(own, cols)).cast(f32);
    picked = max(picked, reduce_max(tilewright::where(target.are(cols), x, kNone), 1));
    if (is_smooth) total = total + reduce_sum(x, 1);
    return x;
  });
  // Differences of large numbers first: beside one of these the logarithm would be lost.
  Tile value = (sum.shift - picked) * (1 - c.smoothing);
  if (is_smooth) value = value + (sum.shift - total / all_columns.count()) * c.smoothing;
  store_column(loss, own, target.or_zero(value + sum.log_sum()));
  store_column(LSE, own, sum.log_sum_exp());
  return kernel;
}

Kernel cross_entropy_backward(const CrossEntropy& c, SourceLocation where) {
  check_loss(c, {"cross_entropy_backward", where});
  Kernel kernel("cross_entropy_backward");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", c.dtype, {rows, columns});
  const Tensor targets = kernel.in("targets", i64, {rows});
  const Tensor LSE = kernel.in("LSE", f32, {rows}), dloss = kernel.in("dloss", f32, {rows});
  const Tensor dX = kernel.out("dX", c.dtype, {rows, columns});
  const auto [i, j] =
      kernel.grid(ceil_div(rows, c.blocks.rows), ceil_div(columns, c.blocks.columns));
  const Block own = rows.block(i, c.blocks.rows), cols = columns.block(j, c.blocks.columns);
  const Targets target(targets, own, c);
  const Tile of_row = target.or_zero(load_column(dloss, own));
  const Tile softmax = exp2((load(X(own, cols)).cast(f32) - load_column(LSE, own)) * kLog2e);
  Tile step = tilewright::where(target.are(cols), softmax - (1 - c.smoothing), softmax);
  if (c.smoothing > 0) {
    step = step - c.smoothing / RowColumns(columns, c.blocks).count();
  }
  store(dX(own, cols), (step * of_row).cast(c.dtype));
  return kernel;
}

}  // namespace tilewright::kernels
