#pragma once

#include <optional>
#include <vector>

#include "kernels/attention_parameters.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// Whether a kernel is about queries alone: the others' dims then have no value.
enum class Of { queries, both };

// Sequences of one length, and what a block of the grid is of them. What a kernel has for each row
// and keeps for others, it may keep in whole blocks of `multiple` rows.
class Batch : public BatchShapes {
 public:
  using Shapes = BatchShapes;
  Batch(Kernel& kernel, const Attention& a, Of of, int = 1)
      : Shapes(kernel, a, of == Of::both), a_(a) {}
  // Of a program: what its kernels take behind Q, K and V.
  static std::vector<Buffer> first_rows(Program&, const Shapes&) { return {}; }

  struct One {
    Index sequence;
    Sequence queries, keys;
    Mask mask;
    TensorView rows(const Tensor& tensor, const Block& rows, const Index& head,
                    const Selector& columns = all) const {
      return tensor(sequence, rows, head, columns);
    }
    TensorView row_numbers(const Tensor& tensor, const Block& rows, const Index& head) const {
      return tensor(sequence, head, rows);
    }
    // Of what is kept in whole blocks.
    TensorView kept(const Tensor& tensor, const Block& rows, const Index& head) const {
      return row_numbers(tensor, rows, head);
    }
    TensorView kept_block(const Tensor& tensor, const Block& block, const Block& one_head) const {
      return tensor(sequence, one_head, block);
    }
    // Among those of a head that are kept, the block that is the sequence's own `block`.
    Index kept_number(const Index& block) const { return block; }
  };
  One of(const Index& sequence) const {
    return {sequence, queries, keys, attention_mask(queries, keys, a_.causal, a_.window)};
  }
  // Among those of all heads.
  Index kept_number(const One& one, const Index& head, const Index& block, int size) const {
    return (one.sequence * heads + head) * ceil_div(queries, size) + block;
  }

  struct Place : One {
    Index head;
    Block block;  // of queries, or of keys
    Index number, part;
  };
  // In `parts` each.
  Place block_of_queries(Kernel& kernel, int size, int parts = 1) const {
    const auto [x, h, b] = kernel.grid(ceil_div(queries, size) * parts, heads, batch);
    const Index block = x / parts;
    return {of(b), h, queries.block(block, size), block, x % parts};
  }
  Place block_of_keys(Kernel& kernel, int size) const {
    const auto [x, h, b] = kernel.grid(ceil_div(keys, size), kv_heads, batch);
    return {of(b), h, keys.block(x, size), x, 0};
  }
  // Calls `body` with blocks of all rows of a head that are kept; `queries` is how many those are.
  template <typename Body>
  void for_kept_rows(const Index& head, int size, const Body& body) const {
    for (Index b : range(batch)) {
      for (Block rows : blocks(queries, size)) {
        body([&](const Tensor& tensor) { return tensor(b, head, rows); });
      }
    }
  }

 private:
  const Attention& a_;
};

// Packed sequences. Of what is kept in blocks, each has whole blocks of its own.
class Packed : public PackedShapes {
 public:
  using Shapes = PackedShapes;
  Packed(Kernel& kernel, const Attention& a, Of of, int multiple = 1)
      : Shapes(kernel, a, of == Of::both),
        a_(a),
        multiple_(multiple),
        queries_(total_queries, kernel.in("cu_seqlens_q", i32, of_first_rows())) {
    if (of == Of::both) keys_.emplace(total_keys, kernel.in("cu_seqlens_k", i32, of_first_rows()));
  }
  static std::vector<Buffer> first_rows(Program& program, const Shapes& shapes) {
    return {program.in("cu_seqlens_q", i32, shapes.of_first_rows()),
            program.in("cu_seqlens_k", i32, shapes.of_first_rows())};
  }

