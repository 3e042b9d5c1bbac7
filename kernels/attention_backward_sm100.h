#pragma once

#include <string>
#include <vector>

#include "kernels/attention_backward_shared.h"
#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How the tensor memory and the shared memory of a CTA are divided, of 128 keys and blocks of 128
// queries. S^T comes first, in 128 columns.
struct Sm100BackwardPlan {
  static constexpr int kRows = 128;           // keys of a CTA, queries of a block
  static constexpr int kGroups = 2;           // warpgroups that compute, each half of the queries
  static constexpr int kColumnsOfPanel = 64;  // of 2 bytes, in shared memory

  int ctas;      // of a block of keys: a pair has 256
  bool ordered;  // dQ is summed in the order of the blocks of keys
  // Several heads share keys: parts of them may go through a block of keys for themselves.
  bool shares;
  KeySums keys;
  // Where P^T lies: in columns of its own, or in those of S^T. Then the next S^T waits for the
  // product that reads it, since PTX orders the two no other way.
  bool own_weights;
  // The same of dQ, or in those of dP^T and dS^T.
  bool own_queries;
  // Columns of tensor memory, and those of all.
  int first_weights, first_values, first_gradients, first_scores, first_keys, first_queries;
  int tensor_columns;
  int row_stages;  // of dO, and of all that a pair loads of queries; of Q one CTA has two
  int few_registers, computing_registers, reducing_registers;

  Order order() const { return ordered ? Order::blocks : Order::any; }
  bool sums_keys_apart() const { return shares && keys == KeySums::apart; }
};
// attention.block_k says how many CTAs there are. Raises for what the schedule does not take.
Sm100BackwardPlan sm100_backward_plan(const Attention& attention, Order order, KeySums keys,
                                      const Caller& caller);

// f32 sums of dQ, in the order of the registers that add them: lines of 128, dim of a block of
// queries. `blocks`: of queries, of all heads.
std::vector<Dim> sm100_backward_sums(const Attention& attention, const Dim& blocks);
// The panels of 64 columns of dK and dV.
KeyTiles sm100_key_tiles(const Attention& attention);

// As gradients_sm90 and query_gradient_of_sums, but that sums in order are converted behind too.
// Behind dV come what SummedShapes has, in its order: in order, words that are 0 before, one for
// each CTA and block of queries.
template <typename Sequences>
Kernel gradients_sm100(const Attention& attention, const Sm100BackwardPlan& plan,
                       const std::string& name);
// By pairs of CTAs.
template <typename Sequences>
Kernel pair_gradients_sm100(const Attention& attention, const Sm100BackwardPlan& plan,
                            const std::string& name);
template <typename Sequences>
Kernel query_gradient_of_sums_sm100(const Attention& attention, const Sm100BackwardPlan& plan,
                                    const std::string& name);

}  // namespace tilewright::kernels
