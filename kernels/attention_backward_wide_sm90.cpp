#include "kernels/attention_backward_wide_sm90.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

constexpr int kHalves = 2;    // of the columns: a warpgroup has the sums of one
constexpr int kRows = 64;     // of a block of queries, and of keys
constexpr int kOwnRows = 32;  // queries of whose scores a warpgroup has the columns
constexpr int kSumColumns = 32;
constexpr int kSumLine = 128;  // f32 that a warp adds at a time
constexpr int kSumLines = kRows * kSumColumns / kSumLine;
constexpr int kRowStages = 2;
constexpr int kWidest = 256;

// Of a warpgroup: whole panels of 64 bytes. The columns behind the last are zero.
int half_of(int dim) { return (dim + 63) / 64 * 32; }
int sum_tiles(const Attention& a) { return kHalves * half_of(a.dim) / kSumColumns; }

// The first tile of a block of queries: those of the first half of the columns, then the others.
Index first_sum_tile(const Attention& a, const Dim& queries, const Index& sequence,
                     const Index& head, const Index& block) {
  return ((sequence * a.heads + head) * ceil_div(queries, kRows) + block) * sum_tiles(a);
}

// Each of two warpgroups has half of the columns of dK and dV in its registers, for all 64 keys of
// a block. Scores are computed as S^T = K Q^T, of which each has half of the queries. P and dS pass
// through shared memory to the products dV = P^T dO, dK = dS^T Q and dQ = dS K. Tiles of rows lie
// there in two halves of columns, one below the other.
class WideBackward {
 public:
  WideBackward(Kernel& kernel, const Attention& a)
      : a_(a),
        half_(half_of(a.dim)),
        half_v_(half_of(a.dim_v)),
        early_(std::min(half_, 64)),
        scores_(a),
        shapes_(kernel, a),
        Q_(kernel.in("Q", a.dtype, shapes_.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, shapes_.of_keys(a.dim))),
        V_(kernel.in("V", a.dtype, shapes_.of_keys(a.dim_v))),
        dO_(kernel.in("dO", a.dtype, shapes_.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, shapes_.of_rows(kRows))),
        D_(kernel.in("D", f32, shapes_.of_rows(kRows))),
        sums_(kernel.inout("sums", f32, wide_backward_sums(a, shapes_.batch, shapes_.queries))),
        dK_(kernel.out("dK", a.dtype, shapes_.of_keys(a.dim))),
        dV_(kernel.out("dV", a.dtype, shapes_.of_keys(a.dim_v))),
        mask_(attention_mask(shapes_.queries, shapes_.keys, a.causal, a.window)),
        next_(kernel.workspace("next_block", 1)),
        key_blocks_(ceil_div(shapes_.keys, kRows)),
        kv_heads_(shapes_.batch * a.kv_heads),
        blocks_(key_blocks_ * kv_heads_),
        kv_ring_(kernel, "kv", stages(1),
                 {{a.dtype, kHalves * kRows, half_v_}, {a.dtype, kHalves * kRows, half_}}),
        ring_(kernel, "rows", stages(kRowStages),
              {{a.dtype, kHalves * kRows, half_},
               {a.dtype, kHalves * kRows, half_v_},
               {f32, 8, kRows},
               {f32, 8, kRows}}),
        p_(kernel, "p", a.dtype, kRowStages * kRows, kRows),
        ds_(kernel, "ds", a.dtype, kRows, kRows),
        p_full_(kernel, "p_full"),
        ds_full_(kernel, "ds_full"),
        all_math_(kernel, kHalves * 128) {
    kv_ring_.numbered(4);
    ring_.numbered(3);
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(24), [this] { load_blocks(); }),
                  role("math", warpgroups(kHalves), registers(240),
                       [this](const Index& group) { compute_blocks(group); })});
    kernel.require({no_stack, no_spills});
  }

 private:
  // In groups of heads whose Q, dO and sums of dQ stay in L2 together, the blocks that most rows
  // see first.
  struct KeyPlace {
    Index block, kv_head, sequence;
  };
  KeyPlace place(const Index& number) const {
    const Dim bytes = max(shapes_.queries, 1) * scores_.group *
                      ((a_.dim + a_.dim_v) * size_of(a_.dtype) + a_.dim * size_of(f32));
    const Dim fit = max(Dim(a_.l2_bytes) / bytes, 1);
    const Dim group = ceil_div(kv_heads_, max(ceil_div(kv_heads_, fit), 1));
    const Dim per_group = max(group * key_blocks_, 1);
    const Index first = number / per_group * group, in_group = number % per_group;
    const Index height = min(kv_heads_ - first, group);
    const Index head = first + in_group % height;
    return {in_group / height, head % a_.kv_heads, head / a_.kv_heads};
  }
  Block keys_of(const KeyPlace& place) const { return shapes_.keys.block(place.block, kRows); }

  void load_blocks() {
    Cell<Index> number(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = number;
      more = now < blocks_;
      when(
          now < blocks_,
          [&] {
            load_block(place(now));
            // The last fetch of all sets the counter back for the next launch.
            const Index fetched = atomic_add(next_(0), 1);
            when(fetched == blocks_ - 1, [&] { atomic_add(next_(0), 0 - Index(blocks_)); });
            number = fetched + cta_count();
          },
          [&] {
            kv_ring_.produce(std::vector<IndexOperand>{-1, 0, 0, 0});
          });
    });
  }

  // With each block of keys its place, of which block -1 ends the work, and how many blocks of rows
  // follow: those of all heads that share the keys, one behind the other.
  void load_block(const KeyPlace& at) {
    const Block cols = keys_of(at);
    const auto [first, last] = mask_.visible_rows(cols, shapes_.queries, kRows);
    const auto [whole_first, whole_last] = mask_.full_rows(cols, shapes_.queries, kRows);
    const Index of_head = last - first, steps = of_head * scores_.group;
    const auto load_step = [&](const Index& i) {
      const Index member = scores_.group == 1 ? Index(0) : i / of_head;
      const Index row = first + (i - member * of_head);
      load_rows(at, row, at.kv_head * scores_.group + member,
                select(row >= whole_first && row < whole_last, 0, 1));
    };
    // The first rows come while the block before is being stored, which K and V wait for.
    when(steps > 0, [&] { load_step(0); });
    kv_ring_.produce({at.block, at.kv_head, at.sequence, steps}, [&](const Slot& kv) {
      load_halves(V_, at.sequence, cols, at.kv_head, a_.dim_v, kv[0]);
      load_halves(K_, at.sequence, cols, at.kv_head, a_.dim, kv[1]);
    });
    for (Index i : range(1, steps)) load_step(i);
  }

  // With each block of rows its number, the first tile of its dQ, and whether a mask cuts it.
  void load_rows(const KeyPlace& at, const Index& row, const Index& head, const Index& is_cut) {
    const Block rows = shapes_.queries.block(row, kRows);
    const Block padded = shapes_.of_rows(kRows).back().block(row, kRows);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index tile = first_sum_tile(a_, shapes_.queries, at.sequence, head, row);
    ring_.produce({row, tile, is_cut}, [&](const Slot& slot) {
      load_halves(Q_, at.sequence, rows, head, a_.dim, slot[0]);
      load_halves(dO_, at.sequence, rows, head, a_.dim_v, slot[1]);
      tma_load(L_(at.sequence, one, padded), slot[2].first_row());
      tma_load(D_(at.sequence, one, padded), slot[3].first_row());
    });
  }

  static SharedView half(const SharedView& tile, const IndexOperand& which) {
    return tile.rows(kRows * which.index, kRows);
  }
  static void load_halves(const Tensor& from, const Index& sequence, const Block& rows,
                          const Index& head, int dim, const SharedView& to) {
    for (int i = 0; i < kHalves; ++i) {
      tma_load(from(sequence, rows, head, Dim(dim).block(i, half_of(dim))), half(to, i));
    }
  }

  void compute_blocks(const Index& group) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot kv = kv_ring_.consume();
      when(
          kv.number() >= 0,
          [&] {
            compute_block(group, kv);
            more = true;
          },
          [&] { more = false; });
    });
  }

  void compute_block(const Index& group, const Slot& kv) {
    Var dk{zeros({kRows, half_})}, dv{zeros({kRows, half_v_})};
    const Index steps = kv.number(3);
    when(steps > 0, [&] {
      // What the step before has left of dQ to add, and the place of its tiles. Memory takes
      // additions slower than there are products to hide them: they are dealt out over the step.
      const bool has_rest = plan_case("dQ in two products", half_ > early_);
      Var rest{zeros({kRows, std::max(half_ - early_, kSumColumns)})};
      Cell<Index> rest_tile(0), stage(0);
      const auto add_rest = [&](int from, int to) {
        const Tile all_rest = rest;
        const int first = std::min(from, half_ - early_), last = std::min(to, half_ - early_);
        if (first == last) return;
        add(rest_tile + first / kSumColumns, all_rest.slice({0, first}, {kRows, last - first}));
      };
      const auto step = [&](bool has_before) {
        const Slot slot = ring_.consume();
        const Index is_cut = slot.number(2);
        const Pending products = rows_product(kv[1], slot[0], group);
        const Pending value_products = rows_product(kv[0], slot[1], group);
        const Tile l = statistic(slot[2], group), d = statistic(slot[3], group);
        if (has_before) add_rest(0, kSumColumns);
        const Tile weights = weights_of(group, kv, slot, is_cut, wait(products), l);
        const SharedView p = p_.rows(kRows * stage, kRows);
        store(own_rows(p, group).T(), weights.cast(a_.dtype));
        fence_proxy_async();
        p_full_.arrive();
        if (has_before) add_rest(kSumColumns, half_);
        // Behind it the other warpgroup has ended the products of the step before.
        p_full_.wait();
        const Pending sum_v = wgmma(p.T(), half(slot[1], group), dv);
        const Tile ds = score_gradient(weights, wait(value_products), l, d);
        store(own_rows(ds_, group).T(), ds.cast(a_.dtype));
        fence_proxy_async();
        ds_full_.arrive();
        ds_full_.wait();
        const SharedView k = half(kv[1], group);
        const Pending first = wgmma(ds_, k.columns(0, early_));
        std::optional<Pending> second;
        if (has_rest) second = wgmma(ds_, k.columns(early_, half_ - early_));
        const Pending sum_k = wgmma(ds_.T(), half(slot[0], group), dk);
        dv = wait(sum_v);
        const Index tile = slot.number(1) + group * (half_ / kSumColumns);
        add(tile, wait(first));
        if (second) rest = wait(*second);
        dk = wait(sum_k);
        rest_tile = tile + early_ / kSumColumns;
        stage = 1 - stage;
        ring_.release(slot);
      };
      step(false);
      for ([[maybe_unused]] Index i : range(1, steps)) step(true);
      add_rest(0, half_);
    });
    store_gradients(group, kv, dk, dv);
  }

  // Keys by this warpgroup's rows of a block.
  static Pending rows_product(const SharedView& keys, const SharedView& rows, const Index& group) {
    const auto own = [&](int i) { return own_rows(half(rows, i), group).T(); };
    return wgmma(half(keys, 1), own(1), wgmma(half(keys, 0), own(0)));
  }
  static SharedView own_rows(const SharedView& block, const Index& group) {
    return block.rows(kOwnRows * group, kOwnRows);
  }
  static Tile statistic(const SharedView& rows, const Index& group) {
    return load(rows.first_row().column_part(group, kOwnRows));
  }

  Tile weights_of(const Index& group, const Slot& kv, const Slot& slot, const Index& is_cut,
                  const Tile& products, const Tile& l) const {
    Var x{scores_.capped(products) * (scores_.scale * kLog2e) - l};
    when(is_cut > 0, [&] {
      const Tile s = x;
      const Block cols = shapes_.keys.block(kv.number(0), kRows);
      const Block rows = shapes_.queries.block(slot.number(0), kRows).part(group, kOwnRows);
      x = mask_.apply_transposed(s, rows, cols);
    });
    return exp2(x);
  }

  Tile score_gradient(const Tile& p, const Tile& value_products, const Tile& l,
                      const Tile& d) const {
    const Tile gradient = p * (value_products - d);
    if (!scores_.is_capped()) return gradient;
    // The capped score follows from its weight, which needs no registers of its own.
    const Tile capped = (log2(p) + l) * (1 / (scores_.scale * kLog2e));
    return where(p == 0, 0, gradient * (1 - capped * capped));
  }

  void add(const Index& tile, const Tile& dq) const {
    const Dim lines = wide_backward_sums(a_, shapes_.batch, shapes_.queries)[0];
    const int tiles = static_cast<int>(dq.shape()[1]) / kSumColumns;
    for (int i = 0; i < tiles; ++i) {
      const Tile part = dq.slice({0, kSumColumns * i}, {kRows, kSumColumns});
      atomic_add(sums_(lines.block(tile + i, kSumLines), all),
                 fragments(part).reshape({kSumLines, kSumLine}));
    }
  }

  // Through V and K, which no product reads any more.
  void store_gradients(const Index& group, const Slot& kv, const Tile& dk, const Tile& dv) {
    const KeyPlace at{kv.number(0), kv.number(1), kv.number(2)};
    all_math_.sync();
    const auto put = [&](const Tensor& to, int dim, const SharedView& through, const Tile& tile) {
      const SharedView own = half(through, group);
      store(own, tile.cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(to(at.sequence, keys_of(at).part(warp_index(), 16), at.kv_head,
                   Dim(dim).block(group, half_of(dim))),
                own.rows(16 * warp_index(), 16));
      bulk_commit();
    };
    put(dV_, a_.dim_v, kv[0], dv);
    put(dK_, a_.dim, kv[1], dk * scores_.product_scale);
    bulk_wait_read(0);
    kv_ring_.release(kv);
  }

  const Attention& a_;
  const int half_, half_v_;
  const int early_;  // columns of a half of dQ that are added in their own step
  AttentionScores scores_;
  BatchShapes shapes_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_, dK_, dV_;
  Mask mask_;
  Tensor next_;
  Dim key_blocks_, kv_heads_, blocks_;
  Ring kv_ring_, ring_;
  SharedTile p_, ds_;
  ClusterBarrier p_full_, ds_full_;
  NamedBarrier all_math_;
};

}  // namespace

