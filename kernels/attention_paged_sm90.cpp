#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_paged_copies.h"
#include "kernels/attention_paged_plan.h"
#include "kernels/attention_paged_program.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

// Paged attention of few queries a sequence, which takes as long as memory takes to give the pages.
// What counts is how many bytes are on their way. So a CTA has two lanes, each a warp that loads
// and a warpgroup that computes, with a ring of their own: while one of them ends an item and
// begins the next, copies of the other go on.
namespace tilewright::kernels {
namespace {

constexpr int kRows = kRowsOfPlan;   // of a tile
constexpr int kKeys = kKeysOfBlock;  // of a stage
constexpr int kLanes = kLanesOfPages;
constexpr int kPanel = 64;        // columns of 2 bytes, which shared memory swizzles together
constexpr int kMaximumDim = 128;  // Q and the sums of more take more registers than a thread has
constexpr int kBarrierBytes = 1 << 10;

int stages_of(const PagedAttention& a) {
  const int elements = kLanes * kKeys * (a.dim + a.dim_v);
  const int left = static_cast<int>(target_limits("sm_90a").shared_bytes) - kBarrierBytes;
  if (a.quantised) return (left - elements * size_of(a.dtype)) / (elements * size_of(f8e4m3));
  return left / (elements * size_of(a.dtype));
}

// Keys and values of e4m3 as numbers that products of 2 bytes take: there is no product of a 2-byte
// and a 1-byte tile, and none of 1-byte values whose columns follow each other. A warpgroup
// converts a stage in registers, between products that it waits for anyway.
class Widened {
 public:
  Widened(Kernel& kernel, const PagedAttention& a, const std::string& number)
      : dtype_(a.dtype),
        keys_(kernel, "wide_keys" + number, a.dtype, kKeys, a.dim),
        values_(kernel, "wide_values" + number, a.dtype, kKeys, a.dim_v),
        written_(kernel, kThreads) {}
  SharedView keys(const SharedView& stored) {
    widen(stored, keys_);
    written_.sync();
    return keys_;
  }
  // Written behind `meet`.
  SharedView values(const SharedView& stored) {
    widen(stored, values_);
    return values_;
  }
  void meet() { written_.sync(); }

 private:
  static constexpr int kThreads = 128;
  void widen(const SharedView& from, const SharedTile& to) const {
    store(to, load(from).cast(dtype_));
    fence_proxy_async();
  }
  DType dtype_;
  SharedTile keys_, values_;
  NamedBarrier written_;
};

void check_paged_sm90(const PagedAttention& a, KeyParts keys, const Caller& caller) {
  check_paged(a, caller);
  if (keys == KeyParts::one) check_undivided(a, caller);
  if (a.latent) caller.refuse("latent is set", "take attention_paged_mla_sm90");
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherTarget);
  }
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim % kPanel == 0 && dim <= kMaximumDim) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take 64 or 128, or attention_paged");
  }
  if (a.page % PageCopies::kRowUnit != 0) {
    caller.refuse("page is " + std::to_string(a.page),
                  "take a multiple of 8 slots, or attention_paged");
  }
}

