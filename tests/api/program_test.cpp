#include "tilewright/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "common/programs.h"
#include "common/schedules.h"
#include "ir/program.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

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

// Y = X, through shared memory.
Kernel tma_copy() {
  Kernel kernel("tma_copy");
  const Tensor X = kernel.in("X", f32, {kRows, kColumns}),
               Y = kernel.out("Y", f32, {kRows, kColumns});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{f32, kRows, kColumns}});
  const auto rows = [] { return Dim(kRows).block(0, kRows); };
  kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(X(rows(), all), slot); }); }),
       role("copy", warpgroups(1), registers(64), [&] {
         const Slot slot = ring.consume();
         store(Y(rows(), all), load(slot));
         warp_sync();
         ring.release(slot);
       })});
  return kernel;
}

TEST(ProgramTest, ALaunchSeesWhatCameBeforeThroughEveryProxy) {
  Program program("proxies");
  const Buffer x = program.buffer("x", f32, {kRows, kColumns});
  const Buffer y = program.buffer("y", f32, {kRows, kColumns});
  const Buffer z = program.buffer("z", f32, {kRows, kColumns});
  const Stream stream = program.rank(0).stream();
  stream.launch(scale(), {x, y}, {2});
  stream.launch(tma_copy(), {y, z});
  ProgramMemory memory(program);
  SimulationOptions options;
  options.strict = true;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  EXPECT_EQ(memory.at(z).flat(7), memory.at(x).flat(7) * 2);
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
  SimulationOptions options;
  options.seed = 5;
  const SimulationReport report = simulate(program, options);
  EXPECT_EQ(report.seed, 5u);
  const std::string text = text_of(report);
  EXPECT_THAT(text, AllOf(HasSubstr("deadlock: 1 stream waits and"), HasSubstr("stream second"),
                          HasSubstr("waits for ready +0x4..0x7 >= 2, which is 1"),
                          HasSubstr("write of word"), HasSubstr("stream first, run 1")));
}

TEST(ProgramTest, MemoryOfOtherBuffers) {
  TwoKernels two("first", false);
  const auto refused = [&](ProgramMemory& memory, const SimulationOptions& options = {}) {
    return test::usage_error_of([&] { simulate(two.program, memory, options); });
  };
  ProgramMemory other{Program("other")};
  EXPECT_THAT(refused(other), HasSubstr("the memory has no x"));
  ProgramMemory ranks{Program("ranks", 2)};
  EXPECT_THAT(refused(ranks), HasSubstr("memory of 2 ranks for 1"));
  ProgramMemory memory(two.program);
  memory.at(two.y) = HostTensor::zeros(f32, {2});
  EXPECT_THAT(refused(memory), HasSubstr("the memory has f32 {2} for y, which is f32 {64, 32}"));
  ProgramMemory late(two.program);
  two.program.buffer("late", f32, {4});
  EXPECT_THAT(refused(late), HasSubstr("the memory has no late"));
}

TEST(ProgramTest, NoRunsOrSchedules) {
  TwoKernels two("first", false);
  ProgramMemory memory(two.program);
  for (const auto& set :
       {+[](SimulationOptions& o) { o.runs = 0; }, +[](SimulationOptions& o) { o.schedules = -1; },
        +[](SimulationOptions& o) { o.multiprocessors = 0; }}) {
    SimulationOptions options;
    set(options);
    EXPECT_THAT(test::usage_error_of([&] { simulate(two.program, memory, options); }),
                HasSubstr("fix: ask for one or more"));
  }
}

TEST(ProgramTest, WithoutArithmeticMemoryIsLeftAlone) {
  TwoKernels two("first", false);
  two.program.rank(0).stream("first").copy(two.x, two.z);
  ProgramMemory memory(two.program);
  const auto before = memory.tensors;
  SimulationOptions options;
  options.control_only = true;
  EXPECT_TRUE(simulate(two.program, memory, options).ok());
  EXPECT_EQ(memory.tensors, before);
  options.control_only = false;
  EXPECT_TRUE(simulate(two.program, memory, options).ok());
  EXPECT_NE(memory.tensors, before);
}

// A kernel that signals to itself, and waits for it.
Kernel signalling(int words) {
  Kernel kernel("signalling");
  const Signals own = kernel.signals("own", words);
  const Index turn = kernel.epoch();
  kernel.ctas(1);
  kernel.roles({role("r", warps(1), registers(64), [&] {
    signal(own, words - 1, turn);
    wait_flag(own, words - 1, Compare::eq, turn);
  })});
  return kernel;
}

// Who waits for a word knows what the last write hands on, not those before.
TEST(ProgramTest, AWordThatAnotherStreamOverwrites) {
  Program program("overwritten");
  const Buffer x = program.buffer("x", f32, {kRows}), y = program.buffer("y", f32, {kRows});
  const Buffer z = program.buffer("z", f32, {kRows}), word = program.signals("word", 1);
  const Rank rank = program.rank(0);
  const Stream first = rank.stream("first"), second = rank.stream("second");
  const Stream reader = rank.stream("reader");
  first.copy(y, x);
  first.write(word[0], 1);
  second.write(word[0], 2);
  reader.wait(word[0], 2);
  reader.copy(z, y);
  int races = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    SimulationOptions options;
    options.seed = seed;
    options.runs = 1;
    const SimulationReport report = simulate(program, options);
    ASSERT_FALSE(report.ok()) << seed;  // or the reader waits forever: 1 came last
    races += report.faults.front().kind == "race" ? 1 : 0;
  }
  EXPECT_GT(races, 0);
}

