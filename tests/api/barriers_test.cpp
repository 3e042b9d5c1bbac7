#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/barrier_kernels.h"
#include "common/error_text.h"
#include "common/schedules.h"
#include "ir/program_text.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Barriers in one line, and waits of streams on any comparison.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

using test::kMeetingCtas;
using test::pass_on;
using test::PassOn;

TEST(Barriers, CtasOfTheGridMeet) {
  PassOn passes(pass_on<GridBarrier>(false, 2), 1);
  test::expect_clean(passes.program, {4, 3},
                     [&](ProgramMemory& memory) { EXPECT_TRUE(passes.is_passed(memory, 0, 0)); });
  test::expect_fault_in_some(PassOn(pass_on<GridBarrier>(false, 0), 1).program, {4, 1}, "race",
                             HasSubstr("race: global board"));
}

TEST(Barriers, CtasOfAllRanksMeet) {
  PassOn passes(pass_on<RankBarrier>(true, 2), 2);
  test::expect_clean(passes.program, {4, 3}, [&](ProgramMemory& memory) {
    EXPECT_TRUE(passes.is_passed(memory, 0, 1));
    EXPECT_TRUE(passes.is_passed(memory, 1, 0));
  });
  // A grid's barrier is none for another rank.
  test::expect_fault_in_some(PassOn(pass_on<GridBarrier>(true, 2), 2).program, {6, 1}, "race",
                             HasSubstr("race: global board"));
}

TEST(Barriers, WhoDoesNotComeIsADeadlockThatNamesTheBarrier) {
  Kernel kernel("some");
  GridBarrier met(kernel, "met");
  const Index turn = kernel.epoch();
  kernel.ctas(kMeetingCtas);
  kernel.roles({role("all", warps(1), registers(64),
                     [&] { when(cta_index() > 0, [&] { met.sync(turn); }); })});
  Program program("some");
  program.rank(0).stream().launch(kernel, {});
  test::expect_fault(
      program, {2, 1}, "deadlock",
      AllOf(HasSubstr("deadlock: 2 warps wait"), HasSubstr("met +0x0..0x3 >= 3, which is 2")));
}

TEST(Barriers, CtasThatMeetRunAtOnce) {
  SimulationOptions options;
  options.multiprocessors = 1;  // a cooperative launch has places for all, or none is made
  EXPECT_TRUE(simulate(PassOn(pass_on<GridBarrier>(false, 2), 1).program, options).ok());
}

// Every rank pushes x to the next one's y; behind the barrier z is what has come.
struct Pushed {
  explicit Pushed(bool meet) : program("pushed", 3) {
    x = program.buffer("x", f32, {64});
    const Buffer y = program.buffer("y", f32, {64});
    z = program.buffer("z", f32, {64});
    program.on_each_rank([&](const Rank& rank) {
      const Stream stream = rank.stream();
      stream.copy(y.on(rank.next()), x);
      if (meet) stream.barrier("pushed");
      stream.copy(z, y);
      if (meet) stream.barrier("read");
    });
  }
  Program program;
  Buffer x, z;
};

TEST(Barriers, StreamsOfAllRanksMeet) {
  Pushed pushed(true);
  test::expect_clean(pushed.program, {6, 3}, [&](ProgramMemory& memory) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(memory.at(pushed.z, rank), memory.at(pushed.x, (rank + 2) % 3));
    }
  });
  test::expect_fault_in_some(Pushed(false).program, {6, 1}, "race",
                             HasSubstr("race: global y of rank"));
}

