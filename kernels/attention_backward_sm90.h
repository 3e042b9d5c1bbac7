#pragma once

#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/attention.h"

namespace tilewright::kernels {

// How the shared memory of a CTA and the registers of its threads are divided for given blocks.
struct BackwardPlan {
  int block_q;
  int part_columns;  // of dQ that a warpgroup adds
  int k_parts;       // of the columns of K, as products take them from shared memory
  bool keys_in_registers;
  int stages;
  int load_registers, math_registers;  // a thread

  int part_rows() const;  // the same in lines of 128

  // Queries of whole blocks: copies of the statistics begin at multiples of 16 bytes.
  Dim padded(const Dim& queries) const;
  // Of the sums of dQ, in fragments.
  std::vector<Dim> sums(const Attention& a, const Dim& batch, const Dim& queries) const;
  // Of a block of queries, the first warpgroup's part; the others' follow it.
  Index place(const Attention& a, const Dim& queries, const Index& sequence, const Index& head,
              const Index& block) const;
};
BackwardPlan backward_plan(const Attention& attention, const Caller& caller);

Program attention_backward_sm90(const Attention& attention, bool of_lse, SourceLocation where = here());

}  // namespace tilewright::kernels
