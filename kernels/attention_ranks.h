#pragma once

#include "kernels/attention_parameters.h"
#include "kernels/caller.h"
#include "tilewright/kernels/attention_ranks.h"

// What attentions over ranks share.
namespace tilewright::kernels {

// Raises for what fits no attention over ranks.
void check_attention_ranks(const SequenceParallelAttention& o, const Caller& caller);
// Whether each rank can have heads of its own, with all of their keys' gradients.
bool divides_heads(const SequenceParallelAttention& o);

// Gradients by keys that go round, of any heads.
Program gradients_in_ring(const SequenceParallelAttention& o, bool of_lse, bool is_packed,
                          const Caller& caller);

// An axis that is divided among ranks. A rank's rows are one run of those of the whole, or two; a
// run of a rank is called a piece here, and pieces are numbered in the order of the whole. Numbers
// are Index or Dim.
class DividedAxis {
 public:
  DividedAxis(const Dim& rows_of_rank, const Dim& ranks, Shards shards)
      : rows_(rows_of_rank), ranks_(ranks), zig_zag_(shards == Shards::zig_zag) {}
  const Dim& rows() const { return rows_; }  // of a rank
  int pieces_of_rank() const { return zig_zag_ ? 2 : 1; }
  Dim pieces() const { return ranks_ * pieces_of_rank(); }
  Dim all_rows() const { return ranks_ * rows_; }
  // Of a rank's first piece, and of its second.
  Dim early_rows() const { return zig_zag_ ? ceil_div(rows_, 2) : rows_; }
  Dim late_rows() const { return rows_ - early_rows(); }
  // As many tiles as packed sequences can have in them (PackedPiece).
  Dim early_tiles(int size, const Dim& sequences) const {
    return (early_rows() / size + sequences + 2) * min(sequences, 1);
  }
  Dim late_tiles(int size, const Dim& sequences) const {
    return zig_zag_ ? (late_rows() / size + sequences + 2) * min(sequences, 1) : Dim(0);
  }

  template <typename Number>
  Number early(const Number& rank) const {
    return rank;
  }
  // The last one that the rank has.
  template <typename Number>
  Number late(const Number& rank) const {
    return zig_zag_ ? Number(ranks_ * 2 - 1 - rank) : rank;
  }
  // The first row of a piece, in the whole. That of pieces() is one past the last.
  template <typename Number>
  Number start(const Number& piece) const {
    if (!zig_zag_) return piece * rows_;
    return min(piece, ranks_) * early_rows() + max(piece - ranks_, 0) * late_rows();
  }
  // Whose piece it is.
  Index owner(const Index& piece) const {
    return zig_zag_ ? min(piece, Index(ranks_ * 2 - 1) - piece) : piece;
  }

  // Whether it is the second one of its owner, where each has two.
  Condition is_late(const Index& piece) const { return piece >= ranks_; }

  // A piece's rows: where they begin in the whole, how many, and where among those of their rank.
  struct Piece {
    Index first, rows, at;
  };
  // That of the owner, where it has two the second one if `is_late`.
  Piece of_rank(const Index& rank, const Condition& is_late) const;
  Piece piece(const Index& number) const { return of_rank(owner(number), number >= ranks_); }

 private:
  Dim rows_, ranks_;
  bool zig_zag_;
};

// Whether a tile of so many is of the rank's second piece, and its number in its piece.
struct TileOfPiece {
  TileOfPiece(const Index& number, const Dim& early)
      : is_late(number >= early), number(select(is_late, max(number - early, 0), number)) {}
  Condition is_late;
  Index number;
};

// Of keys and of the last ones that queries see, both as rows of the whole.
inline Tile under_mask(const Attention& a, const Tile& keys, const Tile& last) {
  const Tile below = keys <= last;
  return a.window > 0 ? below && keys > last - a.window : below;
}

// One past the last key that queries see whose last row is before `end` of the whole.
template <typename Number>
Number visible_keys(const Number& end, const Dim& queries, const Dim& keys) {
  return min(max(end + (keys - queries), 0), keys);
}

// What a piece of a packed axis has of its sequences. Tiles are those of the whole axis, each cut
// where the piece begins and ends; a rank has the piece's rows on an axis of its own.
class PackedPiece {
 public:
  PackedPiece(const Ragged& whole, const Dim& axis_of_rank, const DividedAxis::Piece& piece)
      : whole_(whole), axis_(axis_of_rank), piece_(piece) {}
  // Of the number-th tile that may have rows of the piece.
  Ragged::Tile tile(const Index& number, int size) const;
  Block rows(const Index& sequence, const Index& block, int size) const;
  // Its part of the sequence, as rows of the rank.
  Sequence of(const Index& sequence) const;

 private:
  Index to_rank(const Index& row) const {
    return piece_.at + min(max(row - piece_.first, 0), piece_.rows);
  }
  Ragged whole_;
  Dim axis_;
  DividedAxis::Piece piece_;
};

// Which axis of keys and values is divided.
constexpr int key_axis(const BatchShapes*) { return 1; }
constexpr int key_axis(const PackedShapes*) { return 0; }

// What a rank's caller passes, of sequences of one length (BatchShapes) or packed ones.
template <typename Shapes>
struct AttentionBuffers {
  AttentionBuffers(Program& program, const Attention& a);
  // In the order of the kernels' parameters, with keys and values from elsewhere.
  std::vector<Part> parts(const Part& keys, const Part& values) const;
  Shapes shapes;
  Buffer Q, K, V;
  std::vector<Buffer> first_rows;  // of packed sequences
  Buffer O, LSE;
  std::optional<Buffer> sinks;
};

}  // namespace tilewright::kernels
