#include <algorithm>
#include <string>
#include <vector>

#include "kernels/all_to_all_parts.h"
#include "kernels/attention_ranks.h"
#include "kernels/attention_sm90_forward.h"
#include "kernels/rank_words.h"
#include "tilewright/plan_case.h"

// Attention over ranks by heads: each rank gets all rows of its own heads, and sends what it makes
// of them back.
namespace tilewright::kernels {
namespace {

// What a rank attends to.
Attention own_heads(const SequenceParallelAttention& o) {
  Attention a = o.attention;
  a.heads /= o.ranks;
  a.kv_heads = std::max(a.kv_heads / o.ranks, 1);
  return a;
}

// The heads of a tile come together, with the keys that they see where no heads before have brought
// them. A word of each rank follows each of these groups.
struct ExchangedGroups {
  ExchangedGroups(const SequenceParallelAttention& o, const Sm90Plan& plan)
      : ranks(o.ranks),
        heads(plan.packed_heads),
        count(own_heads(o).heads / plan.packed_heads),
        of_kv_head(count / own_heads(o).kv_heads) {}
  Dim words() const { return count * ranks; }
  int ranks;
  int heads;       // of a group
  int count;       // of a rank's heads
  int of_kv_head;  // groups that share keys
};

void check_heads(const SequenceParallelAttention& o, const Caller& caller) {
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  const auto refuse = [&](const char* what, int heads) {
    caller.refuse(std::string(what) + " is " + std::to_string(heads) + ", for " +
                      std::to_string(o.ranks) + " ranks",
                  "take a multiple of the ranks; or sequence_parallel_attention_sm90, which "
                  "divides no heads");
  };
  if (a.heads % o.ranks != 0) refuse("heads", a.heads);
  if (a.kv_heads % o.ranks != 0 && o.ranks % a.kv_heads != 0) refuse("kv_heads", a.kv_heads);
}

struct HeadParameters : AttentionParameters {
  HeadParameters(Kernel& kernel, const Attention& own, const SequenceParallelAttention& o,
                 const ExchangedGroups& groups)
      : HeadParameters(kernel, own, o, groups, BatchShapes(kernel, own)) {}

  Kernel& kernel;
  int ranks;
  DividedAxis rows_of_ranks;
  Tensor arrived;  // of each group of heads, each rank
  RanksArrive sent;
  NamedBarrier all_warps;

 private:
  HeadParameters(Kernel& kernel, const Attention& own, const SequenceParallelAttention& o,
                 const ExchangedGroups& groups, const BatchShapes& s)
      : AttentionParameters(
            kernel, own, s,
            {kernel.symmetric("Q", own.dtype, s.of_queries(own.dim)),
             kernel.symmetric("K", own.dtype, s.of_keys(own.dim)),
             kernel.symmetric("V", own.dtype, s.of_keys(own.dim_v)),
             kernel.symmetric("O", own.dtype,
                              {s.batch, s.queries / o.ranks, o.attention.heads, own.dim_v}),
             kernel.symmetric("LSE", f32, {s.batch, o.attention.heads, s.queries / o.ranks})}),
        kernel(kernel),
        ranks(o.ranks),
        rows_of_ranks(s.queries / o.ranks, o.ranks, o.shards),
        arrived(kernel.symmetric("arrived", i32, {groups.words()})),
        sent(kernel, o.ranks, "sent"),
        all_warps(kernel, own.block_q / 64 * 128 + 32) {}
};

// What the warp that loads waits for: the heads of a tile. That a rank's heads have come also says
// that it has begun the run, and that its O may be written.
class HeadArrivals {
 public:
  template <typename Order>
  explicit HeadArrivals(const Order& order) : p_(order.parameters()), known_(0) {}
  void await_tile(const Work& work) {
    const Index group = work.owner->pack;
    when(group >= known_, [&] {
      for (Index from : range(p_.ranks)) {
        wait_flag(p_.arrived(group * p_.ranks + from), Compare::ge, p_.kernel.epoch(), kLearn);
      }
      fence_proxy_async_global();
      known_ = group + 1;
    });
  }

