#pragma once

#include "tilewright/ranks.h"

// The sum of a tensor over all ranks, in all of them.
namespace tilewright::examples {

inline constexpr int kCtas = 4, kRows = 64, kColumns = 64;

// Y = the sum of X over the ranks, in their order, so that all have the same bits. Each rank pushes
// its rows to all. `parts` has a half for even and one for odd launches: a rank that is ahead may
// write the one while others still read the other.
inline Kernel all_reduce() {
  Kernel kernel("all_reduce");
  const Dim rows = kernel.dim("rows"), ranks = kernel.ranks();
  const Tensor X = kernel.in("X", f32, {rows, kColumns}),
               Y = kernel.out("Y", f32, {rows, kColumns});
  const Tensor parts = kernel.symmetric("parts", f32, {2 * ranks, rows, kColumns});
  const Signals arrived = kernel.signals("arrived", 8 * kCtas);
  NamedBarrier all_warps(kernel, 128);
  kernel.ctas(kCtas);
  kernel.roles({role("reduce", warpgroups(1), registers(240), [&] {
    const Index me = kernel.rank(), turn = kernel.epoch(), half = turn % 2 * ranks;
    const Index cta = cta_index(), blocks = ceil_div(rows, kRows);
    for (Index i : range(cta, blocks, kCtas)) {
      const Block block = rows.block(i, kRows);
      const Tile own = load(X(block, all));
      for (Index to : range(ranks)) store(parts.at(to)(half + me, block, all), own);
    }
    all_warps.sync();
    when(warp_index() == 0, [&] {
      for (Index to : range(ranks)) signal(arrived.at(to), me * kCtas + cta, turn);
    });
    for (Index from : range(ranks)) wait_flag(arrived, from * kCtas + cta, Compare::ge, turn);
    for (Index i : range(cta, blocks, kCtas)) {
      const Block block = rows.block(i, kRows);
      Var sum{zeros({block, kColumns})};
      for (Index from : range(ranks)) sum = sum + load(parts(half + from, block, all));
      store(Y(block, all), sum);
    }
  })});
  return kernel;
}

}  // namespace tilewright::examples
