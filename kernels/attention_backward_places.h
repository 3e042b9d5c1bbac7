#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/attention_backward_sequences.h"
#include "kernels/attention_parameters.h"
#include "tilewright/function_ref.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {

// All blocks of keys read the rows, and each its own keys once: L2 keeps the rows.
inline constexpr TmaOptions kOfRows{Cache::evict_last}, kOfKeys{Cache::evict_first};

// How heads that share keys are divided into parts: as even as they are, or so that short parts
// behind long ones fill what those leave of the machine. The latter in no order alone.
enum class Division : std::uint8_t { even, uneven };

// The query heads that share a head of the keys, in parts. Each part goes through the blocks of
// keys for itself, where these are too few for the machine or do not divide it well. Short parts
// have a head each, or without a mask, where all blocks are as long, some of the steps through the
// blocks of rows of all heads: then all parts are so divided.
struct HeadParts {
  // `key_blocks`: CTAs that all blocks of keys take, of one part.
  HeadParts(const Attention& a, const Dim& count, const Dim& key_blocks, Division division)
      : group(a.heads / a.kv_heads),
        count(count),
        key_blocks(key_blocks),
        by_steps(division == Division::uneven && !a.causal),
        has_single(division == Division::uneven && a.causal),
        single(has_single ? count - min(even_count(a, key_blocks), count) : Dim(0)),
        members(by_steps ? Dim(group) : ceil_div(group - single, count - single)) {}

  int group;
  Dim count, key_blocks;
  bool by_steps, has_single;
  Dim single;   // parts of a head each, behind the others
  Dim members;  // query heads of the others, of which the last one may have fewer

  // How many parts there should be, of as many members each. `ctas`: those of a block of keys.
  template <typename Shapes>
  static Dim wanted(const Attention& a, const Shapes& shapes, Order order, int ctas = 1) {
    Dim members = for_machine(a, shapes.kept_key_blocks(a.block_k) * ctas);
    if (order == Order::blocks) members = min(members, for_order(a, shapes.mean_queries()));
    return ceil_div(a.heads / a.kv_heads, members);
  }
  // The same with short ones.
  template <typename Shapes>
  static Dim wanted_uneven(const Attention& a, const Shapes& shapes) {
    const Dim blocks = shapes.kept_key_blocks(a.block_k), even = even_count(a, blocks);
    const int group = a.heads / a.kv_heads;
    const Dim steps = ceil_div(shapes.mean_queries(), a.block_q) * group;
    if (!a.causal) {
      // Each so short beside the first that it matters little who has one more.
      const Dim more = ceil_div(idle_places(blocks) * 4, max(blocks, 1));
      const Dim are_long = min(left_steps(steps, blocks) / (max(more, 1) * kLeastSteps), 1);
      return max(even, 1 + more * are_long);
    }
    // Of two parts the longest block of keys is as long as all that a multiprocessor has to do.
    if (group < kLeastMembers) return even;
    // only callers: heads of which so many share keys take long to simulate
    const Dim are_two = max(min(even - 1, 3 - even), 0);
    // only callers
    return even + are_two * min(steps / kManySteps, 1) * 2;
  }

  // Where parts are steps: those of a part, [first, last), through so many blocks of rows of a
  // head.
  std::pair<Index, Index> steps_of(const Index& part, const Index& rows) const {
    const Index steps = rows * group;
    const Index own = select(Index(is_few(key_blocks)) > 0, steps / count,
                             left_steps(steps, key_blocks) / max(count - 1, 1));
    const Index last = steps - own * (count - 1 - part);
    return {select(part > 0, last - own, 0), last};
  }
  // How many steps a part has.
  Index count_of(const Index& part, const Index& rows) const {
    if (!by_steps) return rows * members_of(part);
    const auto [first, last] = steps_of(part, rows);
    return last - first;
  }

  // Of the member of a part its number among those that share the keys, and whether it exists.
  Index number(const Index& part, const Index& member) const {
    if (by_steps) return member;
    const Index first = part * members;
    return (has_single ? select(is_single(part), group - count + part, first) : first) + member;
  }
  Condition exists(const Index& part, const Index& member) const {
    return number(part, member) < group;
  }
  Index members_of(const Index& part) const {
    if (by_steps) return group;
    const Index left = min(group - single - part * members, members);
    return has_single ? select(is_single(part), 1, left) : left;
  }

