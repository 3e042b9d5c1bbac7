#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm_reduce_scatter.h"
#include "kernels/gemm_sm90.h"
#include "kernels/joined_rows.h"
#include "kernels/rank_words.h"

namespace tilewright::kernels {
namespace {

// Few rows: a tile has as many of each rank, so that B is read once, and goes to all of them. They
// go behind each other: all tiles are computed before the first is added up.
class JoinedScatterSm90 : public GemmSm90 {
 public:
  JoinedScatterSm90(Kernel& kernel, const GemmReduceScatter& o, SharedPlan plan)
      : JoinedScatterSm90(kernel, o, std::move(plan), kernel.dim("m"),
                          kernel.dim("n", multiple_of(8)), kernel.dim("k", multiple_of(8))) {}

 private:
  JoinedScatterSm90(Kernel& kernel, const GemmReduceScatter& o, SharedPlan plan, const Dim& m,
                    const Dim& n, const Dim& k)
      : GemmSm90(kernel, o.gemm,
                 {JoinedRows(kernel, o.ranks, o.gemm.block_m, m).all(), n, k,
                  kernel.in("A", o.gemm.dtype, {kernel.ranks(), m, k}),
                  kernel.in("B", o.gemm.dtype, {n, k})},
                 std::move(plan), o.parts),
        o_(o),
        kernel_(kernel),
        rows_(kernel, o.ranks, o.gemm.block_m, m),
        epilogue_(kernel, o, n),
        C_(kernel.out("C", o.gemm.dtype, {m, n})),
        parts_(kernel.symmetric("parts", o.parts, {2, kernel.ranks(), m, n})),
        arrived_(kernel.symmetric("arrived", i32, {words_of(o, m, n)})),
        sent_(kernel, kGroupThreads + kWarpThreads, o.gemm.warpgroups),
        come_(kernel, kGroupThreads * o.gemm.warpgroups + kWarpThreads, 1) {}

  Work work(const Index& tile) const override {
    Work w = GemmSm90::work(tile);
    w.number = tile;
    return w;
  }
  void load_tile(const Work& w) override {
    const Block rows = rows_.of_tile(w.rows);
    for (Block depth : blocks(p_.k, g_.block_k)) {
      ring_.produce([&](const Slot& slot) {
        for (int i = 0; i < o_.ranks; ++i) {
          tma_load(p_.A(rows_.rank_at(i), rows, depth),
                   slot[0].rows(i * rows_.count(), rows_.count()));
        }
        load_b(w, depth, slot[1]);
      });
    }
  }

  // One warp waits for what is on its way, tells it, and waits for the others' words.
  std::vector<RoleSpec> more_roles(RegisterBudget budget) override {
    return {role("tell", warps(1), budget, [this] { tell(); })};
  }
  void tell() {
    const Index me = kernel_.rank();
    each_tile([&](const Work& w) {
      for (int group = 0; group < g_.warpgroups; ++group) sent_.sync(group);
      fence(Scope::system);  // once for all of them, this rank too
      for (Index to : range(o_.ranks)) {
        store_index(arrived_.at(to)(word(w, me)), kernel_.epoch(),
                    {Semantics::relaxed, Scope::system});
      }
    });
    each_tile([&](const Work& w) {
      for (Index from : range(o_.ranks)) {
        wait_flag(arrived_(word(w, from)), Compare::ge, kernel_.epoch(), kLearn);
      }
      come_.sync();
    });
  }
  void multiply(const Index& group) override {
    GemmSm90::multiply(group);
    each_tile([&](const Work& w) {
      come_.sync();
      add_up(w, group);
    });
  }

  // Each warp stores rows of one rank.
  void finish(const Work& w, const std::vector<Tile>& sums, const Index& group) override {
    const Destination slots = [this](const Block& rows, const Block& cols) {
      const auto [rank, own] = rows_.of_part(rows);
      return parts_.at(rank)(half(), kernel_.rank(), own, cols);
    };
    store_runs(w, group, slots, [&](const Run& run) { return part_of(sums, run); });
    bulk_wait(0);
    sent_.sync(group);
  }
  // The parts of all ranks in their order, which are there; each warpgroup some of the rows.
  void add_up(const Work& w, const Index& group) {
    const Block rows = rows_.of_tile(w.rows).part(group, rows_.count() / g_.warpgroups);
    std::vector<Tile> parts;
    for (int from = 0; from < o_.ranks; ++from) {
      parts.push_back(load(parts_(half(), from, rows, w.cols)));
    }
    Tile sum = parts.front().cast(f32);
    for (int from = 1; from < o_.ranks; ++from) sum = sum + parts[from].cast(f32);
    store(C_(rows, w.cols), epilogue_.apply(sum, w.cols).cast(o_.gemm.dtype));
  }
  Index half() const { return kernel_.epoch() % 2; }
  Index word(const Work& w, const Index& from) const { return from * tile_groups() + w.number; }

  static constexpr int kGroupThreads = 128, kWarpThreads = 32;
  const GemmReduceScatter o_;
  Kernel& kernel_;
  const JoinedRows rows_;
  ScatterEpilogue epilogue_;
  Tensor C_;
  Tensor parts_;  // of this run and of the one before or behind it, one of each rank
  Tensor arrived_;
  NamedBarrier sent_;  // of each warpgroup and the warp that tells
  NamedBarrier come_;  // of all of them
};

}  // namespace

Kernel joined_scatter_sm90(const GemmReduceScatter& o, const Caller& caller) {
  SharedPlan plan = plan_shared(o.gemm, caller, o.parts);
  Kernel kernel(caller.function);
  JoinedScatterSm90(kernel, o, std::move(plan)).record(kernel);
  return kernel;
}

}  // namespace tilewright::kernels
