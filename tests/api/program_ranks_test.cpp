#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedules.h"
#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Kernels that reach other ranks, among streams and copy engines that do.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr MemoryOrder kAcquire{Semantics::acquire, Scope::system};
constexpr MemoryOrder kRelease{Semantics::release, Scope::system};

// Waits for the word, then Y = X.
Kernel receive(MemoryOrder order) {
  Kernel kernel("receive");
  const Tensor X = kernel.in("X", f32, {64, 32}), Y = kernel.out("Y", f32, {64, 32});
  const Signals arrived = kernel.signals("arrived", 1);
  const Index turn = kernel.epoch();
  kernel.ctas(1);
  kernel.roles({role("all", warpgroups(1), registers(128), [&] {
    wait_flag(arrived, 0, Compare::ge, turn, order);
    store(Y(all, all), load(X(all, all)));
  })});
  return kernel;
}

// As receive, through TMA.
Kernel receive_by_tma(bool fenced) {
  Kernel kernel("receive_by_tma");
  const Tensor X = kernel.in("X", f32, {64, 32}), Y = kernel.out("Y", f32, {64, 32});
  const Signals arrived = kernel.signals("arrived", 1);
  const Index turn = kernel.epoch();
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{f32, 64, 32}});
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       wait_flag(arrived, 0, Compare::ge, turn);
                       if (fenced) fence_proxy_async_global();
                       ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot); });
                     }),
                role("math", warpgroups(1), registers(128), [&] {
                  const Slot slot = ring.consume();
                  const Tile tile = load(slot[0]);
                  fence_proxy_async();
                  warp_sync();
                  ring.release(slot);
                  store(Y(all, all), tile);
                })});
  return kernel;
}

// Rank 0 pushes x to rank 1 by its copy engine and says so in a word; a kernel there waits for it.
struct Message {
  explicit Message(const Kernel& receive, bool early = false) : program("message", 2) {
    x = program.buffer("x", f32, {64, 32});
    y = program.buffer("y", f32, {64, 32});
    z = program.buffer("z", f32, {64, 32});
    const Buffer arrived = program.signals("arrived", 1), taken = program.signals("taken", 1);
    const Stream push = program.rank(0).stream("push"), main = program.rank(1).stream();
    push.wait(taken[0], program.run() - 1);
    if (early) push.write(arrived.on(1)[0], program.run());
    push.copy(y.on(1), x);
    if (!early) push.write(arrived.on(1)[0], program.run());
    main.launch(receive, {y, z, arrived});
    main.write(taken.on(0)[0], program.run());
  }
  void expect_clean() {
    test::expect_clean(program, {},
                       [&](ProgramMemory& memory) { EXPECT_EQ(memory.at(z, 1), memory.at(x, 0)); });
  }
  Program program;
  Buffer x, y, z;
};

TEST(ProgramRanksTest, AKernelWaitsForACopyEngine) {
  Message message(receive(kAcquire));
  message.expect_clean();
}

TEST(ProgramRanksTest, AWaitThatDoesNotAcquire) {
  Message message(receive({Semantics::relaxed, Scope::system}));
  test::expect_fault(
      message.program, {}, "race",
      AllOf(HasSubstr("race: global y of rank 1"), HasSubstr("write  copy"),
            HasSubstr("of receive of rank 1"), HasSubstr("acquire instead of relaxed")));
}

// The copy engine is no thread of rank 1's GPU.
TEST(ProgramRanksTest, AWaitOfTooSmallAScope) {
  Message message(receive({Semantics::acquire, Scope::gpu}));
  test::expect_fault(message.program, {}, "race",
                     AllOf(HasSubstr("race: global arrived of rank 1"), HasSubstr("write of word"),
                           HasSubstr("wait_flag")));
}

TEST(ProgramRanksTest, AWordBeforeItsData) {
  Message message(receive(kAcquire), /*early=*/true);
  test::expect_fault(
      message.program, {}, "race",
      AllOf(HasSubstr("race: global y of rank 1"), HasSubstr("stream push of rank 0")));
}

TEST(ProgramRanksTest, TmaReadsWhatWasAcquiredBehindAFence) {
  Message message(receive_by_tma(true));
  message.expect_clean();
}

TEST(ProgramRanksTest, TmaReadsWhatWasAcquiredWithoutAFence) {
  Message message(receive_by_tma(false));
  test::expect_fault(message.program, {}, "proxy",
                     AllOf(HasSubstr("proxy: global y of rank 1"), HasSubstr("tma_load"),
                           HasSubstr("fence_proxy_async_global in the CTA of the second")));
}

// Y = X, then says so to a rank's stream.
Kernel send(MemoryOrder order, bool fenced, int to = 1) {
  Kernel kernel("send");
  const Tensor X = kernel.in("X", f32, {64, 32}), Y = kernel.out("Y", f32, {64, 32});
  const Signals made = kernel.signals("made", 1);
  const Index turn = kernel.epoch();
  kernel.ctas(1);
  NamedBarrier stored(kernel, 128);
  kernel.roles({role("all", warpgroups(1), registers(128), [&] {
    store(Y(all, all), load(X(all, all)));
    stored.sync();
    if (fenced) fence(Scope::system);
    when(warp_index() == 0, [&] { signal(made.at(to), 0, turn, order); });
  })});
  return kernel;
}

