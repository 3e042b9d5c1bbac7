#include "kernels/attention_backward_sm100.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_sm100_parts.h"
#include "tilewright/plan_case.h"
#include "tilewright/target.h"

namespace tilewright::kernels {
namespace sm100_backward {
namespace {

// By one CTA for 128 keys. The products of block i of queries follow those of block i - 1 so, each
// behind what it waits for: dV += P^T dO, S^T of i + 1, dK += dS^T Q, dQ, dP^T of i + 1. So weights
// are computed beside dK and dQ, and dS beside dV and S^T. A commit behind a product covers all
// that were issued before: the one behind S^T says that P^T may be written, the one behind dP^T
// that dS^T may. A block of keys has one phase of both more, which says that dV and dK are
// complete.
template <typename Keys>
class BackwardSm100 : Work<Keys> {
 public:
  BackwardSm100(Kernel& kernel, const Attention& attention, const Sm100BackwardPlan& with)
      : Work<Keys>(kernel, attention, with),
        next_(kernel.workspace("next_block", 1)),
        blocks_(sequences.count()),
        kv_ring_(
            kernel, "kv", stages(1),
            {{a.dtype, kRows, shared_columns(a.dim_v)}, {a.dtype, kRows, shared_columns(a.dim)}}),
        q_ring_(kernel, "q", stages(2), {{a.dtype, kRows, shared_columns(a.dim)}}),
        do_ring_(kernel, "do", stages(plan.row_stages),
                 {{a.dtype, kRows, shared_columns(a.dim_v)}}),
        ds_(kernel, "ds", a.dtype, kRows, kRows) {
    kernel.ctas(multiprocessors());
    const RegisterBudget few = this->few();
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_blocks(); }),
                                   role("multiply", warps(1), few, [this] { multiply(); })};
    if (turns) {
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(); }));
    }
    this->add_computing_roles(
        roles, [this](int group) { return ds_.columns(group * kOwnQueries, kOwnQueries); }, [] {});
    kernel.roles(roles);
    kernel.require({no_stack, no_spills});
  }

 private:
  using typename Work<Keys>::Sequence;
  using typename Work<Keys>::Columns;
  using Work<Keys>::a, Work<Keys>::plan, Work<Keys>::sequences, Work<Keys>::tensors,
      Work<Keys>::places, Work<Keys>::scores_ring, Work<Keys>::gradients_ring,
      Work<Keys>::queries_ring, Work<Keys>::memory, Work<Keys>::products, Work<Keys>::allocated,
      Work<Keys>::freed, Work<Keys>::turns;

  static Block columns(int dim) { return Dim(dim).block(0, shared_columns(dim)); }

  void load_blocks() {
    hand_out(
        next_, blocks_,
        [&](const Index& number) {
          const KeyPlace at = sequences.place(number);
          load_at(sequences, at, kRows, [&](const Sequence& sequence, const Block& cols) {
            this->load_block(
                at, sequence, cols, [&] { load_keys(at, sequence, cols); },
                [&](const Index& row, const Index& head, const Index& is_cut) {
                  load_rows(sequence, row, head, is_cut);
                });
          });
        },
        [&] { places.produce(no_keys(kEndOfKeys, 0)); });
  }
  void load_keys(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    kv_ring_.produce([&](const Slot& kv) {
      tma_load(sequence.rows(tensors.V, cols, at.kv_head, columns(a.dim_v)), kv[0], kOfKeys);
      tma_load(sequence.rows(tensors.K, cols, at.kv_head, columns(a.dim)), kv[1], kOfKeys);
    });
  }
  void load_rows(const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    this->load_statistics(sequence, row, head, is_cut);
    const Block rows = sequence.queries.block(row, kRows);
    q_ring_.produce([&](const Slot& slot) {
      tma_load(sequence.rows(tensors.Q, rows, head, columns(a.dim)), slot, kOfRows);
    });
    do_ring_.produce([&](const Slot& slot) {
      tma_load(sequence.rows(tensors.dO, rows, head, columns(a.dim_v)), slot, kOfRows);
    });
  }

  void await_turns() {
    for_key_blocks(places, [&](const KeyPlace& at, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) this->await_turn(at);
    });
  }
  void end_turns() {
    for_key_blocks(places, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) turns->hand_on();
    });
  }

  void multiply() {
    memory.allocate();
    allocated.sync();
    const Columns at = this->columns_of(memory.attach());
    for_key_blocks(places, [&](const KeyPlace&, const Index& steps) {
      when(steps > 0, [&] { multiply_block(at, steps); });
    });
    relinquish_tensor_memory();  // another CTA's may begin
    freed.sync();                // nobody reads what is freed
    memory.free();
  }

  void multiply_block(const Columns& at, const Index& steps) {
    const Slot kv = kv_ring_.consume();
    const SharedView v = kv[0].columns(0, a.dim_v), k = kv[1].columns(0, a.dim);
    const auto multiply_scores = [&] {
      const Slot q = q_ring_.consume();
      mma(at.scores, k, q[0].columns(0, a.dim).T(), false);
    };
    const auto multiply_values = [&] {
      const Slot grad = do_ring_.consume();
      mma(at.gradients, v, grad[0].columns(0, a.dim_v).T(), false);
    };
    const Slot first_scores = scores_ring.reserve();
    multiply_scores();
    scores_ring.commit(first_scores);
    // Where dP^T lies in its columns, dQ of the block before has been read.
    std::optional<Slot> queries;
    if (!plan.own_queries) queries = queries_ring.reserve();
    const Slot first_gradients = gradients_ring.reserve();
    multiply_values();
    gradients_ring.commit(first_gradients);
    for (Index i : range(steps)) {
      const Slot q = q_ring_.last(), grad = do_ring_.last();
      const Condition has_next = i + 1 < steps;
      const Slot scores = scores_ring.reserve();  // P^T is there
      mma(at.values, at.weights, grad[0].columns(0, a.dim_v), i > 0);
      do_ring_.release_behind_products(grad);
      when(has_next, [&] {
        if (!plan.own_weights) products.wait();
        multiply_scores();
      });
      scores_ring.commit(scores);
      const Slot gradients = gradients_ring.reserve();  // dS is there
      mma(at.keys, at.score_gradients, q[0].columns(0, a.dim), i > 0);
      q_ring_.release_behind_products(q);
      products.wait();  // what has dS^T's columns next: dQ, or dP^T
      const Slot sum = queries ? *queries : queries_ring.reserve();
      mma(at.queries, ds_.T(), k, false);
      queries_ring.commit(sum);
      when(has_next, [&] {
        if (!plan.own_queries) queries_ring.reserve();
        multiply_values();
      });
      gradients_ring.commit(gradients);
    }
    kv_ring_.release_behind_products(kv);
  }

  Tensor next_;
  Dim blocks_;
  Ring kv_ring_, q_ring_, do_ring_;
  SharedTile ds_;
};

}  // namespace
}  // namespace sm100_backward

