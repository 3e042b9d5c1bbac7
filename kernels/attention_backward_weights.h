#pragma once

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/softmax.h"

// What gradients at the tile level are made of, in whichever program.
namespace tilewright::kernels {

// LSE as weights take it. Of a row that sees nothing it is -inf, and 0 stands for it: its scores
// are -inf, and its weights must be 0.
inline Tile in_powers_of_two(const Tile& lse) { return where(lse == kNone, 0, lse * kLog2e); }

// Of a block of scores, in either orientation.
struct Weights {
  Tile capped, weights;  // the scores, capped but not masked, and P
};

// `hide` masks scores; `l` are the rows' sums, along the axis of queries.
template <typename Hide>
Weights weights_of(const AttentionScores& scores, const Tile& products, const Tile& l,
                   const Hide& hide) {
  const Tile capped = scores.capped(products);
  return {capped, exp2(hide(capped) * (scores.scale * kLog2e) - l)};
}

// dS without the scale.
inline Tile gradient_of(const AttentionScores& scores, const Weights& of,
                        const Tile& value_products, const Tile& d) {
  const Tile gradient = of.weights * (value_products - d);
  // Of the score itself: what is hidden is no number that one may square.
  return scores.is_capped() ? gradient * (1 - of.capped * of.capped) : gradient;
}

}  // namespace tilewright::kernels
