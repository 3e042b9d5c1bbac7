#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_ranks.h"
#include "kernels/attention_sm90_forward.h"
#include "kernels/keys_of_ranks.h"
#include "kernels/rank_words.h"
#include "kernels/split_tiles.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {
namespace {

struct ShardParameters : AttentionParameters {
  ShardParameters(Kernel& kernel, const Attention& a, const DividedRows& how, KeysBy by)
      : AttentionParameters(kernel, a, KeysFrom::ranks),
        of_ranks(kernel, a, how, by, K, V, queries, keys, batch),
        queries_of_ranks(queries, kernel.ranks(), how.shards) {
    if (!a.causal && can_have_parts(a)) parts.emplace(kernel, a);
  }
  KeysOfRanks of_ranks;
  DividedAxis queries_of_ranks;
  std::optional<SplitMemory> parts;
};

// The tiles of a rank's shard. Those of a causal mask are of one piece each, and their keys end
// where those that the piece sees do. What is left is attention as of one GPU.
class ShardOrder : public BatchOrder {
 public:
  using Parameters = ShardParameters;
  using Arrivals = kernels::Arrivals;
  static constexpr bool kKeysArrive = true;
  static constexpr bool kHasNeighbours = false;

  ShardOrder(const ShardParameters& p, const Attention& a, const Sm90Plan& plan)
      : BatchOrder(p, a, plan, row_blocks(p, a, a.block_q / plan.packed_heads)),
        p_(p),
        first_(min(heads_, p.of_ranks.shares.first * (p.group / packed_heads_) * p.batch)) {
    if (p.parts) split_.emplace(*p.parts, a, BatchOrder::runs(), ceil_div(p.keys, a.block_k));
  }
  const std::optional<SplitTiles>& split() const { return split_; }
  Dim runs() const { return split_ ? split_->runs() : BatchOrder::runs(); }
  // A head of all sequences before the next one: as they come. Of a causal mask those whose keys
  // come first end before the longest tiles of the others begin.
  Run run(const Index& number) const {
    Run run =
        a_.causal ? longest_first(number) : BatchOrder::run(split_ ? split_->tile(number) : number);
    const Dim batch = max(p_.batch, 1);
    const Index head = run.first.sequence * (a_.heads / packed_heads_) + run.first.pack;
    run.first = {run.first.row_block, head / batch, head % batch};
    if (split_) run.first.part = split_->part(number);
    return run;
  }
  const KeysOfRanks& keys_of_ranks() const { return p_.of_ranks; }
  template <typename Body>
  void each_place(Arrivals& arrivals, KeyTensor which, const Work& work, const Block& block,
                  const Block& columns, const Body& body) const {
    arrivals.each_place(which, which == KeyTensor::K ? p_.K : p_.V, work, block, columns, body);
  }

  Work work(const Place& place) const {
    Work work = BatchOrder::work(place);
    if (!a_.causal) return work;
    const DividedAxis& axis = p_.queries_of_ranks;
    const Dim early_blocks = ceil_div(axis.early_rows(), block_q_);
    const Condition is_late = place.row_block >= early_blocks;
    const DividedAxis::Piece own = axis.of_rank(p_.of_ranks.kernel.rank(), is_late);
    Index block = place.row_block;
    if (axis.pieces_of_rank() > 1) block = block - select(is_late, early_blocks, 0);
    const Sequence queries(p_.queries, own.at, own.at + own.rows);
    work.queries = queries.block(block, block_q_);
    work.keys = Sequence(p_.keys, 0, visible_keys(own.first + own.rows, axis.all_rows(), p_.keys));
    work.mask = causal(queries, work.keys, a_.window);
    return work;
  }

 private:
  Run longest_first(const Index& number) const {
    const Dim tiles_of_first = first_ * row_blocks_;
    const Condition is_first = number < tiles_of_first;
    const Index group =
        select(is_first, in_even_groups(first_, group_), in_even_groups(heads_ - first_, group_));
    const Index of_group = max(group * row_blocks_, 1);
    const Index own = select(is_first, number, number - tiles_of_first);
    const Index begin = select(is_first, 0, first_) + own / of_group * group;
    const Index count = min(select(is_first, first_, heads_) - begin, group);
    const Index in_group = own % of_group;
    const Condition ends = begin + count == heads_;
    return of_heads(select(ends, for_an_even_end(in_group, count * row_blocks_), in_group), begin,
                    count);
  }
  // Which of the last group's tiles comes in a turn, numbered from the longest on. The shortest of
  // a rank may be long: four rounds of all CTAs, chosen evenly among all lengths, come last. So who
  // gets a long one has short ones behind it.
  static Index for_an_even_end(const Index& turn, const Index& tiles) {
    constexpr int kMost = 1 << 15;  // whose square is an index
    const Index some = min(tiles, kMost), own = turn - (tiles - some);
    const Dim last = 4 * multiprocessors();
    const Index before = some - last;
    const Index chosen =
        select(own < before, own * some / max(before, 1), ((own - before + 1) * some - 1) / last);
    return select(before > 0 && own >= 0, tiles - some + chosen, turn);
  }

