#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/device.h"
#include "runtime/runtime_test.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// A program that stands still on GPUs says who waits for what, and ends.
namespace tilewright {
namespace {

// Each rank says to the next that it is there, but for one, and waits for the one before.
Kernel meet(int silent) {
  Kernel kernel("meet");
  const Signals there = kernel.signals("there", 1);
  const Index turn = kernel.epoch(), me = kernel.rank();
  const Dim ranks = kernel.ranks();
  kernel.ctas(2);
  kernel.roles({role("meet", warps(1), registers(64), [&] {
    when(me != silent, [&] { signal(there.at((me + 1) % ranks), 0, turn); });
    wait_flag(there, 0, Compare::ge, turn);
  })});
  return kernel;
}

class WatchGpuTest : public testing::Test {
 protected:
  void SetUp() override {
    // What stands still ends what the process may do with the GPU.
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    try {
      if (runtime::Device::count() == 0) GTEST_SKIP() << "no GPU";
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
  }

  static void run(const Program& program) { compile(program, "cuda").run(2); }

  // Ends with status 0 once it has said on stderr what the run raises.
  [[noreturn]] static void say_error(const Program& program) {
    const runtime::ScopedVariable watch("TILEWRIGHT_WATCH", "1");
    try {
      run(program);
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      std::_Exit(error.kind() == ErrorKind::result ? 0 : 2);
    }
    std::_Exit(3);
  }

  static Program meeting(int ranks, int silent) {
    Program program("meeting", ranks);
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(meet(silent), {}); });
    return program;
  }
};

TEST_F(WatchGpuTest, WhatGoesOnIsLeftAlone) {
  const runtime::ScopedVariable watch("TILEWRIGHT_WATCH", "5");
  run(meeting(runtime::Device::count() > 1 ? 2 : 1, /*silent=*/-1));
}

TEST_F(WatchGpuTest, AKernelThatWaitsForAWord) {
  EXPECT_EXIT(say_error(meeting(1, /*silent=*/0)), testing::ExitedWithCode(0),
              "meet stands still: no wait here ended within 1 s.*\n?.*meet warp 0 of CTA [01] of "
              "rank 0.*watch_gpu_test.cpp.*waits for there.0. >= 1, which is 0");
}

// Rank 0 waits in its second run for rank 1, which stands still in its first: both are named.
TEST_F(WatchGpuTest, AKernelOfAnotherRank) {
  if (runtime::Device::count() < 2) GTEST_SKIP() << "two GPUs";
  EXPECT_EXIT(say_error(meeting(2, /*silent=*/0)), testing::ExitedWithCode(0),
              "of rank 1.*waits for there.0. >= 1, which is 0");
}

TEST_F(WatchGpuTest, AStreamThatWaitsForAWord) {
  Program program("word");
  const Buffer word = program.signals("word", 1);
  program.rank(0).stream().wait(word[0], program.run());
  EXPECT_EXIT(say_error(program), testing::ExitedWithCode(0),
              "program word stands still.*\n.*stream main.*waits for word.0. >= 1, which is 0");
}

}  // namespace
}  // namespace tilewright
