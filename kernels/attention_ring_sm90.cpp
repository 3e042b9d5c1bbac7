#include <string>

#include "kernels/attention_ring.h"
#include "kernels/attention_sm90_forward.h"
#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

struct RingParameters : AttentionParameters {
  RingParameters(Kernel& kernel, const Attention& a, const SequenceParallelAttention& o,
                 RingPass pass)
      : RingParameters(kernel, a, o, pass, shapes_of(kernel, a)) {}

  // Whose keys these are.
  Index owner() const {
    const Index before(places_before);
    return (kernel.rank() + kernel.ranks() - before) % kernel.ranks();
  }

  Kernel& kernel;
  RingPass pass;
  DividedAxis rows_of_ranks;
  std::optional<Tensor> O_before, LSE_before;
  Scalar places_before;

 private:
  // Under a mask pieces of queries and of keys are the same.
  static BatchShapes shapes_of(Kernel& kernel, const Attention& a) {
    BatchShapes shapes(kernel, a, true, !a.causal);
    if (a.causal) shapes.keys = shapes.queries;
    return shapes;
  }
  struct Results {
    Results(Kernel& kernel, const Attention& a, const BatchShapes& s, RingPass pass)
        : Q(kernel.in("Q", a.dtype, s.of_queries(a.dim))),
          K(kernel.in("K", a.dtype, s.of_keys(a.dim))),
          V(kernel.in("V", a.dtype, s.of_keys(a.dim_v))),
          outputs(kernel, "sum_O", pass, s.of_queries(a.dim_v)),
          sums(kernel, "sum_LSE", pass, s.of_rows()),
          O(outputs.after ? *outputs.after : kernel.out("O", a.dtype, s.of_queries(a.dim_v))),
          LSE(sums.after ? *sums.after : kernel.out("LSE", f32, s.of_rows())) {}
    Tensor Q, K, V;
    RingSum outputs, sums;
    Tensor O, LSE;
  };
  RingParameters(Kernel& kernel, const Attention& a, const SequenceParallelAttention& o,
                 RingPass pass, const BatchShapes& s)
      : RingParameters(kernel, a, o, pass, s, Results(kernel, a, s, pass)) {}
  RingParameters(Kernel& kernel, const Attention& a, const SequenceParallelAttention& o,
                 RingPass pass, const BatchShapes& s, const Results& t)
      : AttentionParameters(kernel, a, s, {t.Q, t.K, t.V, t.O, t.LSE}),
        kernel(kernel),
        pass(pass),
        rows_of_ranks(s.queries, kernel.ranks(), o.shards),
        O_before(t.outputs.before),
        LSE_before(t.sums.before),
        places_before(kernel.scalar("places_before", i32)) {}
};

// The tiles of own queries. Under a mask each is of one piece, which sees all of a piece of keys
// before it, none of one behind it, and of itself what is below the diagonal. So the keys that it
// sees are the first ones of their owner.
class RingOrder : public BatchOrder {
 public:
  using Parameters = RingParameters;
  static constexpr bool kHasNeighbours = false;
  static constexpr bool kJoinsSums = true;

  RingOrder(const RingParameters& p, const Attention& a, const Sm90Plan& plan)
      : BatchOrder(p, a, plan, row_blocks(p, a)), p_(p) {}

  Work work(const Place& place) const {
    Work work = BatchOrder::work(place);
    if (!a_.causal) return work;
    const DividedAxis& axis = p_.rows_of_ranks;
    const Index me = p_.kernel.rank(), owner = p_.owner();
    const Dim early_blocks = ceil_div(axis.early_rows(), block_q_);
    const TileOfPiece tile(place.row_block, early_blocks);
    const bool halves = axis.pieces_of_rank() > 1;
    const DividedAxis::Piece own = axis.of_rank(me, tile.is_late);
    const Index block = halves ? tile.number : place.row_block;
    const Index piece = halves ? select(tile.is_late, axis.late(me), axis.early(me)) : me;
    const Index of_early = select(axis.early(owner) <= piece, axis.early_rows(), 0);
    const Index of_late = halves ? select(axis.late(owner) <= piece, axis.late_rows(), 0) : 0;
    const Index seen = of_early + of_late;
    work.queries = Sequence(p_.queries, own.at, own.at + own.rows).block(block, block_q_);
    work.keys = Sequence(p_.keys, 0, seen);
    // As if the first row were the last one: then it sees all of them, and so do the others.
    const Index last = select(owner == me, seen, own.at + 1);
    work.mask = causal(Sequence(p_.queries, own.at, last), work.keys, 0);
    return work;
  }

