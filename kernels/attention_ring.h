#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_ranks.h"

// Attention in a ring: a rank has the keys of one rank at a time, and then hands them on. What its
// kernels and programs share.
namespace tilewright::kernels {

// What a rank has of one sequence in one of its pieces: rows of its tensors, and how much further
// on they are in the whole.
struct ShardRows {
  Sequence rows;
  Index ahead;
};
// A block of them, of one head.
struct ShardBlock {
  Block rows;
  Index head, sequence, ahead;
};

// A kernel's tensors of sequences of one length: own queries, and the keys of a rank, if there are
// keys.
class BatchRing : public BatchShapes {
 public:
  using Shapes = BatchShapes;
  BatchRing(Kernel& kernel, const Attention& a, Shards shards, bool has_keys = true)
      : Shapes(kernel, a, true, has_keys),
        kernel_(kernel),
        of_queries_(queries, kernel.ranks(), shards),
        of_keys_(keys, kernel.ranks(), shards) {}

  int pieces() const { return of_keys_.pieces_of_rank(); }
  // Query i of the whole sees keys up to i + this.
  Index shift(const Index&) const { return Index(of_keys_.all_rows() - of_queries_.all_rows()); }
  ShardBlock block_of_queries(int size) const {
    return block_of(of_queries_, queries, kernel_.rank(), heads, size);
  }
  ShardBlock block_of_keys(const Index& owner, int size) const {
    return block_of(of_keys_, keys, owner, kv_heads, size);
  }
  ShardRows queries_of(const Index&, const Condition& is_late) const {
    return rows_of(of_queries_.of_rank(kernel_.rank(), is_late), queries);
  }
  ShardRows keys_of(const Index& owner, const Index&, const Condition& is_late) const {
    return rows_of(of_keys_.of_rank(owner, is_late), keys);
  }
  TensorView rows(const Tensor& tensor, const Index& sequence, const Block& rows,
                  const Index& head) const {
    return tensor(sequence, rows, head, all);
  }
  TensorView numbers(const Tensor& tensor, const Index& sequence, const Block& rows,
                     const Index& head) const {
    return tensor(sequence, head, rows);
  }
  // Calls `body` with numbers of all rows of a head that the rank has.
  template <typename Body>
  void each_numbers(const Index& head, int size, const Body& body) const {
    for (Index b : range(batch)) {
      for (Block rows : blocks(queries, size)) {
        body([&](const Tensor& tensor) { return tensor(b, head, rows); });
      }
    }
  }

 private:
  static ShardRows rows_of(const DividedAxis::Piece& piece, const Dim& axis) {
    return {Sequence(axis, piece.at, piece.at + piece.rows), piece.first - piece.at};
  }
  ShardBlock block_of(const DividedAxis& of, const Dim& axis, const Index& rank, int heads,
                      int size) const {
    const Dim early = ceil_div(of.early_rows(), size), late = ceil_div(of.late_rows(), size);
    const auto [x, h, b] = kernel_.grid(early + late, heads, batch);
    const TileOfPiece tile(x, early);
    const ShardRows own = rows_of(of.of_rank(rank, tile.is_late), axis);
    return {own.rows.block(tile.number, size), h, b, own.ahead};
  }

  Kernel& kernel_;
  DividedAxis of_queries_, of_keys_;
};

// The same of packed sequences. Where these begin in the whole is the same in every rank.
class PackedRing : public PackedShapes {
 public:
  using Shapes = PackedShapes;
  PackedRing(Kernel& kernel, const Attention& a, Shards shards, bool has_keys = true)
      : Shapes(kernel, a, true, has_keys),
        kernel_(kernel),
        of_queries_(total_queries, kernel.ranks(), shards),
        of_keys_(total_keys, kernel.ranks(), shards),
        all_queries_(of_queries_.all_rows(), kernel.in("cu_seqlens_q", i32, of_first_rows())) {
    if (!has_keys) return;
    all_keys_.emplace(of_keys_.all_rows(), kernel.in("cu_seqlens_k", i32, of_first_rows()));
  }

