#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "kernels/attention_ranks.h"
#include "kernels/attention_sm90_forward.h"
#include "kernels/rank_words.h"

namespace tilewright::kernels {
namespace {

// Without a mask any order of keys will do, where sequences are of one length: the rank's own then
// come last among those of all, and so first in the kernel. Else pieces lie as in the whole.
bool own_keys_last(const Attention& a, bool is_packed) { return !a.causal && !is_packed; }

// And any division of the rows.
Shards shards_of(const SequenceParallelAttention& o, bool is_packed) {
  return own_keys_last(o.attention, is_packed) ? Shards::contiguous : o.shards;
}

// Keys come in two shares of their heads: those of the tiles that run first, and the rest while
// these run. A word of K and one of V follow each share of each piece.
struct HeadShares {
  explicit HeadShares(const Attention& a)
      : all(a.kv_heads), first(std::max(a.kv_heads / 4, 1)), count(first < all ? 2 : 1) {}
  Index of(const Index& kv_head) const {
    return count == 1 ? Index(0) : select(kv_head >= first, 1, 0);
  }
  int begin(int share) const { return share == 0 ? 0 : first; }
  int heads(int share) const { return share == 0 ? first : all - first; }
  int all, first;
  int count;
};
template <typename Number>
Number word_of(const Number& share, const Number& piece, const Dim& pieces, int tensor) {
  return (share * pieces + piece) * 2 + tensor;
}

// The keys of all ranks, seen from a kernel: the rank's own where they are, and memory for all, to
// which the others push theirs.
struct KeysOfRanks {
  // `queries` are those of a rank, of sequences of one length.
  KeysOfRanks(Kernel& kernel, const Dim& keys, const Shards& shards, bool own_last,
              const Attention& a, const std::vector<Dim>& own_K, const std::vector<Dim>& own_V,
              const std::optional<Dim>& queries = {})
      : kernel(kernel),
        ranks(kernel.ranks()),
        rows(keys / ranks),
        axis(rows, ranks, shards),
        own_last(own_last),
        early_moves(queries && a.causal && a.window == 0 && shards == Shards::zig_zag),
        cut(axis.early_rows() % a.block_k + axis.late_rows() % a.block_k),
        shares(a),
        arrived(kernel.symmetric("arrived", i32, {shares.count * axis.pieces() * 2})),
        K(kernel.in("own_K", a.dtype, own_K)),
        V(kernel.in("own_V", a.dtype, own_V)) {
    if (early_moves) cut = cut + max(*queries - rows, rows - *queries);
  }
  // Where the block of keys lies that a tile reads in this one's turn, counted down from its last.
  // Of two pieces under a causal mask the rank's first one has the turn behind the second, and what
  // lies between the two comes later. It is the tile's block where none of these is cut, by a border
  // or by the mask.
  Block in_turn(const Work& work, const Block& block) const {
    if (!early_moves) return block;
    const DividedAxis::Piece late = own_piece(true), early = own_piece(false);
    const Index moving = select(cut == 0, early.rows, 0);
    const Index end = early.first + early.rows;
    const Index before = late.first - block.start() - block.size();
    const Index later = block.start() + moving;
    const Index moved = select(before < moving, end - block.size() - before,
                               select(later < end, block.start(), later));
    const Condition moves = before >= 0 && work.keys.end() > late.first;
    return Block(select(moves, moved, block.start()), block.size(), block.limit(), block.packed());
  }
  // The last of the pieces that are the rank's own.
  Index last_of_own() const { return own_last ? Index(ranks - 1) : axis.late(kernel.rank()); }
  DividedAxis::Piece own_piece(bool is_late) const {
    if (own_last) return {axis.start(Index(ranks - 1)), rows, 0};
    return axis.piece(is_late ? last_of_own() : axis.early(kernel.rank()));
  }
  void await(const Index& share, const Index& piece) const {
    const Condition is_own = own_last ? piece == ranks - 1 : axis.owner(piece) == kernel.rank();
    when(!is_own, [&] {
      for (int tensor = 0; tensor < 2; ++tensor) {
        wait_flag(arrived(word_of(share, piece, axis.pieces(), tensor)), Compare::ge,
                  kernel.epoch(), kLearn);
      }
      fence_proxy_async_global();
    });
  }

  Kernel& kernel;
  Dim ranks, rows;
  DividedAxis axis;
  bool own_last;
  bool early_moves;
  Dim cut;  // 0 where pieces have whole blocks of rows, and each row sees as many keys
  HeadShares shares;
  Tensor arrived;
  Tensor K, V;  // the rank's own
};

// What the warp that loads knows to be there of a share of the heads: pieces that follow each
// other, at first the last of the rank's own.
class Arrivals {
 public:
  template <typename Order>
  explicit Arrivals(const Order& order)
      : keys_(order.keys_of_ranks()),
        share_(0),
        first_(keys_.last_of_own()),
        end_(keys_.last_of_own() + 1),
        first_row_(keys_.axis.start(keys_.last_of_own())),
        end_row_(keys_.axis.start(keys_.last_of_own() + 1)) {}

