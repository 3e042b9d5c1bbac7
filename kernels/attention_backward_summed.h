#pragma once

#include <deque>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_turns.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// The sums of dQ in memory: tiles of 64 rows, each in so many lines of 128 f32, in the order of the
// registers that add them. Those of a block of queries follow those of the block before.
struct SumTiles {
  Tensor sums;
  Dim lines;  // of all tiles
  int of_block, lines_of_tile;
  int width() const { return lines_of_tile * 128 / 64; }
};

// Blocks of rows whose sums in order are complete, from the warp that waits for them to the
// warpgroups that convert them in turn behind a block of keys.
template <typename Keys>
class Summed {
 public:
  // `words` count who has added to a block of rows, as Turns do.
  Summed(Kernel& kernel, const Attention& a, const Keys& sequences, const Tensor& words,
         const SumTiles& tiles, int groups)
      : a_(a),
        sequences_(sequences),
        words_(words),
        tiles_(tiles),
        groups_(groups),
        ring_(kernel, "summed", stages(kStages), std::vector<TileShape>{}) {
    ring_.numbered(4);
  }

  // By a warp apart, which neither those that load nor those that compute wait for: what is
  // converted behind each block of keys, and at the end.
  void give_all(Ring& keys) {
    for_key_blocks(keys,
                   [&](const KeyPlace& at, const Index&) { give(sequences_.finished(at.number)); });
    give(sequences_.last_finished());
  }

  // A block of rows, and its tiles if it is the warpgroup's turn.
  class Rows {
   public:
    explicit Rows(const Summed& of) : number_(0), head_(0), sequence_(0), is_own_(true) {
      for (int i = 0; i < of.tiles_.of_block; ++i) {
        sums_.emplace_back(zeros({64, of.tiles_.width()}));
      }
    }

   private:
    friend class Summed;
    Cell<Index> number_, head_, sequence_;
    Cell<Condition> is_own_;
    std::deque<Var> sums_;
  };

  // The next one, whose sums are on their way while the one before is converted.
  void next(const Index& group, Rows& rows) {
    const Slot slot = ring_.consume();
    const Index place = slot.number(0);
    rows.number_ = slot.number(1);
    rows.head_ = slot.number(2);
    rows.sequence_ = slot.number(3);
    const Condition own = group == slot.stage() % groups_;
    rows.is_own_ = own;
    ring_.release(slot);
    // What nobody has come to was not written.
    const Index limit = select(place >= 0 && own, tiles_.lines, 0);
    const int lines = tiles_.lines_of_tile, width = tiles_.width();
    Index tile = place;
    for (Var& sum : rows.sums_) {
      sum = from_fragments(
          load(tiles_.sums(Block(tile * lines, lines, limit), all)).reshape({64 * width}), width);
      tile = tile + 1;
    }
  }

  // The blocks of rows from this one up to their end. `put` stores the warpgroup's tiles of one,
  // from its number, head and sequence.
  template <typename Put>
  void convert(const Index& group, Rows& rows, const Put& put) {
    Cell<Condition> more(Index(rows.number_) != kNoRows);
    repeat_while(more, [&] {
      const Index number = rows.number_, head = rows.head_, sequence = rows.sequence_;
      const Condition own = rows.is_own_;
      const std::vector<Tile> sums(rows.sums_.begin(), rows.sums_.end());
      next(group, rows);
      when(own, [&] { put(sums, number, head, sequence); });
      more = Index(rows.number_) != kNoRows;
    });
  }

 private:
  static constexpr int kStages = 8;
  static constexpr int kNoRows = -1;  // instead of a block's number: there are no more

  // A share of what is finished, head by head.
  void give(const FinishedRows& rows) {
    const auto [first, last] = sequences_.rows_of(rows);
    const Dim members = sequences_.parts().members;
    const Index of_head = max(last - first, 0), all = rows.heads * members * of_head;
    const Index share = ceil_div(all, rows.places), begin = min(rows.place * share, all);
    for (Index i : range(min(share, all - begin))) {
      const Index head = (begin + i) / of_head, member = head % members;
      const Index part_head = rows.head + head / members;
      when(sequences_.parts().exists(part_head / sequences_.key_heads(), member), [&] {
        give_block(sequences_.block_of_rows(part_head, member, first + (begin + i) % of_head));
      });
    }
    ring_.produce({-1, kNoRows, 0, 0});
  }
  void give_block(const typename Keys::Place& at) {
    when(at.block.start() < at.block.limit(), [&] {
      const auto [first, last] = at.mask.visible(at.block, at.keys, a_.block_k);
      const Index kept = sequences_.kept_number(at, at.head, at.number, a_.block_q);
      wait_flag(words_(kept), Compare::ge, last - first, {Semantics::acquire, Scope::gpu});
      const Index tile = kept * tiles_.of_block;
      // Who has no additions is -1 - tile.
      ring_.produce({select(last > first, tile, -1 - tile), at.number, at.head, at.sequence});
    });
  }

  const Attention& a_;
  const Keys& sequences_;
  Tensor words_;
  SumTiles tiles_;
  int groups_;
  Ring ring_;
};

}  // namespace tilewright::kernels
