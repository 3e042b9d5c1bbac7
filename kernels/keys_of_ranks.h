#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_ranks.h"
#include "kernels/attention_sm90_tiles.h"
#include "kernels/rank_words.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/plan_case.h"

// The keys and values of all ranks, in a kernel of each of them that attends to them.
namespace tilewright::kernels {

// How rows are divided among ranks.
struct DividedRows {
  int ranks;
  Shards shards;
};

// Without a mask any order of keys will do, where sequences are of one length: the rank's own then
// come last among those of all, and so first in the kernel. Else pieces lie as in the whole.
inline bool own_keys_last(const Attention& a, bool is_packed) { return !a.causal && !is_packed; }

// And any division of the rows.
inline DividedRows divided_rows(const SequenceParallelAttention& o, bool is_packed) {
  return {o.ranks, own_keys_last(o.attention, is_packed) ? Shards::contiguous : o.shards};
}

// Keys come in two shares of their heads: those of the tiles that run first, and the rest while
// these run.
struct HeadShares {
  explicit HeadShares(const Attention& a)
      : all(a.kv_heads), first(std::max(a.kv_heads / 4, 1)), count(first < all ? 2 : 1) {}
  Index of(const Index& kv_head) const {
    return count == 1 ? Index(0) : select(kv_head >= first, 1, 0);
  }
  int begin(int share) const { return share == 0 ? 0 : first; }
  int heads(int share) const { return share == 0 ? first : all - first; }
  int all, first;
  int count;
};

// Who brings keys to other ranks: warps of the kernel that attends to them, or copy engines beside
// it.
enum class KeysBy : std::uint8_t { warps, copies };

// The rank's own keys and values where they are, and memory for all, to which each rank pushes its
// own to the others. A word counts what pushes each piece of a share has: CTAs of all runs, or the
// runs.
struct KeysOfRanks {
  // `queries` are a rank's rows, `keys` those of all; without a batch sequences are packed.
  KeysOfRanks(Kernel& kernel, const Attention& a, const DividedRows& how, KeysBy by,
              const Tensor& all_K, const Tensor& all_V, const Dim& queries, const Dim& keys,
              const std::optional<Dim>& batch)
      : kernel(kernel),
        rows(keys / kernel.ranks()),
        axis(rows, kernel.ranks(), how.shards),
        own_last(own_keys_last(a, !batch)),
        shares(a),
        arrived(kernel.symmetric("arrived", i32, {words(a, axis)})),
        begun(by == KeysBy::warps ? std::optional(RanksBegin(kernel, how.ranks)) : std::nullopt),
        K(kernel.in("own_K", a.dtype, own_shape(a, batch, rows, a.dim))),
        V(kernel.in("own_V", a.dtype, own_shape(a, batch, rows, a.dim_v))),
        a_(a),
        ranks_(how.ranks),
        batch_(batch),
        all_keys_(keys),
        queries_(queries, kernel.ranks(), how.shards),
        all_K_(all_K),
        all_V_(all_V),
        early_moves_(
            plan_case("a rank's first keys have the turn behind its last",
                      batch && a.causal && a.window == 0 && how.shards == Shards::zig_zag)),
        cut_(axis.early_rows() % a.block_k + axis.late_rows() % a.block_k +
             max(queries - rows, rows - queries)) {
    if (by == KeysBy::copies) return;
    pushed_.emplace(kernel, "pushed", stages(kStages),
                    std::vector<TileShape>{{a.dtype, kPushedRows, kPushedColumns}}, here());
    stored_.emplace(kernel, 64, 1, here());
  }
  static Dim words(const Attention& a, const DividedAxis& axis) {
    return axis.pieces() * HeadShares(a).count;
  }

  // Where the block of keys lies that a tile reads in this one's turn, counted down from its last.
  // Of two pieces under a causal mask the rank's first one has the turn behind the second, and what
  // lies between the two comes later. It is the tile's block where none of these is cut, by a
  // border or by the mask.
  Block in_turn(const Work& work, const Block& block) const {
    if (!early_moves_) return block;
    const DividedAxis::Piece late = own_piece(true), early = own_piece(false);
    const Index moving = select(Index(cut_) == 0, early.rows, 0);
    const Index end = early.first + early.rows;
    const Index before = late.first - block.start() - block.size();
    const Index later = block.start() + moving;
    const Index moved = select(before < moving, end - block.size() - before,
                               select(later < end, block.start(), later));
    const Condition moves = before >= 0 && work.keys.end() > late.first;
    return Block(select(moves, moved, block.start()), block.size(), block.limit(), block.packed());
  }
  // The last of the pieces that are the rank's own.
  Index last_of_own() const { return own_last ? Index(ranks_ - 1) : axis.late(kernel.rank()); }
  DividedAxis::Piece own_piece(bool is_late) const {
    if (own_last) return {axis.start(Index(ranks_ - 1)), rows, 0};
    return axis.piece(is_late ? last_of_own() : axis.early(kernel.rank()));
  }
  void await(const Index& share, const Index& piece) const {
    const Condition is_own = own_last ? piece == ranks_ - 1 : axis.owner(piece) == kernel.rank();
    when(!is_own, [&] {
      const Index epoch = kernel.epoch();
      wait_flag(arrived(word(share, piece)), Compare::ge, begun ? epoch * cta_count() : epoch,
                kLearn);
      fence_proxy_async_global();
    });
  }

