#include <cstdio>

#include "tilewright/program.h"
#include "tilewright/ranks.h"

// The sum of a tensor over all ranks, in all of them.
namespace tilewright::examples {

constexpr int kCtas = 4, kRows = 64, kColumns = 64;

// Y = the sum of X over the ranks, in their order, so that all have the same bits. Each rank pushes
// its rows to all. `parts` has a half for even and one for odd launches: a rank that is ahead may
// write the one while others still read the other.
Kernel all_reduce() {
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

// Runs it on simulated GPUs, several schedules of three runs each, and compares all bits.
bool check(int ranks, int rows) {
  Program program("all_reduce", ranks);
  const Buffer x = program.buffer("x", f32, {rows, kColumns});
  const Buffer y = program.buffer("y", f32, {rows, kColumns});
  const Buffer parts = program.buffer("parts", f32, {2 * ranks, rows, kColumns});
  const Kernel kernel = all_reduce();
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, parts}); });
  ProgramMemory memory(program);
  SimulationOptions options;
  options.schedules = 4;
  options.runs = 3;
  const SimulationReport report = simulate(program, memory, options);
  if (!report.ok()) {
    std::printf("%s\n", report.faults.front().text.c_str());
    return false;
  }
  for (std::int64_t i = 0; i < std::int64_t{rows} * kColumns; ++i) {
    float sum = 0;
    for (int rank = 0; rank < ranks; ++rank) sum += static_cast<float>(memory.at(x, rank).flat(i));
    for (int rank = 0; rank < ranks; ++rank) {
      if (memory.at(y, rank).flat(i) == sum) continue;
      std::printf("rank %d, element %lld: %g, expected %g\n", rank, static_cast<long long>(i),
                  memory.at(y, rank).flat(i), sum);
      return false;
    }
  }
  std::printf("all_reduce: %d ranks, %d rows: no faults, and the same bits in all ranks\n", ranks,
              rows);
  return true;
}

}  // namespace tilewright::examples

int main() {
  try {
    bool ok = true;
    for (const int ranks : {1, 2, 4}) ok = tilewright::examples::check(ranks, 100 * ranks) && ok;
    return ok ? 0 : 1;
  } catch (const tilewright::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
