#pragma once

#include "kernels/attention_backward_places.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// Writes zeros to dQ of the rows that see no keys, by one warp of each CTA. Other rows are
// converted by the CTA that adds to them last; to these nobody adds.
template <typename Keys>
void put_unseen(const Attention& a, const Keys& sequences, const Tensor& dQ) {
  constexpr int kRowsAtOnce = 4;
  sequences.await_others();
  const auto put = [&](const typename Keys::Place& at) {
    const auto [first, last] = at.mask.visible(at.block, at.keys, a.block_k);
    when(last <= first && at.block.start() < at.block.limit(), [&] {
      for (Index i : range(a.block_q / kRowsAtOnce)) {
        store(sequences.query_output(at, dQ, at.block.part(i, kRowsAtOnce), at.head),
              zeros({kRowsAtOnce, a.dim}).cast(a.dtype));
      }
    });
  };
  const HeadParts& parts = sequences.parts();
  const Dim of_head = sequences.row_blocks();
  const Index all = sequences.key_heads() * parts.count * parts.members * of_head;
  const Index share = ceil_div(all, cta_count()), begin = min(cta_index() * share, all);
  for (Index i : range(begin, min(begin + share, all))) {
    const Index head = i / of_head, part_head = head / parts.members, member = head % parts.members;
    when(parts.exists(part_head / sequences.key_heads(), member),
         [&] { put(sequences.block_of_rows(part_head, member, i % of_head)); });
  }
}

}  // namespace tilewright::kernels
