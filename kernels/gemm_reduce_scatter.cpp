#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_reduce_scatter.h"
#include "kernels/gemm_sm90.h"
#include "kernels/rank_words.h"
#include "tilewright/function_ref.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

namespace {

void check_sm90_tiles(const GemmReduceScatter& o, const Caller& caller) {
  check_reduce_scatter(o, caller);
  if (o.parts_by != PartsBy::tma &&
      (o.join_ranks || o.share_ranks || o.gemm.share_a > 1 || o.gemm.share_b > 1)) {
    caller.refuse(
        "CTAs share tiles, or tiles have rows of all ranks, whose parts are not sent by "
        "TMA alone",
        "take parts_by = PartsBy::tma, or tiles of one CTA and one rank");
  }
  if (o.parts_by == PartsBy::reduction && o.ranks > 2) {
    caller.refuse("parts of " + std::to_string(o.ranks) + " ranks are added where the sum is",
                  "take two ranks: PTX's additions by TMA are for the threads of one GPU, and here "
                  "several GPUs would add to one element");
  }
  if (o.join_ranks) {
    check_joined_sm90(o.gemm, o.ranks, caller);
    if (o.gemm.share_b == 1 && !o.gemm.grid_split) return;
    caller.refuse("tiles of all ranks' rows share B, or the grid divides k",
                  "take share_b = 1 and grid_split = false");
  }
  check_ranks_sm90(o.gemm, o.ranks, o.share_ranks, caller);
  if (o.gemm.exchanged) {
    caller.refuse("the operands are exchanged",
                  "a warp adds whole rows of the parts: take tiles without");
  }
}

// A rank's part of the sum as it travels.
Tile rounded(const Tile& part, DType parts) {
  return parts == f32 ? part : part.cast(parts).cast(f32);
}

Kernel pulled_reduce_scatter(const GemmReduceScatter& o) {
  const Gemm& g = o.gemm;
  Kernel kernel("gemm_reduce_scatter");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k"), ranks = kernel.ranks();
  const Tensor A = kernel.symmetric("A", g.dtype, {ranks, m, k});
  const Tensor B = kernel.symmetric("B", g.dtype, {n, k});
  const ScatterEpilogue epilogue(kernel, o, n);
  const Tensor C = kernel.out("C", g.dtype, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, g.block_n), ceil_div(m, g.block_m));
  const Block rows = m.block(y, g.block_m), cols = n.block(x, g.block_n);
  const Index me = kernel.rank();
  Var sum{zeros({rows, cols})};
  for (Index from : range(ranks)) {
    Var part{zeros({rows, cols})};
    for (Block depth : blocks(k, g.block_k)) {
      part = dot(load(A.at(from)(me, rows, depth)), load(B.at(from)(cols, depth)).T(), part);
    }
    sum = sum + rounded(part, o.parts);
  }
  store(C(rows, cols), epilogue.apply(sum, cols).cast(g.dtype));
  return kernel;
}

// What copy engines take of a rank's tiles at a time: whole bands of rows, which CTAs compute one
// after the other, and half of the columns. Of few rows or columns there are blocks of no tile.
class CopiedBlocks {
 public:
  static constexpr int kCount = 4;
  CopiedBlocks(const Gemm& g, Dim m, Dim n)
      : m_(std::move(m)),
        n_(std::move(n)),
        tile_rows_(g.block_m),
        tile_columns_(g.block_n),
        rows_(ceil_div(m_, 2 * kBand * tile_rows_) * kBand * tile_rows_),
        columns_(ceil_div(n_, 2 * tile_columns_) * tile_columns_) {}

  struct Place {
    Dim row, rows, column, columns;
  };
  Place place(int block) const {
    const Dim row = min(block / 2 * rows_, m_), column = min(block % 2 * columns_, n_);
    return {row, min(rows_, m_ - row), column, min(columns_, n_ - column)};
  }
  Dim tiles(int block) const {
    const Place at = place(block);
    return ceil_div(at.rows, tile_rows_) * ceil_div(at.columns, tile_columns_);
  }
  // That of a tile.
  Index of(const Block& rows, const Block& cols) const {
    return rows.start() / rows_ * 2 + cols.start() / columns_;
  }

