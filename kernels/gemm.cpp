#include "tilewright/kernels/gemm.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "tilewright/hopper.h"

namespace tilewright::kernels {
namespace {

struct GemmParameters {
  GemmParameters(Kernel& kernel, const Gemm& g, DimFacts row = {})
      : m(kernel.dim("m")),
        n(kernel.dim("n", row)),
        k(kernel.dim("k", row)),
        A(kernel.in("A", g.dtype, {m, k})),
        B(kernel.in("B", g.dtype, {n, k})),
        C(kernel.out("C", g.dtype, {m, n})) {}
  Dim m, n, k;
  Tensor A, B, C;
};

}  // namespace

Kernel gemm(const Gemm& g) {
  Kernel kernel("gemm");
  const GemmParameters p(kernel, g);
  const auto [x, y] = kernel.grid(ceil_div(p.n, g.block_n), ceil_div(p.m, g.block_m));
  const Block rows = p.m.block(y, g.block_m), cols = p.n.block(x, g.block_n);
  Var acc{zeros({rows, cols})};
  for (Block depth : blocks(p.k, g.block_k)) {
    acc = dot(load(p.A(rows, depth)), load(p.B(cols, depth)).T(), acc);
  }
  store(p.C(rows, cols), acc);
  return kernel;
}

namespace {

// The widest run of C's columns, of so many, that are staged together.
int staged_columns(int columns) {
  for (const int width : {64, 32}) {
    if (columns % width == 0) return width;
  }
  return 16;
}

// Stages of A's and B's tiles: what shared memory still holds, and no more than hide its latency.
int ring_stages(const Gemm& g, int staged) {
  constexpr int kShared = 232448, kBarriers = 1024, kMost = 8;
  const int parts = g.split > 1 ? g.block_m * g.block_n * size_of(f32) : 0;
  const int left = kShared - kBarriers - 2 * g.block_m * staged * size_of(g.dtype) - parts;
  return std::min(left / ((g.block_m + g.block_n) * g.block_k * size_of(g.dtype)), kMost);
}

// Persistent: the CTAs, or clusters of them, go over C's tiles in bands of rows. A CTA's warp loads
// what its warpgroups of 64 rows multiply. With `split`, the CTAs of a cluster sum over their share
// of k each, exchange what they have through shared memory, and each stores its share of the
// columns.
class GemmSm90 {
 public:
  GemmSm90(Kernel& kernel, const Gemm& g)
      : g_(g),
        p_(kernel, g, multiple_of(8)),  // rows of whole 16 bytes, as TMA takes
        share_(g.block_n / g.split),
        staged_(staged_columns(share_)),
        ring_(kernel, "ab", stages(ring_stages(g, staged_)),
              {{g.dtype, g.block_m, g.block_k}, {g.dtype, g.block_n, g.block_k}}) {
    if (g.cluster > 1) ring_.multicast();
    for (const char* name : {"c0", "c1"})
      staging_.emplace_back(kernel, name, g.dtype, g.block_m, staged_);
    if (g.split > 1) exchange_.emplace(kernel, g, share_);
  }

  void load() {
    each_tile([&](const Work& w) {
      for (Block depth : blocks(p_.k, g_.block_k, w.first, w.last)) {
        ring_.produce([&](const Slot& slot) {
          tma_load(p_.A(w.rows, depth), slot[0]);
          if (g_.cluster == 1) return tma_load(p_.B(w.cols, depth), slot[1]);
          // Each CTA fetches its share of B's tile for all.
          const int rows = g_.block_n / g_.cluster;
          tma_load(p_.B(w.cols.part(cluster_rank(), rows), depth),
                   slot[1].rows(cluster_rank() * rows, rows), {Cache::normal, true});
        });
      }
    });
  }

  void multiply(const Index& group) {
    each_tile([&](const Work& w) {
      const Tile sum = product(w, group);
      const Block rows = w.rows.part(group, 64).part(warp_index(), 16);
      if (g_.split == 1) {
        return store_columns(rows, w.cols, group, [&](int column) {
          return sum.slice({0, column}, {64, staged_});
        });
      }
      give_parts(sum, group);
      store_columns(rows, w.cols.part(cluster_rank(), share_), group,
                    [&](int column) { return sum_parts(column, group); });
      exchange_->read.wait();
    });
    bulk_wait(0);
  }

 private:
  struct Work {
    Block rows, cols;
    Index first, last;  // blocks along k
  };
  struct Exchange {
    Exchange(Kernel& kernel, const Gemm& g, int share)
        : parts(kernel, "parts", f32, g.split * g.block_m, share),
          written(kernel, "written"),
          read(kernel, "read") {}
    SharedTile parts;  // for each CTA of the cluster, its share of the columns
    ClusterBarrier written, read;
  };

