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

struct SummedRows {
  Index number, head, sequence;
};

// Blocks of rows whose sums in order are complete, from the warp that waits for them to the
// warpgroups that convert them in turn behind a block of keys. It copies the sums to shared memory
// as soon as they are there, so that no warpgroup waits for L2.
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
        ring_(kernel, "summed", stages(kStages), std::vector<TileShape>{}),
        sums_(kernel, "sum_tiles", stages(1),
              {{f32, tiles.of_block * tiles.lines_of_tile, 128, SharedMap{}}}) {
    ring_.numbered(4);
  }

  // By a warp apart, which neither those that load nor those that compute wait for: what is
  // converted behind each block of keys, and at the end.
  void give_all(Ring& keys) {
    for_key_blocks(keys,
                   [&](const KeyPlace& at, const Index&) { give(sequences_.finished(at.number)); });
    give(sequences_.last_finished());
  }

  // The blocks of rows up to their end. `put` stores the tiles of those whose turn is the
  // warpgroup's.
  template <typename Put>
  void convert(const Index& group, const Put& put) {
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Slot slot = ring_.consume();
      const SummedRows rows{slot.number(1), slot.number(2), slot.number(3)};
      const Condition is_added = slot.number(0) != 0, own = group == slot.stage() % groups_;
      ring_.release(slot);
      when(rows.number != kNoRows, [&] {
        const std::vector<Tile> sums = this->sums(is_added, own);
        when(own, [&] { put(sums, rows); });
      });
      more = rows.number != kNoRows;
    });
  }

 private:
  static constexpr int kStages = 8;
  static constexpr int kNoRows = -1;  // instead of a block's number: there are no more

  // What nobody has come to was not written.
  std::vector<Tile> sums(const Condition& is_added, const Condition& own) {
    const int lines = tiles_.lines_of_tile, width = tiles_.width();
    std::deque<Var> sums;
    for (int i = 0; i < tiles_.of_block; ++i) sums.emplace_back(zeros({64, width}));
    when(is_added, [&] {
      const Slot slot = sums_.consume();
      when(own, [&] {
        int line = 0;
        for (Var& sum : sums) {
          sum = from_fragments(load(slot[0].rows(line, lines)).reshape({64 * width}), width);
          line += lines;
        }
        // A load may take longer than the copy that comes next.
        fence_proxy_async();
      });
      sums_.release(slot);
    });
    return {sums.begin(), sums.end()};
  }

  // A share of what is finished, head by head.
  void give(const FinishedRows& rows) {
    const auto [first, last] = sequences_.rows_of(rows);
    const Dim members = sequences_.parts().members;
    const Index of_head = max(last - first, 0), all = rows.heads * members * of_head;
    const Index share = ceil_div(all, rows.places), begin = min(rows.place * share, all);
    for (Index i : range(begin, min(begin + share, all))) {
      const Index head = i / of_head, member = head % members;
      const Index part_head = rows.head + head / members;
      when(sequences_.parts().exists(part_head / sequences_.key_heads(), member),
           [&] { give_block(sequences_.block_of_rows(part_head, member, first + i % of_head)); });
    }
    ring_.produce({0, kNoRows, 0, 0});
  }
  void give_block(const typename Keys::Place& at) {
    when(at.block.start() < at.block.limit(), [&] {
      const auto [first, last] = at.mask.visible(at.block, at.keys, a_.block_k);
      const Index kept = sequences_.kept_number(at, at.head, at.number, a_.block_q);
      wait_flag(words_(kept), Compare::ge, last - first, {Semantics::acquire, Scope::gpu});
      ring_.produce({select(last > first, 1, 0), at.number, at.head, at.sequence});
      when(last > first, [&] { copy(kept); });
    });
  }

  void copy(const Index& kept) {
    fence_proxy_async_global();
    sums_.produce([&](const Slot& slot) {
      const int lines = tiles_.of_block * tiles_.lines_of_tile;
      tma_load(tiles_.sums(tiles_.lines.block(kept, lines), all), slot[0]);
    });
  }

  const Attention& a_;
  const Keys& sequences_;
  Tensor words_;
  SumTiles tiles_;
  int groups_;
  Ring ring_, sums_;
};

}  // namespace tilewright::kernels