TEST(Barriers, ARankThatNeverComesIsNamedBeforeARun) {
  const auto refused = [](const std::vector<int>& who, const auto& begin) {
    return test::usage_error_of([&] {
      Program program("absent", 3);
      for (const int rank : who) program.rank(rank).stream().barrier("met");
      begin(program);
    });
  };
  const auto compiled = [](const Program& program) { compile(program, "interpreter"); };
  const auto simulated = [](const Program& program) { simulate(program, {}); };
  EXPECT_THAT(refused({0, 1}, compiled), AllOf(HasSubstr("barriers_test.cpp"),
                                               HasSubstr("barrier met: rank 2 never comes to it")));
  EXPECT_THAT(refused({0, 1}, simulated), HasSubstr("barrier met: rank 2 never comes to it"));
  EXPECT_THAT(refused({1}, simulated), HasSubstr("barrier met: ranks 0, 2 never come to it"));
}

TEST(Barriers, ThoseThatHoldEachOtherUpAreNamed) {
  Program program("crossed", 2);
  program.on_each_rank([](const Rank& rank) {
    const bool first = rank.number() == 0;
    rank.stream().barrier(first ? "one" : "two");
    rank.stream().barrier(first ? "two" : "one");
  });
  test::expect_fault(
      program, {2, 1}, "deadlock",
      AllOf(HasSubstr("deadlock: 2 streams wait"), HasSubstr("waits for rank 1 at barrier one"),
            HasSubstr("waits for rank 0 at barrier two"),
            HasSubstr("fix: rank 1 at barrier one: it comes there at ")));
}

TEST(Barriers, AnExchangeThatARankComesToTooLateIsNamed) {
  Program program("late", 2);
  const Buffer x = program.buffer("x", f32, {64});
  program.on_each_rank([&](const Rank& rank) {
    const int other = rank.next();
    if (rank.number() == 1) rank.stream().barrier("met");
    rank.stream().exchange("halves", {{x.on(other).rows(0, 32), x.rows(32, 32)}}, {other});
    if (rank.number() == 0) rank.stream().barrier("met");
  });
  test::expect_fault(program, {2, 1}, "deadlock",
                     AllOf(HasSubstr("waits for rank 1 at exchange halves"),
                           HasSubstr("waits for rank 0 at barrier met")));
}

TEST(Barriers, ARankComesOnceInARun) {
  Program program("twice", 2);
  const Stream stream = program.rank(0).stream();
  stream.barrier("met");
  try {
    stream.barrier("met");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), HasSubstr("rank 0 comes to the barrier met twice in a run"));
  }
}

// A stream waits until the word compares so, while another one counts it from 0 to 3 and to -1.
TEST(StreamWaits, OnAnyComparison) {
  const std::pair<Compare, int> waits[] = {{Compare::eq, 3}, {Compare::ne, 0}, {Compare::gt, 2},
                                           {Compare::ge, 3}, {Compare::lt, 0}, {Compare::le, -1}};
  for (const auto& [compare, value] : waits) {
    SCOPED_TRACE(static_cast<int>(compare));
    Program program("waits");
    const Buffer x = program.buffer("x", f32, {64}), y = program.buffer("y", f32, {64});
    const Buffer word = program.signals("word", 1);
    const Rank rank = program.rank(0);
    const Stream counts = rank.stream("counts"), waiting = rank.stream("waits");
    counts.copy(y, x);
    const bool below = compare == Compare::lt || compare == Compare::le;
    counts.write(word[0], below ? -1 : 3);
    waiting.wait(word[0], compare, value);
    waiting.copy(x.rows(0, 1), y.rows(1, 1));
    test::expect_clean(program, {4, 1});
    const ir::Program read = ir::parse_program(ir::to_text(program.finish()), "waits.twp");
    EXPECT_EQ(ir::to_text(read), ir::to_text(program.finish()));
  }
}

TEST(StreamWaits, WhatNeverHoldsIsNamedWithItsComparison) {
  Program program("never");
  const Buffer word = program.signals("word", 1);
  program.rank(0).stream().wait(word[0], Compare::ne, 0);
  test::expect_fault(program, {1, 1}, "deadlock", HasSubstr("word +0x0..0x3 != 0, which is 0"));
}

}  // namespace
}  // namespace tilewright
