#pragma once

#include <functional>
#include <optional>

#include "kernels/attention_sm90_tiles.h"
#include "tilewright/function_ref.h"
#include "tilewright/kernels/softmax.h"
#include "tilewright/ranks.h"

// Tiles of attention whose keys are divided among CTAs, so that all of these end together. Each
// part but the last leaves its softmax in memory, and the last one joins them in their order.
namespace tilewright::kernels {

// Of wider dims the sums of others have no registers beside a part's own.
inline bool can_have_parts(const Attention& a) { return a.dim <= 128 && a.dim_v <= 128; }

// Where parts leave what they have.
struct SplitMemory {
  static constexpr int kTiles = 160;        // no GPU of sm_90a has as many multiprocessors
  static constexpr int kLeft = 2 * kTiles;  // parts that leave theirs

  SplitMemory(Kernel& kernel, const Attention& a)
      : outputs(kernel.scratch("part_outputs", kLeft * a.block_q, a.dim_v)),
        sums(kernel.scratch("part_sums", kLeft * a.block_q, 1)),
        made(kernel.workspace("parts_made", kTiles * a.block_q / 16)) {}
  Tensor outputs, sums, made;
};

// Of a list of tiles that are as long: those that do not fill a round of all CTAs at its end have
// parts, where that makes the whole shorter by more than a 64th.
class SplitTiles {
 public:
  SplitTiles(const SplitMemory& memory, const Attention& a, const Dim& tiles,
             const Dim& blocks_of_keys)
      : memory_(memory),
        a_(a),
        count_(min(tiles % multiprocessors(), SplitMemory::kTiles)),
        whole_(tiles - count_),
        parts_(best_parts(a, tiles, count_, blocks_of_keys)) {}

  // A run is a tile, or a part of one. Those of a tile follow each other.
  Dim runs() const { return whole_ + count_ * parts_; }
  Index tile(const Index& run) const {
    return select(run < whole_, run, whole_ + (run - whole_) / parts_);
  }
  // As a Place has it: 0, or 1 and the number of the part among all.
  Index part(const Index& run) const { return select(run < whole_, 0, run - whole_ + 1); }
  KeyBlocks blocks(const Index& part, const KeyBlocks& of_tile) const {
    return of_tile.part(part_of_tile(part), select(part > 0, parts_, 1));
  }

  // A sink is a score of no key: the first part has it, or the whole tile.
  Tile of_first(const Index& number, const Tile& sinks) const {
    Var own{sinks};
    when(part_of_tile(number) > 0, [&] { own = full({sinks.shape()[0], 1}, kNone); });
    return own;
  }

  // In a warpgroup with its rows of a tile or part. `put` takes their log-sum-exp and, of the
  // number-th so many columns, the output: of a whole tile, or of one whose last part this is.
  using Columns = FunctionRef<Tile(int number)>;
  void join(const Index& number, const Index& group, const Var& acc, const Tile& normaliser,
            const Tile& log_sum, int width,
            FunctionRef<void(const Tile& log_sum, const Columns& columns)> put) const {
    const Index tile = max(number - 1, 0) / parts_, part = part_of_tile(number);
    when(
        number > 0 && part < parts_ - 1,
        [&] { leave(tile, part, group, acc, normaliser, log_sum, width); },
        [&] {
          const Index others = select(number > 0, parts_ - 1, 0);
          Var factor{normaliser}, sum{log_sum};
          Var shift{zeros({64, 1})}, of_all{zeros({64, 1})};  // weights of the others
          when(others > 0, [&] {
            await_others(tile, group);
            Var top{log_sum};
            for (Index i : range(others)) top = max(top, left_sums(tile, i, group));
            // -inf - -inf is no number: a row that has seen nothing is shifted by 0.
            shift = where(Tile(top) == kNone, 0, Tile(top));
            const Tile own = exp2((log_sum - Tile(shift)) * kLog2e);
            Var all{own};
            for (Index i : range(others)) all = all + weight(tile, i, group, shift);
            of_all = where(Tile(all) == 0, 0, 1 / Tile(all));
            factor = normaliser * (own * Tile(of_all));
            sum = where(Tile(all) == 0, kNone, Tile(shift) + log2(Tile(all)) * kLn2);
          });
          put(Tile(sum), [&](int chunk) {
            Var value{Tile(acc).slice({0, chunk * width}, {64, width}) * Tile(factor)};
            for (Index i : range(others)) {
              const Tile left = load(memory_.outputs(rows(tile, i, group), columns(chunk, width)));
              value = value + left * (weight(tile, i, group, shift) * Tile(of_all));
            }
            return Tile(value);
          });
        });
  }

