#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_shared.h"
#include "kernels/attention_backward_sm100.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_parameters.h"
#include "tilewright/blackwell.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/softmax.h"

// What the gradients of sm_100a share, by one CTA for a block of keys or by a pair of them.
namespace tilewright::kernels::sm100_backward {

inline constexpr int kRows = Sm100BackwardPlan::kRows;
inline constexpr int kOwnQueries = kRows / Sm100BackwardPlan::kGroups;  // of who computes
inline constexpr int kWarpRows = 32;  // that a warp reaches in tensor memory
inline constexpr int kPanel = Sm100BackwardPlan::kColumnsOfPanel;

template <typename Keys>
SummedShapes summed_shapes(const Attention& a, const Keys& sequences,
                           const Sm100BackwardPlan& plan) {
  const Dim blocks = sequences.kept_blocks(kRows);
  SummedShapes summed{kRows, sm100_backward_sums(a, blocks), {}, {}};
  if (plan.ordered) summed.turns = blocks * plan.ctas;
  if (plan.shares) {
    summed.keys.emplace(sm100_key_tiles(a), sequences.kept_key_blocks(a.block_k),
                        sequences.parts().count, plan.order(), plan.keys);
  }
  return summed;
}

// dK and dV of a CTA's keys lie in tensor memory. Scores are computed as S^T = K Q^T, so that P^T
// and dS^T are operands from tensor memory, and a thread has a key. dS also passes through shared
// memory for dQ = dS K, which a warpgroup of its own adds to memory. This is all but what loads and
// multiplies.
template <typename Keys>
struct Work {
  using Sequence = typename Keys::One;

  Work(Kernel& kernel, const Attention& attention, const Sm100BackwardPlan& plan)
      : a(attention),
        plan(plan),
        scores(a),
        sequences(kernel, a, plan.ordered, plan.shares ? kernel.dim("parts", at_least(1)) : Dim(1),
                  Division::even, plan.ctas),
        tensors(kernel, a, sequences, summed_shapes(a, sequences, plan)),
        places(kernel, "places", stages(2), {}),
        // L and D, apart for each warpgroup.
        rows(kernel, "rows", stages(2),
             std::vector<TileShape>(2 * Sm100BackwardPlan::kGroups, {f32, 1, kOwnQueries})),
        scores_ring(kernel, "s", stages(1), {}),
        gradients_ring(kernel, "dp", stages(1), {}),
        queries_ring(kernel, "dq", stages(1), {}),
        memory(kernel, "tensor_memory", plan.tensor_columns,
               plan.ctas == 1 ? CtaGroup::one : CtaGroup::pair),
        products(kernel, "products"),
        allocated(kernel, threads()),
        freed(kernel, threads()) {
    places.numbered(kKeyNumbers);
    rows.numbered(3);
    if (plan.ordered) turns.emplace(kernel, "turn", *tensors.turns, 128);
    if (plan.ctas == 1) return;
    for (Ring* ring : {&scores_ring, &gradients_ring, &queries_ring}) ring->pairs();
  }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  // Of the roles that use tensor memory.
  static int threads() { return 32 + 128 * (Sm100BackwardPlan::kGroups + 1); }
  RegisterBudget few() const { return registers(plan.few_registers); }

  // A warpgroup for each half of the queries, whose `place` dS^T has in shared memory, and that
  // calls `given` when it is there; and one that adds dQ.
  void add_computing_roles(std::vector<RoleSpec>& roles,
                           const std::function<SharedView(int group)>& place,
                           const std::function<void()>& given) {
    for (int group = 0; group < Sm100BackwardPlan::kGroups; ++group) {
      roles.push_back(role("compute" + std::to_string(group), warpgroups(1),
                           registers(plan.computing_registers), [this, group, place, given] {
                             compute(
                                 group, [&] { return place(group); }, given);
                           }));
    }
    roles.push_back(
        role("reduce", warpgroups(1), registers(plan.reducing_registers), [this] { reduce(); }));
  }

  // The half of a block's queries that a warpgroup computes: of a pair the first one has those
  // whose dQ the CTA sums.
  Index half_of(int group) const {
    if (plan.ctas == 1) return group;
    return group == 0 ? cluster_rank() : 1 - cluster_rank();
  }
  // The CTA's keys of the block.
  Block keys_of(const Sequence& sequence, const Index& block) const {
    return sequence.keys.block(plan.ctas == 1 ? block : block * plan.ctas + cluster_rank(), kRows);
  }
  // Of a CTA, which sums: the number of the sum of a block of queries.
  Index sum_of(const Index& kept) const {
    return plan.ctas == 1 ? kept : kept * plan.ctas + cluster_rank();
  }
  int columns_of_sum() const { return a.dim / plan.ctas; }

