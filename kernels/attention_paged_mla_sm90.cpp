#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_paged_copies.h"
#include "kernels/attention_paged_plan.h"
#include "kernels/attention_paged_program.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

// Latent attention: a block of keys is in shared memory once, and its first columns are the values.
// The output of 64 rows has more columns than a warpgroup has registers for. So one warpgroup
// computes the scores and the first half of the output, and hands the weights to another one, which
// computes the second half. Both halves take as long; while the first warpgroup is at the next
// block's scores, the second may still be at its half.
namespace tilewright::kernels {
namespace {

constexpr int kLatentRows = kRowsOfPlan;
constexpr int kLatentKeys = kKeysOfBlock;  // of a stage
constexpr int kThreads = 256;              // of both warpgroups
constexpr int kLatentPanel = 64;   // columns of 2 bytes, which shared memory swizzles together
constexpr int kMostColumns = 256;  // of the output, that a warpgroup has registers for
constexpr int kLatentBarrierBytes = 1 << 10;

int latent_stages_of(const PagedAttention& a) {
  const int row = a.dim * size_of(a.dtype);
  const int left = static_cast<int>(target_limits("sm_90a").shared_bytes) - kLatentBarrierBytes -
                   kLatentRows * (row + kLatentKeys * size_of(a.dtype) + size_of(f32));
  return left / (kLatentKeys * row);
}

void check_latent_sm90(const PagedAttention& a, KeyParts keys, const Caller& caller) {
  check_paged(a, caller);
  if (keys == KeyParts::one) check_undivided(a, caller);
  if (!a.latent) caller.refuse("latent is not set", "take attention_paged_sm90");
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherTarget);
  }
  if (a.dim % kLatentPanel != 0 || latent_stages_of(a) < 2) {
    caller.refuse("dim is " + std::to_string(a.dim),
                  "take a multiple of 64, up to 576, or attention_paged");
  }
  if (a.dim_v % (2 * kLatentPanel) != 0 || a.dim_v > 2 * kMostColumns) {
    caller.refuse("dim_v is " + std::to_string(a.dim_v),
                  "take a multiple of 128, up to 512, or attention_paged");
  }
  if (a.page % PageCopies::kRowUnit != 0) {
    caller.refuse("page is " + std::to_string(a.page),
                  "take a multiple of 8 slots, or attention_paged");
  }
}

// What the first warpgroup tells the second: a block's weights, and what sums of earlier ones are
// multiplied by. Behind the last block, what the output is multiplied by.
class Handover {
 public:
  Handover(Kernel& kernel, DType dtype)
      : weights_(kernel, "weights", dtype, kLatentRows, kLatentKeys),
        factors_(kernel, "factors", f32, 1, kLatentRows),
        given_(kernel, kThreads),
        taken_(kernel, kThreads) {}
  // Both roles begin and end in pairs: nothing is in the way of the first weights.
  void begin_taking() { taken_.arrive(); }
  void end_giving() { taken_.sync(); }

  void give(const Tile& weights, const Tile& factors) {
    taken_.sync();
    tilewright::store(weights_, weights);
    give_factors(factors);
  }
  void give_last(const Tile& factors) {
    taken_.sync();
    give_factors(factors);
  }
  // Its products read the weights until `return_back`.
  SharedView take(Var& sum) {
    const Tile factors = take_factors();
    when(any_nearby(factors != 1), [&] { sum = sum * factors; });
    return weights_;
  }
  Tile take_factors() {
    given_.sync();
    return load(factors_).reshape({kLatentRows, 1});
  }
  void return_back() { taken_.arrive(); }

 private:
  void give_factors(const Tile& factors) {
    tilewright::store(factors_, factors.T());
    fence_proxy_async();
    given_.arrive();
  }
  SharedTile weights_, factors_;
  NamedBarrier given_, taken_;
};