 private:
  Condition is_single(const Index& part) const { return part >= count - single; }
  static constexpr int kLeastSteps = 8, kStepsOfPart = 2;  // what a part costs, in steps
  static constexpr int kLeastMembers = 16, kManySteps = 4096;

  // With a mask the longest block is twice the mean: two blocks for each multiprocessor, a long and
  // a short one, are enough. Without one, one for each is; if there are fewer, several waves leave
  // little idle in the last. 15 of 16 multiprocessors are as good as all.
  static Dim for_machine(const Attention& a, const Dim& key_blocks) {
    const Dim blocks = max(key_blocks, 1) * 16, machine = multiprocessors() * 15;
    const Dim parts = a.causal ? ceil_div(machine * 2, blocks)
                               : max(is_few(key_blocks) * ceil_div(machine * 4, blocks), 1);
    return ceil_div(a.heads / a.kv_heads, parts);
  }
  static Dim is_few(const Dim& key_blocks) {
    return min(multiprocessors() * 15 / (max(key_blocks, 1) * 16), 1);
  }
  static Dim even_count(const Attention& a, const Dim& key_blocks) {
    return ceil_div(a.heads / a.kv_heads, for_machine(a, key_blocks));
  }
  // The multiprocessors that the last wave of blocks leaves, and all of all waves.
  static Dim places(const Dim& blocks) {
    return multiprocessors() * max(ceil_div(blocks, multiprocessors()), 1);
  }
  static Dim idle_places(const Dim& blocks) { return places(blocks) - blocks; }
  // Of a block's steps those that the parts behind the first one have, so that all end together.
  template <typename Steps>
  static Steps left_steps(const Steps& steps, const Dim& blocks) {
    return max(steps * idle_places(blocks) / places(blocks) - kStepsOfPart, 0);
  }
  // In order blocks of keys that wait for each other drift apart, the more, the more members each
  // goes through. Then all rows of all members pass through L2 again and again. So few members as
  // leave a block long beside the additions of dK and dV.
  static Dim for_order(const Attention& a, const Dim& queries) {
    Dim rows = ceil_div(queries, a.block_q);
    if (a.window > 0) rows = min(rows, a.window / a.block_q + 2);
    return ceil_div(kLong, max(rows, 1));
  }
  static constexpr int kLong = 64;  // blocks of rows of all members
};

// Blocks of rows to which all blocks of keys have been dealt: those of `heads` heads from `head`
// on, whose span of blocks of keys was the `span`-th. They are divided among `places`, and this is
// the share of one.
struct FinishedRows {
  Index head, heads, span, place, places;
};
// How a block of keys goes through the rows of the heads that share it. One member behind the
// other, each from its first row on, the last keys came first; of each row through all members,
// from the last row on, or from the first one, the first keys came first.
enum class Way : std::uint8_t { rows_down, members, rows_up };
inline Index number_of(Way way) { return static_cast<int>(way); }
inline Condition is(const Index& number, Way way) { return number == number_of(way); }

// A block of keys and a part of the heads that share it. `number` is that in the order of the work.
struct KeyPlace {
  Index number, block, kv_head, sequence, way, part;
};

// In which order CTAs add to dQ, whether there are several members, and the CTAs of a block of
// keys. `arrive`: heads come one behind the other while the kernel works.
struct KeyOrder {
  bool ordered, shared, causal;
  int ctas;
  bool arrive = false;
};

