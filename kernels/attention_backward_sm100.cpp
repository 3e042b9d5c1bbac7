#include "kernels/attention_backward_sm100.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_parameters.h"
#include "tilewright/blackwell.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace {

constexpr int kRows = Sm100BackwardPlan::kRows, kGroups100 = Sm100BackwardPlan::kGroups;
constexpr int kOwnQueries = kRows / kGroups100;  // of a warpgroup that computes
constexpr int kWarpRows = 32;                    // that a warp reaches in tensor memory
constexpr int kPanel = Sm100BackwardPlan::kColumnsOfPanel;

// Lines of 128 f32, in which four columns of 32 rows follow each other: a thread has a row, adds
// four of its columns at a time, and a warp 512 bytes that lie side by side.
Tile sum_lines(const Tile& tile) {
  const std::int64_t columns = tile.shape()[1];
  return tile.reshape({kRows, columns / 4, 4}).permute({1, 0, 2}).reshape({columns, kRows});
}
Tile of_sum_lines(const Tile& lines) {
  const std::int64_t columns = lines.shape()[0];
  return lines.reshape({columns / 4, kRows, 4}).permute({1, 0, 2}).reshape({kRows, columns});
}

// dK and dV of a block of keys lie in tensor memory. Scores are computed as S^T = K Q^T, so that
// P^T and dS^T are operands from tensor memory, and a thread has a key. dS also passes through
// shared memory for dQ = dS K, which a warpgroup of its own adds to memory.
//
// The products of block i of queries follow those of block i - 1 so, each behind what it waits for:
// dV += P^T dO, S^T of i + 1, dK += dS^T Q, dQ, dP^T of i + 1. So weights are computed beside dK
// and dQ, and dS beside dV and S^T. A commit behind a product covers all that were issued before:
// the one behind S^T says that P^T may be written, the one behind dP^T that dS^T may. A block of
// keys has one phase of both more, which says that dV and dK are complete.
template <typename Keys>
class BackwardSm100 {
 public:
  BackwardSm100(Kernel& kernel, const Attention& a, const Sm100BackwardPlan& plan)
      : a_(a),
        plan_(plan),
        scores_(a),
        sequences_(kernel, a, plan.ordered, Dim(1)),
        Q_(kernel.in("Q", a.dtype, sequences_.of_queries(a.dim))),
        K_(kernel.in("K", a.dtype, sequences_.of_keys(a.dim))),
        V_(kernel.in("V", a.dtype, sequences_.of_keys(a.dim_v))),
        dO_(kernel.in("dO", a.dtype, sequences_.of_queries(a.dim_v))),
        L_(kernel.in("L", f32, sequences_.of_rows(kRows))),
        D_(kernel.in("D", f32, sequences_.of_rows(kRows))),
        sums_(kernel.inout("sums", f32, sm100_backward_sums(a, sequences_.kept_blocks(kRows)))),
        dK_(kernel.out("dK", a.dtype, sequences_.of_keys(a.dim))),
        dV_(kernel.out("dV", a.dtype, sequences_.of_keys(a.dim_v))),
        words_(plan.ordered
                   ? std::optional(kernel.inout("turns", i32, {sequences_.kept_blocks(kRows)}))
                   : std::nullopt),
        next_(kernel.workspace("next_block", 1)),
        blocks_(sequences_.count()),
        places_(kernel, "places", stages(2), {}),
        kv_ring_(
            kernel, "kv", stages(1),
            {{a.dtype, kRows, shared_columns(a.dim_v)}, {a.dtype, kRows, shared_columns(a.dim)}}),
        q_ring_(kernel, "q", stages(2), {{a.dtype, kRows, shared_columns(a.dim)}}),
        do_ring_(kernel, "do", stages(plan.row_stages),
                 {{a.dtype, kRows, shared_columns(a.dim_v)}}),
        // L and D, apart for each warpgroup.
        rows_(kernel, "rows", stages(2),
              std::vector<TileShape>(2 * kGroups100, {f32, 1, kOwnQueries})),
        scores_ring_(kernel, "s", stages(1), {}),
        gradients_ring_(kernel, "dp", stages(1), {}),
        queries_ring_(kernel, "dq", stages(1), {}),
        ds_(kernel, "ds", a.dtype, kRows, kRows),
        memory_(kernel, "tensor_memory", plan.tensor_columns),
        products_(kernel, "products"),
        allocated_(kernel, threads()),
        freed_(kernel, threads()) {
    places_.numbered(kKeyNumbers);
    rows_.numbered(3);
    kernel.ctas(multiprocessors());
    const RegisterBudget few = registers(plan.few_registers);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_blocks(); }),
                                   role("multiply", warps(1), few, [this] { multiply(); })};
    if (plan.ordered) {
      turns_.emplace(kernel, "turn", *words_, 128);
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(); }));
    }
    for (int group = 0; group < kGroups100; ++group) {
      roles.push_back(role("compute" + std::to_string(group), warpgroups(1),
                           registers(plan.computing_registers), [this, group] { compute(group); }));
    }
    roles.push_back(
        role("reduce", warpgroups(1), registers(plan.reducing_registers), [this] { reduce(); }));
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using Sequence = typename Keys::One;

  // Of the roles that use tensor memory.
  static int threads() { return 32 + 128 * (kGroups100 + 1); }

  Block keys_of(const Sequence& sequence, const Index& block) const {
    return sequence.keys.block(block, kRows);
  }
  static Block columns(int dim) { return Dim(dim).block(0, shared_columns(dim)); }

  void load_blocks() {
    hand_out(
        next_, blocks_, [&](const Index& number) { load_block(sequences_.place(number)); },
        [&] { places_.produce(no_keys(kEndOfKeys, 0)); });
  }

  void load_block(const KeyPlace& at) {
    load_at(sequences_, at, kRows,
            [&](const Sequence& sequence, const Block& cols) { load_keys(at, sequence, cols); });
  }

  // All heads that share the keys go through them.
  void load_keys(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Index of_head = last - first, members = sequences_.parts().group;
    places_.produce(key_numbers(at, of_head * members));
    when(last > first, [&] {
      kv_ring_.produce([&](const Slot& kv) {
        tma_load(sequence.rows(V_, cols, at.kv_head, columns(a_.dim_v)), kv[0], kOfKeys);
        tma_load(sequence.rows(K_, cols, at.kv_head, columns(a_.dim)), kv[1], kOfKeys);
      });
      for_rows(at.way, of_head, members, [&](const Index& i, const Index& member) {
        const Index row = first + i;
        const Index is_cut = select(row >= whole_first && row < whole_last, 0, 1);
        load_rows(sequence, row, at.kv_head * members + member, is_cut);
      });
    });
  }

  // The sums of a block of rows, its number, and whether a mask cuts it.
  void load_rows(const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    const Block rows = sequence.queries.block(row, kRows);
    const Block kept = sequences_.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    const Block one = Dim(a_.heads).block(head, 1);
    rows_.produce(
        {row, sequences_.kept_number(sequence, head, row, kRows), is_cut}, [&](const Slot& slot) {
          for (int group = 0; group < kGroups100; ++group) {
            const Block own = kept.part(group, kOwnQueries);
            tma_load(sequence.kept_block(L_, own, one), slot[group].first_row());
            tma_load(sequence.kept_block(D_, own, one), slot[kGroups100 + group].first_row());
          }
        });
    q_ring_.produce([&](const Slot& slot) {
      tma_load(sequence.rows(Q_, rows, head, columns(a_.dim)), slot, kOfRows);
    });
    do_ring_.produce([&](const Slot& slot) {
      tma_load(sequence.rows(dO_, rows, head, columns(a_.dim_v)), slot, kOfRows);
    });
  }

  // Ahead of the warps that add, so that they do not wait for memory.
  void await_turns() {
    for_key_blocks(places_, [&](const KeyPlace& at, const Index& steps) {
      const Sequence sequence = sequences_.of(at.sequence);
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = rows_.consume();
        const Index row = slot.number(0), kept = slot.number(1);
        rows_.release(slot);
        turns_->await(kept, turn_of(a_, sequence, at, row));
      }
    });
  }
  void end_turns() {
    for_key_blocks(places_, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) turns_->hand_on();
    });
  }

  // What lies in tensor memory.
  struct Columns {
    TensorColumns scores, weights, values, gradients, score_gradients, keys, queries;
  };
  Columns columns_of(const TensorColumns& all) const {
    const int of_operand = kRows * size_of(a_.dtype) / 4;
    return {all.columns(0, kRows),
            all.columns(plan_.first_weights, of_operand),
            all.columns(plan_.first_values, a_.dim_v),
            all.columns(plan_.first_gradients, kRows),
            all.columns(plan_.first_scores, of_operand),
            all.columns(plan_.first_keys, a_.dim),
            all.columns(plan_.first_queries, a_.dim)};
  }
  // Of a warpgroup that computes: its queries.
  static TensorColumns own_part(const TensorColumns& columns, int group) {
    const int count = columns.count() / kGroups100;
    return columns.columns(group * count, count);
  }

  void multiply() {
    memory_.allocate();
    allocated_.sync();
    const Columns at = columns_of(memory_.attach());
    for_key_blocks(places_, [&](const KeyPlace&, const Index& steps) {
      when(steps > 0, [&] { multiply_block(at, steps); });
    });
    relinquish_tensor_memory();  // another CTA's may begin
    freed_.sync();               // nobody reads what is freed
    memory_.free();
  }

  void multiply_block(const Columns& at, const Index& steps) {
    const Slot kv = kv_ring_.consume();
    const SharedView v = kv[0].columns(0, a_.dim_v), k = kv[1].columns(0, a_.dim);
    const auto multiply_scores = [&] {
      const Slot q = q_ring_.consume();
      mma(at.scores, k, q[0].columns(0, a_.dim).T(), false);
    };
    const auto multiply_values = [&] {
      const Slot grad = do_ring_.consume();
      mma(at.gradients, v, grad[0].columns(0, a_.dim_v).T(), false);
    };
    const Slot first_scores = scores_ring_.reserve();
    multiply_scores();
    scores_ring_.commit(first_scores);
    // Where dP^T lies in its columns, dQ of the block before has been read.
    std::optional<Slot> queries;
    if (!plan_.own_queries) queries = queries_ring_.reserve();
    const Slot first_gradients = gradients_ring_.reserve();
    multiply_values();
    gradients_ring_.commit(first_gradients);
    for (Index i : range(steps)) {
      const Slot q = q_ring_.last(), grad = do_ring_.last();
      const Condition has_next = i + 1 < steps;
      const Slot scores = scores_ring_.reserve();  // P^T is there
      mma(at.values, at.weights, grad[0].columns(0, a_.dim_v), i > 0);
      do_ring_.release_behind_products(grad);
      when(has_next, [&] {
        if (!plan_.own_weights) products_.wait();
        multiply_scores();
      });
      scores_ring_.commit(scores);
      const Slot gradients = gradients_ring_.reserve();  // dS is there
      mma(at.keys, at.score_gradients, q[0].columns(0, a_.dim), i > 0);
      q_ring_.release_behind_products(q);
      products_.wait();  // what has dS^T's columns next: dQ, or dP^T
      const Slot sum = queries ? *queries : queries_ring_.reserve();
      mma(at.queries, ds_.T(), k, false);
      queries_ring_.commit(sum);
      when(has_next, [&] {
        if (!plan_.own_queries) queries_ring_.reserve();
        multiply_values();
      });
      gradients_ring_.commit(gradients);
    }
    kv_ring_.release_behind_products(kv);
  }

  void compute(int group) {
    allocated_.sync();
    const Columns at = columns_of(memory_.attach());
    if (a_.dim % kPanel != 0 || a_.dim_v % kPanel != 0) {
      // A copy reads whole panels, of columns that do not exist too.
      const RegisterMap a_row_each{{{kOwnQueries, 1, 1}}, {{kWarpRows, 0, 1}}, {{4, 0, kWarpRows}}};
      store(own_place(group), in_registers(zeros({kRows, kOwnQueries}).cast(a_.dtype), a_row_each));
    }
    for_key_blocks(places_, [&](const KeyPlace& place, const Index& steps) {
      for (Index i : range(steps)) {
        const Slot rows = rows_.consume();
        const auto l = [&] { return tilewright::load(rows[group].first_row()); };
        const Slot scores = scores_ring_.consume();
        const Tile p =
            weights(tilewright::load(own_part(at.scores, group)), l(), place, rows, group);
        store(own_part(at.weights, group), p.cast(a_.dtype));
        scores_ring_.release(scores);
        const Slot gradients = gradients_ring_.consume();
        const Tile value_products = tilewright::load(own_part(at.gradients, group));
        const Tile d = tilewright::load(rows[kGroups100 + group].first_row());
        const Tile ds = score_gradient(p, value_products, l(), d).cast(a_.dtype);
        store(own_part(at.score_gradients, group), ds);
        when(i == 0, [&] { await_copies(); });
        store(own_place(group), ds);
        fence_proxy_async();
        gradients_ring_.release(gradients);
        rows_.release(rows);
      }
      const Condition has_rows = steps > 0;
      when(has_rows, [&] {
        scores_ring_.consume();
        gradients_ring_.consume();
      });
      put_all(at, group, place, has_rows);
      when(has_rows, [&] {
        scores_ring_.release(scores_ring_.last());
        gradients_ring_.release(gradients_ring_.last());
      });
    });
    bulk_wait(0);  // shared memory must outlive what reads it
    freed_.sync();
  }

  // P^T of the warpgroup's queries.
  Tile weights(const Tile& products, const Tile& l, const KeyPlace& place, const Slot& rows,
               int group) const {
    Var x{scores_.capped(products) * (scores_.scale * kLog2e) - l};
    when(rows.number(2) > 0, [&] {
      const Tile s = x;
      const Sequence sequence = sequences_.of(place.sequence);
      const Block own = sequence.queries.block(rows.number(0), kRows).part(group, kOwnQueries);
      x = sequence.mask.apply_transposed(s, own, keys_of(sequence, place.block));
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

  // A warpgroup's queries of dS^T in shared memory. A warp has 32 rows of them for itself, through
  // which dK and dV leave too.
  SharedView own_place(int group) const { return ds_.columns(group * kOwnQueries, kOwnQueries); }
  void await_copies() const {
    bulk_wait_read(0);
    warp_sync();
  }

  // dV and dK by panels of 64 columns, which the warpgroups share out. Of keys that no query sees
  // nobody has written them.
  void put_all(const Columns& at, int group, const KeyPlace& place, const Condition& has_rows) {
    int number = 0;
    for (const bool of_keys : {false, true}) {
      const int dim = of_keys ? a_.dim : a_.dim_v;
      for (int panel = 0; panel < panels_of(dim); ++panel) {
        if (number++ % kGroups100 != group) continue;
        const int first = panel * kPanel, width = std::min(dim - first, kPanel);
        Var sum{zeros({kRows, width})};
        when(has_rows, [&] {
          sum = tilewright::load((of_keys ? at.keys : at.values).columns(first, width));
        });
        put(own_place(group), of_keys ? sum * scores_.product_scale : Tile(sum), place,
            of_keys ? dK_ : dV_, Dim(dim).block(panel, kPanel));
      }
    }
  }
  void put(const SharedView& through, const Tile& tile, const KeyPlace& place, const Tensor& to,
           const Block& columns) const {
    const int width = static_cast<int>(tile.shape()[1]);
    const Sequence sequence = sequences_.of(place.sequence);
    const Block keys = keys_of(sequence, place.block).part(warp_index(), kWarpRows);
    await_copies();
    store(through.columns(0, width), tile.cast(a_.dtype));
    fence_proxy_async();
    warp_sync();
    tma_store(sequence.rows(to, keys, place.kv_head, columns),
              through.rows(kWarpRows * warp_index(), kWarpRows));
    bulk_commit();
  }

  void reduce() {
    allocated_.sync();
    const Columns at = columns_of(memory_.attach());
    const Dim lines = sm100_backward_sums(a_, sequences_.kept_blocks(kRows))[0];
    for_key_blocks(places_, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot rows = rows_.consume();
        const Index kept = rows.number(1);
        rows_.release(rows);
        std::optional<Turns::Turn> turn;
        if (turns_) turn = turns_->begin();
        const Slot queries = queries_ring_.consume();
        // More at a time took too many registers.
        for (int first = 0; first < a_.dim; first += kPanel) {
          const int width = std::min(a_.dim - first, kPanel);
          const Tile sum = sum_lines(tilewright::load(at.queries.columns(first, width)));
          if (first + width == a_.dim) queries_ring_.release(queries);
          add(sums_(Block(kept * a_.dim + first, width, Index(lines)), all), sum, turn);
        }
        if (turn) turns_->end(*turn);
      }
    });
    freed_.sync();
  }

  // In order the first stores: nothing has to set the sums to zero before.
  static void add(const TensorView& to, const Tile& sum, const std::optional<Turns::Turn>& turn) {
    if (!turn) return atomic_add(to, sum);
    when(
        turn->is_first(), [&] { store(to, sum); }, [&] { atomic_add(to, sum, Order::blocks); });
  }

  const Attention& a_;
  const Sm100BackwardPlan plan_;
  AttentionScores scores_;
  Keys sequences_;
  Tensor Q_, K_, V_, dO_, L_, D_, sums_, dK_, dV_;
  std::optional<Tensor> words_;
  Tensor next_;
  Dim blocks_;
  Ring places_, kv_ring_, q_ring_, do_ring_, rows_;
  // Without tiles: what products write, and who has read it.
  Ring scores_ring_, gradients_ring_, queries_ring_;
  SharedTile ds_;
  const TensorMemory memory_;
  ProductBarrier products_;
  NamedBarrier allocated_, freed_;
  std::optional<Turns> turns_;  // in order
};

}  // namespace