  // `rows` are a warpgroup's, of `work`, and `tile` the blocks of keys that some of its rows see.
  void join(const Work& work, const Block& rows, const KeyBlocks& tile, const Var& acc,
            const Tile& normaliser, const Tile& log_sum, int width) const {
    const auto join = [&] { join_rows(work, rows, acc, normaliser, log_sum, width); };
    // What is there stays where it is.
    if (p_.pass == RingPass::next) return when(tile.first < tile.last, join);
    join();
  }

 private:
  static Dim row_blocks(const RingParameters& p, const Attention& a) {
    if (!a.causal) return ceil_div(p.queries, a.block_q);
    return ceil_div(p.rows_of_ranks.early_rows(), a.block_q) +
           ceil_div(p.rows_of_ranks.late_rows(), a.block_q);
  }

  void join_rows(const Work& work, const Block& rows, const Var& acc, const Tile& normaliser,
                 const Tile& log_sum, int width) const {
    const Index head = work.heads.start();
    const auto outputs = [&](const Tensor& tensor, const Block& columns) {
      return tensor(*work.batch, rows, head, columns);
    };
    const auto sums = [&](const Tensor& tensor) { return tensor(*work.batch, head, rows); };
    Var factor{normaliser}, factor_before{zeros({64, 1})}, sum{log_sum};
    if (p_.LSE_before) {
      const Tile before = load(sums(*p_.LSE_before)).reshape({64, 1});
      const Tile top = max(before, log_sum);
      // -inf - -inf is no number: a row that has seen nothing is shifted by 0.
      const Tile shift = where(top == kNone, 0, top);
      const Tile old_part = exp2((before - shift) * kLog2e);
      const Tile part = exp2((log_sum - shift) * kLog2e), all_parts = old_part + part;
      const Tile of_parts = where(all_parts == 0, 0, 1 / all_parts);
      factor = normaliser * (part * of_parts);
      factor_before = old_part * of_parts;
      sum = where(all_parts == 0, kNone, shift + log2(all_parts) * kLn2);
    }
    for (int first = 0; first < a_.dim_v; first += width) {
      const Block columns = Dim(a_.dim_v).block(first / width, width);
      Tile value = Tile(acc).slice({0, first}, {64, width}) * Tile(factor);
      if (p_.O_before) value = value + load(outputs(*p_.O_before, columns)) * Tile(factor_before);
      warp_sync();  // all of its rows have been read
      store(outputs(p_.O, columns), p_.pass == RingPass::last ? value.cast(a_.dtype) : value);
    }
    store(sums(p_.LSE), Tile(sum).reshape({64}));
  }

  const RingParameters& p_;
};

}  // namespace

Kernel attention_to_one_sm90(const SequenceParallelAttention& o, RingPass pass,
                             const std::string& name, const Caller& caller) {
  Attention a = o.attention;
  if (a.window > 0) {
    caller.refuse("window is " + std::to_string(a.window),
                  "take the tile level: here a tile sees the first keys of a rank");
  }
  a.sinks = a.sinks && pass == RingPass::first;
  Sm90Plan plan = sm90_plan(a, RingOrder::kHasNeighbours, caller);
  plan.packed_heads = 1;  // sums are joined row by row
  Kernel kernel(name);
  Forward<RingOrder>(kernel, a, plan, o, pass);
  return kernel;
}

}  // namespace tilewright::kernels