 private:
  const HeadParameters& p_;
  Cell<Index> known_;  // groups below it have come
};

// Tiles of all rows, each of one piece of them: its owner gets the output.
class HeadOrder : public BatchOrder {
 public:
  using Parameters = HeadParameters;
  using Arrivals = HeadArrivals;
  static constexpr bool kKeysArrive = true;
  static constexpr bool kSendsOutput = true;
  static constexpr bool kHasNeighbours = false;

  HeadOrder(const HeadParameters& p, const Attention& a, const Sm90Plan& plan)
      : BatchOrder(p, a, plan, row_blocks(p, a.block_q / plan.packed_heads)), p_(p) {
    group_ = 1;  // heads in the order in which they come
  }
  const HeadParameters& parameters() const { return p_; }
  template <typename Body>
  void each_place(const HeadArrivals&, KeyTensor which, const Work& work, const Block& block,
                  const Block& columns, const Body& body) const {
    body(work.part(which == KeyTensor::K ? p_.K : p_.V, block, work.kv_head, columns));
  }

  Work work(const Place& place) const {
    Work work = BatchOrder::work(place);
    const DividedAxis& axis = p_.rows_of_ranks;
    const Dim early = max(ceil_div(axis.early_rows(), block_q_), 1);
    Index piece = place.row_block / early, block = place.row_block % early;
    if (plan_case("pieces at two ends", axis.pieces_of_rank() > 1)) {
      const Dim late = max(ceil_div(axis.late_rows(), block_q_), 1), first = early * p_.ranks;
      const Condition is_late = place.row_block >= first;
      const Index behind = max(place.row_block - first, 0);
      piece = select(is_late, behind / late + p_.ranks, piece);
      block = select(is_late, behind % late, block);
    }
    const DividedAxis::Piece rows = axis.piece(piece);
    const Sequence queries(p_.queries, rows.first, rows.first + rows.rows);
    work.queries = queries.block(block, block_q_);
    work.owner = {axis.owner(piece), rows.first - rows.at, place.pack};
    if (!a_.causal) return work;
    work.keys =
        Sequence(p_.keys, 0, visible_keys(rows.first + rows.rows, axis.all_rows(), p_.keys));
    work.mask = causal(queries, work.keys, a_.window);
    return work;
  }

  // In the memory of the rows' owner.
  TensorView output(const Work& work, const Block& rows, const Block& columns) const {
    return p_.O.at(work.owner->rank)(*work.batch, of_owner(work, rows), heads(work), columns);
  }
  TensorView sums(const Work& work, const Block& rows) const {
    return p_.LSE.at(work.owner->rank)(*work.batch, heads(work), of_owner(work, rows));
  }
  // In a warp that computes, when all its stores have ended.
  void end_output() const { meet(); }
  // In the warp that loads. It is this one that waits for words: where warps that compute had a
  // loop that threads may leave one by one, the assembler would no longer know what is alike in all
  // lanes.
  void end_loads() const {
    meet();
    p_.sent.tell_all();
    p_.sent.wait_all();
  }

 private:
  static Dim row_blocks(const HeadParameters& p, int size) {
    return (ceil_div(p.rows_of_ranks.early_rows(), size) +
            ceil_div(p.rows_of_ranks.late_rows(), size)) *
           p.ranks;
  }
  Block of_owner(const Work& work, const Block& rows) const {
    return Block(rows.start() - work.owner->ahead, rows.size(), rows.limit() - work.owner->ahead,
                 p_.queries / p_.ranks);
  }
  void meet() const {
    NamedBarrier all_warps = p_.all_warps;
    all_warps.sync();
  }
  Block heads(const Work& work) const {
    const int packs = a_.heads / packed_heads_;
    return Dim(a_.heads * p_.ranks)
        .block(p_.kernel.rank() * packs + work.owner->pack, packed_heads_);
  }