  // Tiles of the first share come first.
  void await_tile(const Work& work) {
    if (keys_.shares.count == 1) return;
    const Index share = keys_.shares.of(work.kv_head);
    when(share > share_, [&] {
      share_ = share;
      first_ = keys_.last_of_own();
      end_ = keys_.last_of_own() + 1;
      first_row_ = keys_.axis.start(keys_.last_of_own());
      end_row_ = keys_.axis.start(keys_.last_of_own() + 1);
    });
  }
  // Calls `body` for a block of keys or values where it lies: with those of the rank, or with all,
  // once it has come there.
  template <typename Body>
  void each_place(KeyTensor which, const Tensor& all, const Work& work, const Block& number,
                  const Block& columns, const Body& body) {
    const Block block = keys_.in_turn(work, number);
    const Index end = min(block.start() + block.size(), block.limit());
    const auto has = [&](const DividedAxis::Piece& own) {
      return block.start() >= own.first && end <= own.first + own.rows;
    };
    const DividedAxis::Piece late = keys_.own_piece(true);
    Condition is_own = has(late);
    Index ahead = late.first - late.at;
    if (keys_.axis.pieces_of_rank() > 1) {
      const DividedAxis::Piece early = keys_.own_piece(false);
      ahead = select(is_own, ahead, early.first - early.at);
      is_own = is_own || has(early);
    }
    when(
        is_own,
        [&] {
          const Block own(block.start() - ahead, block.size(), end - ahead, keys_.rows);
          body(work.part(which == KeyTensor::K ? keys_.K : keys_.V, own, work.kv_head, columns));
        },
        [&] {
          // Values come with their keys, which are loaded before.
          if (which == KeyTensor::K) await(block);
          body(work.part(all, block, work.kv_head, columns));
        });
  }

 private:
  void await(const Block& block) {
    const Index begin = block.start(), end = min(begin + block.size(), block.limit());
    Cell<Condition> missing(begin < first_row_);
    repeat_while(missing, [&] {
      first_ = first_ - 1;
      keys_.await(share_, first_);
      first_row_ = keys_.axis.start(Index(first_));
      missing = begin < first_row_;
    });
    missing = end_row_ < end;
    repeat_while(missing, [&] {
      keys_.await(share_, end_);
      end_ = end_ + 1;
      end_row_ = keys_.axis.start(Index(end_));
      missing = end_row_ < end;
    });
  }

  const KeysOfRanks& keys_;
  Cell<Index> share_;
  Cell<Index> first_, end_;          // pieces
  Cell<Index> first_row_, end_row_;  // their rows
};

struct ShardParameters : AttentionParameters {
  ShardParameters(Kernel& kernel, const Attention& a, const Shards& shards)
      : AttentionParameters(kernel, a, KeysFrom::ranks),
        of_ranks(kernel, keys, shards, own_keys_last(a, false), a,
                 {batch, keys / kernel.ranks(), a.kv_heads, a.dim},
                 {batch, keys / kernel.ranks(), a.kv_heads, a.dim_v}, queries),
        queries_of_ranks(queries, of_ranks.ranks, shards) {}
  KeysOfRanks of_ranks;
  DividedAxis queries_of_ranks;
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
        first_(min(heads_, p.of_ranks.shares.first * (p.group / packed_heads_) * p.batch)) {}
  // A head of all sequences before the next one: as they come. Of a causal mask those whose keys
  // come first end before the longest tiles of the others begin.
  Run run(const Index& number) const {
    Run run = a_.causal ? longest_first(number) : BatchOrder::run(number);
    const Dim batch = max(p_.batch, 1);
    const Index head = run.first.sequence * (a_.heads / packed_heads_) + run.first.pack;
    run.first = {run.first.row_block, head / batch, head % batch};
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
    const Index group = select(is_first, in_even_groups(first_, group_),
                               in_even_groups(heads_ - first_, group_));
    const Index of_group = max(group * row_blocks_, 1);
    const Index own = select(is_first, number, number - tiles_of_first);
    const Index begin = select(is_first, 0, first_) + own / of_group * group;
    return of_heads(own % of_group, begin, min(select(is_first, first_, heads_) - begin, group));
  }
  static Dim row_blocks(const ShardParameters& p, const Attention& a, int size) {
    if (!a.causal) return ceil_div(p.queries, size);
    return ceil_div(p.queries_of_ranks.early_rows(), size) +
           ceil_div(p.queries_of_ranks.late_rows(), size);
  }

