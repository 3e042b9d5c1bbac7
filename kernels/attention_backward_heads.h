#pragma once

#include <bit>
#include <string>
#include <vector>

#include "kernels/attention_backward_places.h"
#include "kernels/attention_backward_sm90.h"
#include "kernels/attention_ranks.h"
#include "kernels/rank_words.h"
#include "tilewright/plan_case.h"

// The gradients of attention over ranks, by heads, for sm_90a: the kernel of one GPU's ordered
// schedule of all own heads, which others' rows come to while it runs. What it makes goes straight
// to the rows' owners.
namespace tilewright::kernels {

// Rows of which each rank has whole blocks, in each of its pieces. Raises for what does not fit.
BackwardPlan heads_backward_plan(const SequenceParallelAttention& o, const Attention& own,
                                 bool is_packed, const Caller& caller);
// What a rank attends with.
Attention own_backward_heads(const SequenceParallelAttention& o);
// Where packed sequences begin; Q, K, V and dO of all heads of own rows; the same of the others'
// rows of own heads, L and D of all rows of these, sums of dQ; dQ, dK and dV, of all heads of own
// rows; words that are 0 before, sums of dK and dV where heads share keys; words that have the
// number of the run when rows of another rank have come (HeadArrivals).
Kernel gradients_of_heads_sm90(const SequenceParallelAttention& o, bool is_packed,
                               const std::string& name, const Caller& caller);

// In which order a rank's own heads come from the others while the kernel works. The heads of
// queries that share keys come in shares of 1, 1, 2, 4 and so on. Where they are worked on in
// parts, the first part of all heads of keys is the first. So the shares that a first part needs
// come first, head of keys by head of keys, and then one further share of all heads of keys after
// the other. The first shares of a head of keys come as one, since each copy takes its time: of the
// first head of keys a head of queries comes before the others, so that the kernel begins.
class HeadArrivals {
 public:
  // `parts`: HeadParts::count of a rank's own heads.
  HeadArrivals(const Attention& own, const Dim& parts)
      : group_(own.heads / own.kv_heads),
        kv_heads_(own.kv_heads),
        shares_(std::bit_width(static_cast<unsigned>(group_ - 1)) + 1),
        together_(shares_of(ceil_div(group_, max(parts, 1)))) {}
  int count() const { return shares_ * kv_heads_; }
  bool has_shares() const { return shares_ > 1; }
  int first_heads() const { return 1; }

  // What comes as the number-th: of a head of keys, its keys or none, and some of its queries or
  // none.
  struct Arrival {
    Dim kv_head, keys, first_member, members;
  };
  Arrival arrival(int number) const {
    const Dim is_together = at_most(number + 1, together_ * kv_heads_);
    const Dim kv_head = either(is_together, number / together_, Dim(number % kv_heads_));
    const Dim share = either(is_together, number % together_, Dim(number / kv_heads_));
    const Dim is_first = 1 - min(share, 1), is_first_head = 1 - min(kv_head, 1);
    // Of those that come as one.
    const Dim begin = either(is_first, 0, 1), all = first_of(together_);
    const Dim of_first_head = either(is_first, 1, at_most(share, 1) * (all - 1));
    const Dim members = either(is_first_head, of_first_head, is_first * all);
    return {kv_head, is_first, either(is_together, begin, first_of(share)),
            either(is_together, members, first_of(share + 1) - first_of(share))};
  }
  // Which number that is, of the keys and of a head of queries.
  Index of_keys(const Index& kv_head) const { return number(0, kv_head); }
  Index of_queries(const Index& head) const {
    const Index member = head % group_;
    Index share(0);
    for (int i = 1; i < shares_; ++i) share = share + select(member >= begin_of(i), 1, 0);
    return number(share, head / group_);
  }