  struct One {
    Index sequence;
    Sequence queries, keys;
    Mask mask;
    int multiple;
    TensorView rows(const Tensor& tensor, const Block& rows, const Index& head,
                    const Selector& columns = all) const {
      return tensor(rows, head, columns);
    }
    TensorView row_numbers(const Tensor& tensor, const Block& rows, const Index& head) const {
      return tensor(head, rows);
    }
    TensorView kept(const Tensor& tensor, const Block& rows, const Index& head) const {
      if (multiple == 1) return row_numbers(tensor, rows, head);
      const Index moved = kept_number(0) * multiple - queries.begin();
      return tensor(head, Block(rows.start() + moved, rows.size(), rows.limit() + moved));
    }
    TensorView kept_block(const Tensor& tensor, const Block& block, const Block& one_head) const {
      return tensor(one_head, block);
    }
    // As Ragged::tile numbers them, but that those before the first sequence count.
    Index kept_number(const Index& block) const {
      return queries.begin() / multiple + sequence + block;
    }
  };
  One of(const Index& sequence) const {
    const Sequence queries = queries_.of(sequence);
    if (!keys_) return {sequence, queries, {}, everything(), multiple_};
    const Sequence keys = keys_->of(sequence);
    return {sequence, queries, keys, attention_mask(queries, keys, a_.causal, a_.window),
            multiple_};
  }
  Index kept_number(const One& one, const Index& head, const Index& block, int size) const {
    return head * (total_queries / size + batch) + one.kept_number(block);
  }

  struct Place : One {
    Index head;
    Block block;
    Index number, part;
  };
  Place block_of_queries(Kernel& kernel, int size, int parts = 1) const {
    const auto [x, h] = kernel.grid(queries_.tiles(size) * parts, heads);
    const auto [b, block] = queries_.tile(x / parts, size);
    const One one = of(b);
    return {one, h, one.queries.block(block, size), block, x % parts};
  }
  Place block_of_keys(Kernel& kernel, int size) const {
    const auto [tile, h] = kernel.grid(keys_->tiles(size), kv_heads);
    const auto [b, x] = keys_->tile(tile, size);
    const One one = of(b);
    return {one, h, one.keys.block(x, size), x, 0};
  }
  // `total_queries` is how many they are. Of whole blocks of several rows all are read.
  template <typename Body>
  void for_kept_rows(const Index& head, int size, const Body& body) const {
    const auto part_of = [&](const Block& rows) {
      body([&](const Tensor& tensor) { return tensor(head, rows); });
    };
    if (multiple_ > 1) {
      for (Block rows : blocks(total_queries, size)) part_of(rows);
      return;
    }
    for (Index b : range(batch)) {
      for (Block rows : blocks(queries_.of(b), size)) part_of(rows);
    }
  }
  const Ragged& query_sequences() const { return queries_; }
  const Ragged& key_sequences() const { return *keys_; }

 private:
  const Attention& a_;
  int multiple_;
  Ragged queries_;
  std::optional<Ragged> keys_;
};

// Blocks of rows of all heads, by their number, to which all blocks of keys have been dealt.
struct FinishedRows {
  Index first, count;
};
// A block of keys of a head that others share, and the sequence; whether its rows are gone through
// from the first to the last (1) or from the last to the first (0); the rows of other heads that
// are converted behind it.
struct KeyPlace {
  Index block, kv_head, sequence, ascends;
  FinishedRows finished;
};

// The blocks of keys of all heads: those of `group` heads follow each other, of which the first
// blocks come first. A causal mask makes them the longest. Where a group has fewer blocks than
// there are multiprocessors, the last group's first ones begin late and end alone.
// In turns only the last group is dealt so: there what is long must not begin last. In the others
// the last keys come first, and rows in ascending order. Then the blocks that meet at a causal
// diagonal come to a row a step apart, and nobody waits for his turn. What a group has summed is
// converted by the next one. Of long sequences a group has two waves of blocks, so that the second
// does not wait for the group before, and there are eight groups, since the last one is slower.
class HeadGroups {
 public:
  // `sequences`: of different lengths that a head has. Of many sequences no block is long beside
  // the work, so that the last group is dealt as the others.
  HeadGroups(const Dim& of_head, const Dim& heads, const Dim& fit, bool ordered,
             const Dim& sequences = 1)
      : of_head_(of_head), heads_(heads), many_(min(sequences / kMany, 1)), ordered_(ordered) {
    const Dim blocks = max(of_head, 1);
    Dim least = max(fit, multiprocessors() / blocks);
    if (ordered) {
      const Dim is_long = min(blocks / kLong, 1);
      least = max(least, is_long * min(ceil_div(multiprocessors() * 2, blocks), heads / 8));
    }
    group_ = ceil_div(heads, max(ceil_div(heads, max(least, 1)), 1));
  }
  Dim count() const { return of_head_ * heads_; }
  Dim of_head() const { return of_head_; }
  struct Place {
    Index block, head, ascends;
  };
  // The rows of a group are divided among the second half of the next group's blocks. When the
  // first half begins, those of the group before are not complete. `rows` is how many blocks of
  // rows a head has.
  FinishedRows finished(const Index& number, const Dim& rows) const {
    const Dim per_group = max(group_ * of_head_, 1);
    const Index first = number / per_group * group_;
    const Index of_group = min(heads_ - first, group_) * of_head_;
    const Index late = of_group / 2, place = number % per_group - late;
    const Index all = select(first > 0 && place >= 0, group_ * rows, 0);
    const Index share = ceil_div(all, max(of_group - late, 1));
    const Index begin = min(max(place, 0) * share, all);
    return {(first - group_) * rows + begin, min(share, all - begin)};
  }
  // Those of the last group.
  FinishedRows last_finished(const Dim& rows) const {
    const Dim groups = ceil_div(heads_, max(group_, 1)) * min(of_head_, 1);
    const Dim first = max(groups - 1, 0) * group_ * rows;
    return {Index(first), heads_ * rows - first};
  }
  Place place(const Index& number) const {
    const Dim per_group = max(group_ * of_head_, 1);
    const Index first = number / per_group * group_, in_group = number % per_group;
    const Index height = min(heads_ - first, group_);
    const Index block = in_group / height, head = first + in_group % height;
    if (!ordered_) return {block, head, 1};
    const Index ascends = select(first + height < heads_, 1, many_);
    return {select(ascends > 0, of_head_ - 1 - block, block), head, ascends};
  }

