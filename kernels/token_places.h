#pragma once

#include <optional>
#include <utility>

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Where tokens are that are divided among ranks: among those of the rank that has them, and among
// all of them, in which a sequence's parts follow each other in the order of the ranks. Sequences
// are of one length, or packed: then `first_rows` {ranks, sequences + 1} says where their parts
// begin in each rank.
class TokenPlaces {
 public:
  TokenPlaces(int ranks, const Dim& batch, const Dim& tokens,
              const std::optional<Tensor>& first_rows = {})
      : ranks_(ranks), batch_(batch), tokens_(tokens), first_rows_(first_rows) {}

  struct Place {
    Index sequence;
    Block own, all;  // rows of the rank's tokens, and the same of all tokens
  };
  // Tiles of so many rows that each rank's tokens have. Packed, some may be without rows.
  Dim tiles(int size) const {
    if (first_rows_) return tokens_ * min(batch_, 1) / size + batch_;
    return batch_ * ceil_div(tokens_, size);
  }
  // That of the rank which has them.
  Place place(const Index& owner, const Index& tile, int size) const;
  bool is_packed() const { return first_rows_.has_value(); }

  // The part of a tensor of own tokens, or of all.
  template <typename... S>
  TensorView at(const Tensor& tensor, const Index& sequence, const Block& rows,
                const S&... others) const {
    return is_packed() ? tensor(rows, others...) : tensor(sequence, rows, others...);
  }

 private:
  Index first_row(const Index& owner, const Index& sequence) const {
    return load_index((*first_rows_)(owner, sequence));
  }
  std::pair<Index, Index> packed_tile(const Index& owner, const Index& tile, int size) const;
  Index rows_of_others(const Index& owner, const Index& sequence) const;

  int ranks_;
  Dim batch_, tokens_;
  std::optional<Tensor> first_rows_;
};

}  // namespace tilewright::kernels
