#include "kernels/attention_backward_sm90.h"

#include <algorithm>
#include <functional>
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

constexpr int kGroups = 2;  // warpgroups, of 64 keys each
constexpr int kRows = 64;   // of a product, and of a block of queries
constexpr int kPieces = 4;  // of a warpgroup's part of dQ
constexpr int kLine = 128;  // f32 that a warp adds at a time
constexpr int kStages = 2;  // of a block of queries, and of dS
constexpr int kColumnsOfPanel = 64;

// A block of keys of a head that others share, and the sequence.
struct KeyPlace {
  Index block, kv_head, sequence;
};

// dK and dV of a block of keys lie in the registers of two warpgroups. Scores are computed as
// S^T = K Q^T, so that P^T and dS^T are operands from registers. dS passes through shared memory
// for dQ = dS K, of which each warpgroup computes half of the columns, and adds them to memory.
class Backward {
 public:
  Backward(Kernel& kernel, const Attention& a, const BackwardPlan& plan)
      : a_(a),
        plan_(plan),
        scores_(a),
        shapes_(kernel, a),
        Q_(kernel.in("Q", a.dtype, shapes_.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, shapes_.of_keys(a.dim))),
        V_(kernel.in("V", a.dtype, shapes_.of_keys(a.dim_v))),
        dO_(kernel.in("dO", a.dtype, shapes_.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, shapes_.of_rows(kRows))),
        D_(kernel.in("D", f32, shapes_.of_rows(kRows))),
        sums_(kernel.inout("sums", f32, plan.sums(a, shapes_.batch, shapes_.queries))),
        dK_(kernel.out("dK", a.dtype, shapes_.of_keys(a.dim))),
        dV_(kernel.out("dV", a.dtype, shapes_.of_keys(a.dim_v))),
        mask_(attention_mask(shapes_.queries, shapes_.keys, a.causal, a.window)),
        next_(kernel.workspace("next_block", 1)),
        key_blocks_(ceil_div(shapes_.keys, a.block_k)),
        kv_heads_(shapes_.batch * a.kv_heads),
        blocks_(key_blocks_ * kv_heads_),
        // V, and K in its parts of columns, one below the other.
        kv_ring_(kernel, "kv", stages(1),
                 {{a.dtype, a.block_k, a.dim_v},
                  {a.dtype, a.block_k * plan.k_parts, a.dim / plan.k_parts}}),
        ring_(
            kernel, "rows", stages(kStages),
            {{a.dtype, kRows, a.dim}, {a.dtype, kRows, a.dim_v}, {f32, 8, kRows}, {f32, 8, kRows}}),
        ds_(kernel, "ds", a.dtype, kStages * a.block_k, kRows),
        ds_full_(kernel, "ds_full"),
        all_math_(kernel, kGroups * 128) {
    kv_ring_.numbered(4);
    ring_.numbered(3);
    kernel.ctas(multiprocessors());
    kernel.roles({role("load", warps(1), registers(plan.load_registers), [this] { load_blocks(); }),
                  role("math", warpgroups(kGroups), registers(plan.math_registers),
                       [this](const Index& group) { compute_blocks(group); })});
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  // In groups of heads whose Q, dO and sums of dQ stay in L2 together, the blocks that most rows
  // see first.
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
  Block keys_of(const KeyPlace& place) const { return shapes_.keys.block(place.block, a_.block_k); }

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
    kv_ring_.produce({at.block, at.kv_head, at.sequence, steps}, [&](const Slot& kv) {
      tma_load(V_(at.sequence, cols, at.kv_head, all), kv[0]);
      for (int i = 0; i < plan_.k_parts; ++i) {
        tma_load(K_(at.sequence, cols, at.kv_head, Dim(a_.dim).block(i, a_.dim / plan_.k_parts)),
                 kv[1].rows(a_.block_k * i, a_.block_k));
      }
    });
    for (Index i : range(steps)) {
      const Index member = scores_.group == 1 ? Index(0) : i / of_head;
      const Index row = first + (i - member * of_head);
      load_rows(at, row, at.kv_head * scores_.group + member,
                select(row >= whole_first && row < whole_last, 0, 1));
    }
  }

