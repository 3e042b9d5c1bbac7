#include "library/program_timing.h"

#include <gtest/gtest.h>

#include "library/program_simulation.h"
#include "target/devices.h"
#include "tilewright/kernels/link.h"

// What the simulator's clock says of transfers whose time can be told by hand (target::Link).
namespace tilewright::library {
namespace {

using kernels::LinkCopy;
using kernels::LinkSignal;
using kernels::Transfer;

const target::Link& link() { return target::device_of("sm_90a").link; }

PredictedTime time_of(const Program& program, const DimValues& sizes,
                      std::int64_t multiprocessors = 132) {
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = multiprocessors;
  const ir::Program recorded = program.finish();
  const std::vector<ir::Kernel> machine = machine_forms(recorded, "sm_90a").front();
  const PredictedTime timing = time_program(ir::bind_program(recorded, sizes, multiprocessors),
                                            machine, {}, options, /*runs=*/1);
  EXPECT_TRUE(timing.faults.empty());
  return timing;
}

// Of 64 MB.
constexpr std::int64_t kRows = (std::int64_t{64} << 20) / (4 * kernels::kLinkColumns);
constexpr double kBytes = 64 << 20;

double seconds(Transfer how, bool both_ways = false) {
  LinkCopy copy;
  copy.how = how;
  copy.both_ways = both_ways;
  const PredictedTime timing = time_of(kernels::link_copy(copy), {{"rows", kRows}});
  EXPECT_EQ(timing.sent, static_cast<std::int64_t>(kBytes));
  return timing.seconds;
}

TEST(ProgramTimingTest, ACopyTakesItsStartAndItsBytes) {
  EXPECT_NEAR(seconds(Transfer::engine_push), link().engine_start + kBytes / link().copied, 1e-7);
}

// All multiprocessors together fill the wire; the way there and back comes once.
TEST(ProgramTimingTest, KernelsPushAndPullAtTheRateOfTheWire) {
  for (const Transfer how : {Transfer::tma_push, Transfer::thread_push}) {
    const double wire = kBytes / link().stored;
    EXPECT_GT(seconds(how), wire);
    EXPECT_LT(seconds(how), wire + 8e-6);
  }
  for (const Transfer how : {Transfer::tma_pull, Transfer::thread_pull}) {
    const double wire = kBytes / link().loaded;
    EXPECT_GT(seconds(how), wire);
    EXPECT_LT(seconds(how), wire + 8e-6);
  }
}

TEST(ProgramTimingTest, WaysDoNotSlowEachOther) {
  for (const Transfer how : {Transfer::engine_push, Transfer::tma_push}) {
    EXPECT_NEAR(seconds(how, /*both_ways=*/true), seconds(how), 1e-6);
  }
}

// What one rank sends to another shares the way in with what a third one sends there, and the way
// out with what goes elsewhere.
TEST(ProgramTimingTest, WaysOutAndInAreShared) {
  const double alone = kBytes / link().copied;
  const auto copies = [](int one, int first, int other, int second) {
    Program program("copies", 3);
    const Dim rows = program.dim("rows");
    const Buffer x = program.scratch("x", f32, {rows, kernels::kLinkColumns}),
                 y = program.scratch("y", f32, {2 * rows, kernels::kLinkColumns});
    program.rank(one).stream("one").copy(y.on(first).rows(0, rows), x.on(one));
    program.rank(other).stream("other").copy(y.on(second).rows(rows, rows), x.on(other));
    return time_of(program, {{"rows", kRows}}).seconds - link().engine_start;
  };
  EXPECT_NEAR(copies(0, 1, 2, 1), 2 * alone, 0.02 * alone);
  EXPECT_NEAR(copies(0, 1, 0, 2), 2 * alone, 0.02 * alone);
  EXPECT_NEAR(copies(0, 1, 0, 1), 2 * alone, 0.02 * alone);
  EXPECT_NEAR(copies(0, 1, 1, 2), alone, 0.02 * alone);
}

// Of each round a release here and one there, and both words' ways.
TEST(ProgramTimingTest, AWordIsSeenBehindItsRelease) {
  const auto rounds = [](int count) {
    LinkSignal signal;
    signal.rounds = count;
    return time_of(kernels::link_signal(signal), {}, 1).seconds;
  };
  EXPECT_NEAR((rounds(11) - rounds(1)) / 10, 2 * (link().release + link().word), 0.2e-6);
}

}  // namespace
}  // namespace tilewright::library
