#include "tilewright/kernels/gemm.h"

#include "kernels/gemm_sm90.h"

namespace tilewright::kernels {

Kernel gemm(const Gemm& g, SourceLocation where) {
  check_tiles(g, {"gemm", where});
  Kernel kernel("gemm");
  const GemmParameters p(kernel, g);
  const auto [x, y] = kernel.grid(ceil_div(p.n, g.block_n), ceil_div(p.m, g.block_m));
  const Block rows = p.m.block(y, g.block_m), cols = p.n.block(x, g.block_n);
  Var acc{zeros({rows, cols})};
  for (Block depth : blocks(p.k, g.block_k)) {
    const Tile a = g.a_along_m ? load(p.A(depth, rows)).T() : load(p.A(rows, depth));
    const Tile b = g.b_along_n ? load(p.B(depth, cols)) : load(p.B(cols, depth)).T();
    acc = dot(a, b, acc);
  }
  const auto scale = p.scale();
  const Tile sum = acc;
  store((*p.C)(rows, cols), p.finished(scale ? sum * *scale : sum, rows, cols));
  return kernel;
}

}  // namespace tilewright::kernels
