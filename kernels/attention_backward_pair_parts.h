#pragma once

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_backward_wide_parts.h"
#include "kernels/attention_backward_wide_sm90.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels::wide {

// The tiles of a CTA's keys and of a block of rows: of kRows rows, or of two halves of the columns,
// one below the other. `statistics`: rows of a tile whose first one has L or D.
struct PairTiles {
  TileShape k, v, q, dO;
  int statistics, row_stages, gradient_stages;
  // Whether there is a place through which dQ may leave: else it is stored from registers.
  bool has_place_of_queries;
};

// The two CTAs of a cluster have adjacent blocks of 64 keys and go through the same blocks of
// queries. Each sends its dS to the other one, and sums half of the columns of dQ over the keys of
// both, so that it adds half as much to memory. A warpgroup of its own does so: a warp that adds
// waits for memory, and those of dK and dV go on meanwhile. This is all but these.
template <typename Keys>
struct PairWork {
  using Sequence = typename Keys::One;
  static constexpr int kWarpgroup = 128;
  static constexpr int kRowNumbers = 4;   // blocks of rows ahead of dQ
  static constexpr int kScorePlaces = 4;  // of dS

  PairWork(Kernel& kernel, const Attention& attention, const WideBackwardPlan& plan,
           const PairTiles& tiles)
      : a(attention),
        half_dim(half_of(a.dim)),
        sequences(kernel, a, plan.ordered, parts_of(kernel, plan), Division::even, /*ctas=*/2),
        tensors(kernel, a, sequences, summed_shapes(a, sequences, plan)),
        pairs(kernel, sequences.count()),
        key_ring(kernel, "keys", stages(2), std::vector<TileShape>{}),
        k_ring(kernel, "k", stages(1), {tiles.k}),
        v_ring(kernel, "v", stages(1), {tiles.v}),
        other_k_ring(kernel, "other_k", stages(1), {{a.dtype, kRows, half_dim}}),
        row_ring(kernel, "rows", stages(kRowNumbers), std::vector<TileShape>{}),
        q_ring(kernel, "q", stages(tiles.row_stages), {tiles.q, {f32, tiles.statistics, kRows}}),
        do_ring(kernel, "do", stages(tiles.gradient_stages),
                {tiles.dO, {f32, tiles.statistics, kRows}}),
        other_ds_ring(kernel, "other_ds", stages(1), {{a.dtype, kRows, kRows}}),
        ds(kernel, "ds", a.dtype, kScorePlaces * kRows, kRows),
        ds_ready(kernel, 3 * kWarpgroup + 32, 2),
        ds_read(kernel, 3 * kWarpgroup, 2) {
    key_ring.numbered(kKeyNumbers);
    row_ring.numbered(2);
    q_ring.numbered(2);
    other_ds_ring.multicast();
    kernel.ctas(pairs.ctas(), 2);
    if (plan_case("paired dQ in order", plan.ordered)) {
      turns.emplace(kernel, "turn", *tensors.turns, kWarpgroup);
      if (plan.alone_converts) {
        alone_ring.emplace(kernel, "alone", stages(2), std::vector<TileShape>{}, here());
        alone_ring->numbered(3);
        if (tiles.has_place_of_queries) {
          place.emplace(kernel, "dq", a.dtype, kRows, half_dim, here());
        }
      }
    }
  }
  PairWork(const PairWork&) = delete;
  PairWork& operator=(const PairWork&) = delete;

  // Of all but those of dK and dV. `of_queries`: registers of a thread that sums dQ.
  std::vector<RoleSpec> roles(int of_queries) {
    const RegisterBudget few = registers(24);
    std::vector<RoleSpec> roles = {role("load", warps(1), few, [this] { load_pairs(); }),
                                   role("send", warps(1), few, [this] { send(); })};
    if (turns) {
      roles.push_back(role("await_turns", warps(1), few, [this] { await_turns(); }));
      roles.push_back(role("end_turns", warps(1), few, [this] { end_turns(); }));
    }
    roles.push_back(
        role("queries", warpgroups(1), registers(of_queries), [this] { sum_queries(); }));
    return roles;
  }

  // Where dS of the `step`-th step lies. When dQ of two steps before has been computed, its
  // warpgroup, and the other CTA, have read dS of three steps before.
  SharedView ds_of(const Index& step) const {
    return ds.rows(kRows * (step % kScorePlaces), kRows);
  }