// The blocks of keys of all heads: those of `group` heads follow each other, of which the first
// blocks come first. A causal mask makes them the longest. Where a group has fewer blocks than
// there are multiprocessors, the last group's first ones begin late and end alone.
// In turns blocks with one member are dealt so in the last group alone: there what is long must not
// begin last. In the others the last keys come first, and rows in ascending order. Then the blocks
// that meet at a causal diagonal come to a row a step apart, and nobody waits for his turn. Several
// members of a row are as many steps: then all groups go through the rows from the last one on.
// What a group has summed is converted by the next one. Of long sequences a group has two waves of
// blocks, so that the second does not wait for the group before, and there are eight groups, since
// the last one is slower.
// Without turns several members go down and up by turns, if there is a mask: a group's blocks begin
// together at the last row, and where they end, those of the next group begin, so that all are at
// about the same row, which stays in L2.
// Heads that arrive follow each other in groups that just fill the machine: a group begins with its
// last head. Two long ones go together: of one alone, what the group before has summed would be
// waited for (docs/log/2026-11-29-two-ranks-and-near-ends.md).
// Of many sequences, or with a window that is short beside the keys, no block is long beside the
// work: the last group is dealt as the others, and what a span of a group's blocks has summed is
// converted by the next span.
// A head is a part of the heads that share keys.
class HeadGroups {
 public:
  // `members`: query heads of a head. `stretches`: sequences of different lengths that a head has,
  // or windows that fit into one.
  HeadGroups(const Dim& of_head, const Dim& heads, const Dim& members, const Dim& fit,
             const KeyOrder& order, const Dim& stretches = 1)
      : of_head_(of_head),
        heads_(heads),
        many_(min(stretches / kMany, 1)),
        by_members_(max(many_, max(2 - members, 0))),
        order_(order) {
    const Dim blocks = max(of_head, 1), wave = multiprocessors() / order.ctas;
    Dim least = order.arrive ? max(wave / blocks, (1 - many_) * min(wave * 4 / blocks, 2))
                             : max(fit, wave / blocks);
    if (order.ordered && !order.arrive) {
      const Dim is_long = min(blocks / kLong, 1);
      least = max(least, is_long * min(ceil_div(wave * 2, blocks), heads / 8));
    }
    group_ = ceil_div(heads, max(ceil_div(heads, max(least, 1)), 1));
    span_ = many_ * min(ceil_div(wave * 2, max(group_, 1)), blocks) + (1 - many_) * blocks;
    lacking_ = many_ * (ceil_div(of_head, span_) * span_ - of_head);
  }
  Dim count() const { return of_head_ * heads_; }
  struct Place {
    Index block, head, way;
  };
  Place place(const Index& number) const {
    const Dim per_group = max(group_ * of_head_, 1);
    const Index group = number / per_group, first = group * group_, in_group = number % per_group;
    const Index height = min(heads_ - first, group_);
    const Index block = in_group / height, head = first + in_group % height;
    const Index down = number_of(Way::rows_down), members = number_of(Way::members);
    if (!order_.ordered) {
      if (!order_.shared || !order_.causal) return {block, head, members};
      return {block, head, select(group % 2 == 0, down, number_of(Way::rows_up))};
    }
    const Condition by_members = select(first + height < heads_, by_members_, many_) > 0;
    return {select(by_members, of_head_ - 1 - block, block), head,
            select(by_members, members, down)};
  }

  // Spans of a group, and of the blocks of a head the first one of a span: the last blocks are the
  // first span.
  Dim spans() const { return ceil_div(of_head_, span_); }
  Index first_of(const Index& span) const { return of_head_ + lacking_ - (span + 1) * span_; }
  // The rows of a span are divided among the second half of the next span's blocks. When the first
  // half begins, those of the span before are not complete. Where all blocks are as long, they are
  // when the first of the next ones end: then few are left out. Where spans do not divide a head's
  // blocks, it is the first one that has fewer: few blocks would convert long.
  FinishedRows finished(const Index& number) const {
    const Dim per_group = max(group_ * of_head_, 1);
    const Index first = number / per_group * group_, in_group = number % per_group;
    const Index height = min(heads_ - first, group_), of_span = height * span_;
    const bool has_spans = !many_.is_constant();
    const Index lacking = has_spans ? height * lacking_ : Index(0);
    const Index span = (has_spans ? in_group + lacking : in_group) / of_span;
    const Index end = (span + 1) * of_span - lacking;
    const Index begin = has_spans ? max(end - of_span, 0) : span * of_span;
    const Index blocks = has_spans ? end - begin : min(height * of_head_ - begin, of_span);
    const Index late = blocks / (order_.causal || order_.shared ? 2 : 8),
                place = in_group - begin - late;
    const Index heads = select(span > 0, height, select(first > 0, group_, 0));
    return {select(span > 0, first, first - group_), select(place < 0, 0, heads),
            select(span > 0, span, spans()) - 1, place, blocks - late};
  }
  // Those of the last one are divided among the CTAs.
  FinishedRows last_finished() const {
    const Dim groups = ceil_div(heads_, max(group_, 1)) * min(of_head_, 1);
    const Dim first = max(groups - 1, 0) * group_;
    return {Index(first), heads_ - first, spans() - 1, cta_index(), cta_count()};
  }

