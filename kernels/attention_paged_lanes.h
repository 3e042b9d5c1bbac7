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
//
// Keys of e4m3 come faster where one warp loads those of two neighbouring heads, a page of both at
// the same time. Lanes that take two such heads share it, and its ring.
namespace tilewright::kernels {

// Raises for what lanes do not take. `gathers`: pages may be too small for copies.
void check_lanes(const PagedAttention& a, KeyParts keys, bool gathers, const Caller& caller);

struct LaneNeeds {
  int kept = 0;  // bytes of shared memory beside the lane's ring
  int keys_of_stage = kKeysOfBlock;
  int spare_registers = 0;      // that a thread of products leaves to those that load
  bool heads_together = false;  // lanes may take two heads, which one warp loads
};

class PagedLanes {
 public:
  // Lanes compute `tile` at a time: an item's rows, or some of them.
  PagedLanes(Kernel& kernel, const PagedAttention& a, KeyParts keys, const PagedRows& tile,
             const LaneNeeds& needs);
  static constexpr int count() { return kLanesOfPages; }
  // A stage of the ring has what is missing as numbers, and keys and values of each lane that reads
  // it. Of pages that are gathered no product reads a stage, whose rows follow each other.
  SharedView keys(int lane, const Slot& stage) const { return stage[first_tile(lane)]; }
  SharedView values(int lane, const Slot& stage) const { return stage[first_tile(lane) + 1]; }
  using Compute = FunctionRef<void(int lane, Ring& keys, const PagedWork& work)>;
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
          const std::vector<TileShape>& stage, int count);
    mutable Ring items;  // what is computed next; sequence -1 ends the work
    mutable Ring keys;
  };
  bool heads_go_together(KeyParts keys) const;
  // Heads that one warp loads, for a lane each.
  int heads_together() const { return count() / static_cast<int>(rings_.size()); }
  const Rings& rings_of(int lane) const {
    return *rings_[static_cast<std::size_t>(lane / heads_together())];
  }
  int head_of(int lane) const { return lane % heads_together(); }
  std::size_t first_tile(int lane) const { return 2 * static_cast<std::size_t>(head_of(lane)); }
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
  int registers_of_loading_;
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