Sm100BackwardPlan sm100_backward_plan(const Attention& a, Order order, KeySums keys,
                                      const Caller& caller) {
  constexpr int kRows = Sm100BackwardPlan::kRows, kGroups100 = Sm100BackwardPlan::kGroups;
  if (a.block_q != kRows || (a.block_k != kRows && a.block_k != 2 * kRows)) {
    caller.refuse(
        "block_q is " + std::to_string(a.block_q) + " and block_k " + std::to_string(a.block_k),
        "take with_sm100_backward_blocks(attention): 128 queries and 128 keys, or 256 of a pair");
  }
  const bool is_pair = plan_case("pairs of CTAs for sm_100a", a.block_k > kRows);
  check_dims(a, 128, caller, ", or schedule tile for wider ones");
  for (const auto& [name, dim] : {std::pair("dim", a.dim), {"dim_v", a.dim_v}}) {
    if (!is_pair || dim == 64 || dim == 128) continue;
    caller.refuse(std::string(name) + " is " + std::to_string(dim),
                  "pairs of CTAs have 64 or 128: take one CTA for a block of keys (schedules "
                  "sm100, sm100_atomic)");
  }
  check_elements(a, caller);
  const int most = target_limits("sm_100a").tensor_columns;
  const int of_operand = kRows * size_of(a.dtype) / 4, of_group = kRows / kGroups100;
  Sm100BackwardPlan plan;
  plan.ctas = is_pair ? 2 : 1;
  // Of a pair a CTA has half of the queries, and half of their columns lie below the others.
  const int of_queries = a.dim / plan.ctas;
  // S^T, dP^T, dV and dK; then what there is room for.
  int columns = 2 * kRows + a.dim_v + a.dim;
  plan.ordered = plan_case("dQ in order for sm_100a", order == Order::blocks);
  plan.shares = plan_case("heads share keys for sm_100a", a.heads > a.kv_heads);
  plan.keys = keys;
  plan_case("sums of keys apart for sm_100a", plan.sums_keys_apart());
  plan.own_queries = plan_case("dQ beside dP", columns + of_queries <= most);
  plan.first_gradients = kRows;
  plan.first_values = 2 * kRows;
  plan.first_keys = plan.first_values + a.dim_v;
  plan.first_queries = plan.own_queries ? columns : plan.first_gradients;
  if (plan.own_queries) columns += of_queries;
  plan.own_weights = plan_case("P beside S", columns + of_operand <= most);
  // Of S^T and dP^T each warpgroup has its own half of the columns, which it has read when it
  // writes: the operands lie in the middle.
  plan.first_weights = plan.own_weights ? columns : of_group - of_operand / kGroups100;
  if (plan.own_weights) columns += of_operand;
  plan.first_scores = plan.first_gradients + of_group - of_operand / kGroups100;
  plan.tensor_columns = static_cast<int>(std::bit_ceil(static_cast<unsigned>(columns)));
  plan_case("padded rows of Q for sm_100a", shared_columns(a.dim) > a.dim);
  plan_case("padded rows of V for sm_100a", shared_columns(a.dim_v) > a.dim_v);
  // A pair has what it loads of queries twice: by rows, and by columns.
  const int with_two = is_pair ? 128 : 192;
  plan.row_stages =
      plan_case("two stages of dO", shared_columns(a.dim) + shared_columns(a.dim_v) <= with_two)
          ? 2
          : 1;
  // Of 128 for each thread as the CTA begins.
  plan.few_registers = 88;
  plan.computing_registers = 160;
  plan.reducing_registers = 104;
  return plan;
}