 private:
  static constexpr int kLong = 32;  // blocks of keys
  static constexpr int kMany = 8;   // stretches
  // `lacking_`: what the first span has less than the others.
  Dim of_head_, heads_, many_, by_members_, group_ = 1, span_ = 1, lacking_ = 0;
  KeyOrder order_;
};

// Q, dO and sums of dQ of a row of a query head.
inline int bytes_of_row(const Attention& a) {
  return (a.dim + a.dim_v) * size_of(a.dtype) + a.dim * size_of(f32);
}

// With a window blocks of keys are short, and those that follow each other come to a row as many
// steps apart as they have blocks of rows. Where that is one, and where heads share keys, they wait
// for each other's turns. Then groups have more heads, so that of each head fewer blocks are under
// way at once. Elsewhere that loses (docs/log).
inline bool has_short_blocks(const Attention& a) {
  return a.window > 0 && (a.block_q >= a.block_k || a.heads > a.kv_heads);
}
// Rows of a query head that L2 has to keep.
inline Dim rows_in_l2(const Attention& a, const Dim& rows) {
  return max(has_short_blocks(a) ? min(rows, a.window + a.block_q + a.block_k) : rows, 1);
}
// The stretches of a sequence: as many windows as fit into one.
inline Dim stretches_of(const Attention& a, const Dim& keys) {
  return has_short_blocks(a) ? keys / a.window : Dim(1);
}

// What a window shows, of as many keys, where blocks are short: else 0.
struct WindowRows {
  explicit WindowRows(const Attention& a, bool is_used = true)
      : keys(is_used && has_short_blocks(a) ? a.window : 0),
        block_q(a.block_q),
        block_k(a.block_k) {}
  // The first block of a sequence's rows that sees no keys before the block of keys.
  Index rows_behind(const Sequence& queries, const Sequence& of_keys, const Index& block) const {
    const Index more = (queries.end() - queries.begin()) - (of_keys.end() - of_keys.begin());
    const Index first = max(ceil_div(block * block_k + keys - 1 + more, block_q), 0);
    return select(block > 0, min(first, queries.blocks(block_q)), 0);
  }
  int keys, block_q, block_k;
};

// Rows of one GPU: all are there, no kernel before has summed their gradients, and these stay
// there. `Shapes`: of the sequences.
struct OwnRows {
  Condition has_sums(const Block&) const { return false; }
  void await_others() const {}
  struct HeadsThatCame {
    explicit HeadsThatCame(const OwnRows&) {}
    void await(const Index&) const {}
    void await_queries(const Index&) const {}
  };
  template <typename Shapes>
  static Tensor query_gradient(Kernel& kernel, const Shapes& s, DType dtype, int dim) {
    return kernel.out("dQ", dtype, s.of_queries(dim));
  }
  template <typename Shapes>
  static Tensor key_gradient(Kernel& kernel, const Shapes& s, const char* name, DType dtype,
                             int dim) {
    return kernel.out(name, dtype, s.of_keys(dim));
  }
  // Calls `body` for Q and dO, or K and V, where some rows of them are.
  template <typename Body>
  void with_queries(const Tensor& Q, const Tensor& dO, const Block& rows, const Index& head,
                    const Body& body) const {
    body(Q, dO, rows, head);
  }
  template <typename Body>
  void with_keys(const Tensor& K, const Tensor& V, const Block& rows, const Index& head,
                 const Body& body) const {
    body(K, V, rows, head);
  }
  template <typename One>
  TensorView query_output(const One& one, const Tensor& to, const Block& rows, const Index& head,
                          const Selector& columns = all) const {
    return one.rows(to, rows, head, columns);
  }
  template <typename One>
  TensorView key_output(const One& one, const Tensor& to, const Block& rows, const Index& head,
                        const Selector& columns) const {
    return one.rows(to, rows, head, columns);
  }
};

