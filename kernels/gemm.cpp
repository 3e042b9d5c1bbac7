#include "tilewright/kernels/gemm.h"

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

Kernel gemm_sm90(const Gemm& g) {
  constexpr int kBand = 8;  // rows of tiles whose A stays in L2 while B passes
  Kernel kernel("gemm_sm90");
  const GemmParameters p(kernel, g, multiple_of(8));  // rows of whole 16 bytes, as TMA takes
  kernel.ctas(multiprocessors() / g.cluster * g.cluster, g.cluster);
  // A cluster works on tiles below each other, which share B's tile.
  const Dim rows = ceil_div(p.m, g.block_m * g.cluster), columns = ceil_div(p.n, g.block_n);
  const Dim steps = ceil_div(p.k, g.block_k);

  Ring ring(kernel, "ab", stages(4),
            {{g.dtype, g.block_m, g.block_k}, {g.dtype, g.block_n, g.block_k}});
  if (g.cluster > 1) ring.multicast();
  constexpr int kChunk = 64;  // columns of C that are staged together
  SharedTile staging[] = {SharedTile(kernel, "c0", g.dtype, g.block_m, kChunk),
                          SharedTile(kernel, "c1", g.dtype, g.block_m, kChunk)};

  // The persistent loop, in bands of rows.
  struct Work {
    Block rows, cols;
  };
  const auto each_tile = [&](const std::function<void(const Work&)>& body) {
    for (Index t : range(cta_index() / g.cluster, rows * columns, cta_count() / g.cluster)) {
      const Index band = t / (columns * kBand), in_band = t % (columns * kBand);
      const Index height = min(rows - band * kBand, kBand);
      const Index row = (band * kBand + in_band % height) * g.cluster;
      body({p.m.block(g.cluster > 1 ? row + cluster_rank() : row, g.block_m),
            p.n.block(in_band / height, g.block_n)});
    }
  };

  const auto load_role = [&] {
    each_tile([&](const Work& w) {
      for (Block depth : blocks(p.k, g.block_k)) {
        ring.produce([&](const Slot& slot) {
          tma_load(p.A(w.rows, depth), slot[0]);
          if (g.cluster == 1) return tma_load(p.B(w.cols, depth), slot[1]);
          // Each CTA fetches its share of B's tile for all.
          const int share = g.block_n / g.cluster;
          tma_load(p.B(w.cols.part(cluster_rank(), share), depth),
                   slot[1].rows(cluster_rank() * share, share), {Cache::normal, true});
        });
      }
    });
  };

  const auto math_role = [&](const Index& group) {
    each_tile([&](const Work& w) {
      Cell<Pending> product(as_pending(zeros({64, w.cols})));
      Cell<Index> held(0);
      for (Index step : range(steps)) {
        const Slot slot = ring.consume();
        const Pending before = product;
        product = wgmma(slot[0].rows(64 * group, 64), slot[1].T(), before);
        // One product stays in flight: the stage before is free only now.
        retire(before);
        when(step > 0, [&] { ring.release(held); });
        held = slot.stage();
      }
      const Tile acc = wait(product);
      when(Index(steps) > 0, [&] { ring.release(held); });

      const Block rows = w.rows.part(group, 64), own = rows.part(warp_index(), 16);
      for (int chunk = 0; chunk * kChunk < g.block_n; ++chunk) {
        const SharedTile& stage = staging[chunk % 2];
        bulk_wait_read(1);
        warp_sync();
        store(stage.rows(64 * group, 64),
              acc.slice({0, chunk * kChunk}, {64, kChunk}).cast(g.dtype));
        fence_proxy_async();
        warp_sync();
        tma_store(p.C(own, w.cols.part(chunk, kChunk)),
                  stage.rows(64 * group + 16 * warp_index(), 16));
        bulk_commit();
      }
    });
    bulk_wait(0);
  };

  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(2), registers(240), math_role)});
  return kernel;
}

}  // namespace tilewright::kernels
