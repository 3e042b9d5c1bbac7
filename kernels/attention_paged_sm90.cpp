#include <memory>
#include <string>
#include <vector>

#include "kernels/attention_paged_lanes.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"

// Paged attention of few queries a sequence, whose heads are the rows of both products.
namespace tilewright::kernels {
namespace {

// Keys and values of e4m3 as numbers that products of 2 bytes take: there is no product of a 2-byte
// and a 1-byte tile, and none of 1-byte values whose columns follow each other. A warpgroup
// converts a stage in registers, between products that it waits for anyway.
class Widened {
 public:
  Widened(Kernel& kernel, const PagedAttention& a, const std::string& number)
      : dtype_(a.dtype),
        keys_(kernel, "wide_keys" + number, a.dtype, kKeysOfBlock, a.dim),
        values_(kernel, "wide_values" + number, a.dtype, kKeysOfBlock, a.dim_v),
        written_(kernel, kThreads) {}
  static int bytes(const PagedAttention& a) {
    return kKeysOfBlock * (a.dim + a.dim_v) * size_of(a.dtype);
  }
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

class PagedForward {
 public:
  PagedForward(Kernel& kernel, const PagedAttention& a, KeyParts keys)
      : a_(a),
        lanes_(kernel, a, keys, rows_of_plan(a), {.kept = a.quantised ? Widened::bytes(a) : 0}) {
    for (int i = 0; i < lanes_.count() && a.quantised; ++i) {
      wide_.push_back(std::make_unique<Widened>(kernel, a, std::to_string(i)));
    }
    lanes_.run(kernel, [this](int lane, Ring& keys, const PagedWork& work) {
      compute(lane, keys, wide_.empty() ? nullptr : wide_[static_cast<std::size_t>(lane)].get(),
              work);
    });
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  // Of converted keys and values a stage is free again before the last product ends.
  void compute(int lane, Ring& keys, Widened* wide, const PagedWork& work) const {
    const PagedParameters& p = lanes_.p;
    const auto [first, last] = work.blocks_of_part(kKeysOfBlock);
    const auto [whole_first, whole_last] = work.mask.full(work.rows, work.keys, kKeysOfBlock);
    const HeadScale key_scale = p.key_scale(work.kv_head);
    const HeadScale value_scale = p.value_scale(work.kv_head);
    const Tile q = load(work.of_queries(p.Q)).reshape({kRowsOfPlan, a_.dim});
    OnlineSoftmax softmax(kRowsOfPlan, p.scale, lanes_.stores.sinks(work));
    Var acc{zeros({kRowsOfPlan, a_.dim_v})};
    for (Index j : range(first, last)) {
      const Slot slot = keys.consume();
      const std::vector<Index> missing = lanes_.copies.missing_of(slot);
      const SharedView stored_keys = lanes_.keys(lane, slot);
      const SharedView stored_values = lanes_.values(lane, slot);
      const Pending products = wgmma(q, (wide ? wide->keys(stored_keys) : stored_keys).T());
      const SharedView values = wide ? wide->values(stored_values) : stored_values;
      if (wide) keys.release(slot);
      Var scores{p.capped(key_scale(wait(products)))};
      when(j < whole_first || j >= whole_last, [&] {
        const Tile s = scores;
        scores = work.mask.apply(s, work.rows, work.keys.block(j, kKeysOfBlock));
      });
      when(PageCopies::any(missing), [&] {
        const Tile s = scores;
        scores = lanes_.copies.without(s, missing);
      });
      const Tile s = scores;
      const Condition raised = softmax.raise(s);
      const Tile weights = softmax.weights(s).cast(a_.dtype);
      when(raised, [&] { acc = acc * softmax.rescale(); });
      if (wide) wide->meet();
      acc = wait(wgmma(weights, values, acc));
      if (!wide) keys.release(slot);
    }
    const Tile sum = acc;
    lanes_.stores.store(work, value_scale(sum * softmax.normaliser()), softmax.log_sum_exp());
  }

  const PagedAttention& a_;
  PagedLanes lanes_;
  std::vector<std::unique_ptr<Widened>> wide_;
};

}  // namespace

Program attention_paged_sm90(const PagedAttention& a, KeyParts keys, SourceLocation where) {
  return program_of_lanes<PagedForward>(a, keys, /*gathers=*/false,
                                        {"attention_paged_sm90", where});
}

}  // namespace tilewright::kernels