  // Warps that push, through a ring of their own: what multiplies waits for nothing of it.
  std::vector<RoleSpec> push_roles(RegisterBudget budget) {
    if (!begun) return {};
    return {role("fetch", warps(1), budget, [this] { fetch(); }),
            role("push", warps(1), budget, [this] { push(); }),
            role("tell", warps(1), budget, [this] { tell(); })};
  }

 private:
  // 2 KiB: so much every plan of blocks leaves.
  static constexpr int kPushedRows = 8, kPushedColumns = 64, kStages = 2;

  static std::vector<Dim> own_shape(const Attention& a, const std::optional<Dim>& batch,
                                    const Dim& keys, int dim) {
    if (batch) return {*batch, keys, a.kv_heads, dim};
    return {keys, a.kv_heads, dim};
  }
  Index word(const Index& share, const Index& piece) const { return share * axis.pieces() + piece; }

  // Late pieces first: blocks of keys are read down from the last.
  void each_piece(FunctionRef<void(int share, bool is_late)> body) const {
    for (int share = 0; share < shares.count; ++share) {
      for (int number = axis.pieces_of_rank() - 1; number >= 0; --number) body(share, number == 1);
    }
  }
  // This CTA's tiles of a piece: some rows of a head, and where its rows begin in each rank.
  struct PushedTile {
    Tensor own, gathered;
    std::function<TensorView(const Tensor& tensor, const Index& first, const Dim& of)> part;
    DividedAxis::Piece piece;
  };
  void each_tile(int share, bool is_late, FunctionRef<void(const PushedTile&)> body) const {
    const DividedAxis::Piece piece = axis.of_rank(kernel.rank(), is_late);
    const Dim blocks = ceil_div(is_late ? axis.late_rows() : axis.early_rows(), kPushedRows);
    const int heads = shares.heads(share);
    for (const bool of_keys : {true, false}) {
      const Dim dim = of_keys ? a_.dim : a_.dim_v, panels = ceil_div(dim, kPushedColumns);
      const Dim tiles = blocks * panels * heads * (batch_ ? *batch_ : Dim(1));
      for (Index tile : range(cta_index(), tiles, cta_count())) {
        const Block columns = dim.block(tile % panels, kPushedColumns);
        const Index of_heads = tile / panels / max(blocks, 1);
        const Index row = tile / panels % max(blocks, 1) * kPushedRows;
        const Index head = of_heads % heads + shares.begin(share), sequence = of_heads / heads;
        const auto part = [&](const Tensor& tensor, const Index& first, const Dim& of) {
          const Block rows(first + row, kPushedRows, first + piece.rows, of);
          return batch_ ? tensor(sequence, rows, head, columns) : tensor(rows, head, columns);
        };
        body({of_keys ? K : V, of_keys ? all_K_ : all_V_, part, piece});
      }
    }
  }
  void fetch() {
    each_piece([&](int share, bool is_late) {
      each_tile(share, is_late, [&](const PushedTile& tile) {
        pushed_->produce(
            [&](const Slot& slot) { tma_load(tile.part(tile.own, tile.piece.at, rows), slot[0]); });
      });
    });
  }
  void push() {
    begun->wait();
    fence_proxy_async_global();
    each_piece([&](int share, bool is_late) {
      each_tile(share, is_late, [&](const PushedTile& tile) {
        const Slot slot = pushed_->consume();
        each_other_rank(kernel, ranks_, [&](const Index& to) {
          const Index first = axis.start(place_in(to, is_late));
          const auto send = [&] {
            tma_store(tile.part(tile.gathered.at(to), first, all_keys_), slot[0]);
          };
          if (!a_.causal || !batch_) return send();
          when(first < seen_by(to), send);
        });
        bulk_commit();
        // At once, so that the loads of both stages are under way.
        bulk_wait_read(0);
        pushed_->release(slot);
      });
      bulk_wait(0);
      stored_->sync();
    });
  }
  // It waits for what is on its way, and the warp that pushes does not.
  void tell() {
    each_piece([&](int share, bool is_late) {
      stored_->sync();
      fence(Scope::system);
      each_other_rank(kernel, ranks_, [&](const Index& to) {
        atomic_add(arrived.at(to)(word(share, place_in(to, is_late))), 1,
                   {Semantics::relaxed, Scope::system});
      });
    });
  }
  // Which of the pieces the rank's first or second is in `to`.
  Index place_in(const Index& to, bool is_late) const {
    if (own_last) return (kernel.rank() + (2 * ranks_ - 1) - to) % ranks_;
    return is_late ? axis.late(kernel.rank()) : axis.early(kernel.rank());
  }
  // Keys of the whole below this one.
  Index seen_by(const Index& rank) const {
    return visible_keys(queries_.start(queries_.late(rank) + 1), queries_.all_rows(),
                        axis.all_rows());
  }

