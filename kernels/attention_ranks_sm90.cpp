#include <string>

#include "kernels/attention_ranks.h"
#include "kernels/attention_sm90_forward.h"
#include "tilewright/ranks.h"

namespace tilewright::kernels {
namespace {

// How the keys lie where a kernel reads them. Without a mask any order will do: the rank's own then
// come last, and so first in the kernel.
Shards shards_of_keys(const SequenceParallelAttention& o) {
  return o.attention.causal ? o.shards : Shards::contiguous;
}

struct ShardParameters : AttentionParameters {
  ShardParameters(Kernel& kernel, const Attention& a, const Shards& shards)
      : AttentionParameters(kernel, a, KeysFrom::ranks),
        kernel(kernel),
        ranks(kernel.ranks()),
        queries_of_ranks(queries, ranks, shards),
        keys_of_ranks(keys / ranks, ranks, shards),
        arrived(kernel.symmetric("arrived", i32, {keys_of_ranks.pieces()})) {}
  Kernel& kernel;
  Dim ranks;
  DividedAxis queries_of_ranks, keys_of_ranks;
  Tensor arrived;  // of each piece of the keys
};

// One past the last key that a piece of queries sees, whose rows end at `end` of the whole.
template <typename Number>
Number visible_keys(const Number& end, const Dim& queries, const Dim& keys) {
  return min(max(end + (keys - queries), 0), keys);
}

// The tiles of a rank's shard. Those of a causal mask are of one piece each, and their keys end
// where those that the piece sees do. What is left is attention as of one GPU.
class ShardOrder : public BatchOrder {
 public:
  using Parameters = ShardParameters;
  class Arrivals;
  static constexpr bool kKeysArrive = true;
  static constexpr bool kHasNeighbours = false;

  ShardOrder(const ShardParameters& p, const Attention& a, const Sm90Plan& plan)
      : BatchOrder(p, a, plan, row_blocks(p, a, a.block_q / plan.packed_heads)), p_(p) {}

  Work work(const Place& place) const {
    Work work = BatchOrder::work(place);
    if (!a_.causal) return work;
    const DividedAxis& axis = p_.queries_of_ranks;
    const Dim early = axis.early_rows(), early_blocks = ceil_div(early, block_q_);
    const Index me = p_.kernel.rank();
    Index first = 0, block = place.row_block, rows = early, piece = axis.early(me);
    if (axis.pieces_of_rank() > 1) {
      const Condition is_late = block >= early_blocks;
      first = select(is_late, early, 0);
      block = block - select(is_late, early_blocks, 0);
      rows = select(is_late, axis.late_rows(), early);
      piece = select(is_late, axis.late(me), piece);
    }
    const Sequence queries(p_.queries, first, first + rows);
    const Index seen = visible_keys(axis.start(piece) + rows, axis.all_rows(), p_.keys);
    work.queries = queries.block(block, block_q_);
    work.keys = Sequence(p_.keys, 0, seen);
    work.mask = causal(queries, work.keys, a_.window);
    return work;
  }

 private:
  static Dim row_blocks(const ShardParameters& p, const Attention& a, int size) {
    if (!a.causal) return ceil_div(p.queries, size);
    return ceil_div(p.queries_of_ranks.early_rows(), size) +
           ceil_div(p.queries_of_ranks.late_rows(), size);
  }

  const ShardParameters& p_;
};

// What the warp that loads knows to be there: pieces that follow each other, at first the last of
// this rank's own.
class ShardOrder::Arrivals {
 public:
  explicit Arrivals(const ShardOrder& order)
      : p_(order.p_),
        is_causal_(order.a_.causal),
        first_(last_of_own()),
        last_(last_of_own()),
        begin_(axis().start(last_of_own())),
        end_(axis().start(last_of_own() + 1)) {}

  void await(const Block& keys) {
    const Index begin = keys.start(), end = min(begin + keys.size(), keys.limit());
    Cell<Condition> missing(begin < begin_);
    repeat_while(missing, [&] {
      first_ = first_ - 1;
      await_piece(first_);
      begin_ = axis().start(Index(first_));
      missing = begin < begin_;
    });
    missing = end_ < end;
    repeat_while(missing, [&] {
      last_ = last_ + 1;
      await_piece(last_);
      end_ = axis().start(last_ + 1);
      missing = end_ < end;
    });
  }

 private:
  const DividedAxis& axis() const { return p_.keys_of_ranks; }
  Index last_of_own() const {
    return is_causal_ ? axis().late(p_.kernel.rank()) : Index(p_.ranks - 1);
  }
  void await_piece(const Index& piece) const {
    const Index owner = is_causal_ ? axis().owner(piece) : piece;
    const Index own = is_causal_ ? p_.kernel.rank() : Index(p_.ranks - 1);
    when(owner != own, [&] {
      wait_flag(p_.arrived(piece), Compare::ge, p_.kernel.epoch(),
                {Semantics::acquire, Scope::system});
      fence_proxy_async_global();
    });
  }

