#pragma once

#include <optional>
#include <vector>

#include "kernels/attention_paged_parameters.h"
#include "tilewright/program.h"

// How a batch's keys are divided, computed on the GPU from its lengths: nobody waits for the host,
// and a CUDA graph may be launched again for other lengths.
namespace tilewright::kernels {

// Of the tiles that a plan counts.
inline constexpr int kRowsOfPlan = 64;
inline PagedRows rows_of_plan(const PagedAttention& a) { return {a, kRowsOfPlan}; }

// Items that the explicit schedules compute at a time: one a lane, or of latent keys one a CTA.
inline constexpr int kLanesOfPages = 2;
Dim places(const PagedAttention& a, const Dim& multiprocessors);

// i32 {batch + 1}: how many items the sequences before each have, and all. A sequence's tiles have
// as many parts each. In place of the first, which is 0, a plan may say that all have one part.
inline constexpr int kKeysOfBlock = 64;
inline constexpr int kNothingDivided = -1;
std::vector<Dim> shape_of_plan(const Dim& batch);

// How many items of a head block are computed at a time, where so many of all are, and how many of
// them a plan has at most.
Dim places_of_head(int kv_heads, const PagedRows& tile, const Dim& places);
Dim most_items(const PagedShapes& s, const PagedRows& tile, const Dim& places);

// in cu_seqlens_q, lengths; out plan; scalar places, unless parts have a fixed size.
Kernel plan_kernel(const PagedAttention& a, const PagedRows& tile);

// Launches it, where so many items are computed at a time.
void launch_plan(const Stream& stream, const PagedAttention& a, const std::vector<Part>& tensors,
                 const Dim& places);

// Where parts are kept that a kernel of its own joins: of all items together as many as there is
// room for, or of each query. A plan that is given may be one of a larger GPU, or of longer
// sequences, and have more. What there is no room for is not computed apart.
class PlanRoom {
 public:
  PlanRoom(Kept kept, const Dim& room) : kept_(kept), room_(room) {}
  // Of a sequence whose tiles have so many parts by its plan, the first of which is this item.
  Index parts(const Index& first, const Index& tiles, const Index& planned) const;

 private:
  Kept kept_;
  Dim room_;
};

// Which tile of which sequence, which of so many parts, and where it is kept.
struct PlannedItem {
  Index sequence, block, part, parts, place;
};

// A plan as kernels read it.
class PagedPlan {
 public:
  // Whose queries are in tiles of so many. `is_given`: it may be another batch's, which is checked.
  PagedPlan(Kernel& kernel, const Tensor& cu_seqlens_q, const Dim& batch, int queries_of_tile,
            bool is_given);
  // Where keys are divided by a plan.
  static std::optional<PagedPlan> declared(Kernel& kernel, const PagedParameters& p,
                                           const PagedRows& tile, KeyParts keys);
  Index count() const { return load_index(plan_(Index(batch_))); }
  PlannedItem item(const Index& number, const PlanRoom& room) const;
  // Of a sequence the number of its first item, its tiles, and the parts of each of them: those of
  // the plan, and how many there are.
  struct Items {
    Index first, tiles, planned, parts;
  };
  Items items_of(const Index& sequence, const PlanRoom& room) const;
  // Otherwise no tile has several parts.
  Condition divides() const;

 private:
  Index first_of(const Index& sequence) const;
  Tensor plan_, cu_seqlens_q_;
  Dim batch_;
  int queries_of_tile_;
  bool is_given_;
  // With pages of 16 slots and 128 heads of latent keys this is faster where the plan is not given,
  // and slower where it is. Why is not known.
  bool is_searched_by_halves_ = false;
};

// Joins the parts of each item's queries: in P, L, cu_seqlens_q, plan; out O, LSE; in sinks, if
// there are any.
Kernel attention_paged_planned_join(const PagedAttention& a, const PagedRows& tile);

// Joins each query's parts of a fixed size, as many as its sequence has: in P, L, cu_seqlens_q, and
// the plan, or lengths where there is none; out O, LSE; in sinks, if there are any.
Kernel attention_paged_fixed_join(const PagedAttention& a, const PagedRows& tile, KeyParts keys);

}  // namespace tilewright::kernels