 private:
  static constexpr int kBand = 8;  // tiles below each other, as GemmSm90 takes them
  Dim m_, n_;
  int tile_rows_, tile_columns_;
  Dim rows_, columns_;
};

// A word for each rank and block.
Dim words_of_copies(const GemmReduceScatter& o) { return o.ranks * CopiedBlocks::kCount; }

std::vector<Dim> shape_of_parts(const GemmReduceScatter& o, const Dim& m, const Dim& n) {
  switch (o.parts_by) {
    case PartsBy::tma:
      return {2, o.ranks, m, n};
    case PartsBy::copies:
      return {o.ranks, m, n};
    case PartsBy::reduction:
      break;
  }
  return {m, n};
}
Dim arrival_words(const GemmReduceScatter& o, const Dim& m, const Dim& n) {
  return o.parts_by == PartsBy::copies ? words_of_copies(o) : words_of(o, m, n);
}

class ReduceScatterSm90 : public GemmSm90 {
 public:
  ReduceScatterSm90(Kernel& kernel, const GemmReduceScatter& o, SharedPlan plan)
      : ReduceScatterSm90(kernel, o, std::move(plan), kernel.dim("m"),
                          kernel.dim("n", multiple_of(8)), kernel.dim("k", multiple_of(8))) {}

 private:
  ReduceScatterSm90(Kernel& kernel, const GemmReduceScatter& o, SharedPlan plan, const Dim& m,
                    const Dim& n, const Dim& k)
      : GemmSm90(kernel, o.gemm,
                 {m, n, k, kernel.in("A", o.gemm.dtype, {kernel.ranks(), m, k}),
                  kernel.in("B", o.gemm.dtype, {n, k})},
                 std::move(plan), o.parts),
        o_(o),
        kernel_(kernel),
        ranks_(kernel.ranks()),
        epilogue_(kernel, o, n),
        C_(kernel.out("C", o.gemm.dtype, {m, n})),
        parts_(kernel.symmetric("parts", o.parts, shape_of_parts(o, m, n))),
        arrived_(kernel.symmetric("arrived", i32, {arrival_words(o, m, n)})),
        blocks_(o.gemm, m, n),
        sent_(kernel, kGroupThreads + kWarpThreads, o.gemm.warpgroups) {
    plan_case("parts of f32", o.parts == f32);
    plan_case("parts through the ring", parts_through_ring());
    switch (o.parts_by) {
      case PartsBy::tma:
        break;
      case PartsBy::copies:
        made_.emplace(Made{kernel.inout("made", o.parts, {o.ranks, m, n}),
                           kernel.symmetric("made_tiles", i32, {words_of_copies(o)})});
        break;
      case PartsBy::reduction:
        begun_.emplace(kernel, o.ranks);
        break;
    }
  }

  // Parts that copy engines take from here, and of each block how many of its tiles were made.
  struct Made {
    Tensor parts, counts;
  };

  // A tile of another rank of which runs are held.
  struct Sent {
    Cell<Index> rank{Index(kNone), here()};  // kNone for no tile
    Cell<Index> row{Index(0), here()}, column{Index(0), here()};
  };

  Dim tile_count() const override {
    return o_.share_ranks ? tile_groups() : tile_groups() * ranks_;
  }
  int rows_together() const override { return o_.share_ranks ? 1 : g_.share_b; }
  // Group by group the tiles of all other ranks, so that something goes to each of them at any
  // time, and this rank's own last: the others' parts have had time to come.
  Work work(const Index& tile) const override {
    const int others = o_.ranks - 1;
    const Dim own_from = tile_groups() * others;
    const Condition is_own = tile >= own_from;
    const Index group = o_.share_ranks ? tile : select(is_own, tile - own_from, tile / others);
    const Index distance = o_.share_ranks ? below() : select(is_own, others, tile % others);
    if (made_) return work_by_ranks(tile);
    Work w = GemmSm90::work(group);
    w.rank = (kernel_.rank() + 1 + distance) % ranks_;
    w.number = group;
    // What of B is in L2 when the rows of one rank end those of the next begin with.
    if (!o_.share_ranks && o_.ranks == 2) w.backwards = is_own;
    if (tiles_together() > 1) {
      // only callers: no variant has tiles that CTAs of a cluster share
      w.number = group * tiles_together() + (o_.share_ranks ? across() : shared_rank());
    }
    return w;
  }
  // Rank by rank where copy engines take whole blocks: those of one leave under the next one's.
  Work work_by_ranks(const Index& tile) const {
    Work w = GemmSm90::work(tile % tile_groups());
    w.rank = (kernel_.rank() + 1 + tile / tile_groups()) % ranks_;
    w.number = tile % tile_groups();
    return w;
  }
  // Of a group, those of one rank.
  int tiles_together() const { return g_.share_a * rows_together(); }
  void load_tile(const Work& w) override {
    load_steps(w, [&](const Block& rows, const Block& depth) { return p_.A(w.rank, rows, depth); });
    if (parts_through_ring()) when(w.rank == kernel_.rank(), [&] { load_parts(w); });
  }