  // By a warpgroup of dK or dV, `body` with each pair's keys, whose numbers it may read until then.
  template <typename Body>
  void for_pairs(const Body& body) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot keys = key_ring.consume();
      const Condition is_pair = keys.number() >= 0;
      when(is_pair, [&] { body(keys); });
      more = is_pair;
      key_ring.release(keys);
    });
  }
  // At the end of `steps`: of a barrier of two places what has been read and nobody has waited for.
  static void await_last(NamedBarrier& read, const Index& steps) {
    when(steps > 1, [&] { read.sync(steps % 2); });
    when(steps > 0, [&] { read.sync((steps + 1) % 2); });
  }

  static Block own_keys(const Sequence& sequence, const Index& pair) {
    return sequence.keys.block(pair * 2 + cluster_rank(), kRows);
  }
  // Of one of the two CTAs, to load. Instead of a block that does not exist, whose scores the mask
  // hides, the last one.
  static Block loaded_keys(const Sequence& sequence, const Index& pair, const Index& rank) {
    const Index last = max(sequence.keys.blocks(kRows) - 1, 0);
    return sequence.keys.block(min(pair * 2 + rank, last), kRows);
  }
  // Where a warp's 16 rows of dK or dV go.
  TensorView rows_of(const Tensor& to, const Slot& keys, const Block& columns) const {
    const Sequence sequence = sequences.of(keys.number(2));
    const Block rows = own_keys(sequence, keys.number(0)).part(warp_index(), 16);
    return sequence.rows(to, rows, keys.number(1), columns);
  }

 private:
  static void load_columns(const Sequence& sequence, const Tensor& from, const Block& rows,
                           const Index& head, int dim, const SharedView& to,
                           const TmaOptions& options) {
    if (to.row_count() > kRows) return load_halves(sequence, from, rows, head, dim, to, options);
    tma_load(sequence.rows(from, rows, head, Dim(dim).block(0, to.column_count())), to, options);
  }

  void load_pairs() {
    pairs.hand_out([&](const Index& number) {
      const KeyPlace at = sequences.place(number);
      load_at(sequences, at, 2 * kRows,
              [&](const Sequence& sequence, const Block& cols) { load_pair(at, sequence, cols); });
    });
    key_ring.produce(no_keys(kEndOfKeys, 0));
  }

  // The numbers of a pair's keys say where they are, and how many blocks of rows follow: those that
  // see something of either block, of all heads that share the keys, in the order of for_rows.
  void load_pair(const KeyPlace& at, const Sequence& sequence, const Block& cols) {
    const auto [first, last] = sequence.mask.visible_rows(cols, sequence.queries, kRows);
    const auto [whole_first, whole_last] = sequence.mask.full_rows(cols, sequence.queries, kRows);
    const Members members = members_of(tensors, sequences.parts(), at);
    const Index of_head = last - first, steps = of_head * members.count;
    const auto load_step = [&](const Index& i) {
      const RowStep step = row_step(at.way, of_head, members.count, i);
      const Index row = first + step.row, head = members.first + step.member;
      load_queries(sequence, row, head, select(row >= whole_first && row < whole_last, 0, 1));
      return std::pair(row, head);
    };
    const Block own = loaded_keys(sequence, at.block, cluster_rank());
    const Block other = loaded_keys(sequence, at.block, 1 - cluster_rank());
    key_ring.produce(key_numbers(at, steps));
    // In the order in which the last step of the keys before leaves room.
    when(steps > 0, [&] { load_step(0); });
    v_ring.produce([&](const Slot& v) {
      load_columns(sequence, tensors.V, own, at.kv_head, a.dim_v, v[0], kOfKeys);
    });
    when(steps > 0, [&] {
      const Index row = select(is(at.way, Way::rows_down), last - 1, first);
      load_gradients(sequence, row, members.first);
      k_ring.produce([&](const Slot& k) {
        load_columns(sequence, tensors.K, own, at.kv_head, a.dim, k[0], kOfKeys);
      });
      other_k_ring.produce([&](const Slot& k) {
        const Block columns = Dim(a.dim).block(cluster_rank(), half_dim);
        tma_load(sequence.rows(tensors.K, other, at.kv_head, columns), k[0], kOfKeys);
      });
    });
    for (Index i : range(1, steps)) {
      const auto [row, head] = load_step(i);
      load_gradients(sequence, row, head);
    }
  }

  // Each block of rows has its number, that among all that are kept, and whether a mask cuts it.
  void load_queries(const Sequence& sequence, const Index& row, const Index& head,
                    const Index& is_cut) {
    row_ring.produce({row, sequences.kept_number(sequence, head, row, kRows)});
    q_ring.produce({row, is_cut}, [&](const Slot& slot) {
      load_columns(sequence, tensors.Q, sequence.queries.block(row, kRows), head, a.dim, slot[0],
                   kOfRows);
      tma_load(statistics_of(sequence, tensors.L, row, head), slot[1].first_row());
    });
  }
  void load_gradients(const Sequence& sequence, const Index& row, const Index& head) {
    do_ring.produce([&](const Slot& slot) {
      load_columns(sequence, tensors.dO, sequence.queries.block(row, kRows), head, a.dim_v, slot[0],
                   kOfRows);
      tma_load(statistics_of(sequence, tensors.D, row, head), slot[1].first_row());
    });
  }
  TensorView statistics_of(const Sequence& sequence, const Tensor& tensor, const Index& row,
                           const Index& head) const {
    const Block rows = sequences.of_rows(kRows).back().block(sequence.kept_number(row), kRows);
    return sequence.kept_block(tensor, rows, Dim(a.heads).block(head, 1));
  }

  void send() {
    Cell<Index> step(0);
    for_key_blocks(key_ring, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        ds_ready.sync(step % 2);
        other_ds_ring.produce(
            [&](const Slot& slot) { cluster_copy(ds_of(step), slot, 1 - cluster_rank()); });
        step = step + 1;
      }
    });
  }

  void await_turns() {
    for_key_blocks(key_ring, [&](const KeyPlace& at, const Index& steps) {
      const Sequence sequence = sequences.of(at.sequence);
      for ([[maybe_unused]] Index i : range(steps)) {
        const Slot slot = row_ring.consume();
        const Index row = slot.number(0), sum = slot.number(1) * kHalves + cluster_rank();
        row_ring.release(slot);
        const auto await = [&] { turns->await(sum, turn_of(a, sequence, at, row)); };
        const auto give = [&] {
          const Index head = sequences.head_of_kept(sequence, sum / kHalves, kRows);
          alone_ring->produce({row, head, at.sequence});
          turns->give_alone(sum);
        };
        if (alone_ring) {
          when(adders_of(a, sequence, row) == 1, give, await);
        } else {
          await();
        }
      }
    });
  }
  void end_turns() {
    for_key_blocks(key_ring, [&](const KeyPlace&, const Index& steps) {
      for ([[maybe_unused]] Index i : range(steps)) {
        turns->hand_on([&](const Turns::Turn& turn) {
          return alone_ring ? select(turn.is_alone(), kConverted, 1) : Index(1);
        });
      }
    });
  }

  void sum_queries() {
    Cell<Index> step(0);
    for_key_blocks(key_ring, [&](const KeyPlace&, const Index& steps) {
      when(steps > 0, [&] { sum_pair(steps, step); });
    });
    if (place) bulk_wait_read(0);
  }

  void sum_pair(const Index& steps, Cell<Index>& step) {
    const Slot k = k_ring.consume(), other_k = other_k_ring.consume();
    const SharedView columns = half(k[0], cluster_rank());
    for ([[maybe_unused]] Index i : range(steps)) {
      ds_ready.sync(step % 2);
      const Slot other = other_ds_ring.consume();
      const Tile dq = wait(wgmma(other[0], other_k[0], wgmma(ds_of(step), columns)));
      other_ds_ring.release(other);
      ds_read.arrive(step % 2);
      add(dq);
      step = step + 1;
    }
    k_ring.release(k);
    other_k_ring.release(other_k);
  }

  // To this CTA's half of the columns of a block of rows; in order, in the pair's turn.
  void add(const Tile& dq) {
    if (turns) {
      const Turns::Turn turn = turns->begin();
      const auto add_it = [&] { add_to(turn.sum() / kHalves, dq, turn); };
      if (alone_ring) {
        when(
            turn.is_alone(), [&] { convert(dq); }, add_it);
      } else {
        add_it();
      }
      turns->end(turn);
      return;
    }
    const Slot slot = row_ring.consume();
    const Index rows = slot.number(1);
    row_ring.release(slot);
    add_to(rows, dq, std::nullopt);
  }
  void add_to(const Index& rows, const Tile& dq, const std::optional<Turns::Turn>& turn) const {
    const Dim lines = wide_backward_sums(a, sequences.kept_blocks(kRows))[0];
    const Index tile = rows * sum_tiles(a) + cluster_rank() * (half_dim / kSumColumns);
    add_to_sums(tensors.sums, lines, tile, dq, turn);
  }
  // What no other block of keys adds to is whole: it needs no place among the sums.
  void convert(const Tile& dq) {
    const Slot slot = alone_ring->consume();
    const Index row = slot.number(0), head = slot.number(1), number = slot.number(2);
    alone_ring->release(slot);
    const Sequence sequence = sequences.of(number);
    const Block rows = sequence.queries.block(row, kRows);
    const double scale = AttentionScores(a).product_scale;
    if (place) {
      // A warp's rows of the one before have left.
      bulk_wait_read(0);
      warp_sync();
      tilewright::store(*place, (dq * scale).cast(a.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(sequence.rows(*tensors.dQ, rows.part(warp_index(), 16), head,
                              Dim(a.dim).block(cluster_rank(), half_dim)),
                place->rows(16 * warp_index(), 16));
      bulk_commit();
      return;
    }
    const int parts = half_dim / kSumColumns;
    for (int part = 0; part < parts; ++part) {
      const Tile own = dq.slice({0, part * kSumColumns}, {kRows, kSumColumns});
      const Block columns = Dim(a.dim).block(cluster_rank() * parts + part, kSumColumns);
      tilewright::store(sequence.rows(*tensors.dQ, rows, head, columns),
                        (own * scale).cast(a.dtype));
    }
  }

 public:
  const Attention& a;
  const int half_dim;
  Keys sequences;
  GradientTensors tensors;
  PairsOfCtas pairs;
  Ring key_ring, k_ring, v_ring, other_k_ring, row_ring, q_ring, do_ring, other_ds_ring;
  SharedTile ds;
  NamedBarrier ds_ready, ds_read;
  // In order; and the blocks of rows whose dQ is converted where it is computed.
  std::optional<Turns> turns;
  std::optional<Ring> alone_ring;
  std::optional<SharedTile> place;
};

}  // namespace tilewright::kernels::wide