  // With each block of rows its number, the first piece of its dQ, and whether a mask cuts it.
  void load_rows(const KeyPlace& at, const Index& row, const Index& head, const Index& is_cut) {
    const Block rows = shapes_.queries.block(row, kRows);
    const Block padded = shapes_.of_rows(kRows).back().block(row, kRows);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index piece = plan_.piece(a_, shapes_.queries, at.sequence, head, row);
    ring_.produce({row, piece, is_cut}, [&](const Slot& slot) {
      tma_load(Q_(at.sequence, rows, head, all), slot[0]);
      tma_load(dO_(at.sequence, rows, head, all), slot[1]);
      tma_load(L_(at.sequence, one, padded), slot[2].first_row());
      tma_load(D_(at.sequence, one, padded), slot[3].first_row());
    });
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
    bulk_wait(0);
  }

  // A warpgroup's keys or values, in parts of columns, as operands.
  struct Keys {
    std::vector<SharedView> shared;
    std::vector<Tile> held;  // the same in registers, or nothing
    Pending times(const SharedView& rows) const {
      std::optional<Pending> sum;
      for (std::size_t i = 0; i < shared.size(); ++i) {
        const int columns = shared[i].column_count();
        const SharedView part = rows.columns(static_cast<int>(i) * columns, columns).T();
        const auto product = [&](const auto& keys) {
          return sum ? wgmma(keys, part, *sum) : wgmma(keys, part);
        };
        sum = held.empty() ? product(shared[i]) : product(held[i]);
      }
      return *sum;
    }
  };
  Keys keys(const Index& group, const SharedView& tile) const {
    Keys keys;
    for (int i = 0; i < tile.row_count() / a_.block_k; ++i) {
      keys.shared.push_back(tile.rows(a_.block_k * i + kRows * group, kRows));
      if (plan_.keys_in_registers) keys.held.push_back(load(keys.shared.back()));
    }
    return keys;
  }

  void compute_block(const Index& group, const Slot& kv) {
    const Keys k = keys(group, kv[1]), v = keys(group, kv[0]);
    Var dk{zeros({kRows, a_.dim})}, dv{zeros({kRows, a_.dim_v})};
    const Index steps = kv.number(3);
    when(steps > 0, [&] {
      const Slot first = ring_.consume();
      const Tile p = weights(group, kv, first, wait(k.times(first[0])));
      dk = wait(key_gradients(group, v, first, p, dk, dv, [](int) {}));
      Cell<Pending> next_dk(as_pending(dk));
      // Of the step before: its stage, and the first piece of its dQ.
      Cell<Index> stage(first.stage()), piece(first.number(1));
      for ([[maybe_unused]] Index i : range(1, steps)) {
        const Slot slot = ring_.consume();
        const Tile products = wait(k.times(slot[0]));
        dk = wait(next_dk);
        ring_.release(stage);
        const Tile p = weights(group, kv, slot, products);
        // dQ of the step before, so that the warpgroups may be half a step apart. Additions wait
        // for memory: they are spread over the products of this step.
        const Pending query_product = query_gradient(group, kv, stage);
        std::optional<Tile> dq;
        int done = 0;
        next_dk = key_gradients(group, v, slot, p, dk, dv, [&](int point) {
          for (int i = 0; i < plan_.pieces[point]; ++i) {
            if (done == 0) dq = wait(query_product);
            add(group, piece, *dq, done++);
          }
        });
        stage = slot.stage();
        piece = slot.number(1);
      }
      const Pending query_product = query_gradient(group, kv, stage);
      dk = wait(next_dk);
      ring_.release(stage);
      const Tile dq = wait(query_product);
      for (int i = 0; i < kPieces; ++i) add(group, piece, dq, i);
    });
    store_gradients(group, kv, dk, dv);
  }