Sm100BackwardPlan sm100_backward_plan(const Attention& a, Order order, const Caller& caller) {
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (dim > 0 && dim % 16 == 0 && dim <= 128) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  std::string("take a multiple of 16 up to 128") + kOtherTarget);
  }
  if (size_of(a.dtype) != 2) {
    caller.refuse("dtype is " + std::string(name_of(a.dtype)),
                  std::string("take bf16 or f16") + kOtherTarget);
  }
  if (a.block_q != kRows || a.block_k != kRows) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm100_backward_blocks(attention): 128 queries and 128 keys");
  }
  const int most = target_limits("sm_100a").tensor_columns;
  const int of_operand = kRows * size_of(a.dtype) / 4, of_group = kRows / kGroups100;
  // S^T, dP^T, dV and dK; then what there is room for.
  int columns = 2 * kRows + a.dim_v + a.dim;
  Sm100BackwardPlan plan;
  plan.ordered = plan_case("dQ in order for sm_100a", order == Order::blocks);
  plan.own_queries = plan_case("dQ beside dP", columns + a.dim <= most);
  plan.first_gradients = kRows;
  plan.first_values = 2 * kRows;
  plan.first_keys = plan.first_values + a.dim_v;
  plan.first_queries = plan.own_queries ? columns : plan.first_gradients;
  if (plan.own_queries) columns += a.dim;
  plan.own_weights = plan_case("P beside S", columns + of_operand <= most);
  // Of S^T and dP^T each warpgroup has its own half of the columns, which it has read when it
  // writes: the operands lie in the middle.
  plan.first_weights = plan.own_weights ? columns : of_group - of_operand / kGroups100;
  if (plan.own_weights) columns += of_operand;
  plan.first_scores = plan.first_gradients + of_group - of_operand / kGroups100;
  plan.tensor_columns = static_cast<int>(std::bit_ceil(static_cast<unsigned>(columns)));
  plan_case("padded rows of Q for sm_100a", shared_columns(a.dim) > a.dim);
  plan_case("padded rows of V for sm_100a", shared_columns(a.dim_v) > a.dim_v);
  plan.row_stages =
      plan_case("two stages of dO", shared_columns(a.dim) + shared_columns(a.dim_v) <= 192) ? 2 : 1;
  // Of 128 for each thread as the CTA begins.
  plan.few_registers = 88;
  plan.computing_registers = 160;
  plan.reducing_registers = 104;
  return plan;
}

