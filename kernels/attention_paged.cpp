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
// Of a product's result that one warpgroup holds. Wider ones are spread over several.
constexpr int kColumnsOfWarpgroup = 256;

bool is_wide(const PagedAttention& a) {
  const bool by_products = a.page % kProductKeys == 0;
  return plan_case("wide values", by_products && a.dim_v > kColumnsOfWarpgroup);
}

// How keys are taken: a run of a page's slots through products, or one by one.
struct KeySteps {
  // Products of so many rows, and of no more keys.
  KeySteps(const PagedAttention& a, int rows)
      : rows(rows),
        by_key(plan_case("key by key", a.page % kProductKeys != 0)),
        keys(by_key ? 1 : std::gcd(a.page, rows)) {
    if (by_key || plan_case("several steps a page", a.page > keys)) return;
    // Some of the steps share a stage: a part has more than one of it.
    plan_case("parts of many pages", a.window == 0 && a.fixed_split_size == 0);
  }
  PagedRows tile(const PagedAttention& a) const {
    if (by_key) return {a, kRowsByKey};
    return is_wide(a) ? PagedRows::of_one_query(a, rows) : PagedRows(a, rows);
  }
  Tile scores(const Tile& q, const Tile& k) const {
    if (!by_key) return dot(q, k.T());
    return reduce_sum(q.cast(f32) * k.cast(f32), 1);
  }
  // Both ways round weights alike: what they compute is the meaning of kernels of all pages.
  Tile weighted(const Tile& weights, const Tile& v) const {
    const Tile rounded = weights.cast(v.dtype());
    return by_key ? rounded.cast(f32) * v.cast(f32) : dot(rounded, v);
  }
  int rows;
  bool by_key;
  int keys;
};

// One block of the grid has some queries of the heads that share keys, and one part of the keys
// that these see, or all of them. A part without keys is 0, with -inf.
Kernel paged_parts(const PagedAttention& a, const KeySteps& steps, KeyParts parts) {
  Kernel kernel(parts == KeyParts::one ? "attention_paged" : "attention_paged_parts");
  const PagedRows tile = steps.tile(a);
  PagedParameters p(kernel, a);
  const PagedStores stores(kernel, a, p, parts, tile);
  const PagedItems items(p, tile, stores.parts());
  const auto [x, part, number] = kernel.grid(items.heads(), items.parts(), items.tiles().count());
  const auto [sequence, block] = items.tiles().tile(number);
  const PagedWork work(p, tile, {sequence, block, x, part, items.parts(), 0});
  const auto [first, last] = work.blocks_of_part(steps.keys);

  const HeadScale key_scale = p.key_scale(work.kv_head), value_scale = p.value_scale(work.kv_head);
  // Rows of many elements do not fit registers: products take what is loaded as it is.
  const Tile q = is_wide(a) ? load(work.of_query(p.Q))
                            : load(work.of_queries(p.Q)).reshape({tile.rows, a.dim});
  OnlineSoftmax softmax(tile.rows, p.scale, stores.sinks(work));
  Var acc{zeros({tile.rows, a.dim_v})};
  for (Block cols : blocks(work.keys, steps.keys, first, last)) {
    const Index listed = p.listed(work.item.sequence, cols.start() / a.page);
    const auto step = [&] {
      const PageSlots at = steps.by_key ? p.slot(cols.start(), listed) : p.slots(cols, listed);
      const Tile k = load(p.keys(at, work.kv_head)).cast(a.dtype);
      const Tile products = key_scale(steps.scores(q, k));
      const Tile s = work.mask.apply(p.capped(products), work.rows, cols);
      const auto [weights, rescale] = softmax.step(s);
      const Tile v = a.latent ? k.slice({0, 0}, {steps.keys, a.dim_v})
                              : load(p.values(at, work.kv_head)).cast(a.dtype);
      acc = acc * rescale + steps.weighted(weights, v);
    };
    // Products leave out keys that do not exist. A key by itself has no axis that could.
    if (steps.by_key) {
      when(listed != -1, step);
    } else {
      step();
    }
  }
  stores.store(work, value_scale(acc * softmax.normaliser()), softmax.log_sum_exp());
  return kernel;
}

}  // namespace

Program attention_paged(const PagedAttention& a, SourceLocation where) {
  check_paged(a, {"attention_paged", where});
  const KeySteps steps(a, kProductRows);
  return paged_program("attention_paged", a, paged_parts(a, steps, KeyParts::several),
                       {KeyParts::several, steps.tile(a), multiprocessors()});
}

Program attention_paged_undivided(const PagedAttention& a, int rows, SourceLocation where) {
  check_paged(a, {"attention_paged", where});
  check_undivided(a, {"attention_paged", where});
  const KeySteps steps(a, rows);
  return paged_program("attention_paged", a, paged_parts(a, steps, KeyParts::one),
                       {KeyParts::one, steps.tile(a), multiprocessors()});
}

}  // namespace tilewright::kernels