  // A release waits for all that is on its way: one warp does it for those that multiply, which
  // meet it when what they have sent of a tile is in memory.
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    return {role("tell", warps(1), budget, [this] { tell(); })};
  }
  void tell() {
    if (begun_) begun_->tell();
    each_tile([&](const Work& w) {
      when(w.rank != kernel_.rank(), [&] {
        for (int group = 0; group < g_.warpgroups; ++group) sent_.sync(group);
        if (made_) {
          atomic_add(made_->counts(block_word(w, w.rank)), 1, kTell);
          return;
        }
        store_index(arrived_.at(w.rank)(word(w, kernel_.rank())), kernel_.epoch(), kTell);
      });
    });
  }
  void all_sent(const Index& group) {
    when(sending_->rank != kNone, [&] {
      bulk_wait(0);
      sent_.sync(group);
    });
    sending_->rank = kNone;
  }

  void multiply(const Index& group) override {
    sending_.emplace();
    for (int i = 0; i < held_runs(); ++i) {
      held_.emplace_back(zeros({64, runs().front().width}, o_.parts), here());
    }
    GemmSm90::multiply(group);
    for (int i = 0; i < held_runs(); ++i) send_held(i, group);
    all_sent(group);
    held_.clear();
    sending_.reset();
  }

  // Stores to other ranks read shared memory no faster than the link takes them, and all CTAs end
  // their tiles at about the same time. So runs stay in registers and leave one by one beside the
  // next tile's products: of tiles of 64 rows, which leave room for them, all, and of larger
  // ones between two ranks (docs/log); else those for which no staging tile is free.
  int pauses() const override { return o_.share_ranks ? 0 : held_runs() + 1; }
  void pause(int number, const Work&, const Index& group) override {
    if (number <= held_runs()) return send_held(number - 1, group);
    all_sent(group);
  }
  int held_runs() const {
    const int all = static_cast<int>(runs().size());
    const bool alike = runs().front().width == runs().back().width;
    if (!alike || o_.share_ranks) return 0;
    const bool two_by_tma = o_.ranks == 2 && o_.parts_by == PartsBy::tma && size_of(o_.parts) == 2;
    return g_.block_m == 64 || two_by_tma ? all : std::min(2, all - staged_runs());
  }
  int sent_at_once() const { return static_cast<int>(runs().size()) - held_runs(); }

  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    when(
        w.rank != kernel_.rank(), [&] { send(w, sums, group); }, [&] { add_up(w, sums, group); });
  }

  // Where this rank's part of a tile goes, and where another one's is.
  Destination slot_in(const Index& rank) const {
    return [this, rank](const Block& rows, const Block& cols) {
      switch (o_.parts_by) {
        case PartsBy::tma:
          break;
        case PartsBy::copies:
          return made_->parts(rank, rows, cols);
        case PartsBy::reduction:
          return parts_.at(rank)(rows, cols);
      }
      return parts_.at(rank)(half(), kernel_.rank(), rows, cols);
    };
  }
  TensorView slot_of(const Index& sender, const Block& rows, const Block& cols) const {
    if (made_) return parts_(sender, rows, cols);
    return parts_(half(), sender, rows, cols);
  }
  Index half() const { return kernel_.epoch() % 2; }

  void leave(const Destination& to, const Block& rows, const Block& cols,
             const SharedView& from) override {
    if (!adds_) return GemmSm90::leave(to, rows, cols, from);
    tma_reduce(to(rows, cols), from);
  }
  void store_parts(const Work& w, const Index& rank, const Index& group,
                   FunctionRef<Tile(const Run&)> values, int first, int last) {
    adds_ = begun_.has_value();
    store_runs(w, group, slot_in(rank), values, first, last);
    adds_ = false;
  }

  void send(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    if (begun_) {
      begun_->wait();  // the sum there is zero
      fence_proxy_async_global();
    }
    store_parts(
        w, w.rank, group, [&](const Run& run) { return part_of(sums, run); }, 0, sent_at_once());
    for (int i = 0; i < held_runs(); ++i) {
      held_[i] = part_of(sums, runs()[sent_at_once() + i]).cast(o_.parts);
    }
    sending_->rank = w.rank;
    sending_->row = w.rows.start();
    sending_->column = w.cols.start();
    // Where CTAs of a cluster have rows of several ranks those that add wait for these.
    if (o_.share_ranks) all_sent(group);
  }

  void send_held(int number, const Index& group) {
    when(sending_->rank != kNone, [&] {
      const Work w{Block(sending_->row, g_.block_m, p_.m),
                   Block(sending_->column, g_.block_n, p_.n), 0, 0};
      const int run = sent_at_once() + number;
      store_parts(
          w, sending_->rank, group, [&](const Run&) { return Tile(held_[number]); }, run, run + 1);
    });
  }

  // The others' parts of a tile follow its operands through the ring, where what a warpgroup adds
  // at a time is as wide as a step along k: so they are there when its products end. A stage takes
  // several pieces, of all of the tile's rows and a run's columns; of a run those of all ranks
  // follow each other.
  bool parts_through_ring() const {
    return o_.parts == g_.dtype && sharing() == 1 && !begun_ &&
           static_cast<int>(runs().size()) * g_.block_k == g_.block_n &&
           runs().front().width == g_.block_k && runs().back().width == g_.block_k;
  }
  int pieces_of_stage() const { return 1 + g_.block_n / g_.block_m; }
  int pieces() const { return static_cast<int>(runs().size()) * (o_.ranks - 1); }
  SharedView piece(const Slot& slot, int number) const {
    const int place = number % pieces_of_stage();
    return place == 0 ? slot[0] : slot[1].rows((place - 1) * g_.block_m, g_.block_m);
  }
  void load_parts(const Work& w) {
    wait_for_parts(w);
    fence_proxy_async_global();
    for (int first = 0; first < pieces(); first += pieces_of_stage()) {
      ring_.produce([&](const Slot& slot) {
        for (int i = first; i < std::min(first + pieces_of_stage(), pieces()); ++i) {
          const Run& run = runs()[i / (o_.ranks - 1)];
          tma_load(slot_of(sender(i % (o_.ranks - 1)), w.rows, whole_part(w, run)), piece(slot, i));
        }
      });
    }
  }
  // The pieces one by one, in the warps that add them.
  class Pieces {
   public:
    explicit Pieces(ReduceScatterSm90& kernel) : kernel_(kernel) {}
    Tile next(const Index& group) {
      if (number_ % kernel_.pieces_of_stage() == 0) slot_.emplace(kernel_.ring_.consume());
      const Tile part = load(kernel_.piece(*slot_, number_).rows(group * 64, 64));
      ++number_;
      if (number_ % kernel_.pieces_of_stage() == 0 || number_ == kernel_.pieces()) {
        fence_proxy_async();  // what was loaded from here TMA overwrites
        kernel_.ring_.release(*slot_);
      }
      return part;
    }

   private:
    ReduceScatterSm90& kernel_;
    std::optional<Slot> slot_;
    int number_ = 0;
  };

  void wait_for_parts(const Work& w) const {
    for (int i = 0; i < o_.ranks - 1; ++i) {
      wait_flag(arrived_(word(w, sender(i))), Compare::ge, kernel_.epoch(), kLearn);
    }
  }
  // The others in their order.
  Index sender(int number) const {
    return select(kernel_.rank() <= number, Index(number + 1), Index(number));
  }

  void add_up(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    const auto epilogue = [&](const Run& run, const Tile& sum) {
      return epilogue_.apply(sum, whole_part(w, run));
    };
    if (parts_through_ring()) {
      Pieces pieces(*this);
      return store_runs(w, group, C_, [&](const Run& run) {
        return epilogue(
            run, sum_over_ranks(part_of(sums, run), [&](int) { return pieces.next(group); }));
      });
    }
    wait_for_parts(w);
    if (begun_) {
      return store_sums(w, group, [&](const Run& run) {
        const Tile others = load(parts_(divided_part(w, run, group), whole_part(w, run)));
        return epilogue(run, rounded(part_of(sums, run), o_.parts) + others.cast(f32));
      });
    }
    // Of two ranks, the parts of a run are on their way while others are added and stored, as far
    // as registers go.
    const int ahead = o_.ranks == 2 ? 2 : 0;
    std::deque<Tile> first;
    const auto fetch = [&](int number) {
      if (number < static_cast<int>(runs().size())) {
        first.push_back(part_from(0, w, runs()[number], group));
      }
    };
    for (int number = 0; number < ahead; ++number) fetch(number);
    const auto values = [&](const Run& run) {
      fetch(run.number + ahead);
      const Tile sum = sum_over_ranks(part_of(sums, run), [&](int number) {
        return number == 0 ? first.front() : part_from(number, w, run, group);
      });
      first.pop_front();
      return epilogue(run, sum);
    };
    store_sums(w, group, values);
  }
  void store_sums(const Work& w, const Index& group, FunctionRef<Tile(const Run&)> values) {
    if (o_.parts == o_.gemm.dtype) return store_runs(w, group, C_, values);
    for (const Run& run : runs()) {
      store(C_(divided_part(w, run, group), whole_part(w, run)), values(run).cast(o_.gemm.dtype));
    }
  }

  // In the order of the ranks. Of two numbers either may be the first.
  Tile sum_over_ranks(const Tile& own, FunctionRef<Tile(int sender)> part) {
    const Tile mine = rounded(own, o_.parts);
    Var sum{part(0).cast(f32)};
    if (!plan_case("parts of several other ranks", o_.ranks > 2)) return sum + mine;
    for (int i = 1; i < o_.ranks - 1; ++i) {
      const Condition is_next = i == 1 ? kernel_.rank() <= 1 : kernel_.rank() == i;
      when(is_next, [&] { sum = sum + mine; });
      sum = sum + part(i).cast(f32);
    }
    when(kernel_.rank() == o_.ranks - 1, [&] { sum = sum + mine; });
    return sum;
  }

  Tile part_from(int number, const Work& w, const Run& run, const Index& group) const {
    return load(slot_of(sender(number), divided_part(w, run, group), whole_part(w, run)));
  }

  // The word in a tile's owner that says that rank `from` has sent its part.
  Index word(const Work& w, const Index& from) const {
    if (made_) return block_word(w, from);
    return from * (tile_groups() * tiles_together()) + w.number;
  }
  Index block_word(const Work& w, const Index& rank) const {
    return rank * CopiedBlocks::kCount + blocks_.of(w.rows, w.cols);
  }

  static constexpr int kNone = -1, kGroupThreads = 128, kWarpThreads = 32;
  const GemmReduceScatter o_;
  Kernel& kernel_;
  Dim ranks_;
  ScatterEpilogue epilogue_;
  Tensor C_;
  Tensor parts_;  // of each rank; by TMA of this run and of the one before or behind it
  Tensor arrived_;
  std::optional<Made> made_;
  std::optional<RanksBegin> begun_;  // where parts are added
  const CopiedBlocks blocks_;
  bool adds_ = false;  // what is stored now
  NamedBarrier sent_;  // of each warpgroup and the warp that tells
  // Of the role that multiplies.
  std::optional<Sent> sending_;
  std::deque<Var> held_;  // runs of a tile
};

