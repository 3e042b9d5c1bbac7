#include <algorithm>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90.h"
#include "tilewright/plan_case.h"

namespace tilewright::kernels {

namespace {

void check_sm90_tiles(const GemmReduceScatter& o, const Caller& caller) {
  check_reduce_scatter(o, caller);
  check_ranks_sm90(o.gemm, o.ranks, o.share_ranks, caller);
  if (o.gemm.exchanged) {
    caller.refuse("the operands are exchanged",
                  "a warp adds whole rows of the parts: take tiles without");
  }
}

// What the sum over the ranks is scaled by, and what is added to it.
struct Epilogue {
  Epilogue(Kernel& kernel, const GemmReduceScatter& o, const Dim& n) {
    if (plan_case("a scale", o.scale)) scale.emplace(kernel.in("scale", f32, {1}));
    if (plan_case("a bias", o.bias)) bias.emplace(kernel.in("bias", f32, {n}));
  }
  Tile apply(Tile sum, const Block& cols) const {
    if (scale) sum = sum * load((*scale)(Dim(1).block(0, 1))).reshape({1, 1});
    if (bias) sum = sum + load((*bias)(cols)).reshape({1, cols.size()});
    return sum;
  }
  std::optional<Tensor> scale, bias;
};

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
  const Epilogue epilogue(kernel, o, n);
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

// A tile of a rank's rows has so many CTAs' tiles that go by one number (GemmSm90), and each warp
// that multiplies has a word for each rank that sends it a part.
Dim words_of(const GemmReduceScatter& o, const Dim& m, const Dim& n) {
  const Gemm& g = o.gemm;
  const int together = o.share_ranks ? 1 : g.share_b;
  const Dim tiles = ceil_div(m, g.block_m * together) * ceil_div(n, g.block_n * g.share_a);
  return tiles * (g.share_a * together * 4 * g.warpgroups * o.ranks);
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
        parts_(kernel.symmetric("parts", o.parts, {2, ranks_, m, n})),
        arrived_(kernel.symmetric("arrived", i32, {words_of(o, m, n)})) {
    plan_case("parts of f32", o.parts == f32);
  }

  // A tile of another rank that its owner does not know of yet: the word that it waits for, kNone
  // for no tile.
  struct Sent {
    Cell<Index> word{Index(kNone), here()};
    Cell<Index> rank{Index(0), here()}, row{Index(0), here()}, column{Index(0), here()};
  };

  // Tile by tile the rows of the next rank, of the one behind it, and this rank's own.
  Dim tile_count() const override {
    return o_.share_ranks ? tile_groups() : tile_groups() * ranks_;
  }
  int rows_together() const override { return o_.share_ranks ? 1 : g_.share_b; }
  Work work(const Index& tile) const override {
    const Index distance = o_.share_ranks ? below() : tile / tile_groups();
    const Index group = o_.share_ranks ? tile : tile % tile_groups();
    Work w = GemmSm90::work(group);
    w.rank = (kernel_.rank() + 1 + distance) % ranks_;
    w.number = group;
    // What of B is in L2 when the rows of one rank end those of the next begin with.
    if (!o_.share_ranks) w.backwards = distance % 2 == 1;
    if (tiles_together() > 1) {
      w.number = group * tiles_together() + (o_.share_ranks ? across() : shared_rank());
    }
    return w;
  }
  // Of a group, those of one rank.
  int tiles_together() const { return g_.share_a * rows_together(); }
  void load_tile(const Work& w) override {
    load_steps(w, [&](const Block& rows, const Block& depth) { return p_.A(w.rank, rows, depth); });
  }

  void multiply(const Index& group) override {
    turn_.emplace(kernel_.epoch());
    half_.emplace(*turn_ % 2);
    sent_.emplace();
    here_.emplace(Index(0), here());
    for (int i = 0; i < held_runs(); ++i) {
      held_.emplace_back(zeros({64, runs().front().width}, o_.parts), here());
    }
    GemmSm90::multiply(group);
    send_rest(group);
    tell();
    held_.clear();
    sent_.reset();
    here_.reset();
  }

  // Stores to other ranks read shared memory no faster than the link takes them, and all CTAs end
  // their tiles at about the same time. So the runs for which no staging tile is free stay in
  // registers, until the next tile's products have begun. The same registers take the first runs of
  // the others' parts, beside the products of the tile that they are added to.
  int pauses() const override { return o_.share_ranks ? 0 : 2; }
  void pause(int number, const Work& w, const Index& group) override {
    if (number == 1) return send_rest(group);
    tell();
    when(w.rank == kernel_.rank(), [&] {
      *here_ = select(parts_here(w, group) == o_.ranks - 1, 1, 0);
      when(*here_ == 1, [&] { hold_parts(w, group); });
    });
  }
  int held_runs() const {
    const bool alike = runs().front().width == runs().back().width;
    return alike && pauses() > 0 ? std::min(2, static_cast<int>(runs().size())) : 0;
  }
  int sent_at_once() const {
    const int count = static_cast<int>(runs().size());
    return std::max(staged_runs(), count - held_runs());
  }

  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    when(
        w.rank != kernel_.rank(), [&] { send(w, sums, group); }, [&] { add_up(w, sums, group); });
  }

  // Where a rank's part of a tile goes.
  Destination slot_in(const Index& rank) const {
    return [this, rank](const Block& rows, const Block& cols) {
      return parts_.at(rank)(*half_, kernel_.rank(), rows, cols);
    };
  }

