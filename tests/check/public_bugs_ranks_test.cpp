#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "support/diagnostic.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Faults between ranks that were published in the trackers of other projects, rebuilt as small
// kernels: each is found, and the kernel without it is clean. Of single kernels:
// tests/simulator/public_bugs_test.cpp.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kRows = 64, kDepth = 64, kColumns = 64;

enum class Defect {
  none,
  signal_before_data,
  signal_before_other_warps,
  relaxed_signal,
  signal_of_the_gpu,
  no_wait_before_the_sum,
  words_not_counted_up,
};

// Y = the rows of this rank of the sum over the ranks of X W^T, each of which has a part of the
// depth: a GEMM with a reduce-scatter that begins with the first tile. A rank computes the rows of
// the next rank first and its own last, pushes each tile into its owner's `parts`, and tells it.
Kernel gemm_reduce_scatter(Defect defect) {
  Kernel kernel("gemm_reduce_scatter");
  const Dim ranks = kernel.ranks();
  const Tensor X = kernel.in("X", bf16, {ranks * kRows, kDepth});
  const Tensor W = kernel.in("W", bf16, {kColumns, kDepth});
  const Tensor Y = kernel.out("Y", f32, {kRows, kColumns});
  // A half for even and one for odd launches, as in an all-reduce by pushing.
  const Tensor parts = kernel.symmetric("parts", f32, {2 * ranks, kRows, kColumns});
  const Signals arrived = kernel.signals("arrived", 8);
  Ring ring(kernel, "xw", stages(2), {{bf16, kRows, kDepth}, {bf16, kColumns, kDepth}});
  NamedBarrier all_warps(kernel, 128);
  kernel.ctas(1);
  const auto owner = [&](const Index& step) { return (kernel.rank() + 1 + step) % ranks; };
  const auto load_role = [&] {
    for (Index step : range(ranks)) {
      const Index to = owner(step);
      ring.produce([&](const Slot& slot) {
        tma_load(X((ranks * kRows).block(to, kRows), all), slot[0]);
        tma_load(W(all, all), slot[1]);
      });
    }
  };
  const auto math_role = [&] {
    const bool counts = defect != Defect::words_not_counted_up;
    const Index me = kernel.rank(), half = kernel.epoch() % 2 * ranks;
    const Index turn = counts ? kernel.epoch() : Index(1);
    const MemoryOrder order{
        defect == Defect::relaxed_signal ? Semantics::relaxed : Semantics::release,
        defect == Defect::signal_of_the_gpu ? Scope::gpu : Scope::system};
    for (Index step : range(ranks)) {
      const Index to = owner(step);
      const Slot slot = ring.consume();
      const Tile product = wait(wgmma(slot[0], slot[1].T()));
      ring.release(slot);
      const auto tell = [&] {
        when(warp_index() == 0, [&] { signal(arrived.at(to), me, turn, order); });
      };
      if (defect == Defect::signal_before_data) tell();
      store(parts.at(to)(half + me, all, all), product);
      if (defect != Defect::signal_before_other_warps) all_warps.sync();
      if (defect != Defect::signal_before_data) tell();
    }
    if (defect != Defect::no_wait_before_the_sum) {
      for (Index from : range(ranks)) wait_flag(arrived, from, Compare::ge, turn);
    }
    Var sum{zeros({kRows, kColumns})};
    for (Index from : range(ranks)) sum = sum + load(parts(half + from, all, all));
    store(Y(all, all), sum);
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(240), math_role)});
  return kernel;
}

struct Outcome {
  SimulationReport report;
  double error = 0;  // the largest of Y, on any rank
};

Outcome run(const Kernel& kernel, int ranks, std::uint64_t seed, int schedules, int runs) {
  Program program("reduce_scatter", ranks);
  const Buffer x = program.buffer("x", bf16, {ranks * kRows, kDepth});
  const Buffer w = program.buffer("w", bf16, {kColumns, kDepth});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer parts = program.buffer("parts", f32, {2 * ranks, kRows, kColumns});
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, w, y, parts}); });
  ProgramMemory memory(program);
  SimulationOptions options;
  options.seed = seed;
  options.schedules = schedules;
  options.runs = runs;
  Outcome outcome{simulate(program, memory, options)};
  for (int rank = 0; rank < ranks && outcome.report.ok(); ++rank) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kColumns; ++j) {
        double sum = 0;
        for (int from = 0; from < ranks; ++from) {
          for (std::int64_t d = 0; d < kDepth; ++d) {
            sum += memory.at(x, from).at({rank * kRows + i, d}) * memory.at(w, from).at({j, d});
          }
        }
        outcome.error = std::max(outcome.error, std::abs(memory.at(y, rank).at({i, j}) - sum));
      }
    }
  }
  return outcome;
}

// tile-ai/tilescale, the example of a GEMM with overlapped reduce-scatter: rows were added up of
// which a tile might not have arrived, since nothing that its rank did carried it there first. Here
// the sum does not wait at all.
TEST(PublicBugsOfRanks, TilescaleReduceScatterWithoutAWaitBeforeTheSum) {
  const Outcome right = run(gemm_reduce_scatter(Defect::none), 3, 0, 6, 3);
  ASSERT_TRUE(right.report.ok()) << right.report.faults.front().text;
  EXPECT_LT(right.error, 1e-3);
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    const Outcome broken = run(gemm_reduce_scatter(Defect::no_wait_before_the_sum), 2, seed, 1, 1);
    ASSERT_FALSE(broken.report.ok()) << "seed " << seed;
    EXPECT_THAT(broken.report.faults.front().kind, AnyOf("race", "uninitialised"));
    EXPECT_THAT(broken.report.faults.front().text,
                AllOf(HasSubstr("parts of rank "), HasSubstr("load_registers")));
  }
}

struct Found {
  Defect defect;
  const char* missing;  // in the report
  int runs = 1;
};
class OfAReduceScatter : public testing::TestWithParam<Found> {};
INSTANTIATE_TEST_SUITE_P(Signals, OfAReduceScatter,
                         testing::Values(Found{Defect::signal_before_data, "parts of rank "},
                                         Found{Defect::signal_before_other_warps, "parts of rank "},
                                         Found{Defect::relaxed_signal,
                                               "release instead of relaxed"},
                                         Found{Defect::signal_of_the_gpu, "a wider scope than gpu"},
                                         Found{Defect::words_not_counted_up, "parts of rank ", 3}));

// Or the signal is too weak, or comes too early: a GPU may show none of these.
TEST_P(OfAReduceScatter, IsFound) {
  const Outcome broken = run(gemm_reduce_scatter(GetParam().defect), 2, 0, 6, GetParam().runs);
  ASSERT_FALSE(broken.report.ok());
  EXPECT_EQ(broken.report.faults.front().kind, "race");
  EXPECT_THAT(broken.report.faults.front().text, HasSubstr(GetParam().missing));
}

}  // namespace
}  // namespace tilewright
