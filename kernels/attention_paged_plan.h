#pragma once

#include <vector>

#include "kernels/attention_paged_parameters.h"

// How a batch's keys are divided, computed on the GPU from its lengths: nobody waits for the host,
// and a CUDA graph may be launched again for other lengths.
namespace tilewright::kernels {

// i32 {batch + 2}: how many items the sequences before each have, and all; then how many blocks of
// kKeysOfBlock keys an item has at most.
inline constexpr int kKeysOfBlock = 64;
std::vector<Dim> shape_of_plan(const Dim& batch);

// How many items of a head block there should be, where so many items are computed at a time, and
// how many a plan has of them at most.
Dim wanted_items(const PagedShapes& s, const PagedRows& tile, const Dim& places);
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places);

// in cu_seqlens_q, lengths; out plan; scalar wanted_items.
Kernel attention_paged_plan(const PagedAttention& a, const PagedRows& tile);

// The item of place `place`: which tile of which sequence, and which of so many parts.
struct PlannedItem {
  Index sequence, block, part, parts;
};
PlannedItem planned_item(const PagedParameters& p, const Tensor& plan, const Index& place);

// Joins the parts: in P, L, cu_seqlens_q, lengths, plan; out O, LSE; in sinks, if there are any.
Kernel attention_paged_planned_join(const PagedAttention& a, const PagedRows& tile);

}  // namespace tilewright::kernels
