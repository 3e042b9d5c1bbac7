#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_backward_sm100.h"
#include "kernels/attention_backward_sm100_parts.h"

namespace tilewright::kernels {
namespace sm100_backward {
namespace {

// By a pair of CTAs for 256 keys, of which each has 128. They go through the same blocks of
// queries. For S^T and dP^T each loads half of the rows of Q and dO, for dK and dV half of their
// columns. A CTA sums dQ of half of the queries, over the keys of both: it sends dS of the other
// half to the other one. So a pair adds half as much to memory as two CTAs alone.
//
// Products come in the order of one CTA. The first CTA issues them, and an arrival at its barriers
// says nothing of what threads of the other one have stored. So dS of a CTA's own half is copied
// too, and a ring without tiles tells the first CTA when all copies are there.
template <typename Keys>
class PairBackwardSm100 : Work<Keys> {
 public:
  PairBackwardSm100(Kernel& kernel, const Attention& attention, const Sm100BackwardPlan& with)
      : Work<Keys>(kernel, attention, with),
        half_(a.dim / kCtas),
        half_v_(a.dim_v / kCtas),
        pairs_(kernel, sequences.count()),
        kv_ring_(kernel, "kv", stages(1),
                 {{a.dtype, kRows, a.dim_v}, {a.dtype, kRows, a.dim}, {a.dtype, kKeys, half_}}),
        q_ring_(kernel, "q", stages(plan.row_stages), {{a.dtype, kOwnQueries, a.dim}}),
        q_columns_(kernel, "q_columns", stages(plan.row_stages), {{a.dtype, kRows, half_}}),
        do_ring_(kernel, "do", stages(plan.row_stages), {{a.dtype, kOwnQueries, a.dim_v}}),
        do_columns_(kernel, "do_columns", stages(plan.row_stages), {{a.dtype, kRows, half_v_}}),
        all_ds_(kernel, "all_ds", stages(1), {{a.dtype, kKeys, kOwnQueries}}),
        exchanged_(kernel, "exchanged", stages(1), std::vector<TileShape>{}),
        ds_(kernel, "ds", a.dtype, kRows, kRows),
        ready_(kernel, 2 * 128 + 32),
        met_(kernel, "met") {
    for (Ring* ring : loaded()) ring->pairs();
    exchanged_.pairs();
    all_ds_.multicast();
    kernel.ctas(pairs_.ctas(), kCtas);
    const RegisterBudget few = this->few();
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_pairs(); }),
                                   role("multiply", warps(1), few, [this] { multiply(); }),
                                   role("send", warps(1), few, [this] { send(); }),
                                   role("receive", warps(1), few, [this] { receive(); })};
    this->add_computing_roles(
        roles, [this](int group) { return half_of_scores(group); }, [this] { ready_.arrive(); });
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
  static constexpr int kCtas = 2, kKeys = kCtas * kRows;

  std::vector<Ring*> loaded() {
    return {&kv_ring_, &q_ring_, &q_columns_, &do_ring_, &do_columns_};
  }

  // dS^T of this CTA's keys: of the queries whose dQ it sums, and of the others.
  SharedView half_of_scores(int half) const { return ds_.columns(half * kOwnQueries, kOwnQueries); }

  // Of one of the two CTAs. Instead of a block that does not exist, whose scores the mask hides,
  // the last one.
  static Block loaded_keys(const Sequence& sequence, const Index& pair, const Index& rank) {
    const Index last = max(sequence.keys.blocks(kRows) - 1, 0);
    return sequence.keys.block(min(pair * kCtas + rank, last), kRows);
  }
  static Block own_columns(int dim) { return Dim(dim).block(cluster_rank(), dim / kCtas); }

  void load_pairs() {
    pairs_.hand_out([&](const Index& number) {
      const KeyPlace at = sequences.place(number);
      load_at(sequences, at, kKeys, [&](const Sequence& sequence, const Block& cols) {
        this->load_block(
            at, sequence, cols, [&] { load_keys(at, sequence); },
            [&](const Index& row, const Index& head, const Index& is_cut) {
              load_rows(sequence, row, head, is_cut);
            });
      });
    });
    places.produce(no_keys(kEndOfKeys, 0));
    // The first CTA's products tell this one that they have read a stage: not behind its end.
    for (Ring* ring : loaded()) {
      for (int stage = 0; stage < (ring == &kv_ring_ ? 1 : plan.row_stages); ++stage) {
        ring->reserve();
      }
    }
  }
  void load_keys(const KeyPlace& at, const Sequence& sequence) {
    const Block own = loaded_keys(sequence, at.block, cluster_rank());
    kv_ring_.produce([&](const Slot& kv) {
      tma_load(sequence.rows(tensors.V, own, at.kv_head, Dim(a.dim_v).block(0, a.dim_v)), kv[0],
               kOfKeys);
      tma_load(sequence.rows(tensors.K, own, at.kv_head, Dim(a.dim).block(0, a.dim)), kv[1],
               kOfKeys);
      for (int rank = 0; rank < kCtas; ++rank) {
        const Block keys = loaded_keys(sequence, at.block, rank);
        tma_load(sequence.rows(tensors.K, keys, at.kv_head, own_columns(a.dim)),
                 kv[2].rows(rank * kRows, kRows), kOfKeys);
      }
    });
  }
  void load_rows(const Sequence& sequence, const Index& row, const Index& head,
                 const Index& is_cut) {
    this->load_statistics(sequence, row, head, is_cut);
    const Block rows = sequence.queries.block(row, kRows);
    const Block own = rows.part(cluster_rank(), kOwnQueries);
    const auto load = [&](Ring& ring, const Tensor& from, const Block& of_rows,
                          const Block& columns) {
      ring.produce([&](const Slot& slot) {
        tma_load(sequence.rows(from, of_rows, head, columns), slot, kOfRows);
      });
    };
    load(q_ring_, tensors.Q, own, Dim(a.dim).block(0, a.dim));
    load(do_ring_, tensors.dO, own, Dim(a.dim_v).block(0, a.dim_v));
    load(do_columns_, tensors.dO, rows, own_columns(a.dim_v));
    load(q_columns_, tensors.Q, rows, own_columns(a.dim));
  }