std::vector<Dim> sm100_backward_sums(const Attention& a, const Dim& blocks) {
  return {blocks * a.dim, kRows};
}

template <typename Sequences>
Kernel gradients_sm100(const Attention& a, const Sm100BackwardPlan& plan, const std::string& name) {
  using Keys = std::conditional_t<std::is_same_v<Sequences, Batch>, BatchKeys, PackedKeys>;
  Kernel kernel(name);
  kernel.target("sm_100a");
  BackwardSm100<Keys>(kernel, a, plan);
  return kernel;
}
template Kernel gradients_sm100<Batch>(const Attention&, const Sm100BackwardPlan&,
                                       const std::string&);
template Kernel gradients_sm100<Packed>(const Attention&, const Sm100BackwardPlan&,
                                        const std::string&);

template <typename Sequences>
Kernel query_gradient_of_sums_sm100(const Attention& a, const Sm100BackwardPlan& plan,
                                    const std::string& name) {
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, kRows);
  const Dim blocks = sequences.kept_blocks(kRows);
  const std::vector<Dim> shape = sm100_backward_sums(a, blocks);
  const Tensor sums = kernel.in("sums", f32, shape);
  std::optional<Tensor> turns;
  if (plan.ordered) turns = kernel.in("turns", i32, {blocks});
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  const auto at = sequences.block_of_queries(kernel, kRows);
  const Index kept = sequences.kept_number(at, at.head, at.number, kRows);
  // What nobody has come to was not written.
  const Index limit = turns ? select(load_index((*turns)(kept)) > 0, shape[0], 0) : Index(shape[0]);
  const Tile sum = of_sum_lines(load(sums(Block(kept * a.dim, a.dim, limit), all)));
  store(at.rows(dQ, at.block, at.head), (sum * AttentionScores(a).product_scale).cast(a.dtype));
  return kernel;
}
template Kernel query_gradient_of_sums_sm100<Batch>(const Attention&, const Sm100BackwardPlan&,
                                                    const std::string&);
template Kernel query_gradient_of_sums_sm100<Packed>(const Attention&, const Sm100BackwardPlan&,
                                                     const std::string&);

}  // namespace tilewright::kernels