bool is_wide_backward(const Attention& a) { return std::max(a.dim, a.dim_v) > 128; }

void check_wide_backward(const Attention& a, const Caller& caller) {
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim % 16 == 0 && dim <= kWidest) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "take a multiple of 16 up to " + std::to_string(kWidest) + kOtherSchedule);
  }
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherSchedule);
  }
  if (a.block_q != kRows || a.block_k != kRows) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm90_backward_blocks(attention): 64 queries and 64 keys");
  }
}

std::vector<Dim> wide_backward_sums(const Attention& a, const Dim& batch, const Dim& queries) {
  return {batch * a.heads * ceil_div(queries, kRows) * (sum_tiles(a) * kSumLines), kSumLine};
}

Kernel wide_gradients_sm90(const Attention& a, const std::string& name) {
  Kernel kernel(name);
  WideBackward(kernel, a);
  return kernel;
}

Kernel wide_query_gradient_of_sums(const Attention& a, const std::string& name) {
  Kernel kernel(name);
  const BatchShapes shapes(kernel, a, /*has_keys=*/false);
  const std::vector<Dim> shape = wide_backward_sums(a, shapes.batch, shapes.queries);
  const Tensor sums = kernel.in("sums", f32, shape);
  const Tensor dQ = kernel.out("dQ", a.dtype, shapes.of_queries(a.dim));
  // A half of the columns, so that many loads are under way at once.
  const auto [x, h, b] =
      kernel.grid(ceil_div(shapes.queries, kRows) * kHalves, a.heads, shapes.batch);
  const Index block = x / kHalves, which = x % kHalves;
  const int tiles = sum_tiles(a) / kHalves;
  const Index first = first_sum_tile(a, shapes.queries, b, h, block) + which * tiles;
  std::vector<Tile> parts;
  for (int i = 0; i < tiles; ++i) {
    parts.push_back(load(sums(shape[0].block(first + i, kSumLines), all)));
  }
  for (int i = 0; i < tiles; ++i) {
    const Tile sum = from_fragments(
        parts[static_cast<std::size_t>(i)].reshape({kRows * kSumColumns}), kSumColumns);
    store(dQ(b, shapes.queries.block(block, kRows), h,
             Dim(a.dim).block(which * tiles + i, kSumColumns)),
          (sum * AttentionScores(a).product_scale).cast(a.dtype));
  }
  return kernel;
}

}  // namespace tilewright::kernels
