#pragma once

#include <cmath>
#include <limits>
#include <optional>

#include "tilewright/called_from.h"
#include "tilewright/kernel.h"

namespace tilewright::kernels {

inline constexpr double kLog2e = 1.4426950408889634;
inline constexpr double kLn2 = 0.6931471805599453;
inline constexpr double kNone =
    -std::numeric_limits<double>::infinity();  // of a row with nothing visible

// The running softmax of rows that arrive block by block (Milakov and Gimelshein, 2018). The
// maximum is taken of unscaled scores and the scale folded into the exponent, which needs a
// positive scale. A row with nothing visible has weight 0 and log-sum-exp -inf.
// Scores are {rows, keys} of f32.
//
// The maximum lags: it is raised only when a score exceeds it by 2^kSlack in the exponent, so that
// most blocks rescale nothing. Weights stay below 2^kSlack of the exact ones and the normaliser
// divides by sums of the same weights; the result differs by rounding alone (docs/numerics.md).
class OnlineSoftmax {
 public:
  // `sink` {1, 1}: a score, scaled already, that belongs to no block; it joins the sum.
  OnlineSoftmax(const Extent& rows, double scale, const std::optional<Tile>& sink = {},
                SourceLocation where = here())
      : scale_log2_(scale * kLog2e),
        maximum_(full({rows, 1}, kNone)),
        shift_(zeros({rows, 1})),
        rescale_(full({rows, 1}, 1)),
        sum_(zeros({rows, 1})) {
    if (!sink) return;
    const CalledFrom called(where);
    maximum_ = zeros({rows, 1}) + *sink * (1 / scale);
    shift_ = shift(0);
    sum_ = exp2(maximum_ * scale_log2_ - shift_);
  }

  struct Step {
    Tile weights;  // exp(scale * (scores - maximum))
    Tile rescale;  // what sums of earlier weights are multiplied by
  };
  Step step(const Tile& scores, SourceLocation where = here()) {
    const CalledFrom called(where);
    raise(scores);
    return {weights(scores), rescale()};
  }

  // The two halves of a step. Whether this block raised the maximum: rescale() is 1 otherwise.
  // Rows that need no raise may be raised with others: the result is the same.
  Condition raise(const Tile& scores, SourceLocation where = here()) {
    const CalledFrom called(where);
    const Tile top = reduce_max(scores, 1);
    const Condition raised = any_nearby(top > maximum_ + kSlack / scale_log2_);
    rescale_ = full({top.shape()[0], 1}, 1);
    // -inf - -inf is no number: a row that has seen nothing yet is shifted by 0.
    when(raised, [&] { rescale_ = lift(top, 0); });
    return raised;
  }
  Tile rescale() const { return rescale_; }
  Tile weights(const Tile& scores, SourceLocation where = here()) {
    const CalledFrom called(where);
    const Tile weights = exp2(scores * scale_log2_ - shift_);
    sum_ = sum_ + reduce_sum(weights, 1);
    return weights;
  }
  // 1 / sum of the weights; 0 for a row with nothing visible.
  Tile normaliser(SourceLocation caller = here()) const {
    const CalledFrom called(caller);
    return where(sum_ == 0, 0, 1 / sum_);
  }
  // Natural logarithm of the sum of exp(scale * score).
  Tile log_sum_exp(SourceLocation where = here()) const {
    const CalledFrom called(where);
    return (maximum_ * scale_log2_ + log2(sum_)) * kLn2;
  }

 protected:
  static constexpr double kSlack = 8;
  // Raises the maximum to `top` where that is greater, and gives what sums of earlier weights are
  // multiplied by. Rows that have seen nothing are shifted by `unseen`.
  Tile lift(const Tile& top, double unseen) {
    const Tile before = maximum_;
    maximum_ = max(maximum_, top);
    shift_ = shift(unseen);
    const Tile rescale = exp2(before * scale_log2_ - shift_);
    sum_ = sum_ * rescale;
    return rescale;
  }
  Tile shift(double unseen) const {
    return where(maximum_ == kNone, unseen, maximum_ * scale_log2_);
  }
  double scale_log2_;
  Var maximum_, shift_, rescale_, sum_;
};

// The same, where a block's weights are computed before anyone knows its maximum: by the maximum of
// before, and again only where they come out too large. Most blocks then look for no maximum. Their
// scores must last until the weights are there: for kernels that have registers for both.
class OptimisticSoftmax : public OnlineSoftmax {
 public:
  OptimisticSoftmax(const Extent& rows, double scale, const std::optional<Tile>& sink = {},
                    SourceLocation where = here())
      : OnlineSoftmax(rows, scale, sink, where) {
    const CalledFrom called(where);
    if (sink) shift_ = shift(kUnseen);
  }

  // The weights of the first block, which always has to look for its maximum.
  Tile first(const Tile& scores, SourceLocation where = here()) {
    const CalledFrom called(where);
    lift(reduce_max(scores, 1), kUnseen);
    return weights(scores);
  }
  // Of each further block, in `dtype`. Where the maximum rises, `rescale_sums` is given what sums
  // of earlier weights are multiplied by.
  template <typename Rescale>
  Tile next(const Tile& scores, DType dtype, const Rescale& rescale_sums,
            SourceLocation where = here()) {
    const CalledFrom called(where);
    const Tile guess = shifted(scores);
    Var sum{reduce_sum(guess, 1)}, rounded{guess.cast(dtype)};
    // A row's parts may answer for it: none is less than the greatest weight in it.
    when(any_nearby(sum > std::exp2(kSlack)), [&] {
      rescale_sums(lift(reduce_max(scores, 1), kUnseen));
      const Tile raised = shifted(scores);
      sum = reduce_sum(raised, 1);
      rounded = raised.cast(dtype);
    });
    sum_ = sum_ + sum;
    return rounded;
  }

 private:
  // As one operation, so that the two times share no product that would have to last.
  Tile shifted(const Tile& scores) const {
    return exp2(fma(scores, full({1, 1}, scale_log2_), zeros({1, 1}) - shift_));
  }
  // A row that has seen nothing is shifted so far that whatever it sees first comes out too large.
  static constexpr double kUnseen = -std::numeric_limits<float>::max();
};

}  // namespace tilewright::kernels