// Of sequences of one length, heads follow each other whose Q, dO and sums of dQ stay in L2
// together.
class BatchKeys : public Batch, public OwnRows {
 public:
  static constexpr bool kOneLength = true;
  BatchKeys(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts,
            Division division = Division::even, int ctas = 1, bool arrive = false)
      : Batch(kernel, a, Of::both),
        block_q_(a.block_q),
        window_(a),
        rows_(ceil_div(queries, a.block_q)),
        parts_(a, parts, kept_key_blocks(a.block_k) * ctas, division),
        groups_(ceil_div(keys, a.block_k), batch * a.kv_heads * parts_.count, parts_.members,
                fit(a, ordered), {ordered, parts_.group > 1, a.causal, ctas, arrive},
                stretches_of(a, keys)) {}
  const HeadParts& parts() const { return parts_; }
  // Heads of the keys. The first parts of all of them come first: the next ones then find their
  // sums of dK and dV in memory, and wait for nobody.
  Dim key_heads() const { return batch * kv_heads; }
  Dim count() const { return groups_.count(); }
  KeyPlace place(const Index& number) const {
    const auto [block, part_head, way] = groups_.place(number);
    const auto [sequence, kv_head] = head_of(part_head);
    return {number, block, kv_head, sequence, way, part_head / key_heads()};
  }
  FinishedRows finished(const Index& number) const { return groups_.finished(number); }
  FinishedRows last_finished() const { return groups_.last_finished(); }
  const Dim& row_blocks() const { return rows_; }  // of a head
  // Of each query head of finished rows the blocks [first, last): with a window those that see no
  // keys before the span.
  std::pair<Index, Index> rows_of(const FinishedRows& rows) const {
    if (window_.keys == 0) return {0, rows_};
    const auto behind = [&](const Index& span) {
      return window_.rows_behind(queries, keys, groups_.first_of(span));
    };
    Cell<Index> first(0), last(rows_);
    when(rows.span + 1 < groups_.spans(), [&] { first = behind(rows.span); });
    when(rows.span > 0, [&] { last = behind(rows.span - 1); });
    return {first, last};
  }
  // Of a member of a part.
  Place block_of_rows(const Index& part_head, const Index& member, const Index& block) const {
    const auto [sequence, kv_head] = head_of(part_head);
    const Index number = parts_.number(part_head / key_heads(), member);
    return {of(sequence), kv_head * parts_.group + number, queries.block(block, block_q_), block,
            0};
  }

 protected:
  bool sequences_first_ = true;  // heads of one sequence follow each other, or sequences of a head

 private:
  struct Head {
    Index sequence, kv_head;
  };
  Head head_of(const Index& part_head) const {
    const Index head = part_head % key_heads();
    if (sequences_first_) return {head / kv_heads, head % kv_heads};
    return {head % max(batch, 1), head / max(batch, 1)};
  }
  // In order a group's sums stay in L2 until the next group's blocks convert them.
  Dim fit(const Attention& a, bool ordered) const {
    return l2_bytes(a) / (ordered ? 2 : 1) /
           (rows_in_l2(a, queries) * parts_.members * bytes_of_row(a));
  }
  int block_q_;
  WindowRows window_;
  Dim rows_;  // blocks of rows of a head
  HeadParts parts_;
  HeadGroups groups_;
};

// Whether the warp that says which rows of packed sequences are complete has registers for those
// that are so within a sequence. Beside padded rows it has not: it waits for whole sequences there.
inline bool has_registers_for_windows(const Attention& a) {
  const auto is_padded = [](int dim) { return dim % 64 != 0; };
  return std::max(a.dim, a.dim_v) <= 64 || !(is_padded(a.dim) || is_padded(a.dim_v));
}

