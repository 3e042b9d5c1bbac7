#include "kernels/attention_ranks.h"

#include <string>

#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

// A rank's rows of queries, which it has in one piece or in two: blocks of rows lie in one.
struct QueryBlock {
  QueryBlock(const DividedAxis& axis, const Dim& queries, const Index& rank, const Index& number,
             int size)
      : QueryBlock(axis, queries, rank, number, size, number >= early_blocks(axis, size)) {}
  static Dim count(const DividedAxis& axis, int size) {
    return early_blocks(axis, size) + ceil_div(axis.late_rows(), size);
  }
  Block rows;
  Index ahead;  // how much further on the rows are in the whole

 private:
  QueryBlock(const DividedAxis& axis, const Dim& queries, const Index& rank, const Index& number,
             int size, const Condition& is_late)
      : rows(Sequence(queries, select(is_late, axis.early_rows(), 0),
                      select(is_late, queries, axis.early_rows()))
                 .block(select(is_late, max(number - early_blocks(axis, size), 0), number), size)),
        ahead(axis.start(select(is_late, axis.late(rank), axis.early(rank))) -
              select(is_late, axis.early_rows(), 0)) {}
  static Dim early_blocks(const DividedAxis& axis, int size) {
    return ceil_div(axis.early_rows(), size);
  }
};

Kernel pulled_attention(const SequenceParallelAttention& o) {
  const Attention& a = o.attention;
  Kernel kernel("sequence_parallel_attention");
  const AttentionParameters p(kernel, a, KeysFrom::ranks);
  const Dim ranks = kernel.ranks();
  const DividedAxis queries(p.queries, ranks, o.shards), keys(p.keys, ranks, o.shards);
  const auto [x, h, b] = kernel.grid(QueryBlock::count(queries, a.block_q), a.heads, p.batch);
  const QueryBlock own(queries, p.queries, kernel.rank(), x, a.block_q);
  const Index kv_head = h / p.group;

  const Tile q = load(p.Q(b, own.rows, h, all));
  OnlineSoftmax softmax(own.rows, p.scale, p.sink(h));
  Var acc{zeros({own.rows, a.dim_v})};
  const Tile diagonal = own.rows.as_column() + (own.ahead + (keys.all_rows() - queries.all_rows()));
  for (Index piece : range(keys.pieces())) {
    const Index owner = keys.owner(piece);
    const Condition is_late = piece >= ranks;
    const Index first = select(is_late, keys.early_rows(), 0);
    const Sequence run(p.keys, first, select(is_late, p.keys, keys.early_rows()));
    for (Block cols : blocks(run, a.block_k)) {
      const Tile k = load(p.K.at(owner)(b, cols, kv_head, all));
      const Tile column = cols.as_row();
      Tile seen = column < cols.limit();
      if (a.causal) {
        const Tile key = column + (keys.start(piece) - first);
        seen = seen && key <= diagonal;
        if (a.window > 0) seen = seen && key > diagonal - a.window;
      }
      const Tile s = where(seen, p.capped(dot(q, k.T())), kNone);
      const auto [weights, rescale] = softmax.step(s);
      const Tile v = load(p.V.at(owner)(b, cols, kv_head, all));
      acc = acc * rescale + dot(weights.cast(a.dtype), v);
    }
  }
  store(p.O(b, own.rows, h, all), acc * softmax.normaliser());
  store(p.LSE(b, h, own.rows), softmax.log_sum_exp().reshape({own.rows.size()}));
  return kernel;
}

}  // namespace

void check_attention_ranks(const SequenceParallelAttention& o, const Caller& caller) {
  check_attention(o.attention, caller);
  if (o.ranks < 2 || o.ranks > 8) {
    caller.refuse(std::to_string(o.ranks) + " ranks", "there are 2 to 8");
  }
  if (o.attention.in_pairs)
    caller.refuse("in_pairs is set", "leave it out: over ranks each CTA loads alone");
}

AttentionBuffers::AttentionBuffers(Program& program, const Attention& a)
    : shapes(program, a),
      Q(program.in("Q", a.dtype, shapes.of_queries(a.dim))),
      K(program.in("K", a.dtype, shapes.of_keys(a.dim))),
      V(program.in("V", a.dtype, shapes.of_keys(a.dim_v))),
      O(program.out("O", a.dtype, shapes.of_queries(a.dim_v))),
      LSE(program.out("LSE", f32, shapes.of_rows())) {
  if (a.sinks) sinks = program.in("sinks", f32, {a.heads});
}

std::vector<Part> AttentionBuffers::parts() const {
  std::vector<Part> all{Q, K, V, O, LSE};
  if (sinks) all.push_back(*sinks);
  return all;
}

Program sequence_parallel_attention(const SequenceParallelAttention& o, SourceLocation where) {
  const Caller caller{"sequence_parallel_attention", where};
  check_attention_ranks(o, caller);
  Program program(caller.function, o.ranks, where);
  const AttentionBuffers buffers(program, o.attention);
  const Kernel kernel = pulled_attention(o);
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, buffers.parts()); });
  return program;
}

}  // namespace tilewright::kernels
