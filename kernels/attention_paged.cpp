#include "tilewright/kernels/attention_paged.h"

#include <numeric>

#include "kernels/attention_paged_parameters.h"
#include "kernels/attention_paged_program.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kProductRows = 64;
constexpr int kProductKeys = 16;  // of which products take whole ones
// A key by itself meets each row of a tile by itself: few of them fit the registers.
constexpr int kRowsByKey = 16;

// How keys are taken: a run of a page's slots through products, or one by one.
struct KeySteps {
  explicit KeySteps(const PagedAttention& a)
      : by_key(plan_case("key by key", a.page % kProductKeys != 0)),
        keys(by_key ? 1 : std::gcd(a.page, kProductRows)) {
    if (!by_key) plan_case("several steps a page", a.page > keys);
  }
  int rows() const { return by_key ? kRowsByKey : kProductRows; }
  Tile scores(const Tile& q, const Tile& k) const {
    if (!by_key) return dot(q, k.T());
    return reduce_sum(q.cast(f32) * k.cast(f32), 1);
  }
  Tile weighted(const Tile& weights, const Tile& v) const {
    return by_key ? weights * v.cast(f32) : dot(weights.cast(v.dtype()), v);
  }
  bool by_key;
  int keys;
};

// One block of the grid has some queries of the heads that share keys, and one part of the keys
// that these see. A part without keys is 0, with -inf.
Kernel paged_parts(const PagedAttention& a) {
  Kernel kernel("attention_paged_parts");
  const KeySteps steps(a);
  const PagedRows tile(a, steps.rows());
  PagedParameters p(kernel, a);
  const PagedStores stores(kernel, a, p, KeyParts::several, tile);
  const PagedItems items(p, tile, stores.parts());
  const auto [x, part, number] = kernel.grid(items.heads(), items.parts(), items.tiles());
  const auto [sequence, block] = p.queries.tile(number, tile.queries());
  const PagedWork work(p, tile, {sequence, block, x, part, items.parts(), 0});
  const auto [first, last] = work.blocks_of_part(steps.keys);

  const Tile q = load(work.of_queries(p.Q)).reshape({tile.rows, a.dim});
  OnlineSoftmax softmax(tile.rows, p.scale);
  Var acc{zeros({tile.rows, a.dim_v})};
  for (Block cols : blocks(work.keys, steps.keys, first, last)) {
    const Index listed = load_index(p.block_table(work.item.sequence, cols.start() / a.page));
    const auto [page, slots] = p.slots(cols, listed);
    const Tile k = load(p.K(page, slots, work.kv_head, all));
    const Tile s = work.mask.apply(p.capped(steps.scores(q, k)), work.rows, cols);
    const auto [weights, rescale] = softmax.step(s);
    const Tile v = load(p.V(page, slots, work.kv_head, all));
    acc = acc * rescale + steps.weighted(weights, v);
  }
  stores.store(work, acc * softmax.normaliser(), softmax.log_sum_exp());
  return kernel;
}

}  // namespace

Program attention_paged(const PagedAttention& a, SourceLocation where) {
  check_paged(a, {"attention_paged", where});
  return paged_program("attention_paged", a, paged_parts(a),
                       {KeyParts::several, PagedRows(a, KeySteps(a).rows()), multiprocessors()});
}

}  // namespace tilewright::kernels
