#pragma once

namespace tilewright {

// The rewrites of docs/numerics.md, by the names of their passes: each may be switched off.
// Instructions that only approximate a function (ex2.approx, ...) stay.
struct Numerics {
  bool fold_accumulators = true;
  bool skip_hidden = true;
  bool contract_fma = true;
  bool sink_partial_sums = true;
  bool sink_partial_maxima = true;
  bool bf16_pairs = true;  // on the CPU

  // None of them: sums are added and rounded as the kernel says it.
  static constexpr Numerics strict() { return {false, false, false, false, false, false}; }
};

}  // namespace tilewright