Kernel reduce_scatter_kernel_sm90(const GemmReduceScatter& o, const Caller& caller) {
  if (o.join_ranks) return joined_scatter_sm90(o, caller);
  SharedPlan plan = plan_shared(o.gemm, caller, o.parts);
  Kernel kernel(caller.function);
  ReduceScatterSm90(kernel, o, std::move(plan)).record(kernel);
  return kernel;
}

// The tensors that a caller passes.
struct ReduceScatterProgram {
  ReduceScatterProgram(const GemmReduceScatter& o, const Caller& caller, DimFacts facts)
      : program(caller.function, o.ranks, caller.where),
        m(program.dim("m")),
        n(program.dim("n", facts)),
        k(program.dim("k", facts)),
        parts{program.in("A", o.gemm.dtype, {o.ranks, m, k}),
              program.in("B", o.gemm.dtype, {n, k})} {
    if (o.scale) parts.push_back(program.in("scale", f32, {1}));
    if (o.bias) parts.push_back(program.in("bias", f32, {n}));
    parts.push_back(program.out("C", o.gemm.dtype, {m, n}));
  }
  Program program;
  Dim m, n, k;
  std::vector<Part> parts;
};

// The kernel, and beside it the copies of each block that it has made, to slots whose parts of the
// run before have been read.
void record_copied_scatter(const GemmReduceScatter& o, ReduceScatterProgram& made,
                           const Kernel& kernel, const Buffer& slots, const Buffer& arrived) {
  Program& program = made.program;
  const Buffer parts = program.scratch("made", o.parts, {o.ranks, made.m, made.n});
  const Buffer counts = program.signals("made_tiles", words_of_copies(o));
  const Buffer taken = program.signals("taken", o.ranks);
  made.parts.insert(made.parts.end(), {parts, counts});
  const CopiedBlocks blocks(o.gemm, made.m, made.n);
  const int others = o.ranks - 1;
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream();
    math.launch(kernel, made.parts);
    for (int d = 1; d <= others; ++d) {
      math.write(taken.on(rank.next(d))[rank.number()], program.run());
    }
  });
  program.on_each_rank([&](const Rank& rank) {
    std::vector<Stream> streams;
    for (int i = 0; i < std::min(others, 2); ++i) {
      streams.push_back(rank.stream("push" + std::to_string(i)));
    }
    for (int number = 0; number < CopiedBlocks::kCount * others; ++number) {
      const int block = number % CopiedBlocks::kCount, distance = number / CopiedBlocks::kCount;
      const int to = rank.next(1 + distance);
      const int word = to * CopiedBlocks::kCount + block;
      const Stream& stream = streams[static_cast<std::size_t>(distance) % streams.size()];
      const CopiedBlocks::Place at = blocks.place(block);
      const std::vector<Dim> sizes{1, at.rows, at.columns};
      stream.wait(counts[word], blocks.tiles(block));
      stream.write(counts[word], 0);  // the next run's kernel begins when this run has ended
      if (block == 0) stream.wait(taken[to], program.run() - 1);
      stream.copy(slots.on(to).box({rank.number(), at.row, at.column}, sizes),
                  Part(parts).box({to, at.row, at.column}, sizes));
      stream.write(arrived.on(to)[rank.number() * CopiedBlocks::kCount + block], program.run());
    }
  });
}

}  // namespace

