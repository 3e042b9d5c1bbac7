#pragma once

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/softmax.h"

// What gradients at the tile level are made of, in whichever program.
namespace tilewright::kernels {

// LSE in powers of two, as weights_of takes it. A row that sees nothing has LSE -inf. It is taken
// as 0, so that the weights of its scores, which are -inf, come out as 0.
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
  // The cap's derivative is that of the score before masking: a masked score is -inf.
  return scores.is_capped() ? gradient * (1 - of.capped * of.capped) : gradient;
}

}  // namespace tilewright::kernels
