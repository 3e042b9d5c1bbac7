#include <utility>
#include <vector>

#include "kernels/gemm_ranks_check.h"
#include "kernels/gemm_sm90.h"

namespace tilewright::kernels {
namespace {

Kernel pulled_all_gather(const AllGatherGemm& o) {
  const Gemm& g = o.gemm;
  Kernel kernel("all_gather_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k"), ranks = kernel.ranks();
  const Tensor A = kernel.symmetric("A", g.dtype, {m, k}), B = kernel.in("B", g.dtype, {n, k});
  const Tensor C = kernel.out("C", g.dtype, {ranks, m, n});
  const auto [x, y, from] = kernel.grid(ceil_div(n, g.block_n), ceil_div(m, g.block_m), ranks);
  const Block rows = m.block(y, g.block_m), cols = n.block(x, g.block_n);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, g.block_k)) {
    sum = dot(load(A.at(from)(rows, depth)), load(B(cols, depth)).T(), sum);
  }
  store(C(from, rows, cols), sum);
  return kernel;
}

// A rank's rows come in so many blocks: copies of 16 MB reach nine tenths of the link's rate, and
// the last of them is what a small product waits for.
constexpr int kBlocks = 4;

// Rows of a block, which no tile lies across.
Dim block_rows(const AllGatherGemm& o, const Dim& m) {
  const int tile = o.gemm.block_m * o.gemm.share_b;
  return ceil_div(m, tile * kBlocks) * tile;
}

class AllGatherSm90 : public GemmSm90 {
 public:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan)
      : AllGatherSm90(kernel, o, std::move(plan), kernel.dim("m"), kernel.dim("n", multiple_of(8)),
                      kernel.dim("k", multiple_of(8))) {}

 private:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan, const Dim& m, const Dim& n,
                const Dim& k)
      : GemmSm90(
            kernel, o.gemm,
            {m, n, k, kernel.in("A", o.gemm.dtype, {m, k}), kernel.in("B", o.gemm.dtype, {n, k})},
            std::move(plan), o.gemm.dtype),
        kernel_(kernel),
        ranks_(kernel.ranks()),
        block_rows_(block_rows(o, m)),
        C_(kernel.out("C", o.gemm.dtype, {ranks_, m, n})),
        gathered_(kernel.symmetric("gathered", o.gemm.dtype, {ranks_ * m, k})),
        arrived_(kernel.symmetric("arrived", i32, {ranks_ * kBlocks})) {}

  // This rank's own rows, then those of the rank before it, which pushes here first, and so on.
  Dim tile_count() const override { return tile_groups() * ranks_; }
  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(tile % tile_groups());
    w.rank = (kernel_.rank() + ranks_ - tile / tile_groups()) % ranks_;
    return w;
  }

  void load_tile(const Work& w) override {
    when(
        w.rank == kernel_.rank(), [&] { load_steps(w, p_.A); },
        [&] {
          const Index word = w.rank * kBlocks + w.rows.start() / block_rows_;
          wait_flag(arrived_(min(word, w.rank * kBlocks + (kBlocks - 1))), Compare::ge,
                    kernel_.epoch(), {Semantics::acquire, Scope::system});
          fence_proxy_async_global();
          // Behind a rank's last row is the next one's first, which may not be there yet.
          const Index first = w.rank * p_.m;
          load_steps(w, [&](const Block& rows, const Block& depth) {
            const Block own(first + rows.start(), rows.size(), first + rows.limit());
            return gathered_(own, depth);
          });
        });
  }

  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    store_runs(
        w, group, [&](const Block& rows, const Block& cols) { return C_(w.rank, rows, cols); },
        [&](const Run& run) { return part_of(sums, run); });
  }

  Kernel& kernel_;
  Dim ranks_, block_rows_;
  Tensor C_;
  Tensor gathered_;  // the others' rows; nothing where this rank's own would be
  Tensor arrived_;   // of each rank, each block of rows
};

Kernel all_gather_kernel_sm90(const AllGatherGemm& o, const Caller& caller) {
  SharedPlan plan = plan_shared(o.gemm, caller, o.gemm.dtype);
  Kernel kernel(caller.function);
  AllGatherSm90(kernel, o, std::move(plan)).record(kernel);
  return kernel;
}

}  // namespace

Program all_gather_gemm(const AllGatherGemm& o, SourceLocation where) {
  check_all_gather(o, {"all_gather_gemm", where});
  Program program("all_gather_gemm", o.ranks, where);
  const Dim m = program.dim("m"), n = program.dim("n"), k = program.dim("k");
  const Buffer A = program.in("A", o.gemm.dtype, {m, k}), B = program.in("B", o.gemm.dtype, {n, k});
  const Buffer C = program.out("C", o.gemm.dtype, {o.ranks, m, n});
  const Kernel kernel = pulled_all_gather(o);
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {A, B, C}); });
  return program;
}

Program all_gather_gemm_sm90(const AllGatherGemm& o, SourceLocation where) {
  const Caller caller{"all_gather_gemm_sm90", where};
  check_all_gather(o, caller);
  check_ranks_sm90(o.gemm, caller);
  Program program(caller.function, o.ranks, where);
  const DType dtype = o.gemm.dtype;
  const Dim m = program.dim("m"), n = program.dim("n", multiple_of(8));
  const Dim k = program.dim("k", multiple_of(8));
  const Buffer A = program.in("A", dtype, {m, k}), B = program.in("B", dtype, {n, k});
  const Buffer C = program.out("C", dtype, {o.ranks, m, n});
  const Buffer gathered = program.scratch("gathered", dtype, {o.ranks * m, k});
  const Buffer arrived = program.signals("arrived", o.ranks * kBlocks);
  // Words of each other rank that count up with the runs whose rows it has read.
  const Buffer taken = program.signals("taken", o.ranks);
  const Kernel kernel = all_gather_kernel_sm90(o, caller);
  const Dim rows = block_rows(o, m);
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math"), push = rank.stream("push");
    const int me = rank.number();
    for (int d = 1; d < rank.count(); ++d) {
      const int to = rank.next(d);
      push.wait(taken[to], program.run() - 1);
      for (int block = 0; block < kBlocks; ++block) {
        const Dim first = min(block * rows, m), count = min(rows, m - first);
        push.copy(gathered.on(to).rows(me * m + first, count), A.rows(first, count));
        push.write(arrived.on(to)[me * kBlocks + block], program.run());
      }
    }
    math.launch(kernel, {A, B, C, gathered, arrived});
    for (int d = 1; d < rank.count(); ++d) {
      math.write(taken.on(rank.next(d))[me], program.run());
    }
  });
  return program;
}

}  // namespace tilewright::kernels
