#pragma once

#include <optional>

#include "kernels/attention_parameters.h"
#include "kernels/attention_sm90_plan.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"

namespace tilewright::kernels {

// A tile: some queries of the heads that share a K and V head, and the keys that they see. Its rows
// are (query, head), the head fastest.
struct Work {
  Block queries, heads;
  Index kv_head;
  Sequence keys;
  Mask mask;
  std::optional<Index> batch;           // of tensors that have such an axis
  std::optional<Index> table_row = {};  // of the sequence, where its keys lie in pages

  // Over ranks that exchange heads: whose rows the queries are, how much further on they are than
  // there, and which tile of the rank's heads these are.
  struct Owner {
    Index rank, ahead, pack;
  };
  std::optional<Owner> owner = {};

  // Of Q, K, V or O.
  TensorView part(const Tensor& tensor, const Block& rows, const Selector& heads_of_tensor,
                  const Selector& columns) const;
  // Of the log-sum-exp.
  TensorView sums(const Tensor& lse, const Block& rows) const;
};

// Of K and V.
enum class KeyTensor { K, V };

// Which block of queries, which heads and which sequence a tile is: divisions and searches, which
// one warp does for all.
struct Place {
  Index row_block, pack, sequence;
  Index part = 0;  // see SplitTiles
};

// Tiles that one CTA takes in a row: `first`, and those of the rows above it.
struct Run {
  Place first;
  Index tiles;
};

// Hands out runs as CTAs become free: a mask makes some far shorter than others.
class RunCounter {
 public:
  explicit RunCounter(Kernel& kernel) : next_(kernel.workspace("next_tile", 1)) {}
  // Calls `load(number, fetch_next)` for each run of this CTA, in which fetch_next is executed
  // once, and `end` behind the last. By a role of one warp.
  template <typename Load, typename End>
  void each(const Dim& runs, const Load& load, const End& end) const {
    Cell<Index> run(cta_index());
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = run;
      more = now < runs;
      when(
          now < runs,
          [&] {
            load(now, [&] {
              // Each run fetches once: the last fetch of all sets the counter back for the next
              // launch.
              const Index fetched = atomic_add(next_(0), 1);
              when(fetched == runs - 1, [&] { atomic_add(next_(0), 0 - Index(runs)); });
              run = fetched + cta_count();
            });
          },
          end);
    });
  }

 private:
  Tensor next_;
};

// The keys of one GPU are in memory when its kernel begins.
struct KeysAreThere {
  template <typename Order>
  explicit KeysAreThere(const Order&) {}
};

// So many heads at most in groups of even size: a last one of few heads would end with its longest
// tiles on some of the multiprocessors only.
inline Dim in_even_groups(const Dim& heads, const Dim& most) {
  return ceil_div(heads, max(ceil_div(heads, most), 1));
}

// The order of tiles of sequences of one length. Without a mask all are as long, and head follows
// head: tiles that run at once read the same keys, and each head's come from memory in their turn.
// Of a causal mask the longest rows come first, within groups of heads whose K and V stay in L2
// together.
class BatchOrder {
 public:
  using Parameters = AttentionParameters;
  using Arrivals = KeysAreThere;
  static constexpr bool kKeysArrive = false;
  static constexpr bool kSendsOutput = false;
  static constexpr bool kEveryTileHasRows = true;
  static constexpr bool kHasNeighbours = true;
  static constexpr bool kInPairs = false;
  static constexpr bool kKeysInPages = false;

  BatchOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan);
  Dim runs() const { return runs_ * heads_; }
  Run run(const Index& number) const;
  Work work(const Place& place) const;
  // Of all tiles that the blocks of keys are loaded for.
  Block queries_of_all(const Work& work, const Place&) const { return work.queries; }
  // Where a tile's results go.
  TensorView output(const Work& work, const Block& rows, const Block& columns) const {
    return work.part(p_.O, rows, work.heads, columns);
  }
  TensorView sums(const Work& work, const Block& rows) const { return work.sums(p_.LSE, rows); }

 protected:
  // So many tiles of rows.
  BatchOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan,
             const Dim& row_blocks);
  // Of a causal mask the number-th tile of so many heads, of all the longest rows first.
  Run of_heads(const Index& number, const Index& first, const Index& height) const;

  const AttentionParameters& p_;
  const Attention& a_;
  int packed_heads_, block_q_;
  Dim row_blocks_, heads_;
  Dim group_;  // heads whose tiles come together, of a causal mask

 private:
  Dim runs_;  // of a head
  // Where tiles share keys: of those, so many of several tiles each. The others have one.
  std::optional<Dim> long_run_;
  Dim long_runs_;
};

