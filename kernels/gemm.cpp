#include "tilewright/kernels/gemm.h"

#include <algorithm>
#include <deque>
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
  const int staging = 2 * 64 * g.warpgroups * staged * size_of(g.dtype);
  const int left = kShared - kBarriers - staging - parts;
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
        blocks_(g.block_m / 64 / g.warpgroups),
        share_(g.block_n / g.split),
        staged_(staged_columns(share_)),
        ring_(kernel, "ab", stages(ring_stages(g, staged_)),
              {{g.dtype, g.block_m, g.block_k}, {g.dtype, g.block_n, g.block_k}}) {
    if (g.cluster > 1) ring_.multicast();
    for (const char* name : {"c0", "c1"})
      staging_.emplace_back(kernel, name, g.dtype, 64 * g.warpgroups, staged_);
    if (g.split > 1) exchange_.emplace(kernel, g, share_, staged_);
  }

  void load() {
    each_tile([&](const Work& w) {
      for (Block depth : blocks(p_.k, g_.block_k, w.first, w.last)) {
        ring_.produce([&](const Slot& slot) {
          load_operand(p_.A, w.rows, depth, slot[0], g_.shared == GemmShared::a);
          load_operand(p_.B, w.cols, depth, slot[1], g_.shared == GemmShared::b);
        });
      }
    });
  }

  void multiply(const Index& group) {
    each_tile([&](const Work& w) {
      const std::vector<Tile> sums = products(w, group);
      if (g_.split == 1) {
        return store_columns(w.rows, w.cols, group, [&](int block, int column) {
          return sums[block].slice({0, column}, {64, staged_});
        });
      }
      give_parts(sums, group);
      store_columns(w.rows, w.cols.part(cluster_rank(), share_), group,
                    [&](int block, int column) { return sum_parts(block, column, group); });
      exchange_->read.wait();
    });
    bulk_wait_read(0);  // shared memory must outlive what reads it
  }

 private:
  struct Work {
    Block rows, cols;
    Index first, last;  // blocks along k
  };
  struct Exchange {
    Exchange(Kernel& kernel, const Gemm& g, int share, int staged)
        : parts(kernel, "parts", g.split * g.block_m / 64 * (share / staged), staged),
          written(kernel, "written"),
          read(kernel, "read") {}
    SharedFragments parts;  // for each CTA of the cluster, its share of the columns
    ClusterBarrier written, read;
  };

  // What the CTAs of a cluster share each fetches a part of, for all.
  void load_operand(const Tensor& tensor, const Block& rows, const Block& depth,
                    const SharedView& to, bool shared) {
    if (g_.cluster == 1 || !shared) return tma_load(tensor(rows, depth), to);
    const int part = rows.size() / g_.cluster;
    tma_load(tensor(rows.part(cluster_rank(), part), depth), to.rows(cluster_rank() * part, part),
             {Cache::normal, true});
  }

  void each_tile(const std::function<void(const Work&)>& body) {
    constexpr int kBand = 8;  // rows of tiles whose A stays in L2 while B passes
    const int ctas = g_.cluster * g_.split;
    // Tiles of a cluster lie below each other, or side by side where they share A's.
    const int down = g_.shared == GemmShared::b ? g_.cluster : 1, across = g_.cluster / down;
    const Dim rows = ceil_div(p_.m, g_.block_m * down);
    const Dim columns = ceil_div(p_.n, g_.block_n * across), steps = ceil_div(p_.k, g_.block_k);
    for (Index t : range(cta_index() / ctas, rows * columns, cta_count() / ctas)) {
      const Index band = t / (columns * kBand), in_band = t % (columns * kBand);
      const Index height = min(rows - band * kBand, kBand);
      const Index row = band * kBand + in_band % height, column = in_band / height;
      body({p_.m.block(down > 1 ? row * down + cluster_rank() : row, g_.block_m),
            p_.n.block(across > 1 ? column * across + cluster_rank() : column, g_.block_n),
            g_.split > 1 ? Index(steps) * cluster_rank() / g_.split : Index(0),
            g_.split > 1 ? Index(steps) * (cluster_rank() + 1) / g_.split : Index(steps)});
    }
  }

  // The number in the tile of one of the warpgroup's blocks of 64 rows.
  Index row_block(const Index& group, int block) const { return group * blocks_ + block; }

  std::vector<Tile> products(const Work& w, const Index& group) {
    std::deque<Cell<Pending>> products;
    for (int i = 0; i < blocks_; ++i) products.emplace_back(as_pending(zeros({64, w.cols})));
    Cell<Index> held(0);
    for (Index step : range(w.first, w.last)) {
      const Slot slot = ring_.consume();
      const std::vector<Pending> before(products.begin(), products.end());
      for (int i = 0; i < blocks_; ++i) {
        const SharedView a = slot[0].rows(64 * row_block(group, i), 64);
        products[i] = wgmma(a, slot[1].T(), before[i]);
      }
      // The products of one step stay in flight: the stage before is free only now.
      for (const Pending& product : before) retire(product);
      when(step > w.first, [&] { ring_.release(held); });
      held = slot.stage();
    }
    std::vector<Tile> sums;
    for (const Pending product : products) sums.push_back(wait(product));
    when(w.last > w.first, [&] { ring_.release(held); });
    return sums;
  }

  // Into this CTA's shared memory, each CTA's share of the columns apart.
  void give_parts(const std::vector<Tile>& sums, const Index& group) {
    for (int block = 0; block < blocks_; ++block) {
      for (int column = 0; column < g_.block_n; column += staged_) {
        exchange_->parts.store(part(column / share_, row_block(group, block), column % share_),
                               sums[block].slice({0, column}, {64, staged_}));
      }
    }
    exchange_->written.arrive();
    exchange_->written.wait();
  }
  // The sum over the cluster, in the order of its CTAs, of a run of this one's share.
  Tile sum_parts(int block, int column, const Index& group) {
    const Index own = part(cluster_rank(), row_block(group, block), column);
    Tile sum = exchange_->parts.load(own, 0);
    for (int cta = 1; cta < g_.split; ++cta) sum = sum + exchange_->parts.load(own, cta);
    if (block + 1 == blocks_ && column + staged_ == share_) exchange_->read.arrive();
    return sum;
  }
  // Where the columns from `column` on of a CTA's share lie.
  Index part(const IndexOperand& cta, const Index& row_block, int column) {
    return (cta * (g_.block_m / 64) + row_block) * (share_ / staged_) + column / staged_;
  }

  // Each warp its own rows, by TMA; `values` gives 64 rows of the warpgroup's from a column on.
  void store_columns(const Block& rows, const Block& cols, const Index& group,
                     const std::function<Tile(int block, int column)>& values) {
    const int chunks = cols.size() / staged_, total = blocks_ * chunks;
    for (int i = 0; i < total; ++i) {
      const SharedTile& stage = staging_[i % 2];
      const int block = i / chunks, chunk = i % chunks;
      const Tile sum = values(block, chunk * staged_);
      // The store before last has read this tile; after an odd number of them it was the last.
      bulk_wait_read(i == 0 && total % 2 == 1 ? 0 : 1);
      warp_sync();
      tilewright::store(stage.rows(64 * group, 64), sum.cast(g_.dtype));
      fence_proxy_async();
      warp_sync();
      tma_store(p_.C(rows.part(row_block(group, block), 64).part(warp_index(), 16),
                     cols.part(chunk, staged_)),
                stage.rows(64 * group + 16 * warp_index(), 16));
      bulk_commit();
    }
  }

  Gemm g_;
  GemmParameters p_;
  int blocks_;  // of 64 rows that a warpgroup multiplies
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
  const int groups = g.warpgroups;
  // What a launch gives each thread, and what the producer's warpgroup then leaves to the others.
  const int at_launch = 65536 / (128 * (groups + 1)) / 8 * 8;
  const int budget = std::min(240, (at_launch * (groups + 1) - 24) / groups / 8 * 8);
  kernel.roles({role("load", warps(1), registers(24), [&] { gemm.load(); }),
                role("math", warpgroups(groups), registers(budget),
                     [&](const Index& group) { gemm.multiply(group); })});
  return kernel;
}

}  // namespace tilewright::kernels
