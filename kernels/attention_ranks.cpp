#include "kernels/attention_ranks.h"

#include <functional>
#include <string>

#include "tilewright/kernels/softmax.h"

namespace tilewright::kernels {
namespace {

// What a tile of queries is, wherever its rows come from.
struct QueryTile {
  Block rows;
  Index kv_head;
  Index diagonal;  // of a causal mask, the key of the whole that row 0 of the rank's would see last
};

// The keys of a piece that the queries may see, and how much further on they are in the whole.
struct KeyRun {
  Sequence rows;
  Index ahead;
};

// Attention of a tile to keys of all ranks, in the order of the whole. Views are of the block's
// rows, in a rank.
struct PulledTile {
  const Attention& a;
  const AttentionScores& scores;
  const DividedAxis& keys;
  std::function<KeyRun(const Index& piece)> run_of;
  std::function<TensorView(const Index&rank, const Block&cols)> K, V;

  void attend(const QueryTile& tile, const Tile& q, OnlineSoftmax& softmax, Var& acc) const {
    for (Index piece : range(keys.pieces())) {
      const Index owner = keys.owner(piece);
      const KeyRun run = run_of(piece);
      for (Block cols : blocks(run.rows, a.block_k)) {
        const Tile s = scores.capped(dot(q, load(K(owner, cols)).T()));
        const Tile seen = visible(tile, cols, run.ahead);
        const auto [weights, rescale] = softmax.step(where(seen, s, kNone));
        acc = acc * rescale + dot(weights.cast(a.dtype), load(V(owner, cols)));
      }
    }
  }
  Tile visible(const QueryTile& tile, const Block& cols, const Index& ahead) const {
    const Tile column = cols.as_row();
    const Tile seen = column < cols.limit();
    if (!a.causal) return seen;
    return seen && under_mask(a, column + ahead, tile.rows.as_column() + tile.diagonal);
  }
};

Kernel pulled_attention(const SequenceParallelAttention& o) {
  const Attention& a = o.attention;
  Kernel kernel("sequence_parallel_attention");
  const AttentionParameters p(kernel, a, KeysFrom::ranks);
  const DividedAxis queries(p.queries, kernel.ranks(), o.shards);
  const DividedAxis keys(p.keys, kernel.ranks(), o.shards);
  const Dim early = ceil_div(queries.early_rows(), a.block_q);
  const Dim late = ceil_div(queries.late_rows(), a.block_q);
  const auto [x, h, b] = kernel.grid(early + late, a.heads, p.batch);
  const TileOfPiece of(x, early);
  const DividedAxis::Piece own = queries.of_rank(kernel.rank(), of.is_late);
  const Block rows = Sequence(p.queries, own.at, own.at + own.rows).block(of.number, a.block_q);
  const QueryTile tile{rows, h / p.group,
                       own.first - own.at + (keys.all_rows() - queries.all_rows())};
  const auto view = [&](const Tensor& tensor) {
    return [&, tensor, batch = b](const Index& rank, const Block& cols) {
      return tensor.at(rank)(batch, cols, tile.kv_head, all);
    };
  };
  const auto run_of = [&](const Index& piece) -> KeyRun {
    const DividedAxis::Piece theirs = keys.piece(piece);
    return {Sequence(p.keys, theirs.at, theirs.at + theirs.rows), theirs.first - theirs.at};
  };

  const Tile q = load(p.Q(b, rows, h, all));
  OnlineSoftmax softmax(rows, p.scale, p.sink(h));
  Var acc{zeros({rows, a.dim_v})};
  PulledTile{a, p, keys, run_of, view(p.K), view(p.V)}.attend(tile, q, softmax, acc);
  store(p.O(b, rows, h, all), acc * softmax.normaliser());
  store(p.LSE(b, h, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

Kernel pulled_varlen_attention(const SequenceParallelAttention& o) {
  const Attention& a = o.attention;
  Kernel kernel("sequence_parallel_varlen_attention");
  const VarlenParameters p(kernel, a, KeysFrom::ranks);
  const DividedAxis queries(p.total_queries, kernel.ranks(), o.shards);
  const DividedAxis keys(p.total_keys, kernel.ranks(), o.shards);
  const Ragged all_queries(queries.all_rows(), p.cu_seqlens_q);
  const Ragged all_keys(keys.all_rows(), p.cu_seqlens_k);
  const Dim early = queries.early_tiles(a.block_q, p.batch);
  const auto [x, h] = kernel.grid(early + queries.late_tiles(a.block_q, p.batch), a.heads);
  const TileOfPiece of(x, early);
  const DividedAxis::Piece own = queries.of_rank(kernel.rank(), of.is_late);
  const PackedPiece here(all_queries, p.total_queries, own);
  const auto [b, block] = here.tile(of.number, a.block_q);
  const Block rows = here.rows(b, block, a.block_q);
  const QueryTile tile{rows, h / p.group,
                       own.first - own.at + (all_keys.of(b).end() - all_queries.of(b).end())};
  const auto view = [&](const Tensor& tensor) {
    return [&, tensor](const Index& rank, const Block& cols) {
      return tensor.at(rank)(cols, tile.kv_head, all);
    };
  };
  const auto run_of = [&, sequence = b](const Index& piece) -> KeyRun {
    const DividedAxis::Piece theirs = keys.piece(piece);
    return {PackedPiece(all_keys, p.total_keys, theirs).of(sequence), theirs.first - theirs.at};
  };

  const Tile q = load(p.Q(rows, h, all));
  OnlineSoftmax softmax(rows, p.scale, p.sink(h));
  Var acc{zeros({rows, a.dim_v})};
  PulledTile{a, p, keys, run_of, view(p.K), view(p.V)}.attend(tile, q, softmax, acc);
  store(p.O(rows, h, all), acc * softmax.normaliser());
  store(p.LSE(h, rows), softmax.log_sum_exp().reshape({rows.size()}));
  return kernel;
}

std::vector<Buffer> first_rows_of(Program&, const BatchShapes&) { return {}; }
std::vector<Buffer> first_rows_of(Program& program, const PackedShapes& shapes) {
  return {program.in("cu_seqlens_q", i32, shapes.of_first_rows()),
          program.in("cu_seqlens_k", i32, shapes.of_first_rows())};
}

template <typename Shapes>
Program pulled_program(const SequenceParallelAttention& o, const Caller& caller,
                       const Kernel& kernel) {
  Program program(caller.function, o.ranks, caller.where);
  const AttentionBuffers<Shapes> buffers(program, o.attention);
  program.on_each_rank(
      [&](const Rank& rank) { rank.stream().launch(kernel, buffers.parts(buffers.K, buffers.V)); });
  return program;
}

}  // namespace

DividedAxis::Piece DividedAxis::of_rank(const Index& rank, const Condition& is_late) const {
  if (!zig_zag_) return {start(rank), early_rows(), 0};
  return {start(select(is_late, late(rank), rank)), select(is_late, late_rows(), early_rows()),
          select(is_late, early_rows(), 0)};
}

// A row x of the whole lies in tile number x / size - 1 at least, and x / size + sequences at most,
// counted from where the first sequence begins.
Ragged::Tile PackedPiece::tile(const Index& number, int size) const {
  const Index before = piece_.first / size - whole_.of(0).begin() / size - 1;
  return whole_.tile(max(before, 0) + number, size);
}

Block PackedPiece::rows(const Index& sequence, const Index& block, int size) const {
  const Sequence all = whole_.of(sequence);
  const Index first = all.begin() + block * size;
  return Block(to_rank(first), size, to_rank(min(first + size, all.end())), axis_);
}

Sequence PackedPiece::of(const Index& sequence) const {
  const Sequence all = whole_.of(sequence);
  return Sequence(axis_, to_rank(all.begin()), to_rank(all.end()));
}

template <typename Shapes>
AttentionBuffers<Shapes>::AttentionBuffers(Program& program, const Attention& a)
    : shapes(program, a),
      Q(program.in("Q", a.dtype, shapes.of_queries(a.dim))),
      K(program.in("K", a.dtype, shapes.of_keys(a.dim))),
      V(program.in("V", a.dtype, shapes.of_keys(a.dim_v))),
      first_rows(first_rows_of(program, shapes)),
      O(program.out("O", a.dtype, shapes.of_queries(a.dim_v))),
      LSE(program.out("LSE", f32, shapes.of_rows())) {
  if (a.sinks) sinks = program.in("sinks", f32, {a.heads});
}

template <typename Shapes>
std::vector<Part> AttentionBuffers<Shapes>::parts(const Part& keys, const Part& values) const {
  std::vector<Part> all{Q, keys, values};
  all.insert(all.end(), first_rows.begin(), first_rows.end());
  all.insert(all.end(), {O, LSE});
  if (sinks) all.push_back(*sinks);
  return all;
}

template struct AttentionBuffers<BatchShapes>;
template struct AttentionBuffers<PackedShapes>;

void check_attention_ranks(const SequenceParallelAttention& o, const Caller& caller) {
  check_attention(o.attention, caller);
  if (o.ranks < 2 || o.ranks > 8) {
    caller.refuse(std::to_string(o.ranks) + " ranks", "there are 2 to 8");
  }
  if (o.attention.in_pairs) {
    caller.refuse("in_pairs is set", "leave it out: over ranks each CTA loads alone");
  }
  if (o.attention.in_parts) {
    caller.refuse("in_parts is set", "leave it out: over ranks tiles without a mask have parts");
  }
  if (o.attention.few_tiles) {
    caller.refuse("few_tiles is set", "leave it out: it is for the tiles of one GPU");
  }
}

Program sequence_parallel_attention(const SequenceParallelAttention& o, SourceLocation where) {
  const Caller caller{"sequence_parallel_attention", where};
  check_attention_ranks(o, caller);
  return pulled_program<BatchShapes>(o, caller, pulled_attention(o));
}

Program sequence_parallel_varlen_attention(const SequenceParallelAttention& o,
                                           SourceLocation where) {
  const Caller caller{"sequence_parallel_varlen_attention", where};
  check_attention_ranks(o, caller);
  return pulled_program<PackedShapes>(o, caller, pulled_varlen_attention(o));
}

}  // namespace tilewright::kernels