// Of packed sequences, those of a head are in the sequences' order. In order, as many heads follow
// each other as have the rows of one sequence in L2: the blocks of a sequence and a head that run
// at once wait for each other.
class PackedKeys : public Packed, public OwnRows {
 public:
  static constexpr bool kOneLength = false;
  PackedKeys(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts,
             Division division = Division::even, int ctas = 1, bool arrive = false,
             BlocksFrom blocks = BlocksFrom::sequence)
      : Packed(kernel, a, Of::both, a.block_q, blocks),
        block_q_(a.block_q),
        block_k_(a.block_k),
        window_(a, has_registers_for_windows(a)),
        rows_(query_sequences().tiles(a.block_q)),
        parts_(a, parts, kept_key_blocks(a.block_k) * ctas, division),
        groups_(key_sequences().tiles(a.block_k), a.kv_heads * parts_.count, parts_.members,
                ordered ? fit(a) : Dim(1), {ordered, parts_.group > 1, a.causal, ctas, arrive},
                max(batch, stretches_of(a, total_keys))) {}
  const HeadParts& parts() const { return parts_; }
  // Heads of the keys. The first parts of all of them come first: the next ones then find their
  // sums of dK and dV in memory, and wait for nobody.
  Dim key_heads() const { return kv_heads; }
  Dim count() const { return groups_.count(); }
  KeyPlace place(const Index& number) const {
    const auto [tile, part_head, way] = groups_.place(number);
    const auto [sequence, block] = key_sequences().tile(tile, block_k_);
    return {number, block, part_head % kv_heads, sequence, way, part_head / kv_heads};
  }
  FinishedRows finished(const Index& number) const { return groups_.finished(number); }
  FinishedRows last_finished() const { return groups_.last_finished(); }
  const Dim& row_blocks() const { return rows_; }  // of a head
  // Of each query head of finished rows the blocks [first, last): those of the sequences that begin
  // in the span of blocks of keys; with a window those that see no keys before the span.
  std::pair<Index, Index> rows_of(const FinishedRows& rows) const {
    Cell<Index> first(0), last(rows_);
    when(rows.span + 1 < groups_.spans(),
         [&] { first = rows_behind(groups_.first_of(rows.span)); });
    when(rows.span > 0, [&] { last = rows_behind(groups_.first_of(rows.span - 1)); });
    return {first, last};
  }
  // Of a member of a part. Some blocks have no rows.
  Place block_of_rows(const Index& part_head, const Index& member, const Index& number) const {
    const auto [sequence, block] = query_sequences().tile(number, block_q_);
    const One one = of(sequence);
    const Index head =
        part_head % kv_heads * parts_.group + parts_.number(part_head / kv_heads, member);
    return {one, head, one.queries.block(block, block_q_), block, 0};
  }

 private:
  Dim fit(const Attention& a) const {
    const Dim rows = rows_in_l2(a, ceil_div(total_queries, max(batch, 1)));
    return l2_bytes(a) / (rows * parts_.members * bytes_of_row(a));
  }
  // The number of the first block of rows of the sequences behind that of the block of keys before
  // `tile`; with a window, of those that see no keys before `tile`.
  Index rows_behind(const Index& tile) const {
    const Index before_all = query_sequences().of(0).begin() / block_q_;
    if (window_.keys > 0) {
      const auto [sequence, block] = key_sequences().tile(tile, block_k_);
      const One one = of(sequence);
      return one.kept_number(window_.rows_behind(one.queries, one.keys, block)) - before_all;
    }
    const Index sequence = key_sequences().tile(tile - 1, block_k_).sequence;
    return query_sequences().of(sequence).end() / block_q_ + sequence + 1 - before_all;
  }
  int block_q_, block_k_;
  WindowRows window_;
  Dim rows_;  // blocks of rows of a head, over all sequences
  HeadParts parts_;
  HeadGroups groups_;
};

template <typename Sequences>
using KeysOf = std::conditional_t<std::is_same_v<Sequences, Batch>, BatchKeys, PackedKeys>;

// What a persistent kernel has of the block of keys at `at`, of `size` keys: `load` with its
// sequence and keys. Packed sequences have places without keys: there `none`.
template <typename Keys, typename Load>
void load_at(const Keys& sequences, const KeyPlace& at, int size, const Load& load,
             FunctionRef<void()> none = {}) {
  const typename Keys::One sequence = sequences.of(at.sequence);
  const Block keys = sequence.keys.block(at.block, size);
  if constexpr (Keys::kOneLength) {
    load(sequence, keys);
  } else {
    when(
        keys.start() < keys.limit(), [&] { load(sequence, keys); }, none);
  }
}

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
      warp_sync();  // no lane looks at the word any more
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