  // dS to the CTA that sums dQ of its queries, in the order of the keys. In order, turns are handed
  // on behind it: dQ of a step is added before that of the next one is computed.
  void send() {
    for_key_blocks(places, [&](const KeyPlace&, const Index& steps) {
      for (Index i : range(steps)) {
        ready_.sync();
        all_ds_.produce([&](const Slot& slot) {
          const SharedView to = slot[0].rows(cluster_rank() * kRows, kRows);
          cluster_copy(half_of_scores(0), to, cluster_rank());
          cluster_copy(half_of_scores(1), to, 1 - cluster_rank());
        });
        if (turns) when(i > 0, [&] { turns->hand_on(); });
      }
      if (turns) when(steps > 0, [&] { turns->hand_on(); });
    });
  }

  // Tells the first CTA what has come. When dS of a step is computed, dQ of the step before has
  // been too, so that nobody else has to be told that its place is free.
  void receive() {
    for_key_blocks(places, [&](const KeyPlace& at, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot exchanged = exchanged_.consume(), ds = all_ds_.consume();
        all_ds_.release(ds);
        exchanged_.release(exchanged);
        if (turns) this->await_turn(at);
      }
    });
    exchanged_.consume();  // the last product's commit, while this CTA is there
  }

  void multiply() {
    memory.allocate();
    allocated.sync();
    const Columns at = this->columns_of(memory.attach());
    when(is_first_of_pair(), [&] { exchanged_.commit(exchanged_.reserve()); });
    for_key_blocks(places, [&](const KeyPlace&, const Index& steps) {
      when(is_first_of_pair() && steps > 0, [&] { multiply_block(at, steps); });
    });
    relinquish_tensor_memory();  // another CTA's may begin
    freed.sync();                // nobody reads what is freed
    met_.arrive();               // in neither CTA
    met_.wait();
    memory.free();
  }

  void multiply_block(const Columns& at, const Index& steps) {
    const Slot kv = kv_ring_.consume();
    const auto multiply_scores = [&] {
      const Slot q = q_ring_.consume();
      mma(at.scores, kv[1], q[0].T(), false);
      q_ring_.release_behind_products(q);
    };
    const auto multiply_values = [&] {
      const Slot grad = do_ring_.consume();
      mma(at.gradients, kv[0], grad[0].T(), false);
      do_ring_.release_behind_products(grad);
    };
    const Slot first_scores = scores_ring.reserve();
    multiply_scores();
    scores_ring.commit(first_scores);
    std::optional<Slot> queries;
    if (!plan.own_queries) queries = queries_ring.reserve();
    const Slot first_gradients = gradients_ring.reserve();
    multiply_values();
    gradients_ring.commit(first_gradients);
    for (Index i : range(steps)) {
      const Condition has_next = i + 1 < steps;
      const Slot scores = scores_ring.reserve();  // P^T is there
      const Slot grad = do_columns_.consume();
      mma(at.values, at.weights, grad[0], i > 0);
      do_columns_.release_behind_products(grad);
      when(has_next, [&] {
        if (!plan.own_weights) products.wait();
        multiply_scores();
      });
      scores_ring.commit(scores);
      const Slot gradients = gradients_ring.reserve();  // dS is there
      const Slot q = q_columns_.consume();
      mma(at.keys, at.score_gradients, q[0], i > 0);
      q_columns_.release_behind_products(q);
      const Slot exchanged = exchanged_.reserve();
      products.wait();  // what has dS^T's columns next: dQ, or dP^T
      const Slot sum = queries ? *queries : queries_ring.reserve();
      mma(at.queries, all_ds_.last()[0].T(), kv[2], false);
      queries_ring.commit(sum);
      exchanged_.commit(exchanged);
      when(has_next, [&] {
        if (!plan.own_queries) queries_ring.reserve();
        multiply_values();
      });
      gradients_ring.commit(gradients);
    }
    kv_ring_.release_behind_products(kv);
  }

  const int half_, half_v_;
  PairsOfCtas pairs_;
  Ring kv_ring_, q_ring_, q_columns_, do_ring_, do_columns_;
  Ring all_ds_;     // of the queries whose dQ the CTA sums, by the keys of both
  Ring exchanged_;  // that it is there in both
  SharedTile ds_;
  NamedBarrier ready_;
  ClusterBarrier met_;
};

}  // namespace
}  // namespace sm100_backward

template <typename Sequences>
Kernel pair_gradients_sm100(const Attention& a, const Sm100BackwardPlan& plan,
                            const std::string& name) {
  Kernel kernel(name);
  kernel.target("sm_100a");
  sm100_backward::PairBackwardSm100<KeysOf<Sequences>>(kernel, a, plan);
  return kernel;
}
template Kernel pair_gradients_sm100<Batch>(const Attention&, const Sm100BackwardPlan&,
                                            const std::string&);
template Kernel pair_gradients_sm100<Packed>(const Attention&, const Sm100BackwardPlan&,
                                             const std::string&);

}  // namespace tilewright::kernels
