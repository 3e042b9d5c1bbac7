#include <gmock/gmock.h>

#include <string>

#include "passes/pipeline.h"
#include "simulator/machine/machine.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Warps of one CTA that meet at a ClusterBarrier, with rows of numbers and the stage consumed last.
namespace tilewright {
namespace {

constexpr int kTurns = 5, kWidth = 64;

// Each of two warpgroups adds its number to a row of X, in each of 64 rows, and stores what the
// other one has made.
Kernel exchange(int count, bool waits) {
  Kernel kernel("exchange");
  const Dim turns = kernel.dim("turns");
  const Tensor X = kernel.in("X", f32, {turns, kWidth});
  const Tensor Y = kernel.out("Y", f32, {turns, 128, kWidth});
  kernel.ctas(1);
  Ring ring(kernel, "ring", stages(count), {{f32, 8, kWidth}});
  const SharedTile made(kernel, "made", f32, 128, kWidth);
  ClusterBarrier written(kernel, "written"), read(kernel, "read");
  const auto load_rows = [&] {
    for (Index i : range(turns)) {
      ring.produce(
          [&](const Slot& slot) { tma_load(X(turns.block(i, 1), all), slot[0].first_row()); });
    }
  };
  const auto compute = [&](const Index& group) {
    for (Index i : range(turns)) {
      ring.consume();
      const Slot slot = ring.last();
      const Tile own = Tile({64, 1}, group).cast(f32) + load(slot[0].first_row());
      store(made.rows(64 * group, 64), own);
      written.arrive();
      ring.release(slot);
      if (waits) written.wait();
      store(Y(i, Dim(128).block(1 - group, 64), all), load(made.rows(64 * (1 - group), 64)));
      read.arrive();
      read.wait();
    }
  };
  kernel.roles({role("load", warps(1), registers(24), load_rows),
                role("math", warpgroups(2), registers(160), compute)});
  return kernel;
}

struct Exchanged {
  HostTensor X = HostTensor::random_normal(f32, {kTurns, kWidth}, 1);
  HostTensor Y = HostTensor::poisoned(f32, {kTurns, 128, kWidth});
  simulator::MachineReport report;

  Exchanged(const Kernel& kernel, std::uint64_t seed) {
    ir::Kernel machine = kernel.finish();
    passes::lower_to_machine(machine);
    Arguments arguments;
    arguments.tensors.push_back({"X", f32, X.shape(), X.strides(), X.data()});
    arguments.tensors.push_back({"Y", f32, Y.shape(), Y.strides(), Y.data()});
    simulator::MachineOptions options;
    options.seed = seed;
    report = simulator::run_machine(machine, arguments, options);
  }
};

TEST(MeetingWarps, SeeWhatTheOthersHaveStored) {
  for (const int count : {1, 2, 3}) {
    SCOPED_TRACE(count);
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      const Exchanged run(exchange(count, true), seed);
      ASSERT_TRUE(run.report.ok()) << run.report.faults.front().message;
      for (std::int64_t turn = 0; turn < kTurns; ++turn) {
        for (std::int64_t row = 0; row < 128; ++row) {
          for (std::int64_t column = 0; column < kWidth; ++column) {
            const auto x = static_cast<float>(run.X.at({turn, column}));
            ASSERT_EQ(run.Y.at({turn, row, column}), x + static_cast<float>(row / 64))
                << turn << ", " << row << ", " << column;
          }
        }
      }
    }
  }
}

TEST(MeetingWarps, RaceWithoutTheWait) {
  const Exchanged run(exchange(2, false), 1);
  ASSERT_FALSE(run.report.ok());
  EXPECT_THAT(run.report.faults.front().kind, testing::AnyOf("race", "uninitialised"))
      << run.report.faults.front().message;
}

}  // namespace
}  // namespace tilewright
