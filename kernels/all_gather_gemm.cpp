#include <algorithm>
#include <functional>
#include <optional>
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

// How a rank's rows come to another one: in parts, each behind a word that counts up.
//
// Copy engines copy blocks of rows: copies of 16 MB reach nine tenths of the link's rate. The last
// block, which a product of two waves waits for, comes in parts of its depth. What the warps push
// is in parts of the depth alone.
constexpr int kBlocks = 4, kDepths = 4;
constexpr int kWords = kBlocks - 1 + kDepths;  // of a rank
// Rows and columns that a warp pushes at a time, and how many of them shared memory has room for.
constexpr int kPushed = 64, kPushStages = 4;

// Rows of a block, which no tile lies across, and columns of a part of the depth.
Dim block_rows(const AllGatherGemm& o, const Dim& m) {
  const int tile = o.gemm.block_m * (o.share_ranks ? 1 : o.gemm.share_b);
  return ceil_div(m, tile * kBlocks) * tile;
}
Dim part_depth(const AllGatherGemm& o, const Dim& k) {
  const int unit = o.push ? std::max(kPushed, o.gemm.block_k) : o.gemm.block_k;
  return ceil_div(k, kDepths * unit) * unit;
}

class AllGatherSm90 : public GemmSm90 {
 public:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan)
      : AllGatherSm90(kernel, o, std::move(plan), kernel.dim("m"), kernel.dim("n", multiple_of(8)),
                      kernel.dim("k", multiple_of(8))) {}

  // What is pushed has two halves, for every second run.
  static std::vector<Dim> gathered_shape(const AllGatherGemm& o, const Dim& m, const Dim& k) {
    if (o.push) return {2 * o.ranks, m, k};
    return {o.ranks * m, k};
  }

 private:
  AllGatherSm90(Kernel& kernel, const AllGatherGemm& o, SharedPlan plan, const Dim& m, const Dim& n,
                const Dim& k)
      : GemmSm90(
            kernel, o.gemm,
            {m, n, k, kernel.in("A", o.gemm.dtype, {m, k}), kernel.in("B", o.gemm.dtype, {n, k})},
            std::move(plan), o.gemm.dtype),
        o_(o),
        kernel_(kernel),
        ranks_(kernel.ranks()),
        C_(kernel.out("C", o.gemm.dtype, {ranks_, m, n})),
        gathered_(kernel.symmetric("gathered", o.gemm.dtype, gathered_shape(o, m, k))),
        arrived_(kernel.symmetric("arrived", i32, {ranks_ * kWords})) {
    if (o.push) {
      pushed_.emplace(kernel, "pushed", stages(kPushStages),
                      std::vector<TileShape>{{o.gemm.dtype, kPushed, kPushed}}, here());
    }
  }

  // This rank's own rows, then those of the rank before it, which pushes here first, and so on.
  Dim tile_count() const override {
    return o_.share_ranks ? tile_groups() : tile_groups() * ranks_;
  }
  int rows_together() const override { return o_.share_ranks ? 1 : g_.share_b; }
  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(o_.share_ranks ? tile : tile % tile_groups());
    const Index distance = o_.share_ranks ? below() : tile / tile_groups();
    w.rank = (kernel_.rank() + ranks_ - distance) % ranks_;
    return w;
  }

  void load_tile(const Work& w) override {
    when(
        w.rank == kernel_.rank(), [&] { load_steps(w, p_.A); },
        [&] {
          const Dim steps = part_depth(o_, p_.k) / g_.block_k;
          for (Index depth : range(kDepths)) {
            Work part = w;
            part.first = min(depth * steps, w.last);
            part.last = min(depth * steps + steps, w.last);
            wait_for(w, depth);
            load_steps(part, [&](const Block& rows, const Block& columns) {
              return gathered_rows(w.rank, rows, columns);
            });
          }
        });
  }
  TensorView gathered_rows(const Index& rank, const Block& rows, const Block& columns) const {
    if (o_.push) return gathered_(pushed_slot(rank), rows, columns);
    // Behind a rank's last row is the next one's first, which may not be there yet.
    const Index first = rank * p_.m;
    return gathered_(Block(first + rows.start(), rows.size(), first + rows.limit()), columns);
  }

  void wait_for(const Work& w, const Index& depth) {
    const Index first = w.rank * kWords;
    const MemoryOrder order{Semantics::acquire, Scope::system};
    if (o_.push) {
      wait_flag(arrived_(first + depth), Compare::ge, kernel_.epoch() * pushes(depth), order);
    } else {
      const Index block = min(w.rows.start() / block_rows(o_, p_.m), kBlocks - 1);
      const Index word = block + select(block == kBlocks - 1, depth, 0);
      wait_flag(arrived_(first + word), Compare::ge, kernel_.epoch(), order);
    }
    fence_proxy_async_global();
  }

  // This rank's rows to all others, one part of the depth after the other, through a ring of its
  // own: the products wait for nothing of it.
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    if (!o_.push) return {};
    return {role("fetch", warps(1), budget, [this] { fetch(); }),
            role("push", warps(1), budget, [this] { push(); })};
  }
  void each_piece(const std::function<void(const Block& rows, const Block& depth)>& body) {
    const Dim rows = ceil_div(p_.m, kPushed), columns = ceil_div(p_.k, kPushed);
    for (Index piece : range(cta_index(), rows * columns, cta_count())) {
      body(p_.m.block(piece % rows, kPushed), p_.k.block(piece / rows, kPushed));
    }
  }
  void fetch() {
    each_piece([&](const Block& rows, const Block& depth) {
      pushed_->produce([&](const Slot& slot) { tma_load(p_.A(rows, depth), slot[0]); });
    });
  }
  void push() {
    const Index me = kernel_.rank();
    const auto each_other = [&](const std::function<void(const Index&)>& body) {
      for (int d = 1; d < o_.ranks; ++d) body((me + d) % ranks_);
    };
    each_piece([&](const Block& rows, const Block& depth) {
      const Slot slot = pushed_->consume();
      each_other([&](const Index& to) {
        tma_store(gathered_.at(to)(pushed_slot(me), rows, depth), slot[0]);
      });
      bulk_commit();
      bulk_wait(0);
      pushed_->release(slot);
      each_other([&](const Index& to) {
        atomic_add(arrived_.at(to)(me * kWords + depth.start() / part_depth(o_, p_.k)), 1,
                   {Semantics::release, Scope::system});
      });
    });
  }
  // Of a part of the depth.
  Index pushes(const Index& depth) const {
    const Dim width = part_depth(o_, p_.k);
    const Index columns = ceil_div(min(max(p_.k - depth * width, 0), width), kPushed);
    return columns * ceil_div(p_.m, kPushed);
  }

  // A rank that begins run r + 1 has ended run r, for which the others pushed when they had ended
  // run r - 1: they read what two runs push and no more. Copy engines have one half, and wait.
  Index pushed_slot(const Index& rank) const { return kernel_.epoch() % 2 * ranks_ + rank; }
  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    store_runs(
        w, group, [&](const Block& rows, const Block& cols) { return C_(w.rank, rows, cols); },
        [&](const Run& run) { return part_of(sums, run); });
  }

  const AllGatherGemm o_;
  Kernel& kernel_;
  Dim ranks_;
  Tensor C_;
  Tensor gathered_;  // the others' rows; nothing where this rank's own would be
  Tensor arrived_;
  std::optional<Ring> pushed_;
};