  static Dim row_blocks(const ShardParameters& p, const Attention& a, int size) {
    if (!a.causal) return ceil_div(p.queries, size);
    return ceil_div(p.queries_of_ranks.early_rows(), size) +
           ceil_div(p.queries_of_ranks.late_rows(), size);
  }

  const ShardParameters& p_;
  Dim first_;  // heads of the tiles that run first
  std::optional<SplitTiles> split_;
};

struct PackedShardParameters : VarlenParameters {
  PackedShardParameters(Kernel& kernel, const Attention& a, const DividedRows& how, KeysBy by)
      : VarlenParameters(kernel, a, KeysFrom::ranks),
        of_ranks(kernel, a, how, by, K, V, total_queries, total_keys, {}),
        queries_of_ranks(total_queries, kernel.ranks(), how.shards),
        all_queries(queries_of_ranks.all_rows(), cu_seqlens_q) {}
  KeysOfRanks of_ranks;
  DividedAxis queries_of_ranks;
  Ragged all_queries;
};

// The same of packed sequences: in each piece the tiles of what it has of each sequence.
class PackedShardOrder {
 public:
  using Parameters = PackedShardParameters;
  using Arrivals = kernels::Arrivals;
  static constexpr bool kKeysArrive = true;
  static constexpr bool kSendsOutput = false;
  static constexpr bool kEveryTileHasRows = false;
  static constexpr bool kHasNeighbours = false;
  static constexpr bool kInPairs = false;
  static constexpr bool kKeysInPages = false;

  PackedShardOrder(const PackedShardParameters& p, const Attention& a, const Sm90Plan& plan)
      : p_(p),
        a_(a),
        packed_heads_(plan.packed_heads),
        block_q_(a.block_q / packed_heads_),
        early_(p.queries_of_ranks.early_tiles(block_q_, p.batch)),
        tiles_(early_ + p.queries_of_ranks.late_tiles(block_q_, p.batch)) {}
  const KeysOfRanks& keys_of_ranks() const { return p_.of_ranks; }
  template <typename Body>
  void each_place(Arrivals& arrivals, KeyTensor which, const Work& work, const Block& block,
                  const Block& columns, const Body& body) const {
    arrivals.each_place(which, which == KeyTensor::K ? p_.K : p_.V, work, block, columns, body);
  }

  Dim runs() const { return tiles_ * (a_.heads / packed_heads_); }
  // Sequences of a second piece are numbered behind those of the first.
  Run run(const Index& number) const {
    const Dim of_pack = max(tiles_, 1);
    const Index tile = of_pack - 1 - number % of_pack, pack = number / of_pack;
    const Condition is_late = tile >= early_;
    const DividedAxis::Piece own = piece(is_late);
    if (p_.queries_of_ranks.pieces_of_rank() == 1) {
      const auto [sequence, block] = queries_in(own).tile(tile, block_q_);
      return {{block, pack, sequence}, 1};
    }
    const auto [sequence, block] =
        queries_in(own).tile(tile - select(is_late, early_, 0), block_q_);
    return {{block, pack, sequence + select(is_late, p_.batch, 0)}, 1};
  }

  Work work(const Place& place) const {
    const Condition is_late = place.sequence >= p_.batch;
    const DividedAxis::Piece own = piece(is_late);
    Index sequence = place.sequence;
    if (p_.queries_of_ranks.pieces_of_rank() > 1) {
      sequence = sequence - select(is_late, p_.batch, 0);
    }
    const PackedPiece here = queries_in(own);
    const Sequence queries = here.of(sequence), keys = visible(sequence, own, queries);
    return {here.rows(sequence, place.row_block, block_q_),
            Dim(a_.heads).block(place.pack, packed_heads_),
            place.pack / (p_.group / packed_heads_),
            keys,
            p_.mask(queries, keys),
            {}};
  }
  Block queries_of_all(const Work& work, const Place&) const { return work.queries; }
  TensorView output(const Work& work, const Block& rows, const Block& columns) const {
    return work.part(p_.O, rows, work.heads, columns);
  }
  TensorView sums(const Work& work, const Block& rows) const { return work.sums(p_.LSE, rows); }

