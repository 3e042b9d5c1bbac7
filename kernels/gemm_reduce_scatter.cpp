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
  check_ranks_sm90(o.gemm, caller);
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
  const Dim tiles = ceil_div(m, g.block_m * g.share_b) * ceil_div(n, g.block_n * g.share_a);
  return tiles * (g.share_a * g.share_b * 4 * g.warpgroups * o.ranks);
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

  // Tile by tile the rows of the next rank, of the one behind it, and this rank's own.
  Dim tile_count() const override { return tile_groups() * ranks_; }
  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(tile % tile_groups());
    w.rank = (kernel_.rank() + 1 + tile / tile_groups()) % ranks_;
    w.number = tile % tile_groups();
    if (sharing() > 1) w.number = w.number * sharing() + shared_rank();
    return w;
  }
  void load_tile(const Work& w) override {
    load_steps(w, [&](const Block& rows, const Block& depth) { return p_.A(w.rank, rows, depth); });
  }

  void multiply(const Index& group) override {
    turn_.emplace(kernel_.epoch());
    half_.emplace(*turn_ % 2);
    untold_.emplace(Index(kNone), here());
    untold_rank_.emplace(Index(0), here());
    GemmSm90::multiply(group);
    tell();
    untold_.reset();
    untold_rank_.reset();
  }

  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    tell();  // of the tile before, which had the time of this one's products to get there
    when(
        w.rank != kernel_.rank(), [&] { send(w, sums, group); }, [&] { add_up(w, sums, group); });
  }

  void send(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    const Index me = kernel_.rank();
    store_runs(
        w, group,
        [&](const Block& rows, const Block& cols) {
          return parts_.at(w.rank)(*half_, me, rows, cols);
        },
        [&](const Run& run) { return part_of(sums, run); });
    *untold_ = word(w, me, group);
    *untold_rank_ = w.rank;
  }

  // Each warp of what it has sent.
  void tell() {
    const Index word = *untold_;
    when(word != kNone, [&] {
      bulk_wait(0);
      store_index(arrived_.at(*untold_rank_)(word), *turn_, {Semantics::release, Scope::system});
    });
    *untold_ = kNone;
  }

  void add_up(const Work& w, const std::vector<Tile>& sums, const Index& group) {
    const Index me = kernel_.rank();
    for (Index from : range(ranks_)) {
      when(from != me, [&] {
        wait_flag(arrived_(word(w, from, group)), Compare::ge, *turn_,
                  {Semantics::acquire, Scope::system});
      });
    }
    const auto values = [&](const Run& run) {
      return epilogue_.apply(sum_over_ranks(w, part_of(sums, run), run, group), whole_part(w, run));
    };
    if (o_.parts == o_.gemm.dtype) return store_runs(w, group, C_, values);
    for (const Run& run : runs()) {
      store(C_(divided_part(w, run, group), whole_part(w, run)), values(run).cast(o_.gemm.dtype));
    }
  }

  Tile sum_over_ranks(const Work& w, const Tile& own, const Run& run, const Index& group) {
    const Index me = kernel_.rank();
    const Block rows = divided_part(w, run, group), cols = whole_part(w, run);
    Var sum{zeros({64, run.width})};
    const auto add = [&](const Index& from) {
      sum = sum + load(parts_(*half_, from, rows, cols)).cast(f32);
    };
    for (Index from : range(me)) add(from);
    sum = sum + rounded(own, o_.parts);
    for (Index from : range(me + 1, ranks_)) add(from);
    return sum;
  }

  // The word in a tile's owner that says that rank `from` has sent what this warp computes of it.
  Index word(const Work& w, const Index& from, const Index& group) const {
    const Index tiles = tile_groups() * sharing();
    return ((from * tiles + w.number) * g_.warpgroups + group) * 4 + warp_index();
  }

  static constexpr int kNone = -1;
  const GemmReduceScatter o_;
  Kernel& kernel_;
  Dim ranks_;
  Epilogue epilogue_;
  Tensor C_;
  Tensor parts_;  // of this run and of the one before or behind it, one of each rank
  Tensor arrived_;
  // Of the role that multiplies.
  std::optional<Index> turn_, half_;
  std::optional<Cell<Index>> untold_, untold_rank_;  // a word that its owner waits for
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