 private:
  static constexpr int kParts[] = {2, 3, 4, 6};  // as the rules of attention_forward have them
  // Blocks of keys that a part costs besides its own, about 7 us, and that the last one adds for
  // each other, about 3 us (docs/log/2026-11-28-last-tiles-in-parts.md).
  struct Costs {
    int of_part, of_other;
  };
  static Costs costs(const Attention& a) { return a.dim_v <= 64 ? Costs{5, 2} : Costs{8, 3}; }

  static Dim best_parts(const Attention& a, const Dim& tiles, const Dim& count, const Dim& blocks) {
    const Dim ctas = multiprocessors();
    const Costs each = costs(a);
    // The blocks that a CTA reads for these tiles, of so many parts, and behind it their number.
    constexpr int kNumbers = 8;
    const auto numbered = [](const Dim& cost, int parts) { return cost * kNumbers + parts; };
    Dim best = numbered(max(blocks - ceil_div(tiles, ctas) * blocks / 64, 0), 1);
    for (const int parts : kParts) {
      Dim cost = ceil_div(count * parts, ctas) * (ceil_div(blocks, parts) + each.of_part) +
                 each.of_other * (parts - 1);
      if (SplitMemory::kTiles * (parts - 1) > SplitMemory::kLeft) {
        cost = cost + max(count * (parts - 1) - SplitMemory::kLeft, 0) * blocks;  // no room
      }
      best = min(best, numbered(cost, parts));
    }
    return best % kNumbers;
  }

  Index part_of_tile(const Index& number) const {
    return select(number > 0, (number - 1) % parts_, 0);
  }
  Block rows(const Index& tile, const Index& part, const Index& group) const {
    const Index row = ((tile * (parts_ - 1) + part) * (a_.block_q / 64) + group) * 64;
    return Block(row, 64, SplitMemory::kLeft * a_.block_q);
  }
  Block columns(int number, int width) const { return Dim(a_.dim_v).block(number, width); }
  // Of each warp's rows, how many parts have left theirs.
  TensorView made(const Index& tile, const Index& group) const {
    return memory_.made((tile * (a_.block_q / 64) + group) * 4 + warp_index());
  }
  Tile left_sums(const Index& tile, const Index& part, const Index& group) const {
    return load(memory_.sums(rows(tile, part, group), Dim(1).block(0, 1)));
  }
  Tile weight(const Index& tile, const Index& part, const Index& group, const Var& shift) const {
    return exp2((left_sums(tile, part, group) - Tile(shift)) * kLog2e);
  }

  void leave(const Index& tile, const Index& part, const Index& group, const Var& acc,
             const Tile& normaliser, const Tile& log_sum, int width) const {
    for (int number = 0; number * width < a_.dim_v; ++number) {
      store(memory_.outputs(rows(tile, part, group), columns(number, width)),
            Tile(acc).slice({0, number * width}, {64, width}) * normaliser);
    }
    store(memory_.sums(rows(tile, part, group), Dim(1).block(0, 1)), log_sum);
    warp_sync();
    atomic_add(made(tile, group), 1, {Semantics::release, Scope::gpu});
  }
  // They were taken before, and wait for nobody. The word is left as the next launch wants it.
  void await_others(const Index& tile, const Index& group) const {
    wait_flag(made(tile, group), Compare::ge, parts_ - 1, {Semantics::acquire, Scope::gpu});
    warp_sync();  // no lane looks at the word any more
    atomic_add(made(tile, group), 1 - Index(parts_), {Semantics::relaxed, Scope::gpu});
  }

  const SplitMemory& memory_;
  const Attention& a_;
  Dim count_, whole_;  // tiles that have parts, and those before them
  Dim parts_;          // of each
};

}  // namespace tilewright::kernels
