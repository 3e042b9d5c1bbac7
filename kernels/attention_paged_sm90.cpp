#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_paged_parameters.h"
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

constexpr int kRows = 64;            // of a tile
constexpr int kKeys = kKeysOfBlock;  // of a stage
constexpr int kLanes = 2;
constexpr int kPanel = 64;        // columns of 2 bytes, which shared memory swizzles together
constexpr int kMaximumDim = 128;  // Q and the sums of more take more registers than a thread has
constexpr int kRowsOfCopy = 8;    // of shared memory, multiples of which a copy may begin at
constexpr int kBarrierBytes = 1 << 10;

// Items that are computed at a time.
Dim places() { return multiprocessors() * kLanes; }

int stages_of(const PagedAttention& a) {
  const int left = static_cast<int>(target_limits("sm_90a").shared_bytes) - kBarrierBytes;
  return left / (kLanes * kKeys * (a.dim + a.dim_v) * size_of(a.dtype));
}

void check_paged_sm90(const PagedAttention& a, const Caller& caller) {
  check_paged(a, caller);
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherTarget);
  }
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim % kPanel == 0 && dim <= kMaximumDim) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take 64 or 128, or attention_paged");
  }
  if (a.page % kRowsOfCopy != 0) {
    caller.refuse("page is " + std::to_string(a.page),
                  "take a multiple of 8 slots, or attention_paged");
  }
}

class PagedForward {
 public:
  PagedForward(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        tile_(a, kRows),
        p_(kernel, a),
        plan_(declare_plan(kernel, p_, keys)),
        stores_(kernel, a, p_, keys, tile_),
        items_(plan_ ? PagedItems(p_, tile_, *plan_) : PagedItems(p_, tile_, stores_.parts())),
        next_item_(kernel.workspace("next_item", 1)),
        rows_of_copy_(std::gcd(a.page, kKeys)) {
    plan_case("several pages a stage", copies() > 1);
    const RoleRegisters share = role_registers(target_limits("sm_90a"), kLanes);
    std::vector<RoleSpec> roles;
    for (int i = 0; i < kLanes; ++i) {
      const std::string number = std::to_string(i);
      const Lane& lane = *lanes_.emplace_back(std::make_unique<Lane>(kernel, a, number));
      roles.push_back(role("load" + number, warps(1), registers(share.loading),
                           [this, &lane, i] { load_items(lane, i); }));
    }
    for (int i = 0; i < kLanes; ++i) {
      const Lane& lane = *lanes_[static_cast<std::size_t>(i)];
      roles.push_back(role("math" + std::to_string(i), warpgroups(1), registers(share.computing),
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
               {{a.dtype, kKeys, a.dim}, {a.dtype, kKeys, a.dim_v}}, here()) {
      items.numbered(PagedItem::kNumbers);
      keys.numbered();
    }
    mutable Ring items;  // what is computed next; sequence -1 ends the work
    mutable Ring keys;   // a stage's number has a bit for each copy that has no page
  };
  static std::optional<Tensor> declare_plan(Kernel& kernel, const PagedParameters& p,
                                            KeyParts keys) {
    if (keys != KeyParts::planned) return std::nullopt;
    return kernel.in("plan", i32, shape_of_plan(p.batch));
  }
  int copies() const { return kKeys / rows_of_copy_; }

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
      when(first < last, [&] { load_keys(lane, work, first, last); });
    });
  }

  // The table is read a stage ahead, so that nobody waits for it.
  void load_keys(const Lane& lane, const PagedWork& work, const Index& first,
                 const Index& last) const {
    std::vector<std::unique_ptr<Cell<Index>>> listed;
    for (int i = 0; i < copies(); ++i) {
      listed.push_back(std::make_unique<Cell<Index>>(page_of(work, first, i)));
    }
    for (Index j : range(first, last)) {
      std::vector<PageSlots> copied;
      Cell<Index> missing(0);
      for (int i = 0; i < copies(); ++i) {
        Cell<Index>& next = *listed[static_cast<std::size_t>(i)];
        const Index page = next;
        copied.push_back(p_.slots(keys_of(work, j, i), page));
        missing = missing + select(page == -1, 1 << i, 0);
        next = page_of(work, min(j + 1, last - 1), i);
      }
      lane.keys.produce(missing, [&](const Slot& slot) {
        for (int i = 0; i < copies(); ++i) {
          const PageSlots& at = copied[static_cast<std::size_t>(i)];
          const int row = i * rows_of_copy_;
          tma_load(p_.keys(at, work.kv_head), slot[0].rows(row, rows_of_copy_));
          tma_load(p_.values(at, work.kv_head), slot[1].rows(row, rows_of_copy_));
        }
      });
    }
  }

  // What the i-th copy of block j brings; behind the sequence's last page, nothing of that page.
  Block keys_of(const PagedWork& work, const Index& j, int i) const {
    const Index key = j * kKeys + i * rows_of_copy_;
    return Block(key, rows_of_copy_, max(work.keys.end(), key));
  }
  Index page_of(const PagedWork& work, const Index& j, int i) const {
    const Index key = min(j * kKeys + i * rows_of_copy_, work.keys.end() - 1);
    return load_index(p_.block_table(work.item.sequence, key / a_.page));
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
    const Tile q = load(work.of_queries(p_.Q)).reshape({kRows, a_.dim});
    OnlineSoftmax softmax(kRows, p_.scale, stores_.sinks(work));
    Var acc{zeros({kRows, a_.dim_v})};
    for (Index j : range(first, last)) {
      const Slot slot = lane.keys.consume();
      Var scores{p_.capped(wait(wgmma(q, slot[0].T())))};
      when(j < whole_first || j >= whole_last, [&] {
        const Tile s = scores;
        scores = work.mask.apply(s, work.rows, work.keys.block(j, kKeys));
      });
      const Index missing = slot.number();
      when(missing != 0, [&] {
        const Tile s = scores;
        scores = without(s, missing);
      });
      const Tile s = scores;
      const Condition raised = softmax.raise(s);
      const Tile weights = softmax.weights(s).cast(a_.dtype);
      when(raised, [&] { acc = acc * softmax.rescale(); });
      acc = wait(wgmma(weights, slot[1], acc));
      lane.keys.release(slot);
    }
    const Tile sum = acc;
    stores_.store(work, sum * softmax.normaliser(), softmax.log_sum_exp());
  }

  // Scores of keys that have a page.
  Tile without(const Tile& scores, const Index& missing) const {
    const Tile copy = iota({1, kKeys}, 1) / rows_of_copy_;
    return where(((Tile({1, kKeys}, missing) >> copy) & 1) != 0, kNone, scores);
  }

  const PagedAttention& a_;
  PagedRows tile_;
  PagedParameters p_;
  std::optional<Tensor> plan_;
  PagedStores stores_;
  PagedItems items_;
  Tensor next_item_;
  int rows_of_copy_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

Program attention_paged_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  check_paged_sm90(a, {"attention_paged_sm90", where});
  Kernel kernel(keys == KeyParts::one ? "attention_paged_whole" : "attention_paged_parts");
  const PagedForward forward(kernel, a, keys);
  return paged_program("attention_paged_sm90", a, kernel, {keys, PagedRows(a, kRows), places()});
}

}  // namespace tilewright::kernels