class LatentForward {
 public:
  LatentForward(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        tile_(rows_of_plan(a)),
        p_(kernel, a),
        plan_(PagedPlan::declared(kernel, p_, tile_, keys)),
        stores_(kernel, a, p_, keys, tile_),
        items_(p_, tile_, stores_, plan_),
        copies_(p_, kLatentKeys),
        q_ring_(kernel, "q", stages(1), {{a.dtype, kLatentRows, a.dim}}),
        keys_(kernel, "keys", stages(latent_stages_of(a)), {{a.dtype, kLatentKeys, a.dim}}),
        handover_(kernel, a.dtype) {
    keys_.numbered();
    const RoleRegisters share = role_registers(target_limits("sm_90a"), 2);
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(share.loading),
                       [this] { each_item([&](const PagedWork& work) { load_item(work); }); }),
                  role("scores", warpgroups(1), registers(share.computing),
                       [this] {
                         each_item([&](const PagedWork& work) { compute_scores(work); });
                         handover_.end_giving();
                       }),
                  role("values", warpgroups(1), registers(share.computing), [this] {
                    handover_.begin_taking();
                    each_item([&](const PagedWork& work) { compute_values(work); });
                  })});
    kernel.require({wgmma_ss, wgmma_rs, no_stack, no_spills});
  }

 private:
  // Items of this CTA, the same for all roles.
  template <typename Body>
  void each_item(const Body& body) {
    const Index count = items_.count();
    for (Index round : range(ceil_div(max(count - cta_index(), 0), cta_count()))) {
      const PagedWork work(p_, tile_, items_.item(cta_index() + round * cta_count()));
      when(work.rows.start() < work.rows.limit(), [&] { body(work); });
    }
  }

  void load_item(const PagedWork& work) {
    const Block heads = Dim(a_.heads).block(work.item.head_block, tile_.heads);
    q_ring_.produce([&](const Slot& q) { tma_load(p_.Q(work.rows, heads, all), q); });
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    when(first < last, [&, first = first, last = last] {
      copies_.produce(keys_, work, first, last,
                      [&](const PageSlots& at, const Slot& stage, int row, int rows) {
                        tma_load(p_.keys(at, work.kv_head), stage[0].rows(row, rows));
                      });
    });
  }

  SharedView values(const Slot& stage, int half) const {
    return stage[0].columns(half * columns(), columns());
  }
  int columns() const { return a_.dim_v / 2; }

  void compute_scores(const PagedWork& work) {
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    const auto [whole_first, whole_last] = work.mask.full(work.rows, work.keys, kLatentKeys);
    const Slot q = q_ring_.consume();
    OnlineSoftmax softmax(kLatentRows, p_.scale, stores_.sinks(work));
    Var acc{zeros({kLatentRows, columns()})};
    for (Index j : range(first, last)) {
      const Slot stage = keys_.consume();
      Var scores{p_.capped(wait(wgmma(q, stage.T())))};
      when(j < whole_first || j >= whole_last, [&] {
        const Tile s = scores;
        scores = work.mask.apply(s, work.rows, work.keys.block(j, kLatentKeys));
      });
      const std::vector<Index> missing = copies_.missing_of(stage);
      when(PageCopies::any(missing), [&] {
        const Tile s = scores;
        scores = copies_.without(s, missing);
      });
      const Tile s = scores;
      const Condition raised = softmax.raise(s);
      const Tile weights = softmax.weights(s).cast(a_.dtype);
      handover_.give(weights, softmax.rescale());
      when(raised, [&] { acc = acc * softmax.rescale(); });
      acc = wait(wgmma(weights, values(stage, 0), acc));
      keys_.release(stage);
    }
    q_ring_.release(q);
    handover_.give_last(softmax.normaliser());
    const Tile sum = acc;
    stores_.store_outputs(work, Block(0, columns(), columns()), sum * softmax.normaliser());
    stores_.store_sums(work, softmax.log_sum_exp());
  }

  void compute_values(const PagedWork& work) {
    const auto [first, last] = work.blocks_of_part(kLatentKeys);
    Var acc{zeros({kLatentRows, columns()})};
    for ([[maybe_unused]] Index j : range(first, last)) {
      const Slot stage = keys_.consume();
      const SharedView weights = handover_.take(acc);
      acc = wait(wgmma(weights, values(stage, 1), acc));
      handover_.return_back();
      keys_.release(stage);
    }
    const Tile sum = acc;
    const Tile normaliser = handover_.take_factors();
    handover_.return_back();
    stores_.store_outputs(work, Block(columns(), columns(), 2 * columns()), sum * normaliser);
  }

  const PagedAttention& a_;
  PagedRows tile_;
  PagedParameters p_;
  std::optional<PagedPlan> plan_;
  PagedStores stores_;
  PagedItems items_;
  PageCopies copies_;
  Ring q_ring_;
  Ring keys_;  // a stage's number: see PageCopies
  Handover handover_;
};

}  // namespace

Program attention_paged_mla_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  check_latent_sm90(a, keys, {"attention_paged_mla_sm90", where});
  Kernel kernel(keys == KeyParts::one ? "attention_paged_whole" : "attention_paged_parts");
  LatentForward forward(kernel, a, keys);
  return paged_program("attention_paged_mla_sm90", a, kernel,
                       {keys, rows_of_plan(a), places(a, multiprocessors())});
}

}  // namespace tilewright::kernels
