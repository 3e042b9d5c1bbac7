#pragma once

#include <optional>
#include <utility>

#include "kernels/row_blocks.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {

// The sum of the exponentials of each row, and what they are shifted by: its maximum.
class RowSum {
 public:
  RowSum(const Block& own, const RowColumns& columns, FunctionRef<Tile(const Block& columns)> read)
      : RowSum(sums(own, columns, read)) {}
  Tile exponentials(const Tile& x) const { return exponentials(x, shift); }
  Tile log_sum() const { return log2(sum) * kLn2; }
  Tile log_sum_exp() const { return shift + log_sum(); }
  Tile shift, sum;  // {rows, 1}

 private:
  explicit RowSum(const std::pair<Tile, Tile>& sums) : shift(sums.first), sum(sums.second) {}

  // A row that has -inf alone so far is shifted by nothing: -inf - -inf is no number.
  static Tile shift_of(const Tile& maximum) { return where(maximum == kNone, 0, maximum); }

  static Tile exponentials(const Tile& x, const Tile& shift) { return exp2((x - shift) * kLog2e); }
  static std::pair<Tile, Tile> sums(const Block& own, const RowColumns& columns,
                                    FunctionRef<Tile(const Block& columns)> read) {
    if (const std::optional<Block> all = columns.all()) {
      const Tile x = read(*all), shift = shift_of(reduce_max(x, 1));
      return {shift, reduce_sum(exponentials(x, shift), 1)};
    }
    return running_sums(own, columns, read);
  }

  // In one pass: the sum so far is rescaled where a block has a larger element.
  static std::pair<Tile, Tile> running_sums(const Block& own, const RowColumns& columns,
                                            FunctionRef<Tile(const Block& columns)> read) {
    Var maximum{full({own, 1}, kNone)}, sum{zeros({own, 1})};
    columns.each([&](const Block& some) {
      const Tile x = read(some), next = max(maximum, reduce_max(x, 1)), shift = shift_of(next);
      sum = sum * exp2((maximum - shift) * kLog2e) + reduce_sum(exponentials(x, shift), 1);
      maximum = next;
    });
    return {shift_of(maximum), sum};
  }
};

}  // namespace tilewright::kernels
