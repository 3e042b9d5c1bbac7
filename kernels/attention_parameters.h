#pragma once

#include <cmath>

#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// The parameters that every schedule of attention_forward declares. Raises for options that fit no
// attention.
struct AttentionParameters {
  AttentionParameters(Kernel& kernel, const Attention& a);
  int group;  // query heads that share a K and V head
  double scale;
  Dim batch, queries, keys;
  Tensor Q, K, V, O, LSE;
  Mask mask;
};

}  // namespace tilewright::kernels