 private:
  DividedAxis::Piece piece(const Condition& is_late) const {
    return p_.queries_of_ranks.of_rank(p_.of_ranks.kernel.rank(), is_late);
  }
  PackedPiece queries_in(const DividedAxis::Piece& own) const {
    return PackedPiece(p_.all_queries, p_.total_queries, own);
  }
  // Of the sequence's keys those up to the last that its queries in the piece see.
  Sequence visible(const Index& sequence, const DividedAxis::Piece& own,
                   const Sequence& queries) const {
    const Sequence keys = p_.keys.of(sequence);
    if (!a_.causal) return keys;
    const Index behind = p_.all_queries.of(sequence).end() - (queries.end() - own.at + own.first);
    return Sequence(p_.total_keys, keys.begin(), max(keys.begin(), keys.end() - behind));
  }

  const PackedShardParameters& p_;
  const Attention& a_;
  int packed_heads_, block_q_;
  Dim early_, tiles_;
};

// The program's side: memory for all keys and values in each rank, and what copy engines bring.
template <typename Shapes>
class GatheredKeys {
 public:
  GatheredKeys(Program& program, const SequenceParallelAttention& o, KeysBy by,
               const AttentionBuffers<Shapes>& own)
      : o_(o),
        own_(own),
        by_(by),
        axis_(own.shapes.of_keys(1)[kAxis], o.ranks, divided_rows(o, kPacked).shards),
        queries_(own.shapes.of_queries(1)[kAxis], o.ranks, divided_rows(o, kPacked).shards),
        shares_(o.attention),
        run_(program.run()),
        K_(gathered(program, "all_K", own.K, o.attention.dim)),
        V_(gathered(program, "all_V", own.V, o.attention.dim_v)),
        arrived_(program.signals("arrived", KeysOfRanks::words(o.attention, axis_))),
        begun_(
            program.signals(by == KeysBy::warps ? "begun" : "taken", RanksBegin::words(o.ranks))) {}

  // What is read first comes first, to ranks that have read what came in the run before.
  void push(const Rank& rank) const {
    const Stream stream = rank.stream("push");
    for (int d = 1; d < rank.count(); ++d) stream.wait(begun_[rank.next(d)], run_ - 1);
    for (int share = 0; share < shares_.count; ++share) {
      for (int number = axis_.pieces_of_rank() - 1; number >= 0; --number) {
        for (int d = 1; d < rank.count(); ++d) {
          send(stream, share, rank.number(), rank.next(d), number);
        }
      }
    }
  }
  void tell_taken(const Rank& rank, const Stream& stream) const {
    for (int d = 1; d < rank.count(); ++d) {
      stream.write(begun_.on(rank.next(d))[rank.number()], run_);
    }
  }
  // Blocks that lie across a border of the rank's own rows are read where all are. Those of packed
  // sequences begin anywhere.
  void keep_borders(const Rank& rank, const Stream& stream) const {
    const int block = o_.attention.block_k;
    for (int number = 0; number < axis_.pieces_of_rank(); ++number) {
      const Dim first = axis_.start(place(rank.number(), rank.number(), number));
      const Dim rows = number == 1 ? axis_.late_rows() : axis_.early_rows();
      const auto reaching = [&](const Dim& border) {
        return min(rows, kPacked ? Dim(block - 1) : (block - 1) * min(border % block, 1));
      };
      const Dim above = reaching(first), below = reaching(first + rows);
      for (const Gathered* each : {&K_, &V_}) {
        copy(stream, *each, rank.number(), number, 0, above);
        copy(stream, *each, rank.number(), number, rows - below, below);
      }
    }
  }
  // What the kernel takes.
  std::vector<Part> parts() const {
    std::vector<Part> parts = own_.parts(K_.all, V_.all);
    parts.push_back(arrived_);
    if (by_ == KeysBy::warps) parts.push_back(begun_);
    parts.insert(parts.end(), {own_.K, own_.V});
    return parts;
  }

