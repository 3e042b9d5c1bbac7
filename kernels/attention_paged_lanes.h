#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kernels/attention_paged_copies.h"
#include "kernels/attention_paged_plan.h"
#include "kernels/attention_paged_program.h"

// Schedules that take as long as memory takes to give the pages. What counts is how many bytes are
// on their way. So a CTA has two lanes, each a warp that loads and a warpgroup that computes, with
// a ring of their own: while one of them ends an item and begins the next, copies of the other go
// on.
namespace tilewright::kernels {

// Raises for what lanes do not take. `gathers`: pages may be too small for copies.
void check_lanes(const PagedAttention& a, KeyParts keys, bool gathers, const Caller& caller);

class PagedLanes {
 public:
  // Lanes compute `tile` at a time: an item's rows, or some of them. A lane has `kept` bytes of
  // shared memory beside its ring, whose stages have so many keys.
  PagedLanes(Kernel& kernel, const PagedAttention& a, KeyParts keys, const PagedRows& tile,
             int kept, int keys_of_stage = kKeysOfBlock);
  int count() const { return static_cast<int>(rings_.size()); }
  // A stage of the ring has keys, {keys, dim}, and values, and what is missing as numbers. Of pages
  // that are gathered no product reads a stage, whose rows follow each other.
  using Compute = std::function<void(int lane, Ring& keys, const PagedWork& work)>;
  void run(Kernel& kernel, const Compute& compute) const;

 private:
  const PagedAttention& a_;
  PagedRows item_, tile_;

 public:
  PagedParameters p;

 private:
  std::optional<PagedPlan> plan_;

 public:
  PagedStores stores;

 private:
  struct Rings {
    Rings(Kernel& kernel, const PageCopies& copies, const std::string& number,
          const std::vector<TileShape>& stage, int kept);
    mutable Ring items;  // what is computed next; sequence -1 ends the work
    mutable Ring keys;
  };
  void load_items(const Rings& rings, int number) const;
  void load_item(const Rings& rings, const PagedItem& item) const;
  void load_tile(const Rings& rings, const PagedWork& work) const;
  void gather(const std::vector<PageSlots>& slots, const Index& kv_head, const Slot& stage,
              const Index& row) const;
  void compute_items(int lane, const Compute& compute) const;
  int keys_of_stage_;
  PagedItems items_;
  Tensor next_item_;

 public:
  PageCopies copies;

 private:
  std::vector<std::unique_ptr<Rings>> rings_;
};

// The program of `Forward`, which records its kernel, named after the caller.
template <typename Forward>
Program program_of_lanes(const PagedAttention& a, KeyParts keys, bool gathers,
                         const Caller& caller) {
  check_lanes(a, keys, gathers, caller);
  Kernel kernel(keys == KeyParts::one ? "attention_paged_whole" : "attention_paged_parts");
  const Forward forward(kernel, a, keys);
  return paged_program(caller.function, a, kernel,
                       {keys, rows_of_plan(a), places(a, multiprocessors())});
}

}  // namespace tilewright::kernels
