#pragma once

#include "kernels/attention_parameters.h"
#include "tilewright/kernels/attention_ranks.h"

// What attentions over ranks share.
namespace tilewright::kernels {

// Raises for what fits no attention over ranks.
void check_attention_ranks(const SequenceParallelAttention& o, const Caller& caller);

// An axis that is divided among ranks. A rank's rows are one run of those of the whole, or two; a
// run of a rank is called a piece here, and pieces are numbered in the order of the whole. Numbers
// are Index or Dim.
class DividedAxis {
 public:
  DividedAxis(const Dim& rows_of_rank, const Dim& ranks, Shards shards)
      : rows_(rows_of_rank), ranks_(ranks), zig_zag_(shards == Shards::zig_zag) {}
  int pieces_of_rank() const { return zig_zag_ ? 2 : 1; }
  Dim pieces() const { return ranks_ * pieces_of_rank(); }
  Dim all_rows() const { return ranks_ * rows_; }
  // Of a rank's first piece, and of its second.
  Dim early_rows() const { return zig_zag_ ? ceil_div(rows_, 2) : rows_; }
  Dim late_rows() const { return rows_ - early_rows(); }

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

 private:
  Dim rows_, ranks_;
  bool zig_zag_;
};

// What a rank's caller passes.
struct AttentionBuffers {
  AttentionBuffers(Program& program, const Attention& a);
  // In the order of attention_forward's parameters.
  std::vector<Part> parts() const;
  BatchShapes shapes;
  Buffer Q, K, V, O, LSE;
  std::optional<Buffer> sinks;
};

}  // namespace tilewright::kernels
