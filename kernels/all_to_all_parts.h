#pragma once

#include <vector>

#include "kernels/caller.h"
#include "tilewright/kernels/all_to_all.h"

// What the forms of all_to_all share.
namespace tilewright::kernels {

enum class Direction {
  to_heads,  // from own tokens of all heads to all tokens of own heads
  back,
};

// One of the tensors that are exchanged.
struct ExchangedHeads {
  const char* name;  // of what has own tokens; what has all of them is name_all
  bool of_queries;   // the tokens are queries, else keys
  int ranks, heads, own, dim;
  // The first head of a rank, in blocks of `size`, which divides own.
  template <typename Rank>
  Rank first(const Rank& rank, int size = 1) const {
    return rank * heads / ranks / size;
  }
};
std::vector<ExchangedHeads> exchanged(const AllToAll& o, Direction direction);

// The dims that a kernel of all tensors or a program declares, and the tensors' shapes.
struct ExchangeDims {
  template <typename Declarer>
  ExchangeDims(Declarer& declarer, const AllToAll& o, Direction direction)
      : ranks(o.ranks),
        packed(o.packed),
        batch(declarer.dim("batch")),
        queries(declarer.dim("queries")),
        keys(direction == Direction::back ? Dim(0) : declarer.dim("keys")) {}
  const Dim& tokens(const ExchangedHeads& part) const { return part.of_queries ? queries : keys; }
  std::vector<Dim> own(const ExchangedHeads& part) const {
    return shape(tokens(part), part.heads, part.dim);
  }
  std::vector<Dim> all(const ExchangedHeads& part) const {
    return shape(ranks * tokens(part), part.own, part.dim);
  }
  std::vector<Dim> first_rows() const { return {ranks, batch + 1}; }

  int ranks;
  bool packed;
  Dim batch, queries, keys;

 private:
  std::vector<Dim> shape(const Dim& tokens, int heads, int dim) const {
    return packed ? std::vector<Dim>{tokens, heads, dim}
                  : std::vector<Dim>{batch, tokens, heads, dim};
  }
};

// What is no all_to_all is a usage error, and what TMA does not copy.
void check_all_to_all(const AllToAll& o, const Caller& caller);
void check_all_to_all_sm90(const AllToAll& o, Direction direction, const Caller& caller);

// For sm_90a, of all tensors together. They are, in their order: what is exchanged, packed the
// first rows of queries and of keys, the results, and words "begun" and "arrived" (rank_words.h).
Kernel all_to_all_kernel_sm90(const AllToAll& o, Direction direction, const Caller& caller);

}  // namespace tilewright::kernels
