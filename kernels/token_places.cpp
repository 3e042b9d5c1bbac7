#include "kernels/token_places.h"

namespace tilewright::kernels {

TokenPlaces::Place TokenPlaces::place(const Index& owner, const Index& tile, int size) const {
  const Dim all_tokens = ranks_ * tokens_;
  if (!first_rows_) {
    const Dim blocks = ceil_div(tokens_, size);
    const Index block = tile % blocks, first = owner * tokens_;
    const Sequence part(all_tokens, first, first + tokens_);
    return {tile / blocks, tokens_.block(block, size), part.block(block, size)};
  }
  const auto [sequence, block] = packed_tile(owner, tile, size);
  const Sequence own(tokens_, first_row(owner, sequence),
                     min(first_row(owner, sequence + 1), tokens_));
  const Index before = rows_of_others(owner, sequence);
  const Sequence part(all_tokens, own.begin() + before, own.end() + before);
  return {sequence, own.block(block, size), part.block(block, size)};
}

// The sequence that has a rank's tile, and which of its blocks that is: as Ragged::tile.
std::pair<Index, Index> TokenPlaces::packed_tile(const Index& owner, const Index& tile,
                                                 int size) const {
  const auto first = [&](const Index& sequence) {
    return first_row(owner, sequence) / size + sequence;
  };
  const Index wanted = tile + first(0);
  Cell<Index> low(Index(0)), high{Index(batch_)};
  Cell<Condition> more(Index(1) < high);
  repeat_while(more, [&] {
    const Index middle = (low + high) / 2;
    const Condition reached = first(middle) <= wanted;
    low = select(reached, middle, low);
    high = select(reached, high, middle);
    more = low + 1 < high;
  });
  return {low, max(wanted - first(low), 0)};
}

// Of other ranks' rows those that come before the owner's in the sequence: of the sequences before
// it, and of the sequence itself what the ranks before have.
Index TokenPlaces::rows_of_others(const Index& owner, const Index& sequence) const {
  Index sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    const Index end = sequence + select(rank < owner, 1, 0);
    sum = sum + select(rank == owner, 0, first_row(rank, end));
  }
  return sum;
}

}  // namespace tilewright::kernels