// The same of words that kernels write: a relaxed store ends what a release before it hands on.
TEST(ProgramTest, ASignalThatAnotherCtaOverwrites) {
  Kernel kernel("overwritten");
  const Tensor X = kernel.in("X", f32, {16, kColumns}), Y = kernel.inout("Y", f32, {16, kColumns});
  const Tensor Z = kernel.out("Z", f32, {16, kColumns});
  const Signals word = kernel.signals("word", 1);
  kernel.ctas(3);
  kernel.roles({role("all", warps(1), registers(128), [&] {
    const Block rows = Dim(16).block(0, 16);
    when(cta_index() == 0, [&] {
      store(Y(rows, all), load(X(rows, all)));
      warp_sync();
      signal(word, 0, 1);
    });
    when(cta_index() == 1, [&] { signal(word, 0, 2, {Semantics::relaxed, Scope::system}); });
    when(cta_index() == 2, [&] {
      wait_flag(word, 0, Compare::ge, 2);
      store(Z(rows, all), load(Y(rows, all)));
    });
  })});
  int races = 0;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    Program program("program");
    const Buffer x = program.buffer("x", f32, {16, kColumns});
    const Buffer y = program.buffer("y", f32, {16, kColumns});
    const Buffer z = program.buffer("z", f32, {16, kColumns});
    program.rank(0).stream().launch(kernel, {x, y, z});
    SimulationOptions options;
    options.seed = seed;
    options.runs = 1;
    const SimulationReport report = simulate(program, options);
    ASSERT_FALSE(report.ok()) << seed;
    races += report.faults.front().kind == "race" ? 1 : 0;
  }
  EXPECT_GT(races, 0);
}

// What a kernel has acquired is known to what follows it in its stream.
TEST(ProgramTest, AStreamKnowsWhatItsKernelAcquired) {
  Kernel wait("wait");
  const Signals ready = wait.signals("ready", 1);
  wait.ctas(1);
  wait.roles({role("wait", warps(1), registers(64), [&] { wait_flag(ready, 0, Compare::ge, 1); })});
  Program program("acquired", 2);
  const Buffer x = program.buffer("x", f32, {kRows}), y = program.buffer("y", f32, {kRows});
  const Buffer z = program.buffer("z", f32, {kRows}), words = program.signals("words", 1);
  const Stream from = program.rank(0).stream(), to = program.rank(1).stream();
  from.copy(y.on(1), x);
  from.write(words.on(1)[0], 1);
  to.launch(wait, {words});
  to.copy(z, y);
  ProgramMemory memory(program);
  SimulationOptions options;
  options.runs = 1;
  options.schedules = 8;
  const SimulationReport report = simulate(program, memory, options);
  ASSERT_TRUE(report.ok()) << text_of(report);
  EXPECT_EQ(memory.at(z, 1), memory.at(x, 0));
}

TEST(ProgramTest, AWorkspaceThatIsNotLeftZero) {
  Kernel kernel("counting");
  const Tensor counter = kernel.workspace("counter", 2);
  kernel.ctas(1);
  kernel.roles({role("count", warps(1), registers(64), [&] { atomic_add(counter(1), 3); })});
  Program program("leaves");
  program.rank(0).stream("only").launch(kernel, {});
  const SimulationReport report = simulate(program);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults.front().kind, "workspace");
  EXPECT_THAT(text_of(report),
              HasSubstr("workspace counting.counter of stream only[1] is 3 after the launch"));
}

TEST(ProgramTest, KernelsOfOneNameHaveSignalsOfTheirOwn) {
  Program program("same_names");
  const Stream stream = program.rank(0).stream();
  stream.launch(signalling(1), {});
  stream.launch(signalling(2), {});
  stream.launch(signalling(1), {});
  const SimulationReport report = simulate(program);
  EXPECT_TRUE(report.ok()) << text_of(report);
  const ir::Program& recorded = program.finish();
  ASSERT_EQ(recorded.buffers.size(), 2u);
  EXPECT_EQ(recorded.buffers[0].name, "signalling.own");
  EXPECT_EQ(recorded.buffers[1].name, "signalling#2.own");
  EXPECT_EQ(ir::constants(recorded.buffers[1].shape), std::vector<std::int64_t>{2});
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
  EXPECT_THAT(text_of(simulate(test::no_wait_is_over())),
              AllOf(HasSubstr("deadlock: 2 streams wait"), HasSubstr("stream main of rank 0"),
                    HasSubstr("stream main of rank 1"),
                    HasSubstr("ready of rank 1 +0x0..0x3 >= 1, which is 0"),
                    HasSubstr("a write of the word: there is none")));
}

}  // namespace
}  // namespace tilewright