  // The blocks of queries that a block of keys goes through. `keys` loads them, `each` a block of
  // queries: its number, the head, and whether a mask cuts it.
  using LoadRows = FunctionRef<void(const Index& row, const Index& head, const Index& is_cut)>;
  void load_block(const KeyPlace& at, const Sequence& sequence, const Block& cols,
                  FunctionRef<void()> keys, const LoadRows& each) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Index of_head = last - first;
    const Members members = members_of(tensors, sequences.parts(), at);
    places.produce(key_numbers(at, of_head * members.count));
    when(last > first, [&] {
      keys();
      for_rows(at.way, of_head, members.count, [&](const Index& i, const Index& member) {
        const Index row = first + i;
        each(row, members.first + member, select(row >= whole_first && row < whole_last, 0, 1));
      });
    });
  }

  // L and D of a block of queries, its number, and whether a mask cuts it.
  void load_statistics(const Sequence& sequence, const Index& row, const Index& head,
                       const Index& is_cut) {
    const Block kept = sequences.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    const Block one = Dim(a.heads).block(head, 1);
    rows.produce({row, sequences.kept_number(sequence, head, row, kRows), is_cut},
                 [&](const Slot& slot) {
                   for (int group = 0; group < Sm100BackwardPlan::kGroups; ++group) {
                     const Block own = kept.part(half_of(group), kOwnQueries);
                     tma_load(sequence.kept_block(tensors.L, own, one), slot[group].first_row());
                     tma_load(sequence.kept_block(tensors.D, own, one),
                              slot[Sm100BackwardPlan::kGroups + group].first_row());
                   }
                 });
  }

  // Ahead of the warps that add, so that they do not wait for memory.
  void await_turn(const KeyPlace& at) {
    const Sequence sequence = sequences.of(at.sequence);
    const Slot slot = rows.consume();
    const Index row = slot.number(0), kept = slot.number(1);
    rows.release(slot);
    turns->await(sum_of(kept), turn_of(a, sequence, at, row));
  }

  // What lies in tensor memory.
  struct Columns {
    TensorColumns scores, weights, values, gradients, score_gradients, keys, queries;
  };
  Columns columns_of(const TensorColumns& all) const {
    const int of_operand = kRows * size_of(a.dtype) / 4;
    return {all.columns(0, kRows),
            all.columns(plan.first_weights, of_operand),
            all.columns(plan.first_values, a.dim_v),
            all.columns(plan.first_gradients, kRows),
            all.columns(plan.first_scores, of_operand),
            all.columns(plan.first_keys, a.dim),
            all.columns(plan.first_queries, columns_of_sum())};
  }
  // Of a warpgroup that computes: its queries.
  TensorColumns own_part(const TensorColumns& columns, int group) const {
    const int count = columns.count() / Sm100BackwardPlan::kGroups;
    if (plan.ctas == 1) return columns.columns(group * count, count);
    return columns.columns(half_of(group) * count, count);
  }

  // A warpgroup computes P and dS, whose `place` it has in shared memory, and stores half of dK and
  // dV through it. A warp has 32 rows of the place for itself. `given` is called when dS is there.
  void compute(int group, FunctionRef<SharedView()> place, FunctionRef<void()> given) {
    allocated.sync();
    const Columns at = columns_of(memory.attach());
    if (a.dim % kPanel != 0 || a.dim_v % kPanel != 0) {
      // A copy reads whole panels, of columns that do not exist too.
      const RegisterMap a_row_each{{{kOwnQueries, 1, 1}}, {{kWarpRows, 0, 1}}, {{4, 0, kWarpRows}}};
      store(place(), in_registers(zeros({kRows, kOwnQueries}).cast(a.dtype), a_row_each));
    }
    for_key_blocks(places, [&](const KeyPlace& keys, const Index& steps) {
      for (Index i : range(steps)) {
        const Slot slot = rows.consume();
        const auto l = [&] { return tilewright::load(slot[group].first_row()); };
        const Slot products_there = scores_ring.consume();
        const Tile p =
            weights(tilewright::load(own_part(at.scores, group)), l(), keys, slot, group);
        store(own_part(at.weights, group), p.cast(a.dtype));
        scores_ring.release(products_there);
        const Slot gradients = gradients_ring.consume();
        const Tile value_products = tilewright::load(own_part(at.gradients, group));
        const Tile d = tilewright::load(slot[Sm100BackwardPlan::kGroups + group].first_row());
        const Tile ds = score_gradient(p, value_products, l(), d).cast(a.dtype);
        store(own_part(at.score_gradients, group), ds);
        when(i == 0, [&] { await_copies(); });
        store(place(), ds);
        fence_proxy_async();
        gradients_ring.release(gradients);
        given();
        rows.release(slot);
      }
      const Condition has_rows = steps > 0;
      when(has_rows, [&] {
        scores_ring.consume();
        gradients_ring.consume();
      });
      put_all(at, group, place, keys, has_rows);
      when(has_rows, [&] {
        scores_ring.release(scores_ring.last());
        gradients_ring.release(gradients_ring.last());
      });
    });
    bulk_wait(0);  // shared memory must outlive what reads it
    freed.sync();
  }