// A kernel of rank 0 makes y, and rank 1 pulls it.
struct Pull {
  explicit Pull(MemoryOrder order, bool fenced = false) : program("pull", 2) {
    x = program.buffer("x", f32, {64, 32});
    y = program.buffer("y", f32, {64, 32});
    z = program.buffer("z", f32, {64, 32});
    const Buffer made = program.signals("made", 1), taken = program.signals("taken", 1);
    const Stream main = program.rank(0).stream(), pull = program.rank(1).stream("pull");
    main.wait(taken[0], program.run() - 1);
    main.launch(send(order, fenced), {x, y, made});
    pull.wait(made[0], program.run());
    pull.copy(z, y.on(0));
    pull.write(taken.on(0)[0], program.run());
  }
  void expect_clean() {
    test::expect_clean(program, {},
                       [&](ProgramMemory& memory) { EXPECT_EQ(memory.at(z, 1), memory.at(x, 0)); });
  }
  Program program;
  Buffer x, y, z;
};

TEST(ProgramRanksTest, ACopyEngineWaitsForAKernel) {
  Pull released(kRelease);
  released.expect_clean();
  Pull fenced({Semantics::relaxed, Scope::system}, /*fenced=*/true);
  fenced.expect_clean();
}

TEST(ProgramRanksTest, ASignalThatDoesNotRelease) {
  Pull pull({Semantics::relaxed, Scope::system});
  test::expect_fault(
      pull.program, {}, "race",
      AllOf(HasSubstr("race: global y of rank 0"), HasSubstr("of send of rank 0"),
            HasSubstr("stream pull of rank 1"), HasSubstr("release instead of relaxed")));
}

TEST(ProgramRanksTest, ASignalOfTooSmallAScope) {
  Pull pull({Semantics::release, Scope::gpu});
  test::expect_fault(
      pull.program, {}, "race",
      AllOf(HasSubstr("race: global made of rank 1"), HasSubstr("of send of rank 0")));
}

// Streams wait as the host does: also those of the kernel's own GPU see no signal of its scope.
TEST(ProgramRanksTest, AStreamOfTheKernelsOwnGpuWaitsForTheSystem) {
  for (const Scope scope : {Scope::system, Scope::gpu}) {
    Program program("own");
    const Buffer x = program.buffer("x", f32, {64, 32}), y = program.buffer("y", f32, {64, 32});
    const Buffer z = program.buffer("z", f32, {64, 32}), made = program.signals("made", 1);
    const Rank rank = program.rank(0);
    const Stream main = rank.stream(), copies = rank.stream("copies");
    main.launch(send({Semantics::release, scope}, false, /*to=*/0), {x, y, made});
    copies.wait(made[0], program.run());
    copies.copy(z, y);
    if (scope == Scope::system) {
      test::expect_clean(program, {});
    } else {
      test::expect_fault(program, {}, "race", HasSubstr("race: global "));
    }
  }
}

// What a rank acquires it hands on: rank 2 reads what rank 0 has written, by a word of rank 1.
TEST(ProgramRanksTest, WhatIsAcquiredIsHandedOn) {
  Program program("chain", 3);
  const Buffer x = program.buffer("x", f32, {64, 32}), y = program.buffer("y", f32, {64, 32});
  const Buffer word = program.signals("word", 1);
  program.rank(0).stream().copy(y.on(2), x);
  program.rank(0).stream().write(word.on(1)[0], 1);
  program.rank(1).stream().wait(word[0], 1);
  program.rank(1).stream().write(word.on(2)[0], 1);
  program.rank(2).stream().wait(word[0], 1);
  program.rank(2).stream().copy(x, y);
  test::expect_clean(program, {20, 1});
}

TEST(ProgramRanksTest, AFlagThatNobodySetsIsADeadlock) {
  Program program("nobody", 2);
  const Buffer x = program.buffer("x", f32, {64, 32}), y = program.buffer("y", f32, {64, 32});
  const Buffer arrived = program.signals("arrived", 1);
  program.rank(0).stream().write(arrived.on(1)[0], 1);
  program.rank(1).stream().launch(receive(kAcquire), {x, y, arrived});
  test::expect_fault(program, {1, 3}, "deadlock",
                     AllOf(HasSubstr("deadlock: 4 warps wait"), HasSubstr("of receive of rank 1"),
                           HasSubstr("arrived of rank 1 +0x0..0x3 >= 2, which is 1"),
                           HasSubstr("stream main of rank 0")));
}

// A kernel that waits for one of another stream, on a device that has room for one CTA.
TEST(ProgramRanksTest, AKernelWithoutAPlaceIsNamed) {
  Kernel announce("announce");
  const Signals made = announce.signals("made", 1);
  const Index turn = announce.epoch();
  announce.ctas(1);
  announce.roles({role("all", warps(1), registers(32), [&] { signal(made, 0, turn); })});

  Program program("places");
  const Buffer x = program.buffer("x", f32, {64, 32}), y = program.buffer("y", f32, {64, 32});
  const Buffer word = program.signals("word", 1);
  program.rank(0).stream("first").launch(receive(kAcquire), {x, y, word});
  program.rank(0).stream("second").launch(announce, {word});
  SimulationOptions options;
  options.schedules = 16;
  EXPECT_TRUE(simulate(program, options).ok());
  options.multiprocessors = 1;
  const SimulationReport report = simulate(program, options);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.faults.front().text,
              AllOf(HasSubstr("deadlock"), HasSubstr("of receive"), HasSubstr("word +0x0..0x3 >= "),
                    HasSubstr("1 of 1 CTAs of announce have not started: all places")));
}

}  // namespace
}  // namespace tilewright