class PagedForward {
 public:
  PagedForward(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        tile_(rows_of_plan(a)),
        p_(kernel, a),
        plan_(PagedPlan::declared(kernel, p_, tile_, keys)),
        stores_(kernel, a, p_, keys, tile_),
        items_(p_, tile_, stores_, plan_),
        next_item_(kernel.workspace("next_item", 1)),
        copies_(p_, kKeys) {
    const RoleRegisters share = role_registers(target_limits("sm_90a"), kLanes);
    // The numbers of a stage's pages, and of the next one's, are in registers of the warp that
    // loads.
    const int more = plan_case("many copies a stage", copies_.count() > 4) ? 16 : 0;
    std::vector<RoleSpec> roles;
    for (int i = 0; i < kLanes; ++i) {
      const std::string number = std::to_string(i);
      const Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>(kernel, a, number));
      roles.push_back(role("load" + number, warps(1), registers(share.loading + kLanes * more),
                           [this, &lane, i] { load_items(lane, i); }));
    }
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = *lanes_[static_cast<std::size_t>(i)];
      roles.push_back(role("math" + std::to_string(i), warpgroups(1),
                           registers(share.computing - more),
                           [this, &lane] { compute_items(lane); }));
    }
    kernel.ctas(multiprocessors());
    kernel.roles(roles);
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  struct Lane {
    Lane(Kernel& kernel, const PagedAttention& a, const std::string& number)
        : items(kernel, "items" + number, stages(2), {}, here()),
          keys(kernel, "keys" + number, stages(stages_of(a)),
               {{dtype_of_keys(a), kKeys, a.dim}, {dtype_of_keys(a), kKeys, a.dim_v}}, here()) {
      items.numbered(PagedItem::kNumbers);
      keys.numbered();
      if (a.quantised) wide.emplace(kernel, a, number);
    }
    // A stage's keys and values as products take them. Of converted ones the stage is free again
    // before the first product ends.
    SharedView keys_of(const Slot& slot) const { return wide ? wide->keys(slot[0]) : slot[0]; }
    SharedView values_of(const Slot& slot) const {
      if (!wide) return slot[1];
      const SharedView values = wide->values(slot[1]);
      keys.release(slot);
      return values;
    }
    mutable Ring items;  // what is computed next; sequence -1 ends the work
    mutable Ring keys;   // a stage's number: see PageCopies
    mutable std::optional<Widened> wide;
  };
  // Items are handed out as lanes become free, since sequences have any length.
  void load_items(const Lane& lane, int number) const {
    const Index count = items_.count();
    Cell<Index> item(cta_index() * kLanes + number);
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = item;
      more = now < count;
      when(
          now < count,
          [&] {
            load_item(lane, items_.item(now));
            // Not before its copies are on their way: who fetches early keeps an item from a lane
            // that is free. The last fetch of all sets the counter back for the next launch.
            const Index fetched = atomic_add(next_item_(0), 1);
            when(fetched == count - 1, [&] { atomic_add(next_item_(0), 0 - count); });
            item = fetched + cta_count() * kLanes;
          },
          [&] {
            lane.items.produce(PagedItem{-1, 0, 0, 0, 0, 0}.numbers());
          });
    });
  }

  void load_item(const Lane& lane, const PagedItem& item) const {
    const PagedWork work(p_, tile_, item);
    const auto [first, last] = work.blocks_of_part(kKeys);
    when(work.rows.start() < work.rows.limit(), [&, first = first, last = last] {
      lane.items.produce(item.numbers());
      when(first < last, [&] {
        copies_.produce(lane.keys, work, first, last,
                        [&](const PageSlots& at, const Slot& stage, int row, int rows) {
                          tma_load(p_.keys(at, work.kv_head), stage[0].rows(row, rows));
                          tma_load(p_.values(at, work.kv_head), stage[1].rows(row, rows));
                        });
      });
    });
  }

  void compute_items(const Lane& lane) const {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot slot = lane.items.consume();
      const PagedItem item = PagedItem::of(slot);
      lane.items.release(slot);
      const Condition is_item = item.sequence >= 0;
      more = is_item;
      when(is_item, [&] { compute_item(lane, item); });
    });
  }

  void compute_item(const Lane& lane, const PagedItem& item) const {
    const PagedWork work(p_, tile_, item);
    const auto [first, last] = work.blocks_of_part(kKeys);
    const auto [whole_first, whole_last] = work.mask.full(work.rows, work.keys, kKeys);
    const HeadScale key_scale = p_.key_scale(work.kv_head);
    const HeadScale value_scale = p_.value_scale(work.kv_head);
    const Tile q = load(work.of_queries(p_.Q)).reshape({kRows, a_.dim});
    OnlineSoftmax softmax(kRows, p_.scale, stores_.sinks(work));
    Var acc{zeros({kRows, a_.dim_v})};
    for (Index j : range(first, last)) {
      const Slot slot = lane.keys.consume();
      const Index missing = slot.number();
      const Pending products = wgmma(q, lane.keys_of(slot).T());
      const SharedView values = lane.values_of(slot);
      Var scores{p_.capped(key_scale(wait(products)))};
      when(j < whole_first || j >= whole_last, [&] {
        const Tile s = scores;
        scores = work.mask.apply(s, work.rows, work.keys.block(j, kKeys));
      });
      when(missing != 0, [&] {
        const Tile s = scores;
        scores = copies_.without(s, missing);
      });
      const Tile s = scores;
      const Condition raised = softmax.raise(s);
      const Tile weights = softmax.weights(s).cast(a_.dtype);
      when(raised, [&] { acc = acc * softmax.rescale(); });
      if (lane.wide) lane.wide->meet();
      acc = wait(wgmma(weights, values, acc));
      if (!lane.wide) lane.keys.release(slot);
    }
    const Tile sum = acc;
    stores_.store(work, value_scale(sum * softmax.normaliser()), softmax.log_sum_exp());
  }

  const PagedAttention& a_;
  PagedRows tile_;
  PagedParameters p_;
  std::optional<PagedPlan> plan_;
  PagedStores stores_;
  PagedItems items_;
  Tensor next_item_;
  PageCopies copies_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

Program attention_paged_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  check_paged_sm90(a, keys, {"attention_paged_sm90", where});
  Kernel kernel(keys == KeyParts::one ? "attention_paged_whole" : "attention_paged_parts");
  const PagedForward forward(kernel, a, keys);
  return paged_program("attention_paged_sm90", a, kernel,
                       {keys, rows_of_plan(a), places(a, multiprocessors())});
}

}  // namespace tilewright::kernels
