#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_ring.h"
#include "kernels/rank_words.h"
#include "tilewright/kernels/softmax.h"

// The gradients of attention in a ring, for sm_90a: at each step the kernel of one GPU's ordered
// schedule, of own queries and the keys of one rank. Sums of dQ stay from step to step, and those
// of dK and dV come with the keys.
namespace tilewright::kernels {

// The memory that steps share: sums of dQ, those of dK and dV of one rank's keys, and the words of
// a step, which are 0 before it.
struct RingSums {
  std::vector<Dim> of_queries, of_keys;
  Dim turns;
};
RingSums ring_sums_sm90(const SequenceParallelAttention& o, const BatchShapes& shapes,
                        const Caller& caller);
BackwardPlan ring_backward_plan(const SequenceParallelAttention& o, RingPass pass,
                                const Caller& caller);
// Q, K, V, dO, L, D, sums of dQ; of the last pass dQ, dK, dV; words, sums of dK and dV; but of the
// first pass, those of the steps before, to which they are added last, and the words of each step
// that say that these have come. How many places before this rank the keys' owner is.
Kernel gradients_to_one_sm90(const SequenceParallelAttention& o, RingPass pass,
                             const std::string& name, const Caller& caller);

// Rows from `first` on see the keys before `end`.
struct SeenKeys {
  Index first, end;

  std::pair<Index, Index> visible_rows(const Block& cols, const Sequence& queries, int size) const {
    const Condition is_seen = cols.start() < end && first < queries.end();
    const Index last = select(is_seen, queries.blocks(size), 0);
    return {min(first / size, last), last};
  }
  std::pair<Index, Index> full_rows(const Block& cols, const Sequence& queries, int size) const {
    const auto [begin, last] = visible_rows(cols, queries, size);
    const Index behind = select(cols.start() + cols.size() <= end, last, begin);
    return {min(max(begin, ceil_div(first, size)), behind), behind};
  }
  std::pair<Index, Index> visible(const Block& rows, const Sequence&, int size) const {
    const Index last_row = min(rows.start() + rows.size(), rows.limit());
    return {0, select(last_row > first, ceil_div(end, size), 0)};
  }
  Tile apply_transposed(const Tile& scores, const Block& rows, const Block& cols) const {
    return where(cols.as_column() < end && rows.as_row() >= first, scores, kNone);
  }
};

// The keys of one rank at a step. `steps`: of a run, that are launches of this kernel.
class KeysOfStep : public BatchKeys {
 public:
  KeysOfStep(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts, Division division,
             const SequenceParallelAttention& o, int steps = 1)
      : BatchKeys(kernel, a, ordered, parts, division),
        kernel_(kernel),
        steps_(steps),
        places_before_(kernel.scalar("places_before", i32)),
        rows_(queries, kernel.ranks(), o.shards),
        causal_(o.attention.causal) {}

  // Until the rank before has sent its sums of dK and dV. Words have the number of the run, and
  // epochs count launches.
  void await_sums(const Tensor& arrived) const {
    const Index run = ceil_div(kernel_.epoch(), steps_);
    wait_flag(arrived(Index(places_before_) - 1), Compare::ge, run, kLearn);
  }

 protected:
  bool halves() const { return rows_.pieces_of_rank() > 1; }

  Kernel& kernel_;
  int steps_;
  Scalar places_before_;
  DividedAxis rows_;  // under a mask of queries and of keys
  bool causal_;
};

// Of another rank. Under a mask all own rows see an earlier rank's keys, of zig-zag shards those of
// its early half. Of a later rank's keys zig-zag shards' late halves see all.
class OthersKeys : public KeysOfStep {
 public:
  OthersKeys(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts, Division division,
             const SequenceParallelAttention& o, bool is_first)
      : KeysOfStep(kernel, a, ordered, parts, division, o, std::max(o.ranks - 2, 1)),
        is_first_(is_first) {}

  struct One : Batch::One {
    SeenKeys mask;
  };
  One of(const Index& sequence) const {
    Index first(0), end(keys);
    if (causal_) {
      const Index me = kernel_.rank(), early(rows_.early_rows());
      const Index owner = (me + kernel_.ranks() - Index(places_before_)) % kernel_.ranks();
      const Condition is_before = owner < me;
      end = halves() ? select(is_before, early, end) : select(is_before, end, 0);
      if (halves()) first = select(is_before, 0, early);
    }
    return {{sequence, queries, keys, everything()}, {first, end}};
  }
  // Whether an earlier step has summed dQ of these rows.
  Condition has_sums(const Block&) const { return !is_first_; }

 private:
  bool is_first_;
};

// Its own, at the last step. The first rank's early rows have seen no others.
class OwnKeys : public KeysOfStep {
 public:
  using KeysOfStep::KeysOfStep;
  Condition has_sums(const Block& rows) const {
    if (!causal_) return true;
    const Condition is_later = kernel_.rank() > 0;
    if (!halves()) return is_later;
    return is_later || min(rows.start() + rows.size(), rows.limit()) > rows_.early_rows();
  }
};

}  // namespace tilewright::kernels