// The same for clusters of two CTAs, which take neighbouring tiles and all keys that either sees.
// Which pair of tiles comes when is known beforehand, since the two would have to agree. Of a
// causal mask the longest of all heads come first, and who had the longer one of a round has the
// shorter one of the next.
class PairOrder : public BatchOrder {
 public:
  static constexpr bool kHasNeighbours = false;
  static constexpr bool kInPairs = true;

  PairOrder(const AttentionParameters& p, const Attention& a, const TilePlan& plan);
  static Dim clusters() { return max(multiprocessors() / 2, 1); }
  Dim rounds() const { return ceil_div(pairs(), clusters()); }
  Dim pairs() const { return pairs_ * heads_; }
  // Of this cluster, by number; none from pairs() on.
  Index pair(const Index& round) const;
  Place place(const Index& pair) const;
  Block queries_of_all(const Work&, const Place& place) const {
    return p_.queries.block(place.row_block / 2, 2 * block_q_);
  }

 private:
  Dim pairs_;  // of a head
};

// Of packed queries, sequences of any length: heads by heads, the tiles of all sequences, of each
// sequence the longest rows of a causal mask first.
template <typename P>
class PackedTiles {
 public:
  using Parameters = P;
  using Arrivals = KeysAreThere;
  static constexpr bool kKeysArrive = false;
  static constexpr bool kSendsOutput = false;
  static constexpr bool kEveryTileHasRows = false;
  static constexpr bool kHasNeighbours = false;
  static constexpr bool kInPairs = false;

  Dim runs() const { return row_blocks_ * (a_.heads / packed_heads_); }
  Run run(const Index& number) const {
    const Dim per_pack = max(row_blocks_, 1);
    const auto [sequence, block] = p_.queries.tile(per_pack - 1 - number % per_pack, block_q_);
    return {{block, number / per_pack, sequence}, 1};
  }
  Block queries_of_all(const Work& work, const Place&) const { return work.queries; }
  TensorView output(const Work& work, const Block& rows, const Block& columns) const {
    return work.part(p_.O, rows, work.heads, columns);
  }

 protected:
  PackedTiles(const P& p, const Attention& a, const TilePlan& plan)
      : p_(p),
        a_(a),
        packed_heads_(plan.packed_heads),
        block_q_(a.block_q / packed_heads_),
        row_blocks_(p.queries.tiles(block_q_)) {}
  Work work_on(const Place& place, const Sequence& keys) const {
    const Sequence queries = p_.queries.of(place.sequence);
    return {queries.block(place.row_block, block_q_),
            Dim(a_.heads).block(place.pack, packed_heads_),
            place.pack / (p_.group / packed_heads_),
            keys,
            p_.mask(queries, keys),
            {}};
  }

  const P& p_;
  const Attention& a_;

 private:
  int packed_heads_, block_q_;
  Dim row_blocks_;
};

// Keys are packed too.
class PackedOrder : public PackedTiles<VarlenParameters> {
 public:
  static constexpr bool kKeysInPages = false;

  PackedOrder(const VarlenParameters& p, const Attention& a, const TilePlan& plan)
      : PackedTiles(p, a, plan) {}
  Work work(const Place& place) const { return work_on(place, p_.keys.of(place.sequence)); }
  TensorView sums(const Work& work, const Block& rows) const { return work.sums(p_.LSE, rows); }
};

// The blocks of keys that some of the queries see, [first, last), and those of them that need no
// mask.
struct KeyBlocks {
  KeyBlocks(const Work& work, const Attention& a, const Block& queries);
  // No more than those of `tile`, and none where no query exists.
  KeyBlocks within(const KeyBlocks& tile, const Block& queries) const;
  // The number-th of so many parts, as even as they are.
  KeyBlocks part(const Index& number, const Index& parts) const {
    const Index blocks = last - first;
    return KeyBlocks(first + blocks * number / parts, first + blocks * (number + 1) / parts, *this);
  }
  Index first, last, whole_first, whole_last;

 private:
  KeyBlocks(const Index& first, const Index& last, const KeyBlocks& whole)
      : first(first), last(last), whole_first(whole.whole_first), whole_last(whole.whole_last) {}
};

// Calls `load` with each of a tile's blocks of keys but the first one, from the last one down, and
// `fetch_next` when few are left. Who ends first is to have the next tile, and nobody is to wait
// for the counter. Of 2 to 7 blocks none was faster than another
// (docs/log/2026-11-29-tiles-taken-near-the-end.md).
template <typename Load>
void load_descending(const KeyBlocks& blocks, const Load& load, FunctionRef<void()> fetch_next) {
  constexpr int kBlocksBeforeEnd = 4;
  const Index turn = max(blocks.first + 1, blocks.last - kBlocksBeforeEnd);
  for (Index i : range(blocks.first + 1, blocks.last)) {
    if (fetch_next) when(i == turn, fetch_next);
    load(blocks.last + blocks.first - i);
  }
  if (fetch_next) when(turn >= blocks.last, fetch_next);
}

}  // namespace tilewright::kernels
