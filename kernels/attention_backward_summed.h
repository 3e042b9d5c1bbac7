#pragma once

#include <deque>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// How many words dQ in order needs: for each block of queries one of each part of its sums, which
// Turns count; for each head of the keys one that counts its blocks of keys that are through.
template <typename Shapes>
Dim turns_of(const Shapes& shapes, int block_q, int parts) {
  return shapes.kept_blocks(block_q) * parts + shapes.key_heads();
}

// The sums of dQ in memory: tiles of 64 rows, each in so many lines of 128 f32, in the order of the
// registers that add them. Those of a block of queries follow those of the block before.
struct SumTiles {
  Tensor sums;
  Dim lines;  // of all tiles
  int of_block, lines_of_tile;
  int width() const { return lines_of_tile * 128 / 64; }
};

// Blocks of rows whose sums in order are complete, from the warp that asks for them to the
// warpgroups that convert them in turn behind a block of keys.
template <typename Keys>
class Summed {
 public:
  // `words`: of turns_of, where `parts` is how many warps count a block of keys.
  Summed(Kernel& kernel, const Attention& a, const Keys& sequences, const Tensor& words, int parts,
         const SumTiles& tiles, int groups)
      : a_(a),
        sequences_(sequences),
        words_(words),
        parts_(parts),
        tiles_(tiles),
        groups_(groups),
        ring_(kernel, "summed", stages(kStages), std::vector<TileShape>{}) {
    ring_.numbered(4);
  }

  // By the warps that hand on turns: all rows of a block of keys are through.
  void count(const KeyPlace& at) {
    atomic_add(through(sequences_.head_number(at)), 1, {Semantics::release, Scope::gpu});
  }

  // Blocks of rows, when all keys of their heads are through. It is asked between what is loaded
  // for two blocks of keys, so that the warps that convert need not wait for memory.
  void give(const FinishedRows& rows) {
    const Dim of_head = max(sequences_.rows_of_head(), 1);
    Cell<Index> known(-1);
    for (Index i : range(rows.count)) {
      const Index head = (rows.first + i) / of_head;
      when(head != known, [&] {
        wait_flag(through(head), Compare::ge, sequences_.blocks_of_head() * parts_,
                  {Semantics::acquire, Scope::gpu});
        known = head;
      });
      const auto at = sequences_.block_of_rows(rows.first + i);
      when(at.block.start() < at.block.limit(), [&] {
        const auto [first, last] = at.mask.visible(at.block, at.keys, a_.block_k);
        const Index tile =
            sequences_.kept_number(at, at.head, at.number, a_.block_q) * tiles_.of_block;
        // Who has no additions is -1 - tile.
        ring_.produce({select(last > first, tile, -1 - tile), at.number, at.head, at.sequence});
      });
    }
    ring_.produce({-1, kNoRows, 0, 0});
  }
  // At the end, what is left is divided among the CTAs.
  void give_last() {
    const FinishedRows all = sequences_.last_finished();
    const Index share = ceil_div(all.count, cta_count());
    const Index begin = min(cta_index() * share, all.count);
    give({all.first + begin, min(share, all.count - begin)});
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
  TensorView through(const Index& head) const {
    return words_(sequences_.kept_blocks(a_.block_q) * parts_ + head);
  }

  const Attention& a_;
  const Keys& sequences_;
  Tensor words_;
  int parts_;
  SumTiles tiles_;
  int groups_;
  Ring ring_;
};

}  // namespace tilewright::kernels
