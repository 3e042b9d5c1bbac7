#include "tilewright/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"

namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int kRows = 64, kColumns = 32;

// Y = factor X.
Kernel scale(const char* name = "scale") {
  Kernel kernel(name);
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, kColumns}),
               Y = kernel.out("Y", f32, {rows, kColumns});
  const Scalar factor = kernel.scalar("factor", f32);
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block block = rows.block(x, 16);
  store(Y(block, all), load(X(block, all)) * factor);
  return kernel;
}

struct TwoKernels {
  explicit TwoKernels(const char* second_stream, bool event)
      : program("two_kernels"),
        x(program.buffer("x", f32, {kRows, kColumns})),
        y(program.buffer("y", f32, {kRows, kColumns})),
        z(program.buffer("z", f32, {kRows, kColumns})) {
    const Stream first = program.rank(0).stream("first");
    const Stream second = program.rank(0).stream(second_stream);
    first.launch(scale(), {x, y}, {2});
    if (event) second.wait(first.record());
    second.launch(scale(), {y, z}, {program.run()});
  }
  Program program;
  Buffer x, y, z;
};

std::string text_of(const SimulationReport& report) {
  return report.ok() ? std::string() : report.faults.front().text;
}

TEST(ProgramTest, OneStreamRunsInOrder) {
  TwoKernels two("first", false);
  ProgramMemory memory(two.program);
  SimulationOptions options;
  options.schedules = 4;
  const SimulationReport report = simulate(two.program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  EXPECT_EQ(report.schedules, 4);
  for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
    // The second run's factor.
    ASSERT_EQ(memory.at(two.z).flat(i), memory.at(two.x).flat(i) * 4) << i;
  }
}

TEST(ProgramTest, TwoStreamsRaceWithoutAnEvent) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    TwoKernels two("second", false);
    SimulationOptions options;
    options.seed = seed;
    const SimulationReport report = simulate(two.program, options);
    ASSERT_FALSE(report.ok()) << seed;
    EXPECT_EQ(report.faults.front().kind, "race") << seed;
    EXPECT_THAT(text_of(report),
                AllOf(HasSubstr("global y"), HasSubstr("in stream first, run"),
                      HasSubstr("in stream second, run"), HasSubstr("store_registers"),
                      HasSubstr("load_registers"), HasSubstr("program_test.cpp:40"),
                      HasSubstr("program_test.cpp:42"), HasSubstr("an event that is recorded")))
        << seed;
  }
}

TEST(ProgramTest, AnEventOrdersTwoStreams) {
  TwoKernels two("second", true);
  ProgramMemory memory(two.program);
  SimulationOptions options;
  options.schedules = 16;
  const SimulationReport report = simulate(two.program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  EXPECT_EQ(memory.at(two.z).flat(5), memory.at(two.x).flat(5) * 4);
}

}  // namespace
}  // namespace tilewright