 public:
  Kernel& kernel;
  Dim rows;
  DividedAxis axis;
  bool own_last;
  HeadShares shares;
  Tensor arrived;
  std::optional<RanksBegin> begun;  // where warps push
  Tensor K, V;                      // the rank's own

 private:
  const Attention& a_;
  int ranks_;
  std::optional<Dim> batch_;
  Dim all_keys_;
  DividedAxis queries_;
  Tensor all_K_, all_V_;
  bool early_moves_;
  Dim cut_;  // 0 where pieces have whole blocks of rows, and each row sees as many keys
  std::optional<Ring> pushed_;
  std::optional<NamedBarrier> stored_;  // of the warps that push and that tell
};

// What the warp that loads knows to be there of a share of the heads: pieces that follow each
// other, at first the last of the rank's own.
class Arrivals {
 public:
  template <typename Order>
  explicit Arrivals(const Order& order)
      : keys_(order.keys_of_ranks()),
        share_(0),
        first_(keys_.last_of_own()),
        end_(keys_.last_of_own() + 1),
        first_row_(keys_.axis.start(keys_.last_of_own())),
        end_row_(keys_.axis.start(keys_.last_of_own() + 1)) {
    if (keys_.begun) keys_.begun->tell();
  }

  // Tiles of the first share come first.
  void await_tile(const Work& work) {
    if (keys_.shares.count == 1) return;
    const Index share = keys_.shares.of(work.kv_head);
    when(share > share_, [&] {
      share_ = share;
      first_ = keys_.last_of_own();
      end_ = keys_.last_of_own() + 1;
      first_row_ = keys_.axis.start(keys_.last_of_own());
      end_row_ = keys_.axis.start(keys_.last_of_own() + 1);
    });
  }
  // Calls `body` for a block of keys or values where it lies: with those of the rank, or with all,
  // once it has come there.
  template <typename Body>
  void each_place(KeyTensor which, const Tensor& all, const Work& work, const Block& number,
                  const Block& columns, const Body& body) {
    const Block block = keys_.in_turn(work, number);
    const Index end = min(block.start() + block.size(), block.limit());
    const auto has = [&](const DividedAxis::Piece& own) {
      return block.start() >= own.first && end <= own.first + own.rows;
    };
    const DividedAxis::Piece late = keys_.own_piece(true);
    Condition is_own = has(late);
    Index ahead = late.first - late.at;
    if (keys_.axis.pieces_of_rank() > 1) {
      const DividedAxis::Piece early = keys_.own_piece(false);
      ahead = select(is_own, ahead, early.first - early.at);
      is_own = is_own || has(early);
    }
    when(
        is_own,
        [&] {
          const Block own(block.start() - ahead, block.size(), end - ahead, keys_.rows);
          body(work.part(which == KeyTensor::K ? keys_.K : keys_.V, own, work.kv_head, columns));
        },
        [&] {
          // Values come with their keys, which are loaded before.
          if (which == KeyTensor::K) await(block);
          body(work.part(all, block, work.kv_head, columns));
        });
  }

 private:
  void await(const Block& block) {
    const Index begin = block.start(), end = min(begin + block.size(), block.limit());
    Cell<Condition> missing(begin < first_row_);
    repeat_while(missing, [&] {
      first_ = first_ - 1;
      keys_.await(share_, first_);
      first_row_ = keys_.axis.start(Index(first_));
      missing = begin < first_row_;
    });
    missing = end_row_ < end;
    repeat_while(missing, [&] {
      keys_.await(share_, end_);
      end_ = end_ + 1;
      end_row_ = keys_.axis.start(Index(end_));
      missing = end_row_ < end;
    });
  }

  const KeysOfRanks& keys_;
  Cell<Index> share_;
  Cell<Index> first_, end_;          // pieces
  Cell<Index> first_row_, end_row_;  // their rows
};

}  // namespace tilewright::kernels