  int pieces() const { return of_keys_.pieces_of_rank(); }
  Index shift(const Index& sequence) const {
    return all_keys_->of(sequence).end() - all_queries_.of(sequence).end();
  }
  ShardBlock block_of_queries(int size) const {
    return block_of(of_queries_, all_queries_, total_queries, kernel_.rank(), heads, size);
  }
  ShardBlock block_of_keys(const Index& owner, int size) const {
    return block_of(of_keys_, *all_keys_, total_keys, owner, kv_heads, size);
  }
  ShardRows queries_of(const Index& sequence, const Condition& is_late) const {
    const DividedAxis::Piece piece = of_queries_.of_rank(kernel_.rank(), is_late);
    return {PackedPiece(all_queries_, total_queries, piece).of(sequence), piece.first - piece.at};
  }
  ShardRows keys_of(const Index& owner, const Index& sequence, const Condition& is_late) const {
    const DividedAxis::Piece piece = of_keys_.of_rank(owner, is_late);
    return {PackedPiece(*all_keys_, total_keys, piece).of(sequence), piece.first - piece.at};
  }
  TensorView rows(const Tensor& tensor, const Index&, const Block& rows, const Index& head) const {
    return tensor(rows, head, all);
  }
  TensorView numbers(const Tensor& tensor, const Index&, const Block& rows,
                     const Index& head) const {
    return tensor(head, rows);
  }
  template <typename Body>
  void each_numbers(const Index& head, int size, const Body& body) const {
    for (Block rows : blocks(total_queries, size)) {
      body([&](const Tensor& tensor) { return tensor(head, rows); });
    }
  }

 private:
  ShardBlock block_of(const DividedAxis& of, const Ragged& all, const Dim& axis, const Index& rank,
                      int heads, int size) const {
    const Dim early = of.early_tiles(size, batch);
    const auto [x, h] = kernel_.grid(early + of.late_tiles(size, batch), heads);
    const TileOfPiece tile(x, early);
    const DividedAxis::Piece piece = of.of_rank(rank, tile.is_late);
    const PackedPiece here(all, axis, piece);
    const auto [sequence, block] = here.tile(tile.number, size);
    return {here.rows(sequence, block, size), h, sequence, piece.first - piece.at};
  }

  Kernel& kernel_;
  DividedAxis of_queries_, of_keys_;
  Ragged all_queries_;
  std::optional<Ragged> all_keys_;
};

// From the first to the last of `keys` that queries of the block see.
Sequence seen_keys(const Attention& a, const ShardBlock& queries, const ShardRows& keys,
                   const Index& shift);
// From the first to the last of `queries` that see keys of the block.
Sequence seeing_queries(const Attention& a, const ShardBlock& keys, const ShardRows& queries,
                        const Index& shift);
// Which of a block's scores {queries, keys} are visible. `ahead`: of the keys.
Tile visible_in_ring(const Attention& a, const ShardBlock& queries, const Block& keys,
                     const Index& ahead, const Index& shift);

// Kernels of a ring go on with what the step before has left, but for the first one; the last one
// leaves the result.
enum class RingPass : std::uint8_t { first, next, last };
inline RingPass ring_pass(int step, int ranks) {
  return step == 0 ? RingPass::first : step + 1 < ranks ? RingPass::next : RingPass::last;
}
inline std::string operator+(const std::string& name, RingPass pass) {
  constexpr std::array kNames{"_first", "_next", "_last"};
  return name + kNames[static_cast<std::size_t>(pass)];
}
// A sum in f32 of such kernels, and in which tensor it was and will be.
struct RingSum {
  RingSum(Kernel& kernel, const std::string& name, RingPass pass, const std::vector<Dim>& shape);
  std::optional<Tensor> before, after;
};
// The rank whose keys this one has, that many places before it in the ring.
Index ring_owner(Kernel& kernel);

// Own queries attend to the keys of one rank, by the kernel of attention_forward_sm90. Its tensors
// are those of the kernel of the tile level. With a mask a rank has as many queries as keys.
Kernel attention_to_one_sm90(const SequenceParallelAttention& o, RingPass pass,
                             const std::string& name, const Caller& caller);

// Memory in which things go round, each of which a rank has in one of two slots, by turns. At
// steps [first, end) it is there.
class RingSlots {
 public:
  RingSlots(Program& program, std::string name, int first, int end)
      : program_(program),
        name_(std::move(name)),
        first_(first),
        end_(end),
        arrived_(program.signals(name_ + "_arrived", end)),
        taken_(program.signals(name_ + "_taken", end)) {}
  void add(const std::string& name, DType dtype, const std::vector<Dim>& shape);
  // What a rank has of all of them at a step.
  std::vector<Part> parts(int step) const;
  // Sends these to where the next rank has them at `step`. They are what this one has had at the
  // step before, when that has come; where it is made, at the first step nothing comes.
  void send(int step, const std::vector<Part>& parts, const std::vector<Event>& made = {}) const;
  void wait(int step, const Stream& stream) const;
  // A word of each step, which has the number of the run when it has come.
  const Buffer& arrived() const { return arrived_; }
  // Behind `done` nothing of the step is needed any more, but for what was sent on before.
  void give_back(int step, const std::vector<Event>& done) const;

 private:
  Program& program_;
  std::string name_;
  int first_, end_;
  Buffer arrived_, taken_;  // words of each step; taken: by the next rank
  std::vector<std::array<Buffer, 2>> slots_;
};

}  // namespace tilewright::kernels