 private:
  static constexpr int kAxis = key_axis(static_cast<const Shapes*>(nullptr));
  static constexpr bool kPacked = kAxis == 0;
  struct Gathered {
    Buffer own, all;
    int dim;
  };
  Gathered gathered(Program& program, const char* name, const Buffer& own, int dim) const {
    return {own, program.scratch(name, o_.attention.dtype, shape(axis_.all_rows(), dim)), dim};
  }
  std::vector<Dim> shape(const Dim& rows, int dim) const {
    std::vector<Dim> shape = own_.shapes.of_keys(dim);
    shape[kAxis] = rows;
    return shape;
  }
  // Which of the pieces in `to` the rank's first or second is.
  Dim place(int rank, int to, int number) const {
    if (own_keys_last(o_.attention, kPacked)) return (rank + 2 * o_.ranks - 1 - to) % o_.ranks;
    return number == 1 ? axis_.late(Dim(rank)) : axis_.early(Dim(rank));
  }
  // Of a share's heads the piece's rows that `to` sees.
  void send(const Stream& stream, int share, int rank, int to, int number) const {
    const Dim piece = place(rank, to, number), first = axis_.start(piece);
    const Dim from = number == 1 ? axis_.early_rows() : Dim(0);
    Dim rows = number == 1 ? axis_.late_rows() : axis_.early_rows();
    if (plan_case("keys that a rank sees sent alone", o_.attention.causal && !kPacked)) {
      const Dim seen = visible_keys(queries_.start(queries_.late(Dim(to)) + 1), queries_.all_rows(),
                                    axis_.all_rows());
      rows = min(rows, max(seen - first, 0));
    }
    for (const Gathered* each : {&K_, &V_}) {
      const auto part = [&](const Part& tensor, const Dim& start) {
        std::vector<Dim> sizes = shape(rows, each->dim), starts(sizes.size(), 0);
        starts[kAxis] = start;
        starts[kAxis + 1] = shares_.begin(share);
        sizes[kAxis + 1] = shares_.heads(share);
        return tensor.box(starts, sizes);
      };
      stream.copy(part(each->all.on(to), first), part(each->own, from));
    }
    stream.write(arrived_.on(to)[share * axis_.pieces() + piece], run_);
  }
  // So many of the piece's rows, from the first one on.
  void copy(const Stream& stream, const Gathered& each, int rank, int number, const Dim& first,
            const Dim& rows) const {
    const Dim there = axis_.start(place(rank, rank, number)) + first;
    const Dim here = (number == 1 ? axis_.early_rows() : Dim(0)) + first;
    const auto part = [&](const Part& tensor, const Dim& start) {
      std::vector<Dim> sizes = shape(rows, each.dim), starts(sizes.size(), 0);
      starts[kAxis] = start;
      return tensor.box(starts, sizes);
    };
    stream.copy(part(each.all, there), part(each.own, here));
  }

  const SequenceParallelAttention& o_;
  const AttentionBuffers<Shapes>& own_;
  KeysBy by_;
  DividedAxis axis_, queries_;
  HeadShares shares_;
  RunNumber run_;
  Gathered K_, V_;
  Buffer arrived_, begun_;
};

template <typename Order, typename Shapes>
Program gathering_program(const SequenceParallelAttention& o, KeysBy by, const Caller& caller) {
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  const Sm90Plan plan = sm90_plan(a, Order::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  Forward<Order>(kernel, a, plan, divided_rows(o, !Order::kEveryTileHasRows), by);

  Program program(caller.function, o.ranks, caller.where);
  const AttentionBuffers<Shapes> own(program, a);
  const GatheredKeys<Shapes> keys(program, o, by, own);
  program.on_each_rank([&](const Rank& rank) {
    if (by == KeysBy::copies) keys.push(rank);
    const Stream stream = rank.stream();
    keys.keep_borders(rank, stream);
    stream.launch(kernel, keys.parts());
    if (by == KeysBy::copies) keys.tell_taken(rank, stream);
  });
  return program;
}

}  // namespace

Program sequence_parallel_attention_sm90(const SequenceParallelAttention& o, SourceLocation where) {
  return gathering_program<ShardOrder, BatchShapes>(o, KeysBy::warps,
                                                    {"sequence_parallel_attention_sm90", where});
}

Program sequence_parallel_attention_copied_sm90(const SequenceParallelAttention& o,
                                                SourceLocation where) {
  return gathering_program<ShardOrder, BatchShapes>(
      o, KeysBy::copies, {"sequence_parallel_attention_copied_sm90", where});
}

Program sequence_parallel_varlen_attention_sm90(const SequenceParallelAttention& o,
                                                SourceLocation where) {
  return gathering_program<PackedShardOrder, PackedShapes>(
      o, KeysBy::warps, {"sequence_parallel_varlen_attention_sm90", where});
}

Program sequence_parallel_varlen_attention_copied_sm90(const SequenceParallelAttention& o,
                                                       SourceLocation where) {
  return gathering_program<PackedShardOrder, PackedShapes>(
      o, KeysBy::copies, {"sequence_parallel_varlen_attention_copied_sm90", where});
}

}  // namespace tilewright::kernels