  void send(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    store_runs(
        w, group, slot_in(w.rank), [&](const Run& run) { return part_of(sums, run); }, 0,
        sent_at_once());
    for (int i = sent_at_once(); i < static_cast<int>(runs().size()); ++i) {
      held_[i - sent_at_once()] = part_of(sums, runs()[i]).cast(o_.parts);
    }
    sent_->word = word(w, kernel_.rank(), group);
    sent_->rank = w.rank;
    sent_->row = w.rows.start();
    sent_->column = w.cols.start();
    // Where CTAs of a cluster have rows of several ranks those that add wait for these.
    if (o_.share_ranks) tell();
  }

  void send_rest(const Index& group) {
    const int count = static_cast<int>(runs().size());
    if (sent_at_once() == count) return;
    when(sent_->word != kNone, [&] {
      const Work w{Block(sent_->row, g_.block_m, p_.m), Block(sent_->column, g_.block_n, p_.n), 0,
                   0};
      store_runs(
          w, group, slot_in(sent_->rank),
          [&](const Run& run) { return Tile(held_[run.number - sent_at_once()]); }, sent_at_once(),
          count);
    });
  }

  // Each warp of what it has sent, and what had time to get there.
  void tell() {
    const Index word = sent_->word;
    when(word != kNone, [&] {
      bulk_wait(0);
      store_index(arrived_.at(sent_->rank)(word), *turn_, {Semantics::release, Scope::system});
    });
    sent_->word = kNone;
  }

  void each_sender(const std::function<void(const Index&)>& body) const {
    if (o_.ranks == 2) return body(first_sender());
    for (Index from : range(ranks_)) {
      when(from != kernel_.rank(), [&] { body(from); });
    }
  }
  // How many ranks' parts of a tile are here.
  Index parts_here(const Work& w, const Index& group) const {
    Cell<Index> count(0);
    each_sender([&](const Index& from) {
      const Index word = load_index(arrived_(this->word(w, from, group)), kAcquire);
      count = count + select(word - *turn_ >= 0, 1, 0);
    });
    return count;
  }
  void hold_parts(const Work& w, const Index& group) {
    for (int i = 0; i < held_runs(); ++i) held_[i] = part_from(first_sender(), w, runs()[i], group);
  }
  void wait_for_parts(const Work& w, const Index& group) {
    when(*here_ == 0, [&] {
      each_sender([&](const Index& from) {
        wait_flag(arrived_(word(w, from, group)), Compare::ge, *turn_, kAcquire);
      });
      hold_parts(w, group);
    });
    *here_ = 0;
  }

  void add_up(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    wait_for_parts(w, group);
    // The parts of a run are on their way while others are added and stored, as far as registers
    // go.
    const int ahead = o_.ranks == 2 ? 2 : 0;
    std::deque<Tile> parts;
    const auto fetch = [&](int number) {
      if (number < held_runs()) {
        parts.push_back(held_[number]);
      } else if (number < static_cast<int>(runs().size())) {
        parts.push_back(part_from(first_sender(), w, runs()[number], group));
      }
    };
    for (int number = 0; number < ahead; ++number) fetch(number);
    const auto values = [&](const Run& run) {
      fetch(run.number + ahead);
      const Tile first = parts.front();
      parts.pop_front();
      const Tile sum = sum_over_ranks(w, first, part_of(sums, run), run, group);
      return epilogue_.apply(sum, whole_part(w, run));
    };
    if (o_.parts == o_.gemm.dtype) return store_runs(w, group, C_, values);
    for (const Run& run : runs()) {
      store(C_(divided_part(w, run, group), whole_part(w, run)), values(run).cast(o_.gemm.dtype));
    }
  }

  // In the order of the ranks. Of two numbers either may be the first.
  Tile sum_over_ranks(const Work& w, const Tile& first, const Tile& own, const Run& run,
                      const Index& group) {
    Var sum{first.cast(f32)};
    const auto add = [&](const Index& from, const Index& end) {
      if (o_.ranks == 2) return;
      for (Index rank : range(from, end)) sum = sum + part_from(rank, w, run, group).cast(f32);
    };
    add(1, kernel_.rank());
    sum = sum + rounded(own, o_.parts);
    add(max(kernel_.rank() + 1, 2), ranks_);
    return sum;
  }

  // The first of the others.
  Index first_sender() const { return select(kernel_.rank() == 0, 1, 0); }
  Tile part_from(const Index& rank, const Work& w, const Run& run, const Index& group) const {
    return load(parts_(*half_, rank, divided_part(w, run, group), whole_part(w, run)));
  }

  // The word in a tile's owner that says that rank `from` has sent what this warp computes of it.
  Index word(const Work& w, const Index& from, const Index& group) const {
    const Index tiles = tile_groups() * tiles_together();
    return ((from * tiles + w.number) * g_.warpgroups + group) * 4 + warp_index();
  }

  static constexpr int kNone = -1;
  static constexpr MemoryOrder kAcquire{Semantics::acquire, Scope::system};
  const GemmReduceScatter o_;
  Kernel& kernel_;
  Dim ranks_;
  Epilogue epilogue_;
  Tensor C_;
  Tensor parts_;  // of this run and of the one before or behind it, one of each rank
  Tensor arrived_;
  // Of the role that multiplies.
  std::optional<Index> turn_, half_;
  std::optional<Sent> sent_;
  std::deque<Var> held_;             // runs of a tile
  std::optional<Cell<Index>> here_;  // whether the others' parts were, beside the products
};

Kernel reduce_scatter_kernel_sm90(const GemmReduceScatter& o, const Caller& caller) {
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
  made.parts.push_back(made.program.scratch("parts", o.parts, {2, o.ranks, made.m, made.n}));
  made.parts.push_back(made.program.signals("arrived", words_of(o, made.m, made.n)));
  made.program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, made.parts); });
  return made.program;
}

}  // namespace tilewright::kernels
