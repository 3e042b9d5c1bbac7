#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

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
// The maximum lags: it is raised only when a score exceeds it by 2^slack in the exponent, so that
// most blocks rescale nothing. Weights stay below 2^slack of the exact ones and the normaliser
// divides by sums of the same weights; the result differs by rounding alone (docs/numerics.md).
class OnlineSoftmax {
 public:
  // Weights are 2^lift times what they would be, and the maximum lags by 2^slack at most: for
  // weights that are rounded to a dtype of little range, which 2^(lift + slack) has to fit.
  struct Range {
    double slack = 8, lift = 0;
  };
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
  // Scores are scaled by `factor` {rows, 1} or {1, 1} besides, which is positive.
  OnlineSoftmax(const Extent& rows, double scale, const Tile& factor, const Range& range,
                SourceLocation where = here())
      : OnlineSoftmax(rows, scale, std::nullopt, where) {
    const CalledFrom called(where);
    factor_ = factor * scale_log2_;
    range_ = range;
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
    return raise_to(reduce_max(scores, 1), where);
  }
  // The same of a block in parts, by the maximum {rows, 1} of all of them.
  Condition raise_to(const Tile& top, SourceLocation where = here()) {
    const CalledFrom called(where);
    const Condition raised = any_nearby(exceeds(top));
    rescale_ = full({top.shape()[0], 1}, 1);
    // -inf - -inf is no number: a row that has seen nothing yet is shifted by 0.
    when(raised, [&] { rescale_ = lift(top, 0); });
    return raised;
  }
  Tile rescale() const { return rescale_; }
  Tile weights(const Tile& scores, SourceLocation where = here()) {
    return weights(
        scores, [](const Tile& x) { return exp2(x); }, where);
  }
  // With the powers of two by `power`.
  template <typename Power>
  Tile weights(const Tile& scores, const Power& power, SourceLocation where = here()) {
    const CalledFrom called(where);
    const Tile weights = power(scaled(scores) - shift_);
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
    return (lowered(scaled(maximum_)) + log2(sum_)) * kLn2;
  }

 protected:
  // Raises the maximum to `top` where that is greater, and gives what sums of earlier weights are
  // multiplied by. Rows that have seen nothing are shifted by `unseen`.
  Tile lift(const Tile& top, double unseen) {
    const Tile before = maximum_;
    maximum_ = max(maximum_, top);
    shift_ = shift(unseen);
    const Tile rescale = exp2(lowered(scaled(before)) - shift_);
    sum_ = sum_ * rescale;
    return rescale;
  }
  Tile shift(double unseen) const {
    return where(maximum_ == kNone, unseen, lowered(scaled(maximum_)));
  }
  Tile scaled(const Tile& scores) const {
    return factor_ ? scores * *factor_ : scores * scale_log2_;
  }
  Tile factor() const { return factor_ ? *factor_ : full({1, 1}, scale_log2_); }
  // A shift that is less makes weights larger.
  Tile lowered(const Tile& exponents) const {
    return range_.lift == 0 ? exponents : exponents - range_.lift;
  }
  // Of the weights' parts of sums.
  double most() const { return std::exp2(range_.slack + range_.lift); }
  double scale_log2_;
  Var maximum_, shift_, rescale_, sum_;

 private:
  Tile exceeds(const Tile& top) const {
    return factor_ ? scaled(top) > scaled(maximum_) + range_.slack
                   : top > maximum_ + range_.slack / scale_log2_;
  }
  Range range_;
  std::optional<Tile> factor_;  // times scale_log2_
};

// The same, whose maximum never lags: for scores whose rows several warps share, none of which
// knows alone whether one has risen.
class EagerSoftmax : public OnlineSoftmax {
 public:
  using OnlineSoftmax::OnlineSoftmax;
  // Of a block in parts of as many keys each. rescale() is then what sums of earlier weights are
  // multiplied by.
  std::vector<Tile> weights(const std::vector<Tile>& parts, SourceLocation where = here()) {
    const CalledFrom called(where);
    Tile top = parts[0];
    for (std::size_t i = 1; i < parts.size(); ++i) top = max(top, parts[i]);
    rescale_ = lift(reduce_max(top, 1), 0);
    std::vector<Tile> weights;
    for (const Tile& scores : parts) weights.push_back(exp2(scaled(scores) - shift_));
    Tile sum = weights[0];
    for (std::size_t i = 1; i < weights.size(); ++i) sum = sum + weights[i];
    sum_ = sum_ + reduce_sum(sum, 1);
    return weights;
  }
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

  OptimisticSoftmax(const Extent& rows, double scale, const Tile& factor, const Range& range,
                    SourceLocation where = here())
      : OnlineSoftmax(rows, scale, factor, range, where) {}

  // The weights of the first block, which always has to look for its maximum.
  Tile first(const Tile& scores, SourceLocation where = here()) {
    const CalledFrom called(where);
    lift(reduce_max(scores, 1), kUnseen);
    return weights(scores);
  }
  // Of each further block, rounded by `round`. Where the maximum rises, `rescale_sums` is given
  // what sums of earlier weights are multiplied by.
  template <typename Round, typename Rescale>
  Tile next(const Tile& scores, const Round& round, const Rescale& rescale_sums,
            SourceLocation where = here()) {
    const CalledFrom called(where);
    const Tile guess = shifted(scores);
    Var sum{reduce_sum(guess, 1)}, rounded{round(guess)};
    // A row's parts may answer for it: none is less than the greatest weight in it.
    when(any_nearby(sum > most()), [&] {
      rescale_sums(lift(reduce_max(scores, 1), kUnseen));
      const Tile raised = shifted(scores);
      sum = reduce_sum(raised, 1);
      rounded = round(raised);
    });
    sum_ = sum_ + sum;
    return rounded;
  }

 private:
  // As one operation, so that the two times share no product that would have to last.
  Tile shifted(const Tile& scores) const {
    return exp2(fma(scores, factor(), zeros({1, 1}) - shift_));
  }
  // A row that has seen nothing is shifted so far that whatever it sees first comes out too large.
  static constexpr double kUnseen = -std::numeric_limits<float>::max();
};

}  // namespace tilewright::kernels
