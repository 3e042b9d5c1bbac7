#include "kernels/attention_backward_wide_sm90.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
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

// Each of two warpgroups has half of the columns of dK and dV in its registers, for all 64 keys of
// a block. Scores are computed as S^T = K Q^T, of which each has half of the queries. P and dS pass
// through shared memory to the products dV = P^T dO, dK = dS^T Q and dQ = dS K. Tiles of rows lie
// there in two halves of columns, one below the other.
template <typename Keys>
class WideBackward {
 public:
  WideBackward(Kernel& kernel, const Attention& a)
      : a_(a),
        half_(half_of(a.dim)),
        half_v_(half_of(a.dim_v)),
        early_(std::min(half_, 64)),
        scores_(a),
        sequences_(kernel, a),
        Q_(kernel.in("Q", a.dtype, sequences_.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, sequences_.of_keys(a.dim))),
        V_(kernel.in("V", a.dtype, sequences_.of_keys(a.dim_v))),
        dO_(kernel.in("dO", a.dtype, sequences_.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, sequences_.of_rows(kRows))),
        D_(kernel.in("D", f32, sequences_.of_rows(kRows))),
        sums_(kernel.inout("sums", f32, wide_backward_sums(a, sequences_.kept_blocks(kRows)))),
        dK_(kernel.out("dK", a.dtype, sequences_.of_keys(a.dim))),
        dV_(kernel.out("dV", a.dtype, sequences_.of_keys(a.dim_v))),
        next_(kernel.workspace("next_block", 1)),
        blocks_(sequences_.count()),
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
  using Sequence = typename Keys::One;
  Block keys_of(const Sequence& sequence, const Index& block) const {
    return sequence.keys.block(block, kRows);
  }

  void load_blocks() {
    hand_out(
        next_, blocks_, [&](const Index& number) { load_block(sequences_.place(number)); },
        [&] {
          kv_ring_.produce(std::vector<IndexOperand>{-1, 0, 0, 0});
        });
  }

  void load_block(const KeyPlace& at) {
    const Sequence sequence = sequences_.of(at.sequence);
    const Block cols = keys_of(sequence, at.block);
    const auto load = [&] { load_keys(at, sequence, cols); };
    if constexpr (Keys::kOneLength) {
      load();
    } else {
      when(cols.start() < cols.limit(), load);
    }
  }

  // With each block of keys its place, of which block -1 ends the work, and how many blocks of rows
  // follow: those of all heads that share the keys, one behind the other.
  void load_keys(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Index of_head = last - first, steps = of_head * scores_.group;
    const auto load_step = [&](const Index& i) {
      const Index member = scores_.group == 1 ? Index(0) : i / of_head;
      const Index row = first + (i - member * of_head);
      load_rows(sequence, row, at.kv_head * scores_.group + member,
                select(row >= whole_first && row < whole_last, 0, 1));
    };
    // The first rows come while the block before is being stored, which K and V wait for.
    when(steps > 0, [&] { load_step(0); });
    kv_ring_.produce({at.block, at.kv_head, at.sequence, steps}, [&](const Slot& kv) {
      load_halves(sequence, V_, cols, at.kv_head, a_.dim_v, kv[0]);
      load_halves(sequence, K_, cols, at.kv_head, a_.dim, kv[1]);
    });
    for (Index i : range(1, steps)) load_step(i);
  }

  // With each block of rows its number, the first tile of its dQ, and whether a mask cuts it.
  void load_rows(const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    const Block rows = sequence.queries.block(row, kRows);
    const Block kept = sequences_.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index tile = sequences_.kept_number(sequence, head, row, kRows) * sum_tiles(a_);
    ring_.produce({row, tile, is_cut}, [&](const Slot& slot) {
      load_halves(sequence, Q_, rows, head, a_.dim, slot[0]);
      load_halves(sequence, dO_, rows, head, a_.dim_v, slot[1]);
      tma_load(sequence.kept_block(L_, kept, one), slot[2].first_row());
      tma_load(sequence.kept_block(D_, kept, one), slot[3].first_row());
    });
  }

