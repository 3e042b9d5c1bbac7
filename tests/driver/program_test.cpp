#include "tilewright/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "driver/programs.h"
#include "driver/schedules.h"

namespace tilewright {
namespace {

using test::kColumns;
using test::kRows;
using test::Push;
using test::scale;
using test::text_of;
using test::TwoKernels;
using testing::AllOf;
using testing::HasSubstr;

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
                      HasSubstr("load_registers"), HasSubstr(two.first_line),
                      HasSubstr(two.second_line), HasSubstr("an event that is recorded")))
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

// The copy engine and a kernel that reads what it writes.
SimulationReport overlapped_copy(bool ordered, std::uint64_t seed) {
  Program program("overlapped_copy");
  const Buffer x = program.buffer("x", f32, {kRows, kColumns});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer z = program.buffer("z", f32, {kRows, kColumns});
  const Stream copies = program.rank(0).stream("copies"), math = program.rank(0).stream("math");
  copies.copy(y.rows(0, kRows / 2), x.rows(kRows / 2, kRows / 2));
  const Event first = copies.record();
  copies.copy(y.rows(kRows / 2, kRows / 2), x.rows(0, kRows / 2));
  math.wait(ordered ? copies.record() : first);
  math.launch(scale(), {y, z}, {1});
  ProgramMemory memory(program);
  SimulationOptions options;
  options.seed = seed;
  const SimulationReport report = simulate(program, memory, options);
  if (report.ok()) {
    for (std::int64_t i = 0; i < kRows; ++i) {
      EXPECT_EQ(memory.at(z).at({i, 3}), memory.at(x).at({(i + kRows / 2) % kRows, 3})) << i;
    }
  }
  return report;
}

TEST(ProgramTest, TheCopyEngineOverlapsAKernel) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const SimulationReport clean = overlapped_copy(true, seed);
    EXPECT_TRUE(clean.ok()) << text_of(clean);
    const SimulationReport broken = overlapped_copy(false, seed);
    EXPECT_THAT(text_of(broken),
                AllOf(HasSubstr("race: global y"), HasSubstr("write  copy"),
                      HasSubstr("stream copies, run"), HasSubstr("load_registers")))
        << seed;
  }
}

TEST(ProgramTest, AWaitThatNothingSatisfiesIsADeadlock) {
  Program program("short");
  const Buffer ready = program.signals("ready", 2);
  const Stream first = program.rank(0).stream("first"), second = program.rank(0).stream("second");
  first.write(ready[1], 1);
  second.wait(ready[1], 2);
  const std::string text = text_of(simulate(program));
  EXPECT_THAT(text, AllOf(HasSubstr("deadlock: 1 stream wait"), HasSubstr("stream second"),
                          HasSubstr("waits for ready +0x4..0x7 >= 2, which is 1"),
                          HasSubstr("write of word"), HasSubstr("stream first, run 1")));
}

// A word that is set to 1 in each run lets the second run's wait pass before its write.
SimulationReport handed_over(bool counts, std::uint64_t seed) {
  Program program("handed_over");
  const Buffer x = program.buffer("x", f32, {kRows, kColumns});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer ready = program.signals("ready", 1);
  const Stream copies = program.rank(0).stream("copies"), math = program.rank(0).stream("math");
  const RunNumber value = counts ? program.run() : RunNumber(1);
  copies.copy(y, x);
  copies.write(ready[0], value);
  math.wait(ready[0], value);
  math.launch(scale(), {y, x}, {1});
  SimulationOptions options;
  options.seed = seed;
  options.runs = 3;
  return simulate(program, options);
}

TEST(ProgramTest, AWordThatDoesNotCountUpIsARaceInTheSecondRun) {
  int races = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const SimulationReport counted = handed_over(true, seed);
    EXPECT_TRUE(counted.ok()) << text_of(counted);
    const SimulationReport report = handed_over(false, seed);
    if (report.ok()) continue;
    ++races;
    EXPECT_THAT(text_of(report), AllOf(HasSubstr("race: global"), HasSubstr("run 2"))) << seed;
  }
  EXPECT_GT(races, 0);
}

TEST(ProgramTest, ASeedReplaysAnExecution) {
  const auto run = [](std::uint64_t seed) {
    TwoKernels two("second", false);
    SimulationOptions options;
    options.seed = seed;
    const SimulationReport report = simulate(two.program, options);
    return text_of(report) + std::to_string(report.operations);
  };
  int different = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(run(seed), run(seed)) << seed;
    different += run(seed) != run(seed + 1);
  }
  EXPECT_GT(different, 0);
}

TEST(ProgramTest, RanksPushToEachOther) {
  Push push(true);
  ProgramMemory memory(push.program);
  SimulationOptions options;
  options.schedules = 20;
  options.runs = 3;
  const SimulationReport report = simulate(push.program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  for (int rank = 0; rank < 3; ++rank) {
    for (std::int64_t i = 0; i < kRows * kColumns; ++i) {
      const auto pushed = static_cast<float>(memory.at(push.x, rank).flat(i));
      ASSERT_EQ(memory.at(push.z, (rank + 1) % 3).flat(i), pushed * 3) << i;
    }
  }
}

TEST(ProgramTest, RanksRaceWithoutASignal) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    Push push(false);
    SimulationOptions options;
    options.seed = seed;
    EXPECT_THAT(text_of(simulate(push.program, options)),
                AllOf(HasSubstr("race: global y of rank"), HasSubstr("stream push of rank"),
                      HasSubstr("of scale of rank"), HasSubstr("a signal of scope system")))
        << seed;
  }
}

// Without the word that frees it, the next run's copy meets the kernel that still reads.
TEST(ProgramTest, ARankThatRunsAheadIsFoundInTheSecondRun) {
  Program program("ahead", 2);
  const Buffer x = program.buffer("x", f32, {kRows, kColumns});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer z = program.buffer("z", f32, {kRows, kColumns});
  const Buffer arrived = program.signals("arrived", 1);
  const Stream push = program.rank(0).stream("push"), math = program.rank(1).stream("math");
  push.copy(y.on(1), x);
  push.write(arrived.on(1)[0], program.run());
  math.wait(arrived[0], program.run());
  math.launch(scale(), {y, z}, {3});
  SimulationOptions options;
  options.runs = 1;
  options.schedules = 8;
  EXPECT_TRUE(simulate(program, options).ok());
  options.runs = 2;
  EXPECT_THAT(text_of(simulate(program, options)),
              AllOf(HasSubstr("race: global y of rank 1"),
                    HasSubstr("stream push of rank 0, run 2"), HasSubstr("stream math, run 1")));
}

TEST(ProgramTest, RanksThatWaitForEachOtherAreADeadlock) {
  Program program("no_wait", 2);
  const Buffer ready = program.signals("ready", 1);
  program.on_each_rank([&](const Rank& rank) {
    const Stream stream = rank.stream();
    stream.wait(ready[0], 1);
    stream.write(ready.on(rank.next())[0], 1);
  });
  EXPECT_THAT(text_of(simulate(program)),
              AllOf(HasSubstr("deadlock: 2 streams wait"), HasSubstr("stream main of rank 0"),
                    HasSubstr("stream main of rank 1"),
                    HasSubstr("ready of rank 1 +0x0..0x3 >= 1, which is 0"),
                    HasSubstr("a write of the word: there is none")));
}

}  // namespace
}  // namespace tilewright