  const HeadParameters& p_;
};

// The program's side.
class ExchangedTensors {
 public:
  ExchangedTensors(Program& program, const SequenceParallelAttention& o,
                   const ExchangedGroups& groups, const AttentionBuffers<BatchShapes>& own)
      : o_(o),
        groups_(groups),
        own_(own),
        run_(program.run()),
        arrived_(program.signals("arrived", groups.words())),
        sent_(program.signals("sent", RanksArrive::words(o.ranks))) {
    const Attention& a = o.attention;
    const Attention mine = own_heads(o);
    const BatchShapes& s = own.shapes;
    parts_ = {{own.Q, {}, {"Q", true, o.ranks, a.heads, mine.heads, a.dim}, s.queries},
              {own.K, {}, {"K", false, o.ranks, a.kv_heads, mine.kv_heads, a.dim}, s.keys},
              {own.V, {}, {"V", false, o.ranks, a.kv_heads, mine.kv_heads, a.dim_v}, s.keys}};
    for (Exchanged& part : parts_) {
      part.all = program.scratch(std::string("all_") + part.heads.name, a.dtype,
                                 {s.batch, part.rows * o.ranks, part.heads.own, part.heads.dim});
    }
  }

  // All groups of heads to whose heads they are, each other rank's in a stream of its own. What the
  // rank itself keeps comes before the kernel in the kernel's stream: a copy within one GPU may
  // need a multiprocessor, and CTAs that wait for it would hold them all.
  void push(const Rank& rank, const Stream& math) const {
    for (int d = 0; d < rank.count(); ++d) {
      const int to = rank.next(d);
      const Stream stream = to == rank.number() ? math : rank.stream("push" + std::to_string(d));
      for (int group = 0; group < groups_.count; ++group) send(stream, rank.number(), to, group);
    }
  }
  std::vector<Part> parts(const Rank& rank) const {
    std::vector<Part> parts{parts_[0].all, parts_[1].all, parts_[2].all, own_.O, own_.LSE};
    if (own_.sinks) {
      const int heads = parts_[0].heads.own;
      parts.push_back(own_.sinks->rows(rank.number() * heads, heads));
    }
    parts.insert(parts.end(), {arrived_, sent_});
    return parts;
  }

 private:
  struct Exchanged {
    Buffer own, all;
    ExchangedHeads heads;
    Dim rows;
  };
  void send(const Stream& stream, int rank, int to, int group) const {
    for (const Exchanged& part : parts_) {
      if (part.heads.of_queries) {
        copy(stream, part, rank, to, group * groups_.heads, groups_.heads);
      } else if (group % groups_.of_kv_head == 0) {
        copy(stream, part, rank, to, group / groups_.of_kv_head, 1);
      }
    }
    stream.write(arrived_.on(to)[group * o_.ranks + rank], run_);
  }
  // Of some heads of `to`, all rows that the rank has.
  void copy(const Stream& stream, const Exchanged& part, int rank, int to, int first,
            int count) const {
    const DividedAxis axis(part.rows, o_.ranks, o_.shards);
    for (int number = 0; number < axis.pieces_of_rank(); ++number) {
      const Dim piece = number == 1 ? axis.late(Dim(rank)) : axis.early(Dim(rank));
      const Dim rows = number == 1 ? axis.late_rows() : axis.early_rows();
      const Dim from = number == 1 ? axis.early_rows() : Dim(0);
      const auto box = [&](const Part& tensor, const Dim& row, int head) {
        return tensor.box({0, row, head, 0}, {own_.shapes.batch, rows, count, part.heads.dim});
      };
      stream.copy(box(part.all.on(to), axis.start(piece), first),
                  box(part.own, from, part.heads.first(to) + first));
    }
  }

  const SequenceParallelAttention& o_;
  ExchangedGroups groups_;
  const AttentionBuffers<BatchShapes>& own_;
  RunNumber run_;
  std::vector<Exchanged> parts_;
  Buffer arrived_, sent_;
};

}  // namespace

Program sequence_parallel_attention_heads_sm90(const SequenceParallelAttention& o,
                                               SourceLocation where) {
  const Caller caller{"sequence_parallel_attention_heads_sm90", where};
  check_heads(o, caller);
  const Attention own = own_heads(o);
  const Sm90Plan plan = sm90_plan(own, HeadOrder::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  const ExchangedGroups groups(o, plan);
  Forward<HeadOrder>(kernel, own, plan, o, groups);

  Program program(caller.function, o.ranks, where);
  const AttentionBuffers<BatchShapes> tensors(program, o.attention);
  const ExchangedTensors exchange(program, o, groups, tensors);
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math");
    exchange.push(rank, math);
    math.launch(kernel, exchange.parts(rank));
  });
  return program;
}

}  // namespace tilewright::kernels
