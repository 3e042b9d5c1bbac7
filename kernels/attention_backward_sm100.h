#pragma once

#include <string>
#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How the tensor memory and the shared memory of a CTA are divided, of a block of 128 keys and
// blocks of 128 queries. S^T comes first, in 128 columns.
struct Sm100BackwardPlan {
  static constexpr int kRows = 128;           // keys or queries of a block
  static constexpr int kGroups = 2;           // warpgroups that compute, each half of the queries
  static constexpr int kColumnsOfPanel = 64;  // of 2 bytes, in shared memory

  bool ordered;  // dQ is summed in the order of the blocks of keys
  // Where P^T lies: in columns of its own, or in those of S^T. Then the next S^T waits for the
  // product that reads it, since PTX orders the two no other way.
  bool own_weights;
  // The same of dQ, or in those of dP^T and dS^T.
  bool own_queries;
  // Columns of tensor memory, and those of all.
  int first_weights, first_values, first_gradients, first_scores, first_keys, first_queries;
  int tensor_columns;
  int row_stages;  // of dO; of Q there are two
  int few_registers, computing_registers, reducing_registers;

  Order order() const { return ordered ? Order::blocks : Order::any; }
};
Sm100BackwardPlan sm100_backward_plan(const Attention& attention, Order order,
                                      const Caller& caller);

// f32 sums of dQ, in the order of the registers that add them: lines of 128, dim of a block of
// queries. `blocks`: of queries, of all heads.
std::vector<Dim> sm100_backward_sums(const Attention& attention, const Dim& blocks);

// As gradients_sm90 and query_gradient_of_sums, but that sums in order are converted behind too.
// Behind dV come, in order, words that are 0 before, one for each block of queries.
template <typename Sequences>
Kernel gradients_sm100(const Attention& attention, const Sm100BackwardPlan& plan,
                       const std::string& name);
template <typename Sequences>
Kernel query_gradient_of_sums_sm100(const Attention& attention, const Sm100BackwardPlan& plan,
                                    const std::string& name);

}  // namespace tilewright::kernels