  // P^T of a block of rows. What a mask needs is read again here, since registers are scarce.
  Tile weights(const Index& group, const Slot& kv, const Slot& slot, const Tile& products) const {
    Var x{scores_.capped(products)};
    when(slot.number(2) > 0, [&] {
      const Tile s = x;
      const Block cols = shapes_.keys.block(kv.number(0), a_.block_k).part(group, kRows);
      x = mask_.apply_transposed(s, shapes_.queries.block(slot.number(0), kRows), cols);
    });
    return exp2(x * (scores_.scale * kLog2e) - load(slot[2].first_row()));
  }

  // dS^T without the scale.
  Tile score_gradient(const Slot& slot, const Tile& p, const Tile& value_products) const {
    const Tile gradient = p * (value_products - load(slot[3].first_row()));
    if (!scores_.is_capped()) return gradient;
    // The capped score follows from its weight, which needs no registers of its own.
    const Tile capped = (log2(p) + load(slot[2].first_row())) * (1 / (scores_.scale * kLog2e));
    return where(p == 0, 0, gradient * (1 - capped * capped));
  }

  // Adds to dV, puts dS into shared memory, and begins the product of dK. `beside` runs behind the
  // first product, behind the second one, and once dV is there.
  Pending key_gradients(const Index& group, const Keys& v, const Slot& slot, const Tile& p,
                        const Tile& dk, Var& dv, const std::function<void(int)>& beside) {
    const Pending sum_v = wgmma(p.cast(a_.dtype), slot[1], dv);
    beside(0);
    const Pending value_products = v.times(slot[1]);
    beside(1);
    dv = wait(sum_v);
    beside(2);
    const Tile ds = score_gradient(slot, p, wait(value_products)).cast(a_.dtype);
    store(ds_.rows(a_.block_k * slot.stage() + kRows * group, kRows), ds);
    fence_proxy_async();
    ds_full_.arrive();
    return wgmma(ds, slot[0], dk);
  }

  // A warpgroup's half of the columns.
  Pending query_gradient(const Index& group, const Slot& kv, const Index& stage) {
    ds_full_.wait();
    const SharedView ds = ds_.rows(a_.block_k * stage, a_.block_k).T();
    return plan_.k_parts == 1 ? wgmma(ds, kv[1].column_part(group, a_.dim / kGroups))
                              : wgmma(ds, kv[1].rows(a_.block_k * group, a_.block_k));
  }

  void add(const Index& group, const Index& first_piece, const Tile& dq, int piece) const {
    const Dim lines = plan_.sums(a_, shapes_.batch, shapes_.queries)[0];
    const Tile part = dq.slice({0, plan_.piece_columns * piece}, {kRows, plan_.piece_columns});
    atomic_add(
        sums_(lines.block(first_piece + (group * kPieces + piece), plan_.piece_lines()), all),
        fragments(part).reshape({plan_.piece_lines(), kLine}));
  }

  // Through dS, which no product reads any more.
  void store_gradients(const Index& group, const Slot& kv, const Tile& dk, const Tile& dv) {
    const KeyPlace at{kv.number(0), kv.number(1), kv.number(2)};
    kv_ring_.release(kv);
    all_math_.sync();
    const auto put = [&](const Tensor& to, const Tile& tile) {
      bulk_wait_read(0);
      warp_sync();
      const int panels = static_cast<int>(tile.shape()[1]) / kColumnsOfPanel;
      for (int i = 0; i < panels; ++i) {
        store(ds_.rows(a_.block_k * i + kRows * group, kRows),
              tile.slice({0, kColumnsOfPanel * i}, {kRows, kColumnsOfPanel}).cast(a_.dtype));
      }
      fence_proxy_async();
      warp_sync();
      const Block own = keys_of(at).part(4 * group + warp_index(), 16);
      for (int i = 0; i < panels; ++i) {
        tma_store(to(at.sequence, own, at.kv_head,
                     Dim(kColumnsOfPanel * panels).block(i, kColumnsOfPanel)),
                  ds_.rows(a_.block_k * i + kRows * group + 16 * warp_index(), 16));
      }
      bulk_commit();
    };
    put(dV_, dv);
    put(dK_, dk * scores_.product_scale);
    bulk_wait_read(0);
    all_math_.sync();
  }