Program gemm_reduce_scatter(const GemmReduceScatter& o, SourceLocation where) {
  const Caller caller{"gemm_reduce_scatter", where};
  check_reduce_scatter(o, caller);
  const ReduceScatterProgram made(o, caller, {});
  const Kernel kernel = pulled_reduce_scatter(o);
  made.program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, made.parts); });
  return made.program;
}

Program gemm_reduce_scatter_sm90(const GemmReduceScatter& o, SourceLocation where) {
  const Caller caller{"gemm_reduce_scatter_sm90", where};
  check_sm90_tiles(o, caller);
  ReduceScatterProgram made(o, caller, multiple_of(8));
  const Kernel kernel = reduce_scatter_kernel_sm90(o, caller);
  Program& program = made.program;
  const bool adds = o.parts_by == PartsBy::reduction;
  const std::vector<Dim> shape = shape_of_parts(o, made.m, made.n);
  const Buffer parts =
      adds ? program.zeroed("parts", o.parts, shape) : program.scratch("parts", o.parts, shape);
  const Buffer arrived = program.signals("arrived", arrival_words(o, made.m, made.n));
  made.parts.insert(made.parts.end(), {parts, arrived});
  if (o.parts_by == PartsBy::copies) {
    record_copied_scatter(o, made, kernel, parts, arrived);
    return made.program;
  }
  if (adds) made.parts.push_back(program.signals("begun", RanksBegin::words(o.ranks)));
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, made.parts); });
  return made.program;
}

}  // namespace tilewright::kernels