 private:
  // Where a share begins, and the last one ends.
  int begin_of(int share) const { return share == 0 ? 0 : std::min(1 << (share - 1), group_); }
  Dim first_of(const Dim& share) const {
    Dim begin = 0;
    for (int i = 1; i <= shares_; ++i) {
      begin = begin + at_most(i, share) * (begin_of(i) - begin_of(i - 1));
    }
    return begin;
  }
  // How many have so many members.
  Dim shares_of(const Dim& members) const {
    Dim shares = 1;
    for (int i = 1; i < shares_; ++i) shares = shares + at_most(begin_of(i) + 1, members);
    return shares;
  }
  // 1 where `number` is at most so much, else 0.
  static Dim at_most(const Dim& number, const Dim& most) {
    return min(max(most + 1 - number, 0), 1);
  }
  static Dim either(const Dim& is_first, const Dim& first, const Dim& second) {
    return is_first * first + (1 - is_first) * second;
  }
  Index number(const Index& share, const Index& kv_head) const {
    const Index together(together_);
    const Index of_first = kv_head * together + select(kv_head > 0, 0, min(share, 1));
    return select(share < together, of_first, share * kv_heads_ + kv_head);
  }

  int group_, kv_heads_, shares_;
  Dim together_;  // so many shares of a head of keys come as one
};

// What is of all sequences together, where these are of one length or packed.
struct OneLengthOverRanks : BatchKeys {
  OneLengthOverRanks(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts,
                     Division division)
      : BatchKeys(kernel, a, ordered, parts, division, 1, /*arrive=*/true) {
    sequences_first_ = false;
  }
  const Dim& all_queries() const { return queries; }
  const Dim& all_keys() const { return keys; }
  std::vector<Dim> in_sequences(const Dim& rows, int heads, int dim) const {
    return {batch, rows, heads, dim};
  }
};
// Blocks are cut where pieces of the axis may be.
struct PackedOverRanks : PackedKeys {
  PackedOverRanks(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts,
                  Division division)
      : PackedKeys(kernel, a, ordered, parts, division, 1, /*arrive=*/true, BlocksFrom::axis) {}
  const Dim& all_queries() const { return total_queries; }
  const Dim& all_keys() const { return total_keys; }
  std::vector<Dim> in_sequences(const Dim& rows, int heads, int dim) const {
    return {rows, heads, dim};
  }
};

template <typename Keys>
class HeadsOfRanks : public Keys {
 public:
  using One = typename Keys::One;
  HeadsOfRanks(Kernel& kernel, const Attention& a, bool ordered, const Dim& parts,
               Division division, const SequenceParallelAttention& o)
      : Keys(kernel, a, ordered, parts, division),
        kernel_(kernel),
        ranks_(o.ranks),
        of_queries_(this->all_queries() / o.ranks, o.ranks, o.shards),
        of_keys_(this->all_keys() / o.ranks, o.ranks, o.shards),
        own_Q_(kernel.in("own_Q", a.dtype, of_own_queries(a.dim))),
        own_K_(kernel.in("own_K", a.dtype, of_own_keys(a.dim))),
        own_V_(kernel.in("own_V", a.dtype, of_own_keys(a.dim_v))),
        own_dO_(kernel.in("own_dO", a.dtype, of_own_queries(a.dim_v))),
        arrivals_(a, this->parts().count),
        arrived_(kernel.symmetric("arrived", i32, {arrivals_.count() * o.ranks})) {
    plan_case("queries that share keys come in shares", arrivals_.has_shares());
    plan_case("pieces at two ends", of_keys_.pieces_of_rank() > 1);
  }

  static Tensor query_gradient(Kernel& kernel, const HeadsOfRanks& s, DType dtype, int dim) {
    return kernel.symmetric("dQ", dtype, s.of_own_queries(dim));
  }
  static Tensor key_gradient(Kernel& kernel, const HeadsOfRanks& s, const char* name, DType dtype,
                             int dim) {
    return kernel.symmetric(name, dtype, s.of_own_keys(dim));
  }