  void each_tile(const std::function<void(const Work&)>& body) {
    constexpr int kBand = 8;  // rows of tiles whose A stays in L2 while B passes
    const int ctas = g_.cluster * g_.split;
    const Dim rows = ceil_div(p_.m, g_.block_m * g_.cluster), columns = ceil_div(p_.n, g_.block_n);
    const Dim steps = ceil_div(p_.k, g_.block_k);
    for (Index t : range(cta_index() / ctas, rows * columns, cta_count() / ctas)) {
      const Index band = t / (columns * kBand), in_band = t % (columns * kBand);
      const Index height = min(rows - band * kBand, kBand);
      const Index row = (band * kBand + in_band % height) * g_.cluster;
      body({p_.m.block(g_.cluster > 1 ? row + cluster_rank() : row, g_.block_m),
            p_.n.block(in_band / height, g_.block_n),
            g_.split > 1 ? Index(steps) * cluster_rank() / g_.split : Index(0),
            g_.split > 1 ? Index(steps) * (cluster_rank() + 1) / g_.split : Index(steps)});
    }
  }

  Tile product(const Work& w, const Index& group) {
    Cell<Pending> product(as_pending(zeros({64, w.cols})));
    Cell<Index> held(0);
    for (Index step : range(w.first, w.last)) {
      const Slot slot = ring_.consume();
      const Pending before = product;
      product = wgmma(slot[0].rows(64 * group, 64), slot[1].T(), before);
      // One product stays in flight: the stage before is free only now.
      retire(before);
      when(step > w.first, [&] { ring_.release(held); });
      held = slot.stage();
    }
    const Tile sum = wait(product);
    when(w.last > w.first, [&] { ring_.release(held); });
    return sum;
  }

  // Into this CTA's shared memory, each CTA's share of the columns apart.
  void give_parts(const Tile& sum, const Index& group) {
    for (int cta = 0; cta < g_.split; ++cta) {
      tilewright::store(part(cta, group), sum.slice({0, cta * share_}, {64, share_}));
    }
    exchange_->written.arrive();
    exchange_->written.wait();
  }
  // The sum over the cluster, in the order of its CTAs, of a run of this one's share.
  Tile sum_parts(int column, const Index& group) {
    const SharedView own = part(cluster_rank(), group).columns(column, staged_);
    Tile sum = tilewright::load(own, 0);
    for (int cta = 1; cta < g_.split; ++cta) sum = sum + tilewright::load(own, cta);
    if (column + staged_ == share_) exchange_->read.arrive();
    return sum;
  }
  SharedView part(const IndexOperand& cta, const Index& group) {
    return exchange_->parts.rows(cta * g_.block_m + 64 * group, 64);
  }

  // Each warp its own 16 rows, by TMA; `values` gives the 64 rows of its group from a column on.
  void store_columns(const Block& rows, const Block& cols, const Index& group,
                     const std::function<Tile(int column)>& values) {
    const int chunks = cols.size() / staged_;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const SharedTile& stage = staging_[chunk % 2];
      const Tile sum = values(chunk * staged_);
      // The store before last has read this tile; after an odd number of them it was the last.
      bulk_wait_read(chunk == 0 && chunks % 2 == 1 ? 0 : 1);
      warp_sync();
      tilewright::store(stage.rows(64 * group, 64), sum.cast(g_.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(p_.C(rows, cols.part(chunk, staged_)),
                stage.rows(64 * group + 16 * warp_index(), 16));
      bulk_commit();
    }
  }

  Gemm g_;
  GemmParameters p_;
  int share_;   // columns of the tile that a CTA stores
  int staged_;  // columns of a staging tile
  Ring ring_;
  std::vector<SharedTile> staging_;
  std::optional<Exchange> exchange_;
};

}  // namespace

Kernel gemm_sm90(const Gemm& g) {
  Kernel kernel("gemm_sm90");
  const int cluster = g.cluster * g.split;
  kernel.ctas(multiprocessors() / cluster * cluster, cluster);
  GemmSm90 gemm(kernel, g);
  const int groups = g.block_m / 64;
  // What a launch gives each thread, and what the producer's warpgroup then leaves to the others.
  const int at_launch = 65536 / (128 * (groups + 1)) / 8 * 8;
  const int budget = std::min(240, (at_launch * (groups + 1) - 24) / groups / 8 * 8);
  kernel.roles({role("load", warps(1), registers(24), [&] { gemm.load(); }),
                role("math", warpgroups(groups), registers(budget),
                     [&](const Index& group) { gemm.multiply(group); })});
  return kernel;
}

}  // namespace tilewright::kernels