Kernel all_gather_kernel_sm90(const AllGatherGemm& o, const Caller& caller) {
  const int pushed = o.push ? kPushStages * kPushed * kPushed * size_of(o.gemm.dtype) : 0;
  SharedPlan plan = plan_shared(o.gemm, caller, o.gemm.dtype, pushed);
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
  check_ranks_sm90(o.gemm, o.ranks, o.share_ranks, caller);
  Program program(caller.function, o.ranks, where);
  const DType dtype = o.gemm.dtype;
  const Dim m = program.dim("m"), n = program.dim("n", multiple_of(8));
  const Dim k = program.dim("k", multiple_of(8));
  const Buffer A = program.in("A", dtype, {m, k}), B = program.in("B", dtype, {n, k});
  const Buffer C = program.out("C", dtype, {o.ranks, m, n});
  const Kernel kernel = all_gather_kernel_sm90(o, caller);
  const Buffer gathered =
      program.scratch("gathered", dtype, AllGatherSm90::gathered_shape(o, m, k));
  const Buffer arrived = program.signals("arrived", o.ranks * kWords);
  if (o.push) {
    program.on_each_rank([&](const Rank& rank) {
      rank.stream().launch(kernel, {A, B, C, gathered, arrived});
    });
    return program;
  }
  // Words of each other rank that count up with the runs whose rows it has read.
  const Buffer taken = program.signals("taken", o.ranks);
  const Dim rows = block_rows(o, m), depth = part_depth(o, k);
  program.on_each_rank([&](const Rank& rank) {
    const Stream math = rank.stream("math"), push = rank.stream("push");
    const int me = rank.number();
    for (int d = 1; d < rank.count(); ++d) {
      const int to = rank.next(d);
      push.wait(taken[to], program.run() - 1);
      const auto copy = [&](int word, const Dim& row, const Dim& count, const Dim& column,
                            const Dim& columns) {
        push.copy(gathered.on(to).box({me * m + row, column}, {count, columns}),
                  A.rows(row, count).box({0, column}, {count, columns}));
        push.write(arrived.on(to)[me * kWords + word], program.run());
      };
      for (int block = 0; block < kBlocks - 1; ++block) {
        const Dim row = min(block * rows, m);
        copy(block, row, min(rows, m - row), 0, k);
      }
      const Dim row = min((kBlocks - 1) * rows, m);
      for (int part = 0; part < kDepths; ++part) {
        const Dim column = min(part * depth, k);
        copy(kBlocks - 1 + part, row, m - row, column, min(depth, k - column));
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