  const ShardParameters& p_;
  bool is_causal_;
  Cell<Index> first_, last_, begin_, end_;
};

// The program's side: memory for all keys and values in each rank, and who puts which where.
class GatheredKeys {
 public:
  GatheredKeys(Program& program, const SequenceParallelAttention& o, const AttentionBuffers& own)
      : o_(o),
        own_(own),
        s_(own.shapes),
        axis_(s_.keys, o.ranks, shards_of_keys(o)),
        queries_(s_.queries, o.ranks, shards_of_keys(o)),
        run_(program.run()),
        K_(program.scratch("all_K", o.attention.dtype, whole(o.attention.dim))),
        V_(program.scratch("all_V", o.attention.dtype, whole(o.attention.dim_v))),
        arrived_(program.signals("arrived", axis_.pieces())),
        taken_(program.signals("taken", o.ranks)) {}

  void push(const Rank& rank) const {
    const Stream stream = rank.stream("push");
    for (int d = 1; d < rank.count(); ++d) {
      const int to = rank.next(d);
      stream.wait(taken_[to], run_ - 1);
      // Descending blocks of keys are read.
      for (int piece = axis_.pieces_of_rank() - 1; piece >= 0; --piece) {
        const Dim place = copy(stream, rank, to, piece);
        stream.write(arrived_.on(to)[place], run_);
      }
    }
  }
  void keep_own(const Rank& rank, const Stream& stream) const {
    for (int piece = 0; piece < axis_.pieces_of_rank(); ++piece) {
      copy(stream, rank, rank.number(), piece);
    }
  }
  void tell_taken(const Rank& rank, const Stream& stream) const {
    for (int d = 1; d < rank.count(); ++d) {
      stream.write(taken_.on(rank.next(d))[rank.number()], run_);
    }
  }
  Part K() const { return K_; }
  Part V() const { return V_; }
  Part arrived() const { return arrived_; }

 private:
  std::vector<Dim> whole(int dim) const { return {s_.batch, axis_.all_rows(), s_.kv_heads, dim}; }
  // Where the rank's piece stands in `to`, once its rows that `to` sees are copied there.
  Dim copy(const Stream& stream, const Rank& rank, int to, int number) const {
    const bool is_late = number == 1;
    const Dim me = rank.number();
    const Dim place =
        o_.attention.causal
            ? (is_late ? axis_.late(me) : axis_.early(me))
            : Dim(rank.count() - 1 - (to - rank.number() + rank.count()) % rank.count());
    const Dim first = axis_.start(place);
    Dim rows = is_late ? axis_.late_rows() : axis_.early_rows();
    if (o_.attention.causal) rows = max(min(rows, visible(to) - first), 0);
    const Dim from = is_late ? axis_.early_rows() : Dim(0);
    const auto part = [&](const Part& tensor, const Dim& start, int dim) {
      return tensor.box({0, start, 0, 0}, {s_.batch, rows, s_.kv_heads, dim});
    };
    const Attention& a = o_.attention;
    stream.copy(part(K_.on(to), first, a.dim), part(own_.K, from, a.dim));
    stream.copy(part(V_.on(to), first, a.dim_v), part(own_.V, from, a.dim_v));
    return place;
  }
  Dim visible(int rank) const {
    return visible_keys(queries_.start(queries_.late(Dim(rank)) + 1), queries_.all_rows(),
                        axis_.all_rows());
  }

  const SequenceParallelAttention& o_;
  const AttentionBuffers& own_;
  const BatchShapes& s_;
  DividedAxis axis_, queries_;
  RunNumber run_;
  Buffer K_, V_, arrived_, taken_;
};

}  // namespace

Program sequence_parallel_attention_sm90(const SequenceParallelAttention& o, SourceLocation where) {
  const Caller caller{"sequence_parallel_attention_sm90", where};
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  const Sm90Plan plan = sm90_plan(a, ShardOrder::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  Forward<ShardOrder>(kernel, a, plan, shards_of_keys(o));

  Program program(caller.function, o.ranks, where);
  const AttentionBuffers own(program, a);
  const GatheredKeys keys(program, o, own);
  std::vector<Part> parts{own.Q, keys.K(), keys.V(), own.O, own.LSE};
  if (own.sinks) parts.push_back(*own.sinks);
  parts.push_back(keys.arrived());
  program.on_each_rank([&](const Rank& rank) {
    keys.push(rank);
    const Stream math = rank.stream("math");
    keys.keep_own(rank, math);
    math.launch(kernel, parts);
    keys.tell_taken(rank, math);
  });
  return program;
}

}  // namespace tilewright::kernels