  // The rank's own rows have not moved.
  template <typename Body>
  void with_queries(const Tensor& Q, const Tensor& dO, const Block& rows, const Index& head,
                    const Body& body) const {
    const OwnPlace at = place_of(of_queries_, rows);
    when(
        at.rank == kernel_.rank(),
        [&] { body(own_Q_, own_dO_, at.rows, kernel_.rank() * this->heads + head); },
        [&] { body(Q, dO, rows, head); });
  }
  template <typename Body>
  void with_keys(const Tensor& K, const Tensor& V, const Block& rows, const Index& head,
                 const Body& body) const {
    const OwnPlace at = place_of(of_keys_, rows);
    when(
        at.rank == kernel_.rank(),
        [&] { body(own_K_, own_V_, at.rows, kernel_.rank() * this->kv_heads + head); },
        [&] { body(K, V, rows, head); });
  }

  // Until every other rank has begun the run: its caller may use its gradients before.
  void await_others() const { await_arrival(0); }

  // Where the rows' owner has them.
  TensorView query_output(const One& one, const Tensor& to, const Block& rows, const Index& head,
                          const Selector& columns = all) const {
    return output(of_queries_, one, to, rows, kernel_.rank() * this->heads + head, columns);
  }
  TensorView key_output(const One& one, const Tensor& to, const Block& rows, const Index& head,
                        const Selector& columns) const {
    return output(of_keys_, one, to, rows, kernel_.rank() * this->kv_heads + head, columns);
  }

  // What the warp that loads knows to be there. The others send in one order, behind what comes
  // first. So each rank has begun the run by then, and its gradients may be written.
  class HeadsThatCame {
   public:
    explicit HeadsThatCame(const HeadsOfRanks& keys) : keys_(keys), count_(0) {}
    void await(const Index& kv_head) { await_arrival(keys_.arrivals_.of_keys(kv_head)); }
    void await_queries(const Index& head) {
      if (keys_.arrivals_.has_shares()) await_arrival(keys_.arrivals_.of_queries(head));
    }

   private:
    void await_arrival(const Index& number) {
      when(number >= count_, [&] {
        keys_.await_arrival(number);
        count_ = number + 1;
      });
    }
    const HeadsOfRanks& keys_;
    Cell<Index> count_;  // so many have come
  };

 private:
  void await_arrival(const Index& number) const {
    each_other_rank(kernel_, ranks_, [&](const Index& from) {
      wait_flag(arrived_(number * ranks_ + from), Compare::ge, kernel_.epoch(), kLearn);
    });
    fence_proxy_async_global();
  }
  std::vector<Dim> of_own_queries(int dim) const {
    return this->in_sequences(of_queries_.rows(), this->heads * ranks_, dim);
  }
  std::vector<Dim> of_own_keys(int dim) const {
    return this->in_sequences(of_keys_.rows(), this->kv_heads * ranks_, dim);
  }
  // Whose rows they are, and where these are among its own. Of a packed sequence's block a part may
  // have no rows, and begin behind its piece.
  struct OwnPlace {
    Index rank;
    Block rows;
  };
  static OwnPlace place_of(const DividedAxis& axis, const Block& rows) {
    const Dim of_piece = max(axis.early_rows(), 1);
    const Index row = Keys::kOneLength ? rows.start() : min(rows.start(), rows.limit() - 1);
    const Index piece = row / of_piece;
    const Index before = piece * of_piece;
    Index first = rows.start() - before;
    if (axis.pieces_of_rank() > 1) {
      first = first + select(axis.is_late(piece), of_piece, 0);
    }
    const Index owner = axis.owner(piece);
    if (Keys::kOneLength) return {owner, Block(first, rows.size(), Index(axis.rows()))};
    return {owner, Block(first, rows.size(), first + (rows.limit() - rows.start()), axis.rows())};
  }
  static TensorView output(const DividedAxis& axis, const One& one, const Tensor& to,
                           const Block& rows, const Index& head, const Selector& columns) {
    const OwnPlace at = place_of(axis, rows);
    return one.rows(to.at(at.rank), at.rows, head, columns);
  }

  Kernel& kernel_;
  int ranks_;
  DividedAxis of_queries_, of_keys_;
  Tensor own_Q_, own_K_, own_V_, own_dO_;
  HeadArrivals arrivals_;
  Tensor arrived_;
};

}  // namespace tilewright::kernels