 private:
  static constexpr int kLong = 32;  // blocks of keys
  static constexpr int kMany = 8;   // sequences
  Dim of_head_, heads_, many_, group_;
  bool ordered_;
};

// Q, dO and sums of dQ of a row, of all heads that share keys.
inline int bytes_of_row(const Attention& a) {
  return a.heads / a.kv_heads * ((a.dim + a.dim_v) * size_of(a.dtype) + a.dim * size_of(f32));
}

// Of sequences of one length, heads follow each other whose Q, dO and sums of dQ stay in L2
// together.
class BatchKeys : public Batch {
 public:
  static constexpr bool kOneLength = true;
  BatchKeys(Kernel& kernel, const Attention& a, bool ordered = false)
      : Batch(kernel, a, Of::both),
        block_q_(a.block_q),
        rows_(ceil_div(queries, a.block_q)),
        groups_(ceil_div(keys, a.block_k), batch * a.kv_heads,
                // In order a group's sums stay in L2 until the next group's blocks convert them.
                a.l2_bytes / (ordered ? 2 : 1) / bytes(a), ordered) {}
  Dim count() const { return groups_.count(); }
  KeyPlace place(const Index& number) const {
    const auto [block, head, ascends] = groups_.place(number);
    return {block, head % kv_heads, head / kv_heads, ascends,
            groups_.finished(number, rows_of_head())};
  }
  FinishedRows last_finished() const { return groups_.last_finished(rows_of_head()); }
  // Of a head of the keys: blocks of rows, blocks of keys, and the head's number.
  Dim rows_of_head() const { return rows_ * (heads / kv_heads); }
  Dim blocks_of_head() const { return groups_.of_head(); }
  Index head_number(const KeyPlace& at) const { return at.sequence * kv_heads + at.kv_head; }
  Place block_of_rows(const Index& number) const {
    const Dim of_head = max(rows_, 1);
    const Index head = number / of_head, block = number % of_head;
    return {of(head / heads), head % heads, queries.block(block, block_q_), block, 0};
  }

 private:
  Dim bytes(const Attention& a) const { return max(queries, 1) * bytes_of_row(a); }
  int block_q_;
  Dim rows_;  // blocks of rows of a head
  HeadGroups groups_;
};