std::vector<Dim> sm100_backward_sums(const Attention& a, const Dim& blocks) {
  return {blocks * a.dim, Sm100BackwardPlan::kRows};
}

KeyTiles sm100_key_tiles(const Attention& a) {
  constexpr int kPanel = Sm100BackwardPlan::kColumnsOfPanel, kRows = Sm100BackwardPlan::kRows;
  const int panels = panels_of(std::max(a.dim, a.dim_v)), ctas = a.block_k / kRows;
  KeyTiles tiles{ctas * panels, panels, std::min(a.dim, kPanel), std::min(a.dim_v, kPanel), kPanel};
  tiles.keys = kRows;
  tiles.in_fragments = false;
  return tiles;
}

template <typename Sequences>
Kernel gradients_sm100(const Attention& a, const Sm100BackwardPlan& plan, const std::string& name) {
  Kernel kernel(name);
  kernel.target("sm_100a");
  sm100_backward::BackwardSm100<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel gradients_sm100<Batch>(const Attention&, const Sm100BackwardPlan&,
                                       const std::string&);
template Kernel gradients_sm100<Packed>(const Attention&, const Sm100BackwardPlan&,
                                        const std::string&);

template <typename Sequences>
Kernel query_gradient_of_sums_sm100(const Attention& a, const Sm100BackwardPlan& plan,
                                    const std::string& name) {
  constexpr int kRows = Sm100BackwardPlan::kRows;
  Kernel kernel(name);
  const Sequences sequences(kernel, a, Of::queries, kRows);
  const Dim blocks = sequences.kept_blocks(kRows);
  const std::vector<Dim> shape = sm100_backward_sums(a, blocks);
  const Tensor sums = kernel.in("sums", f32, shape);
  std::optional<Tensor> turns;
  if (plan.ordered) turns = kernel.in("turns", i32, {blocks * plan.ctas});
  const Tensor dQ = kernel.out("dQ", a.dtype, sequences.of_queries(a.dim));
  const auto at = sequences.block_of_queries(kernel, kRows);
  const Index kept = sequences.kept_number(at, at.head, at.number, kRows);
  // What nobody has come to was not written. Both CTAs of a pair come to a block of queries.
  const Index limit =
      turns ? select(load_index((*turns)(kept * plan.ctas)) > 0, shape[0], 0) : Index(shape[0]);
  const Tile lines = load(sums(Block(kept * a.dim, a.dim, limit), all));
  // Of a pair each CTA has half of the rows, and the second half of their columns below the first.
  const auto of_pair = [&] {
    constexpr std::int64_t kHalves = 2;
    return lines.reshape({kHalves, a.dim / kHalves / 4, kHalves, kRows / kHalves, 4})
        .permute({0, 3, 2, 1, 4})
        .reshape({kRows, a.dim});
  };
  const Tile sum = plan.ctas == 1 ? of_sum_lines(lines) : of_pair();
  store(at.rows(dQ, at.block, at.head), (sum * AttentionScores(a).product_scale).cast(a.dtype));
  return kernel;
}
template Kernel query_gradient_of_sums_sm100<Batch>(const Attention&, const Sm100BackwardPlan&,
                                                    const std::string&);
template Kernel query_gradient_of_sums_sm100<Packed>(const Attention&, const Sm100BackwardPlan&,
                                                     const std::string&);

}  // namespace tilewright::kernels
