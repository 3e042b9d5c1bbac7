#pragma once

#include <vector>

#include "kernels/attention_paged_parameters.h"

// How a batch's keys are divided, computed on the GPU from its lengths: nobody waits for the host,
// and a CUDA graph may be launched again for other lengths.
namespace tilewright::kernels {

// i32 {batch + 1}: how many items the sequences before each have, and all. A sequence's tiles have
// as many parts each.
inline constexpr int kKeysOfBlock = 64;
std::vector<Dim> shape_of_plan(const Dim& batch);

// How many items of a head block there should be, where so many items are computed at a time, and
// how many a plan has of them at most.
Dim wanted_items(const PagedShapes& s, const PagedRows& tile, const Dim& places);
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places);

// in cu_seqlens_q, lengths; out plan; scalar wanted_items, unless parts have a fixed size.
Kernel attention_paged_plan(const PagedAttention& a, const PagedRows& tile);

// The item of place `place`: which tile of which sequence, and which of so many parts.
struct PlannedItem {
  Index sequence, block, part, parts;
};
PlannedItem planned_item(const PagedParameters& p, const Tensor& plan, const PagedRows& tile,
                         const Index& place);

// Joins the parts of each item's queries: in P, L, cu_seqlens_q, plan; out O, LSE; in sinks, if
// there are any.
Kernel attention_paged_planned_join(const PagedAttention& a, const PagedRows& tile);

// Joins each query's parts of a fixed size, as many as its keys have: in P, L, cu_seqlens_q,
// lengths; out O, LSE; in sinks, if there are any.
Kernel attention_paged_fixed_join(const PagedAttention& a);

}  // namespace tilewright::kernels