  // P^T of the warpgroup's queries.
  Tile weights(const Tile& products_of, const Tile& l, const KeyPlace& keys, const Slot& slot,
               int group) const {
    Var x{scores.capped(products_of) * (scores.scale * kLog2e) - l};
    when(slot.number(2) > 0, [&] {
      const Tile s = x;
      const Sequence sequence = sequences.of(keys.sequence);
      const Block own =
          sequence.queries.block(slot.number(0), kRows).part(half_of(group), kOwnQueries);
      x = sequence.mask.apply_transposed(s, own, keys_of(sequence, keys.block));
    });
    return exp2(x);
  }
  Tile score_gradient(const Tile& p, const Tile& value_products, const Tile& l,
                      const Tile& d) const {
    const Tile gradient = p * (value_products - d);
    if (!scores.is_capped()) return gradient;
    // The capped score follows from its weight, which needs no registers of its own.
    const Tile capped = (log2(p) + l) * (1 / (scores.scale * kLog2e));
    return where(p == 0, 0, gradient * (1 - capped * capped));
  }

  void await_copies() const {
    bulk_wait_read(0);
    warp_sync();
  }

  // dV and dK by panels of 64 columns, which the warpgroups share out. Of keys that no query sees
  // nobody has written them.
  void put_all(const Columns& at, int group, FunctionRef<SharedView()> place, const KeyPlace& keys,
               const Condition& has_rows) {
    int number = 0;
    for (const bool of_keys : {false, true}) {
      const int dim = of_keys ? a.dim : a.dim_v;
      for (int panel = 0; panel < panels_of(dim); ++panel) {
        if (number++ % Sm100BackwardPlan::kGroups != group) continue;
        const int first = panel * kPanel, width = std::min(dim - first, kPanel);
        Var sum{zeros({kRows, width})};
        when(has_rows, [&] {
          sum = tilewright::load((of_keys ? at.keys : at.values).columns(first, width));
        });
        const auto put_panel = [&](const Tile& whole) {
          put(place(), of_keys ? whole * scores.product_scale : whole, keys,
              of_keys ? tensors.dK : tensors.dV, Dim(dim).block(panel, kPanel));
        };
        if (!tensors.key_sums) {
          put_panel(sum);
          continue;
        }
        const Sequence sequence = sequences.of(keys.sequence);
        const Index block = sequences.kept_keys(sequence, keys.kv_head, keys.block, a.block_k);
        const Index own =
            plan.ctas == 1 ? panel : cluster_rank() * sm100_key_tiles(a).of_keys + panel;
        tensors.key_sums->add({block, keys.part}, own, of_keys, sum, put_panel);
      }
    }
  }
  void put(const SharedView& through, const Tile& tile, const KeyPlace& keys, const Tensor& to,
           const Block& columns) const {
    const int width = static_cast<int>(tile.shape()[1]);
    const Sequence sequence = sequences.of(keys.sequence);
    const Block own = keys_of(sequence, keys.block).part(warp_index(), kWarpRows);
    await_copies();
    store(through.columns(0, width), tile.cast(a.dtype));
    fence_proxy_async();
    warp_sync();
    tma_store(sequence.rows(to, own, keys.kv_head, columns),
              through.rows(kWarpRows * warp_index(), kWarpRows));
    bulk_commit();
  }

  // Adds dQ to memory: of a pair the half of the queries that the CTA has, of whose columns the
  // second half lies below the first.
  void reduce() {
    allocated.sync();
    const Columns at = columns_of(memory.attach());
    const Dim lines = sm100_backward_sums(a, sequences.kept_blocks(kRows))[0];
    const int columns = columns_of_sum();
    for_key_blocks(places, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = rows.consume();
        const Index kept = slot.number(1);
        rows.release(slot);
        std::optional<Turns::Turn> turn;
        if (turns) turn = turns->begin();
        const Slot queries = queries_ring.consume();
        // More at a time took too many registers.
        for (int first = 0; first < columns; first += kPanel) {
          const int width = std::min(columns - first, kPanel);
          const Tile sum = sum_lines(tilewright::load(at.queries.columns(first, width)));
          if (first + width == columns) queries_ring.release(queries);
          add(tensors.sums(Block(sum_of(kept) * columns + first, width, Index(lines)), all), sum,
              turn);
        }
        if (turn) turns->end(*turn);
      }
    });
    freed.sync();
  }

  // In order the first stores: nothing has to set the sums to zero before.
  static void add(const TensorView& to, const Tile& sum, const std::optional<Turns::Turn>& turn) {
    if (!turn) return atomic_add(to, sum);
    when(
        turn->is_first(), [&] { store(to, sum); }, [&] { atomic_add(to, sum, Order::blocks); });
  }

  const Attention& a;
  const Sm100BackwardPlan plan;
  AttentionScores scores;
  Keys sequences;
  GradientTensors tensors;
  Ring places, rows;
  // Without tiles: what products write, and who has read it.
  Ring scores_ring, gradients_ring, queries_ring;
  const TensorMemory memory;
  ProductBarrier products;
  NamedBarrier allocated, freed;
  std::optional<Turns> turns;  // in order
};

}  // namespace tilewright::kernels::sm100_backward