// Of packed sequences, those of a head are in the sequences' order. In order, as many heads follow
// each other as have the rows of one sequence in L2: the blocks of a sequence and a head that run
// at once wait for each other.
class PackedKeys : public Packed {
 public:
  static constexpr bool kOneLength = false;
  PackedKeys(Kernel& kernel, const Attention& a, bool ordered = false)
      : Packed(kernel, a, Of::both, a.block_q),
        block_q_(a.block_q),
        block_k_(a.block_k),
        rows_(query_sequences().tiles(a.block_q)),
        groups_(key_sequences().tiles(a.block_k), a.kv_heads, ordered ? fit(a) : Dim(1), ordered,
                batch) {}
  Dim count() const { return groups_.count(); }
  KeyPlace place(const Index& number) const {
    const auto [tile, head, ascends] = groups_.place(number);
    const auto [sequence, block] = key_sequences().tile(tile, block_k_);
    return {block, head, sequence, ascends, groups_.finished(number, rows_of_head())};
  }
  FinishedRows last_finished() const { return groups_.last_finished(rows_of_head()); }
  // Of a head of the keys: blocks of rows, blocks of keys, and the head's number.
  Dim rows_of_head() const { return rows_ * (heads / kv_heads); }
  Dim blocks_of_head() const { return groups_.of_head(); }
  Index head_number(const KeyPlace& at) const { return at.kv_head; }
  // Some numbers have no rows.
  Place block_of_rows(const Index& number) const {
    const Dim of_head = max(rows_, 1);
    const auto [sequence, block] = query_sequences().tile(number % of_head, block_q_);
    const One one = of(sequence);
    return {one, number / of_head, one.queries.block(block, block_q_), block, 0};
  }

 private:
  Dim fit(const Attention& a) const {
    const Dim rows = ceil_div(total_queries, max(batch, 1));
    return a.l2_bytes / (max(rows, 1) * bytes_of_row(a));
  }
  int block_q_, block_k_;
  Dim rows_;  // blocks of rows of a head, over all sequences
  HeadGroups groups_;
};

// Numbers below `count`, to whichever CTA of a persistent kernel is the first to ask. `next` is a
// word of a workspace, which is 0 behind the last of them. `end` runs in each CTA when none is
// left.
template <typename Body, typename End>
void hand_out(const Tensor& next, const Dim& count, const Body& body, const End& end) {
  Cell<Index> number(cta_index());
  Cell<Condition> more(true);
  repeat_while(more, [&] {
    const Index now = number;
    more = now < count;
    when(
        now < count,
        [&] {
          body(now);
          // The last fetch of all sets the counter back for the next launch.
          const Index fetched = atomic_add(next(0), 1);
          when(fetched == count - 1, [&] { atomic_add(next(0), 0 - Index(count)); });
          number = fetched + cta_count();
        },
        end);
  });
}

// The same for clusters of two CTAs, which take a number together. The first one asks, and tells
// the other one by a word of memory: the number and 1. That one answers by another word.
class PairsOfCtas {
 public:
  PairsOfCtas(Kernel& kernel, const Dim& count)
      : count_(count),
        next_(kernel.workspace("next_pair", 1)),
        words_(kernel.workspace("told", 2 * kMost)) {}
  Dim ctas() const { return min(multiprocessors() / 2, kMost) * 2; }
  // By one warp of each CTA.
  template <typename Body>
  void hand_out(const Body& body) const {
    const Index pair = cta_index() / 2;
    const TensorView told = words_(pair), answer = words_(kMost + pair);
    // The last number that was told, and 1; 0: none yet.
    Cell<Index> number(pair), last(0);
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      const Index now = number;
      more = now < count_;
      when(now < count_, [&] {
        body(now);
        when(
            cluster_rank() == 0, [&] { number = ask(told, answer, last); },
            [&] { number = hear(told, answer, last); });
        last = number + 1;
      });
    });
    // As the next launch wants them.
    when(cluster_rank() == 0 && last > 0, [&] {
      wait_flag(answer, Compare::ge, last, {Semantics::acquire, Scope::gpu});
      atomic_add(told, 0 - last);
      atomic_add(answer, 0 - last);
    });
  }

 private:
  static constexpr int kMost = 128;

  Index ask(const TensorView& told, const TensorView& answer, const Index& last) const {
    // The last fetch of all sets the counter back for the next launch.
    const Index fetched = atomic_add(next_(0), 1);
    when(fetched == count_ - 1, [&] { atomic_add(next_(0), 0 - Index(count_)); });
    const Index number = fetched + cta_count() / 2;
    wait_flag(answer, Compare::ge, last, {Semantics::acquire, Scope::gpu});
    atomic_add(told, number + 1 - last, {Semantics::release, Scope::gpu});
    return number;
  }
  static Index hear(const TensorView& told, const TensorView& answer, const Index& last) {
    wait_flag(told, Compare::ge, last + 1, {Semantics::acquire, Scope::gpu});
    const Index number = load_index(told, {Semantics::acquire, Scope::gpu}) - 1;
    atomic_add(answer, number + 1 - last, {Semantics::release, Scope::gpu});
    return number;
  }

  Dim count_;
  Tensor next_, words_;
};

}  // namespace tilewright::kernels