  const ShardParameters& p_;
  Dim first_;  // heads of the tiles that run first
};

struct PackedShardParameters : VarlenParameters {
  PackedShardParameters(Kernel& kernel, const Attention& a, const Shards& shards)
      : VarlenParameters(kernel, a, KeysFrom::ranks),
        of_ranks(kernel, total_keys, shards, own_keys_last(a, true), a,
                 {total_keys / kernel.ranks(), a.kv_heads, a.dim},
                 {total_keys / kernel.ranks(), a.kv_heads, a.dim_v}),
        queries_of_ranks(total_queries, of_ranks.ranks, shards),
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

// The program's side: memory for all keys and values in each rank, and who puts which where.
template <typename Shapes>
class GatheredKeys {
 public:
  GatheredKeys(Program& program, const SequenceParallelAttention& o,
               const AttentionBuffers<Shapes>& own)
      : o_(o),
        own_(own),
        own_last_(own_keys_last(o.attention, kPacked)),
        axis_(rows(own.shapes.of_keys(1)), o.ranks, shards_of(o, kPacked)),
        queries_(rows(own.shapes.of_queries(1)), o.ranks, shards_of(o, kPacked)),
        run_(program.run()),
        K_(gathered(program, "K", own.K, o.attention.dim)),
        V_(gathered(program, "V", own.V, o.attention.dim_v)),
        shares_(o.attention),
        arrived_(program.signals("arrived", shares_.count * axis_.pieces() * 2)),
        taken_(program.signals("taken", o.ranks)) {}

  // K and V in a stream each: what a copy and a word take besides the bytes then passes under the
  // bytes of the other. What is read first comes first.
  void push(const Rank& rank) const {
    const std::vector<Send> sends = sends_of(rank);
    for (const Gathered* each : {&K_, &V_}) {
      const Stream stream = rank.stream(std::string("push_") + each->name);
      for (int d = 1; d < rank.count(); ++d) stream.wait(taken_[rank.next(d)], run_ - 1);
      for (int share = 0; share < shares_.count; ++share) {
        for (const Send& one : sends) {
          send(stream, *each, share, rank.number(), one.to, one.number);
        }
      }
    }
  }
  // Blocks that lie across a border of the rank's own rows are read where all are. Those of packed
  // sequences begin anywhere.
  void keep_borders(const Rank& rank, const Stream& stream) const {
    const int block = o_.attention.block_k;
    for (int number = 0; number < axis_.pieces_of_rank(); ++number) {
      const Dim first = axis_.start(Dim(place(rank.number(), rank.number(), number)));
      const Dim rows = number == 1 ? axis_.late_rows() : axis_.early_rows();
      const auto reaching = [&](const Dim& border) {
        return min(rows, kPacked ? Dim(block - 1) : (block - 1) * min(border % block, 1));
      };
      const Dim above = reaching(first), below = reaching(first + rows);
      for (const Gathered* each : {&K_, &V_}) {
        for (int share = 0; share < shares_.count; ++share) {
          copy(stream, *each, share, rank.number(), rank.number(), number, 0, above);
          copy(stream, *each, share, rank.number(), rank.number(), number, rows - below, below);
        }
      }
    }
  }
  void tell_taken(const Rank& rank, const Stream& stream) const {
    for (int d = 1; d < rank.count(); ++d) {
      stream.write(taken_.on(rank.next(d))[rank.number()], run_);
    }
  }
  // What the kernel takes.
  std::vector<Part> parts() const {
    std::vector<Part> parts = own_.parts(K_.all, V_.all);
    parts.insert(parts.end(), {arrived_, own_.K, own_.V});
    return parts;
  }

