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
#include "tilewright/ranks.h"

namespace tilewright::kernels {
namespace {

constexpr int kGroups = 2;      // warpgroups
constexpr int kGroupRows = 64;  // keys of each
constexpr int kTileRows = 64;   // and columns of a warpgroup's tile of dQ^T
constexpr int kLine = 128;      // f32 that a warp adds at a time
constexpr int kTileLines = kTileRows * kTileRows / kLine;
constexpr int kStages = 2;  // of a block of queries, and of dS
constexpr int kColumnsOfPanel = 64;

// A block of keys of a head that others share, and the sequence; whether its rows are gone through
// from the first to the last (1) or from the last to the first (0).
struct KeyPlace {
  Index block, kv_head, sequence, ascends;
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
        L_(kernel.in("L", f32, shapes_.of_rows(a.block_q))),
        D_(kernel.in("D", f32, shapes_.of_rows(a.block_q))),
        sums_(kernel.inout("sums", f32, BackwardPlan::sums(a, shapes_.batch, shapes_.queries))),
        dK_(kernel.out("dK", a.dtype, shapes_.of_keys(a.dim))),
        dV_(kernel.out("dV", a.dtype, shapes_.of_keys(a.dim_v))),
        turns_(plan.ordered
                   ? std::optional(kernel.inout(
                         "turns", i32, BackwardPlan::turns(a, shapes_.batch, shapes_.queries)))
                   : std::nullopt),
        mask_(attention_mask(shapes_.queries, shapes_.keys, a.causal, a.window)),
        next_(kernel.workspace("next_block", 1)),
        key_blocks_(ceil_div(shapes_.keys, a.block_k)),
        kv_heads_(shapes_.batch * a.kv_heads),
        blocks_(key_blocks_ * kv_heads_),
        // V, and K in its parts of columns, one below the other.
        kv_ring_(kernel, "kv", stages(1),
                 {{a.dtype, a.block_k, a.dim_v}, {a.dtype, a.block_k, a.dim}}),
        ring_(kernel, "rows", stages(kStages),
              {{a.dtype, a.block_q, a.dim},
               {a.dtype, a.block_q, a.dim_v},
               {f32, 8, a.block_q},
               {f32, 8, a.block_q}}),
        ds_(kernel, "ds", a.dtype, kStages * a.block_q, a.block_k),
        ds_full_(kernel, "ds_full"),
        all_math_(kernel, kGroups * 128) {
    kv_ring_.numbered(5);
    ring_.numbered(3);
    kernel.ctas(multiprocessors());
    const RegisterBudget few = registers(plan.load_registers);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_blocks(); })};
    if (plan.ordered) {
      turn_ring_.emplace(kernel, "turn", stages(kStages), std::vector<TileShape>{});
      turn_ring_->numbered();
      added_.emplace(kernel, kGroups * 128 + 32, kStages);
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(); }));
    }
    if (plan.adds_together) own_math_.emplace(kernel, 128, kGroups);
    roles.push_back(role("math", warpgroups(kGroups), registers(plan.math_registers),
                         [this](const Index& group) { compute_blocks(group); }));
    kernel.roles(roles);
    kernel.require({wgmma_rs, no_stack, no_spills});
  }

 private:
  // In groups of heads whose Q, dO and sums of dQ stay in L2 together, the blocks that most rows
  // see first. In turns only the last group is dealt so: there what is long must not begin last. In
  // the others the last keys come first, and rows in ascending order. Then the blocks that meet at
  // a causal diagonal come to a row a step apart, and nobody waits for his turn.
  KeyPlace place(const Index& number) const {
    const Dim bytes = max(shapes_.queries, 1) * scores_.group *
                      ((a_.dim + a_.dim_v) * size_of(a_.dtype) + a_.dim * size_of(f32));
    const Dim fit = max(Dim(a_.l2_bytes) / bytes, 1);
    const Dim group = ceil_div(kv_heads_, max(ceil_div(kv_heads_, fit), 1));
    const Dim per_group = max(group * key_blocks_, 1);
    const Index first = number / per_group * group, in_group = number % per_group;
    const Index height = min(kv_heads_ - first, group);
    const Index head = first + in_group % height;
    const Index block = in_group / height;
    KeyPlace at{block, head % a_.kv_heads, head / a_.kv_heads, 1};
    if (plan_.ordered) {
      at.ascends = select(first + height < kv_heads_, 1, 0);
      at.block = select(at.ascends > 0, key_blocks_ - 1 - block, block);
    }
    return at;
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
            kv_ring_.produce(std::vector<IndexOperand>{-1, 0, 0, 0, 0});
          });
    });
  }

  // With each block of keys its place, of which block -1 ends the work, and how many blocks of rows
  // follow: those of all heads that share the keys, one behind the other. Without turns and without
  // a mask each block of keys begins at another row, so that not all add to the same one.
  void load_block(const KeyPlace& at) {
    const Block cols = keys_of(at);
    const auto [first, last] = mask_.visible_rows(cols, shapes_.queries, a_.block_q);
    const auto [whole_first, whole_last] = mask_.full_rows(cols, shapes_.queries, a_.block_q);
    const Index of_head = last - first, steps = of_head * scores_.group;
    kv_ring_.produce({at.block, at.kv_head, at.sequence, steps, at.ascends}, [&](const Slot& kv) {
      tma_load(V_(at.sequence, cols, at.kv_head, all), kv[0]);
      tma_load(K_(at.sequence, cols, at.kv_head, all), kv[1]);
    });
    for (Index i : range(steps)) {
      const Index member = scores_.group == 1 ? Index(0) : i / of_head;
      const Index of_member = i - member * of_head;
      Index row = first + of_member;
      if (plan_.ordered) row = select(at.ascends > 0, row, last - 1 - of_member);
      if (plan_.rotates) row = first + (of_member + at.block * of_head / key_blocks_) % of_head;
      load_rows(at, row, at.kv_head * scores_.group + member,
                select(row >= whole_first && row < whole_last, 0, 1));
    }
  }

  // With each block of rows its number, the first tile of its dQ, and whether a mask cuts it. In
  // turns the tile is -1 - tile for who is first to come to it.
  void load_rows(const KeyPlace& at, const Index& row, const Index& head, const Index& is_cut) {
    const Block rows = shapes_.queries.block(row, a_.block_q);
    const Block padded = shapes_.of_rows(a_.block_q).back().block(row, a_.block_q);
    const Block one = Dim(a_.heads).block(head, 1);
    const Index tile = BackwardPlan::tile(a_, shapes_.queries, at.sequence, head, row);
    const Index given =
        plan_.ordered ? select(turn(at.block, row, at.ascends) == 0, -1 - tile, tile) : tile;
    ring_.produce({row, given, is_cut}, [&](const Slot& slot) {
      tma_load(Q_(at.sequence, rows, head, all), slot[0]);
      tma_load(dO_(at.sequence, rows, head, all), slot[1]);
      tma_load(L_(at.sequence, one, padded), slot[2].first_row());
      tma_load(D_(at.sequence, one, padded), slot[3].first_row());
    });
  }

  // How many blocks of keys add to the row's dQ before this one.
  Index turn(const Index& block, const Index& row, const Index& ascends) const {
    const Block rows = shapes_.queries.block(row, a_.block_q);
    const auto [first, last] = mask_.visible(rows, shapes_.keys, a_.block_k);
    return select(ascends > 0, last - 1 - block, block - first);
  }
  TensorView turns_at(const Index& tile) const {
    return (*turns_)(select(tile < 0, -1 - tile, tile) / BackwardPlan::tiles(a_));
  }

  // Of each block of keys with rows its number, how many blocks of rows it has, and their order.
  void for_blocks(const std::function<void(Index, Index, Index)>& body) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot kv = kv_ring_.consume();
      const Index block = kv.number(0), steps = kv.number(3), ascends = kv.number(4);
      kv_ring_.release(kv);
      when(
          block >= 0,
          [&] {
            when(steps > 0, [&] { body(block, steps, ascends); });
            more = true;
          },
          [&] { more = false; });
    });
  }

  // Ahead of the warps that add, so that they do not wait for memory.
  void await_turns() {
    for_blocks([&](const Index& block, const Index& steps, const Index& ascends) {
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = ring_.consume();
        const Index row = slot.number(0), tile = slot.number(1);
        ring_.release(slot);
        wait_flag(turns_at(tile), Compare::ge, turn(block, row, ascends),
                  {Semantics::acquire, Scope::gpu});
        turn_ring_->produce(tile);
      }
    });
  }

  // Apart from await_turns, since a release waits until all additions are in memory. It keeps the
  // next stage until a step's are made: `added_` has a barrier for each stage, and so neither is
  // come to again before this role was there.
  void end_turns() {
    for_blocks([&](const Index&, const Index& steps, const Index&) {
      Cell<Index> stage(0), tile(0);  // of the step before
      const auto end = [&] { atomic_add(turns_at(tile), 1, {Semantics::release, Scope::gpu}); };
      for (Index i : range(steps)) {
        const Slot slot = ring_.consume();
        const Index own_tile = slot.number(1);
        when(i > 0, [&] { added_->sync(stage); });
        ring_.release(slot);
        when(i > 0, end);
        stage = slot.stage();
        tile = own_tile;
      }
      added_->sync(stage);
      end();
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

  void compute_block(const Index& group, const Slot& kv) {
    const SharedView v = kv[0].rows(kGroupRows * group, kGroupRows);
    const SharedView k = kv[1].rows(kGroupRows * group, kGroupRows);
    Var dk{zeros({kGroupRows, a_.dim})}, dv{zeros({kGroupRows, a_.dim_v})};
    const Index steps = kv.number(3);
    when(steps > 0, [&] {
      Cell<Index> stage(0), tile(0);  // of the step before: its stage, and the first tile of its dQ
      // dQ is that of the step before, so that the warpgroups may be half a step apart.
      const auto step = [&](bool has_before) {
        const Slot slot = ring_.consume();
        const Index own_tile = slot.number(1);
        const Gradients now = gradients(group, kv, k, v, slot, has_before);
        if (has_before && !plan_.meets_early) ds_full_.wait();
        store(own_gradient(slot.stage(), group), now.scores);
        std::optional<Pending> sum_q;
        if (has_before && plan_.alternates) add_alone(group, kv, stage, tile);
        if (has_before && !plan_.alternates) sum_q = query_gradient(group, kv, stage);
        const Pending sum_v = wgmma(now.weights, slot[1], dv);
        const Pending sum_k = wgmma(now.scores, slot[0], dk);
        std::optional<Tile> dq;
        if (sum_q) dq = wait(*sum_q);
        // The other warpgroup may read this step's dS then, and write over that of the step before.
        fence_proxy_async();
        ds_full_.arrive();
        if (dq) add(group, stage, tile, *dq);
        dv = wait(sum_v);
        dk = wait(sum_k);
        stage = slot.stage();
        tile = own_tile;
        ring_.release(slot);
      };
      step(false);
      for ([[maybe_unused]] Index i : range(1, steps)) step(true);
      ds_full_.wait();
      if (plan_.alternates) {
        add_alone(group, kv, stage, tile);
      } else {
        add(group, stage, tile, wait(query_gradient(group, kv, stage)));
      }
    });
    store_gradients(group, kv, dk, dv);
  }

  struct Gradients {
    Tile weights, scores;  // P^T and dS^T without the scale, as operands of products
  };
  // What lies in shared memory is read before it is needed: beside products that read both operands
  // there, a load waits for hundreds of clocks.
  Gradients gradients(const Index& group, const Slot& kv, const SharedView& k, const SharedView& v,
                      const Slot& slot, bool has_before) {
    const Index is_cut = slot.number(2);
    const Pending products = wgmma(k, slot[0].T());
    const Pending value_products = wgmma(v, slot[1].T());
    std::optional<Tile> l, d;
    if (plan_.reads_early) {
      l = load(slot[2].first_row());
      d = load(slot[3].first_row());
    }
    const Tile p = weights(group, kv, slot, is_cut, wait(products), l);
    if (has_before && plan_.meets_early) ds_full_.wait();
    const Tile ds = score_gradient(slot, p, wait(value_products), d);
    return {p.cast(a_.dtype), ds.cast(a_.dtype)};
  }

  // P^T of a block of rows. What a mask needs is read again here, since registers are scarce.
  Tile weights(const Index& group, const Slot& kv, const Slot& slot, const Index& is_cut,
               const Tile& products, const std::optional<Tile>& l) const {
    Var x{scores_.capped(products) * (scores_.scale * kLog2e) -
          (l ? *l : load(slot[2].first_row()))};
    when(is_cut > 0, [&] {
      const Tile s = x;
      const Block cols = shapes_.keys.block(kv.number(0), a_.block_k).part(group, kGroupRows);
      x = mask_.apply_transposed(s, shapes_.queries.block(slot.number(0), a_.block_q), cols);
    });
    return exp2(x);
  }

  Tile score_gradient(const Slot& slot, const Tile& p, const Tile& value_products,
                      const std::optional<Tile>& d) const {
    const Tile gradient = p * (value_products - (d ? *d : load(slot[3].first_row())));
    if (!scores_.is_capped()) return gradient;
    // The capped score follows from its weight, which needs no registers of its own.
    const Tile capped = (log2(p) + load(slot[2].first_row())) * (1 / (scores_.scale * kLog2e));
    return where(p == 0, 0, gradient * (1 - capped * capped));
  }

  // dS of a stage, and there the keys of a warpgroup, as it holds them.
  SharedView gradient(const Index& stage) const { return ds_.rows(a_.block_q * stage, a_.block_q); }
  SharedView own_gradient(const Index& stage, const Index& group) const {
    return gradient(stage).column_part(group, kGroupRows).T();
  }

  // Of dQ^T = K^T dS^T a warpgroup's tile: its rows, its columns, or all there is.
  Pending query_gradient(const Index& group, const Slot& kv, const Index& stage) const {
    if (plan_.by_columns) {
      return wgmma(kv[1].column_part(group, kTileRows).T(), gradient(stage).T());
    }
    if (plan_.alternates) return wgmma(kv[1].T(), gradient(stage).T());
    const SharedView own = ds_.rows(a_.block_q * stage + kTileRows * group, kTileRows);
    return wgmma(kv[1].T(), own.T());
  }

  // The warpgroups' tiles of a block of rows.
  void add(const Index& group, const Index& stage, const Index& tile, const Tile& dq) {
    if (own_math_) own_math_->sync(group);
    when_due(stage, tile, [&](const Index& place) { add_tile(place, group, dq); });
  }
  // The tile of one of them. There are as many stages as warpgroups.
  void add_alone(const Index& group, const Slot& kv, const Index& stage, const Index& tile) {
    when_due(stage, tile, [&](const Index& place) {
      when(group == stage, [&] { add_tile(place, 0, wait(query_gradient(group, kv, stage))); });
    });
  }
  // `place` is the tile, or -1 - tile for who is first to come to it.
  void when_due(const Index& stage, const Index& tile,
                const std::function<void(const Index& place)>& additions) {
    if (!plan_.ordered) return additions(tile);
    const Slot turn = turn_ring_->consume();
    additions(turn.number());
    turn_ring_->release(turn);
    added_->arrive(stage);
  }

  // The first stores: nothing has to set the sums to zero before.
  void add_tile(const Index& place, const Index& part, const Tile& dq) const {
    const Dim lines = BackwardPlan::sums(a_, shapes_.batch, shapes_.queries)[0];
    const Tile sum = fragments(dq).reshape({kTileLines, kLine});
    const auto at = [&](const Index& tile) {
      return sums_(lines.block(tile + part, kTileLines), all);
    };
    if (!plan_.ordered) return atomic_add(at(place), sum);
    when(
        place < 0, [&] { tilewright::store(at(-1 - place), sum); },
        [&] { atomic_add(at(place), sum, Order::blocks); });
  }

  // Through dS, which no product reads any more.
  void store_gradients(const Index& group, const Slot& kv, const Tile& dk, const Tile& dv) {
    const KeyPlace at{kv.number(0), kv.number(1), kv.number(2), 0};
    kv_ring_.release(kv);
    all_math_.sync();
    const auto put = [&](const Tensor& to, const Tile& tile) {
      bulk_wait_read(0);
      warp_sync();
      const int panels = static_cast<int>(tile.shape()[1]) / kColumnsOfPanel;
      for (int i = 0; i < panels; ++i) {
        store(staged(group, i),
              tile.slice({0, kColumnsOfPanel * i}, {kGroupRows, kColumnsOfPanel}).cast(a_.dtype));
      }
      fence_proxy_async();
      warp_sync();
      const Block own = keys_of(at).part(4 * group + warp_index(), 16);
      for (int i = 0; i < panels; ++i) {
        tma_store(to(at.sequence, own, at.kv_head,
                     Dim(kColumnsOfPanel * panels).block(i, kColumnsOfPanel)),
                  staged(group, i).rows(16 * warp_index(), 16));
      }
      bulk_commit();
    };
    put(dV_, dv);
    put(dK_, dk * scores_.product_scale);
    bulk_wait_read(0);
    all_math_.sync();
  }
  // 64 rows of a warpgroup, where dS lies otherwise: its stages have 128 rows or more.
  SharedView staged(const Index& group, int panel) const {
    return ds_.rows(kGroupRows * panel, kGroupRows).column_part(group, kColumnsOfPanel);
  }

  const Attention& a_;
  BackwardPlan plan_;
  AttentionScores scores_;
  BatchShapes shapes_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_, dK_, dV_;
  std::optional<Tensor> turns_;
  Mask mask_;
  Tensor next_;
  Dim key_blocks_, kv_heads_, blocks_;
  Ring kv_ring_, ring_;
  SharedTile ds_;
  ClusterBarrier ds_full_;
  NamedBarrier all_math_;
  std::optional<Ring> turn_ring_;
  // Both warpgroups and end_turns; a warpgroup.
  std::optional<NamedBarrier> added_, own_math_;
};

}  // namespace

std::vector<Dim> BackwardPlan::sums(const Attention& a, const Dim& batch, const Dim& queries) {
  return {batch * a.heads * ceil_div(queries, a.block_q) * (tiles(a) * kTileLines), kLine};
}

std::vector<Dim> BackwardPlan::turns(const Attention& a, const Dim& batch, const Dim& queries) {
  return {batch * a.heads * ceil_div(queries, a.block_q)};
}

int BackwardPlan::tiles(const Attention& a) { return a.block_q * a.dim / (kTileRows * kTileRows); }

Index BackwardPlan::tile(const Attention& a, const Dim& queries, const Index& sequence,
                         const Index& head, const Index& block) {
  return ((sequence * a.heads + head) * ceil_div(queries, a.block_q) + block) * tiles(a);
}

int backward_rows(const Attention& a) { return a.dim + a.dim_v <= 128 ? 128 : 64; }

BackwardPlan backward_plan(const Attention& a, Order order, const Caller& caller) {
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim == 64 || dim == 128) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  std::string("take 64 or 128") + kOtherSchedule);
  }
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherSchedule);
  }
  if (a.block_q != backward_rows(a) || a.block_k != kGroups * kGroupRows) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm90_backward_blocks(attention): " + std::to_string(backward_rows(a)) +
            " queries and " + std::to_string(kGroups * kGroupRows) + " keys");
  }
  BackwardPlan plan;
  plan.by_columns = plan_case("dQ by columns", a.dim > kTileRows);
  const bool is_short = plan_case("64 rows", a.block_q == kGroupRows);
  plan.alternates = plan_case("dQ by one warpgroup", is_short && !plan.by_columns);
  plan.reads_early = is_short && a.softcap == 0;
  plan.meets_early = !is_short;
  plan.ordered = plan_case("dQ in order", order == Order::blocks);
  plan.rotates = plan_case("rows rotated", !plan.ordered && !a.causal);
  plan.adds_together =
      plan_case("additions together", !plan.ordered && is_short && plan.by_columns);
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
  const std::vector<Dim> shape = BackwardPlan::sums(a, shapes.batch, shapes.queries);
  const Tensor sums = kernel.in("sums", f32, shape);
  std::optional<Tensor> turns;
  if (plan.ordered)
    turns = kernel.in("turns", i32, BackwardPlan::turns(a, shapes.batch, shapes.queries));
  const Tensor dQ = kernel.out("dQ", a.dtype, shapes.of_queries(a.dim));
  const int tiles = BackwardPlan::tiles(a);
  const auto [x, h, b] =
      kernel.grid(ceil_div(shapes.queries, a.block_q) * tiles, a.heads, shapes.batch);
  const Index block = x / tiles, part = x % tiles;
  const Index tile = BackwardPlan::tile(a, shapes.queries, b, h, block) + part;
  // What nobody has come to was not written.
  const Index limit =
      turns ? select(load_index((*turns)(tile / tiles)) > 0, shape[0], 0) : Index(shape[0]);
  const Tile sum = from_fragments(
      load(sums(Block(tile * kTileLines, kTileLines, limit), all)).reshape({kTileRows * kTileRows}),
      kTileRows);
  const Index rows = plan.by_columns ? block : x, columns = plan.by_columns ? part : Index(0);
  store(dQ(b, shapes.queries.block(rows, kTileRows), h, Dim(a.dim).block(columns, kTileRows)),
        (sum.T() * AttentionScores(a).product_scale).cast(a.dtype));
  return kernel;
}

}  // namespace tilewright::kernels
