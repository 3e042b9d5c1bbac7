#pragma once

#include <string>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// Instead of a block of keys: there is none; the end of the work.
constexpr int kNoKeys = -2, kEndOfKeys = -1;

// What travels with a block of keys: its place, and how many blocks of rows follow it.
constexpr int kKeyNumbers = 7;
inline std::vector<IndexOperand> key_numbers(const KeyPlace& at, const Index& steps) {
  return {at.block, at.kv_head, at.sequence, steps, at.way, at.part, at.number};
}
inline std::vector<IndexOperand> no_keys(int block, const Index& number) {
  return {block, 0, 0, 0, 0, 0, number};
}
inline KeyPlace key_place(const Slot& slot) {
  return {slot.number(6), slot.number(0), slot.number(1),
          slot.number(2), slot.number(4), slot.number(5)};
}

// `body` with each block of rows [0, rows) and member that a block of keys goes through.
inline void for_rows(const Index& way, const Index& rows, const Index& members,
                     FunctionRef<void(const Index& row, const Index& member)> body) {
  const Condition by_member = is(way, Way::members), down = is(way, Way::rows_down);
  const Index outer = select(by_member, members, rows), inner = select(by_member, rows, members);
  for (Index i : range(outer)) {
    for (Index k : range(inner)) {
      const Index row = select(by_member, k, i);
      body(select(down, rows - 1 - row, row), select(by_member, i, k));
    }
  }
}

// The `step`-th of them.
struct RowStep {
  Index row, member;
};
inline RowStep row_step(const Index& way, const Index& rows, const Index& members,
                        const Index& step) {
  const Condition by_member = is(way, Way::members), down = is(way, Way::rows_down);
  const Index before = step / max(rows, 1), by_row = step / members;
  const Index row = select(by_member, step - before * rows, by_row);
  return {select(down, rows - 1 - row, row), select(by_member, before, step - by_row * members)};
}

// The same of a part. Where parts are steps, one member is behind the other.
inline void for_rows(const HeadParts& parts, const KeyPlace& at, const Index& rows,
                     FunctionRef<void(const Index& row, const Index& member)> body) {
  if (!parts.by_steps) return for_rows(at.way, rows, parts.members_of(at.part), body);
  const auto [first, last] = parts.steps_of(at.part, rows);
  const Index of_member = max(rows, 1);
  for (Index member : range(first / of_member, ceil_div(last, of_member))) {
    const Index before = member * rows;
    for (Index row : range(max(first - before, 0), min(last - before, rows))) body(row, member);
  }
}

// By a warp beside those that compute: `body` with each place, and how many blocks of rows follow
// it.
inline void for_key_blocks(Ring& ring,
                           FunctionRef<void(const KeyPlace&, const Index& steps)> body) {
  Cell<Condition> more(true);
  repeat_while(more, [&] {
    const Slot slot = ring.consume();
    const KeyPlace at = key_place(slot);
    const Index steps = slot.number(3);
    ring.release(slot);
    when(at.block != kEndOfKeys, [&] { body(at, steps); });
    more = at.block != kEndOfKeys;
  });
}

// How many blocks of keys add to dQ of the block of queries `row` before the one at `at`.
template <typename Sequence>
Index turn_of(const Attention& a, const Sequence& sequence, const KeyPlace& at, const Index& row) {
  const Block rows = sequence.queries.block(row, a.block_q);
  const auto [first, last] = sequence.mask.visible(rows, sequence.keys, a.block_k);
  return select(is(at.way, Way::members), last - 1 - at.block, at.block - first);
}

// How many add to it.
template <typename Sequence>
Index adders_of(const Attention& a, const Sequence& sequence, const Index& row) {
  const Block rows = sequence.queries.block(row, a.block_q);
  const auto [first, last] = sequence.mask.visible(rows, sequence.keys, a.block_k);
  return last - first;
}

// Sums in memory that CTAs add to in a fixed order. A sum's word counts who has added. The first
// stores instead, so that nothing has to set the sums to zero.
class Turns {
 public:
  // `words`: i32, one for each sum, 0 before. `adders`: the threads that add. `name`: of a ring.
  // `more`: numbers that travel with a turn.
  Turns(Kernel& kernel, const std::string& name, const Tensor& words, int adders, int more = 0)
      : words_(words),
        ring_(kernel, name, stages(kStages), std::vector<TileShape>{}),
        added_(kernel, adders + 32, kStages) {
    ring_.numbered(2 + more);
  }

  // Until `turn` others have added to the sum. By a warp ahead of those that add, so that they do
  // not wait for memory.
  void await(const Index& sum, const Index& turn, const std::vector<IndexOperand>& more = {}) {
    wait_flag(words_(sum), Compare::ge, turn, {Semantics::acquire, Scope::gpu});
    std::vector<IndexOperand> numbers = {sum, turn};
    numbers.insert(numbers.end(), more.begin(), more.end());
    ring_.produce(numbers);
  }

  // The same of a sum to which nobody else adds.
  void give_alone(const Index& sum) { ring_.produce({sum, kAlone}); }

  // By the warps that add, in the order of await.
  struct Turn {
    Slot slot;
    Index sum() const { return slot.number(0); }
    Condition is_first() const { return slot.number(1) == 0; }
    Condition is_alone() const { return slot.number(1) == kAlone; }
    Index more(int which) const { return slot.number(2 + which); }
  };
  Turn begin() { return {ring_.consume()}; }
  void end(const Turn& turn) {
    ring_.release(turn.slot);
    added_.arrive(turn.slot.stage());
  }

  // By warps that add nothing in this turn.
  void pass_over(const Turn& turn) { ring_.release(turn.slot); }

  // Hands the sum on. By a warp apart from both, since a release waits until all additions are in
  // memory. The stage is released behind the barrier: before it no warp comes to this barrier
  // again. `count`: what the word is to be more by.
  void hand_on(FunctionRef<Index(const Turn&)> count = [](const Turn&) { return 1; }) {
    const Slot turn = ring_.consume();
    const Index sum = turn.number(0), more = count({turn});
    added_.sync(turn.stage());
    ring_.release(turn);
    atomic_add(words_(sum), more, {Semantics::release, Scope::gpu});
  }

 private:
  static constexpr int kStages = 4;  // at dims to 128 measured better than 2
  static constexpr int kAlone = -1;  // instead of a turn
  Tensor words_;
  Ring ring_;
  NamedBarrier added_;
};

// By a warp of its own: hands on each sum that a CTA adds to, `keys` being the blocks that it
// takes.
inline void end_turns(Ring& keys, Turns& turns) {
  for_key_blocks(keys, [&](const KeyPlace&, const Index& steps) {
    for ([[maybe_unused]] Index i : range(steps)) turns.hand_on();
  });
}

}  // namespace tilewright::kernels