 private:
  static constexpr int kAxis = key_axis(static_cast<const Shapes*>(nullptr));
  static constexpr bool kPacked = kAxis == 0;
  struct Gathered {
    const char* name;
    Buffer own, all;
    int dim;
  };
  Gathered gathered(Program& program, const char* name, const Buffer& own, int dim) const {
    return {name, own,
            program.scratch(std::string("all_") + name, o_.attention.dtype,
                            shape(axis_.all_rows(), dim)),
            dim};
  }
  static Dim rows(const std::vector<Dim>& shape) { return shape[kAxis]; }
  std::vector<Dim> shape(const Dim& rows, int dim) const {
    std::vector<Dim> shape = own_.shapes.of_keys(dim);
    shape[kAxis] = rows;
    return shape;
  }
  // A rank's first or second piece, to another one, which reads so many others before.
  struct Send {
    int to, number, turn;
  };
  std::vector<Send> sends_of(const Rank& rank) const {
    std::vector<Send> sends;
    for (int d = 1; d < rank.count(); ++d) {
      const int to = rank.next(d);
      for (int number = 0; number < axis_.pieces_of_rank(); ++number) {
        sends.push_back({to, number, turn(place(rank.number(), to, number), to)});
      }
    }
    std::stable_sort(sends.begin(), sends.end(),
                     [](const Send& a, const Send& b) { return a.turn < b.turn; });
    return sends;
  }
  // Which of the pieces the rank's first or second is in `to`.
  int place(int rank, int to, int number) const {
    if (own_last_) return (rank + 2 * o_.ranks - 1 - to) % o_.ranks;
    return number == 1 ? last_piece() - rank : rank;
  }
  int last_piece() const { return o_.ranks * axis_.pieces_of_rank() - 1; }
  // How many pieces of others `to` reads before this one: it begins with its last own one under a
  // causal mask, which hides those behind, and else with the last of all.
  int turn(int piece, int to) const {
    const int late = axis_.pieces_of_rank() == 2 ? last_piece() - to : to;
    const int first = o_.attention.causal ? late : last_piece();
    if (piece > first) return last_piece();
    const int own = own_last_ ? 1 : (late > piece && late <= first) + (to > piece && to != late);
    return first - piece - own;
  }
  // To where `to` reads it what that sees of the piece.
  void send(const Stream& stream, const Gathered& each, int share, int rank, int to,
            int number) const {
    const Dim rows = number == 1 ? axis_.late_rows() : axis_.early_rows();
    const Dim piece = place(rank, to, number);
    copy(stream, each, share, rank, to, number, 0, seen_by(to, axis_.start(piece), rows));
    stream.write(arrived_.on(to)[word_of(Dim(share), piece, axis_.pieces(), &each == &V_ ? 1 : 0)],
                 run_);
  }
  // So many of the piece's rows.
  void copy(const Stream& stream, const Gathered& each, int share, int rank, int to, int number,
            const Dim& first, const Dim& rows) const {
    const Dim there = axis_.start(Dim(place(rank, to, number))) + first;
    const Dim here = (number == 1 ? axis_.early_rows() : Dim(0)) + first;
    const auto part = [&](const Part& tensor, const Dim& start) {
      std::vector<Dim> sizes = shape(rows, each.dim), starts(sizes.size(), 0);
      starts[kAxis] = start;
      starts[kAxis + 1] = shares_.begin(share);
      sizes[kAxis + 1] = shares_.heads(share);
      return tensor.box(starts, sizes);
    };
    stream.copy(part(each.all.on(to), there), part(each.own, here));
  }
  // Of so many rows of the whole from the first one on; where sequences are packed the host does
  // not know.
  Dim seen_by(int rank, const Dim& first, const Dim& rows) const {
    if (kPacked || !o_.attention.causal) return rows;
    const Dim end = queries_.start(queries_.late(Dim(rank)) + 1);
    return max(min(rows, visible_keys(end, queries_.all_rows(), axis_.all_rows()) - first), 0);
  }

  const SequenceParallelAttention& o_;
  const AttentionBuffers<Shapes>& own_;
  bool own_last_;
  DividedAxis axis_, queries_;
  RunNumber run_;
  Gathered K_, V_;
  HeadShares shares_;
  Buffer arrived_, taken_;
};

template <typename Order, typename Shapes>
Program gathering_program(const SequenceParallelAttention& o, const Caller& caller) {
  check_attention_ranks(o, caller);
  const Attention& a = o.attention;
  const Sm90Plan plan = sm90_plan(a, Order::kHasNeighbours, caller);
  Kernel kernel(caller.function);
  Forward<Order>(kernel, a, plan, shards_of(o, !Order::kEveryTileHasRows));

  Program program(caller.function, o.ranks, caller.where);
  const AttentionBuffers<Shapes> own(program, a);
  const GatheredKeys<Shapes> keys(program, o, own);
  program.on_each_rank([&](const Rank& rank) {
    keys.push(rank);
    const Stream math = rank.stream("math");
    keys.keep_borders(rank, math);
    math.launch(kernel, keys.parts());
    keys.tell_taken(rank, math);
  });
  return program;
}

}  // namespace

Program sequence_parallel_attention_sm90(const SequenceParallelAttention& o, SourceLocation where) {
  return gathering_program<ShardOrder, BatchShapes>(o, {"sequence_parallel_attention_sm90", where});
}

Program sequence_parallel_varlen_attention_sm90(const SequenceParallelAttention& o,
                                                SourceLocation where) {
  return gathering_program<PackedShardOrder, PackedShapes>(
      o, {"sequence_parallel_varlen_attention_sm90", where});
}

}  // namespace tilewright::kernels
