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

// The same of attention_varlen_forward. `mask` is that of one sequence.
struct VarlenParameters {
  VarlenParameters(Kernel& kernel, const Attention& a);
  Mask mask(const Sequence& queries, const Sequence& keys) const;
  int group;
  double scale;
  Dim batch, total_queries, total_keys;
  Tensor Q, K, V, cu_seqlens_q, cu_seqlens_k, O, LSE;
  Ragged queries, keys;

 private:
  bool causal_;
  int window_;
};

}  // namespace tilewright::kernels