  static SharedView half(const SharedView& tile, const IndexOperand& which) {
    return tile.rows(kRows * which.index, kRows);
  }
  static void load_halves(const Sequence& sequence, const Tensor& from, const Block& rows,
                          const Index& head, int dim, const SharedView& to) {
    for (int i = 0; i < kHalves; ++i) {
      tma_load(sequence.rows(from, rows, head, Dim(dim).block(i, half_of(dim))), half(to, i));
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
      const Sequence sequence = masked_sequence(kv);
      const Block rows = sequence.queries.block(slot.number(0), kRows).part(group, kOwnRows);
      x = sequence.mask.apply_transposed(s, rows, keys_of(sequence, kv.number(0)));
    });
    return exp2(x);
  }

  // Of sequences of one length the mask is the same.
  Sequence masked_sequence(const Slot& kv) const {
    if constexpr (Keys::kOneLength) {
      return sequences_.of(0);
    } else {
      return sequences_.of(kv.number(2));
    }
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
    const Dim lines = wide_backward_sums(a_, sequences_.kept_blocks(kRows))[0];
    const int tiles = static_cast<int>(dq.shape()[1]) / kSumColumns;
    for (int i = 0; i < tiles; ++i) {
      const Tile part = dq.slice({0, kSumColumns * i}, {kRows, kSumColumns});
      atomic_add(sums_(lines.block(tile + i, kSumLines), all),
                 fragments(part).reshape({kSumLines, kSumLine}));
    }
  }

  // Through V and K, which no product reads any more.
  void store_gradients(const Index& group, const Slot& kv, const Tile& dk, const Tile& dv) {
    const Index block = kv.number(0), kv_head = kv.number(1);
    const Sequence sequence = sequences_.of(kv.number(2));
    all_math_.sync();
    const auto put = [&](const Tensor& to, int dim, const SharedView& through, const Tile& tile) {
      const SharedView own = half(through, group);
      store(own, tile.cast(a_.dtype));
      fence_proxy_async();
      warp_sync();
      const Block rows = keys_of(sequence, block).part(warp_index(), 16);
      tma_store(sequence.rows(to, rows, kv_head, Dim(dim).block(group, half_of(dim))),
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
  Keys sequences_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_, dK_, dV_;
  Tensor next_;
  Dim blocks_;
  Ring kv_ring_, ring_;
  SharedTile p_, ds_;
  ClusterBarrier p_full_, ds_full_;
  NamedBarrier all_math_;
};

}  // namespace

bool is_wide_backward(const Attention& a) { return std::max(a.dim, a.dim_v) > 128; }

void check_wide_backward(const Attention& a, Order order, const Caller& caller) {
  if (order == Order::blocks) {
    const bool is_dim = a.dim > a.dim_v;
    caller.refuse(
        std::string(is_dim ? "dim is " : "dim_v is ") + std::to_string(is_dim ? a.dim : a.dim_v) +
            ", and dQ is summed in order",
        "take dims up to 128, or Order::any (schedule=atomic)" + std::string(kOtherSchedule));
  }
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim > 0 && dim % 16 == 0 && dim <= kWidest) continue;
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

std::vector<Dim> wide_backward_sums(const Attention& a, const Dim& blocks) {
  return {blocks * (sum_tiles(a) * kSumLines), kSumLine};
}

template <typename Sequences>
Kernel wide_gradients_sm90(const Attention& a, const std::string& name) {
  using Keys = std::conditional_t<std::is_same_v<Sequences, Batch>, BatchKeys, PackedKeys>;
  Kernel kernel(name);
  WideBackward<Keys>(kernel, a);
  return kernel;
}
template Kernel wide_gradients_sm90<Batch>(const Attention&, const std::string&);
template Kernel wide_gradients_sm90<Packed>(const Attention&, const std::string&);

template <typename Sequences>
Kernel wide_query_gradient_of_sums(const Attention& a, const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, kRows);
  const std::vector<Dim> shape = wide_backward_sums(a, sequences.kept_blocks(kRows));
  const Tensor sums = kernel.in("sums", f32, shape);
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  // A half of the columns, so that many loads are under way at once.
  const auto at = sequences.block_of_queries(kernel, kRows, kHalves);
  const int tiles = sum_tiles(a) / kHalves;
  const Index first =
      (sequences.kept_number(at, at.head, at.number, kRows) * kHalves + at.part) * tiles;
  std::vector<Tile> parts;
  for (int i = 0; i < tiles; ++i) {
    const Tile part = load(sums(shape[0].block(first + i, kSumLines), all));
    parts.push_back(from_fragments(part.reshape({kRows * kSumColumns}), kSumColumns));
  }
  for (int i = 0; i < tiles; ++i) {
    const Block columns = Dim(a.dim).block(at.part * tiles + i, kSumColumns);
    const Tile scaled = parts[static_cast<std::size_t>(i)] * AttentionScores(a).product_scale;
    store(at.rows(dQ, at.block, at.head, columns), scaled.cast(a.dtype));
  }
  return kernel;
}
template Kernel wide_query_gradient_of_sums<Batch>(const Attention&, const std::string&);
template Kernel wide_query_gradient_of_sums<Packed>(const Attention&, const std::string&);

}  // namespace tilewright::kernels