  const Attention& a_;
  BackwardPlan plan_;
  AttentionScores scores_;
  BatchShapes shapes_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_, dK_, dV_;
  Mask mask_;
  Tensor next_;
  Dim key_blocks_, kv_heads_, blocks_;
  Ring kv_ring_, ring_;
  SharedTile ds_;
  ClusterBarrier ds_full_;
  NamedBarrier all_math_;
};

}  // namespace

int BackwardPlan::piece_lines() const { return kRows * piece_columns / kLine; }

std::vector<Dim> BackwardPlan::sums(const Attention& a, const Dim& batch,
                                    const Dim& queries) const {
  return {batch * a.heads * ceil_div(queries, kRows) * kGroups * kPieces * piece_lines(), kLine};
}

Index BackwardPlan::piece(const Attention& a, const Dim& queries, const Index& sequence,
                          const Index& head, const Index& block) const {
  return ((sequence * a.heads + head) * ceil_div(queries, kRows) + block) * kGroups * kPieces;
}

BackwardPlan backward_plan(const Attention& a, const Caller& caller) {
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim == 64 || dim == 128) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  std::string("take 64 or 128") + kOtherSchedule);
  }
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherSchedule);
  }
  if (a.block_q != kRows || a.block_k != kGroups * kRows) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_backward_blocks(attention): 64 queries and 128 keys");
  }
  BackwardPlan plan;
  const bool in_parts = plan_case("K in parts", a.dim / kGroups % kColumnsOfPanel != 0);
  plan.k_parts = in_parts ? kGroups : 1;
  plan.keys_in_registers = plan_case("keys in registers", a.dim + a.dim_v <= 128);
  plan.piece_columns = a.dim / kGroups / kPieces;
  // Late, where registers hold dQ for so long.
  plan.pieces = plan.keys_in_registers ? std::array{0, 2, 2} : std::array{2, 1, 1};
  plan.load_registers = 24;
  plan.math_registers = 240;
  return plan;
}

Kernel gradients_sm90(const Attention& a, const BackwardPlan& plan, const std::string& name) {
  Kernel kernel(name);
  Backward(kernel, a, plan);
  return kernel;
}

Kernel query_gradient_of_sums(const Attention& a, const BackwardPlan& plan,
                              const std::string& name) {
  Kernel kernel(name);
  const BatchShapes shapes(kernel, a, /*has_keys=*/false);
  const std::vector<Dim> shape = plan.sums(a, shapes.batch, shapes.queries);
  const Tensor sums = kernel.in("sums", f32, shape);
  const Tensor dQ = kernel.out("dQ", a.dtype, shapes.of_queries(a.dim));
  constexpr int kParts = kGroups * kPieces;
  const auto [x, h, b] =
      kernel.grid(ceil_div(shapes.queries, kRows) * kParts, a.heads, shapes.batch);
  const Index block = x / kParts, part = x % kParts;
  const Index piece = plan.piece(a, shapes.queries, b, h, block) + part;
  const Tile sum = from_fragments(load(sums(shape[0].block(piece, plan.piece_lines()), all))
                                      .reshape({kRows * plan.piece_columns}),
                                  plan.piece_columns);
  store(dQ(b, shapes.queries.block(block, kRows), h, Dim(a.dim).block(part, plan.piece_columns)),
        (sum * AttentionScores(a).product_scale).cast(a.dtype));
  return kernel;
}

}  // namespace tilewright::kernels
