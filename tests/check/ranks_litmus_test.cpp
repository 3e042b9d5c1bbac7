#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/ranks_kernels.h"
#include "common/schedules.h"
#include "tilewright/compile.h"
#include "tilewright/program.h"

// One rule each of what a signal from rank to rank orders: rank 0 writes into the memory of rank 1.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

using test::Copied;
using test::kSize;
using test::Message;

constexpr MemoryOrder kRelaxed{Semantics::relaxed, Scope::system};

constexpr int kSeeds = 8;

// One launch a rank and run.
struct Litmus {
  Litmus(const Kernel& kernel, DType dtype) : program("litmus", 2) {
    x = program.buffer("x", dtype, {kSize, kSize});
    y = program.buffer("y", dtype, {kSize, kSize});
    const Buffer box = program.buffer("box", dtype, {kSize, kSize});
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, box}); });
  }
  Program program;
  Buffer x, y;
};

// What rank 0 sent is in rank 1's Y.
void expect_clean(const Kernel& kernel, DType dtype = f32, int runs = 2) {
  Litmus litmus(kernel, dtype);
  test::expect_clean(litmus.program, {kSeeds, runs}, [&](ProgramMemory& memory) {
    EXPECT_EQ(memory.at(litmus.y, 1), memory.at(litmus.x, 0));
  });
}

void expect_fault(const Kernel& kernel, const std::string& kind,
                  const testing::Matcher<std::string>& text, DType dtype = f32, int runs = 1) {
  test::expect_fault(Litmus(kernel, dtype).program, {kSeeds, runs}, kind, text);
}

testing::Matcher<std::string> race_of_box(const char* missing) {
  return AllOf(HasSubstr("race: global box of rank 1"), HasSubstr("write  store_registers"),
               HasSubstr("read   load_registers"), HasSubstr(missing));
}

TEST(RanksLitmus, ReleaseAndAcquireOfTheSystemOrder) { expect_clean(Message{}.kernel()); }

TEST(RanksLitmus, ARelaxedSignalOrdersNothing) {
  Message message;
  message.signal = kRelaxed;
  expect_fault(message.kernel(), "race", race_of_box("release instead of relaxed"));
}

TEST(RanksLitmus, ASignalOfTheGpuDoesNotReachPeers) {
  Message message;
  message.signal = {Semantics::release, Scope::gpu};
  expect_fault(message.kernel(), "race", HasSubstr("a wider scope than gpu"));
}

TEST(RanksLitmus, ARelaxedWaitOrdersNothing) {
  Message message;
  message.wait = kRelaxed;
  expect_fault(message.kernel(), "race", race_of_box("acquire instead of relaxed"));
}

TEST(RanksLitmus, AWaitOfTheGpuDoesNotSeePeers) {
  Message message;
  message.wait = {Semantics::acquire, Scope::gpu};
  expect_fault(message.kernel(), "race", HasSubstr("race: global "));
}

TEST(RanksLitmus, FencesOfTheSystemMakeRelaxedAccessesOrder) {
  Message message;
  message.signal = message.wait = kRelaxed;
  message.signal_fence = message.wait_fence = Scope::system;
  expect_clean(message.kernel());
  message.signal_fence = Scope::gpu;
  expect_fault(message.kernel(), "race", HasSubstr("race: global box of rank 1"));
  message.signal_fence = Scope::system;
  message.wait_fence = Scope::gpu;
  expect_fault(message.kernel(), "race", HasSubstr("race: global box of rank 1"));
}

// The accesses themselves have to reach as far as their fences.
TEST(RanksLitmus, FencesDoNotWidenAccesses) {
  const MemoryOrder narrow{Semantics::relaxed, Scope::gpu};
  for (const bool signals : {true, false}) {
    Message message;
    message.signal = signals ? narrow : kRelaxed;
    message.wait = signals ? kRelaxed : narrow;
    message.signal_fence = message.wait_fence = Scope::system;
    // The word's own accesses race with each other, or what they were to order does.
    expect_fault(message.kernel(), "race", HasSubstr("race: global "));
  }
}

// Y = X in the first of two CTAs, Z = Y in the second: by relaxed accesses to a word and by fences.
Kernel hand_over(int cluster, Scope signal_fence, Scope wait_fence) {
  constexpr MemoryOrder kOfGpu{Semantics::relaxed, Scope::gpu};
  Kernel kernel("hand_over");
  const Tensor X = kernel.in("X", f32, {16, kSize}), Y = kernel.inout("Y", f32, {16, kSize});
  const Tensor Z = kernel.out("Z", f32, {16, kSize});
  const Signals word = kernel.signals("word", 1);
  const Index turn = kernel.epoch();
  kernel.ctas(2, cluster);
  kernel.roles({role("all", warps(1), registers(128), [&] {
    when(
        cta_index() == 0,
        [&] {
          store(Y(all, all), load(X(all, all)));
          warp_sync();
          fence(signal_fence);
          signal(word, 0, turn, kOfGpu);
        },
        [&] {
          wait_flag(word, 0, Compare::ge, turn, kOfGpu);
          fence(wait_fence);
          store(Z(all, all), load(Y(all, all)));
        });
  })});
  return kernel;
}

TEST(RanksLitmus, AFenceReachesTheCtasOfItsScope) {
  const auto program = [](int cluster, Scope signal_fence, Scope wait_fence) {
    Program made("hand_over");
    const auto buffer = [&](const char* name) { return made.buffer(name, f32, {16, kSize}); };
    const Buffer x = buffer("x"), y = buffer("y"), z = buffer("z");
    made.rank(0).stream().launch(hand_over(cluster, signal_fence, wait_fence), {x, y, z});
    return made;
  };
  const auto reaches = [&](int cluster, Scope scope) {
    test::expect_clean(program(cluster, scope, scope), {kSeeds, 1});
  };
  const auto does_not = [&](int cluster, Scope signal_fence, Scope wait_fence) {
    test::expect_fault(program(cluster, signal_fence, wait_fence), {kSeeds, 1}, "race",
                       HasSubstr("race: global y"));
  };
  reaches(1, Scope::gpu);
  does_not(1, Scope::cluster, Scope::gpu);
  does_not(1, Scope::gpu, Scope::cluster);
  reaches(2, Scope::cluster);
  does_not(2, Scope::block, Scope::cluster);
  does_not(2, Scope::cluster, Scope::block);
}

TEST(RanksLitmus, ASignalBeforeTheData) {
  Message message;
  message.early = true;
  expect_fault(message.kernel(), "race", race_of_box("a signal of scope system behind the first"));
}

TEST(RanksLitmus, OtherWarpsMayNotHaveStored) {
  Message message;
  message.meets = false;
  expect_fault(message.kernel(), "race", HasSubstr("race: global box of rank 1"));
}

TEST(RanksLitmus, NoWait) {
  Message message;
  message.waits = false;
  // Else rank 0 may write behind rank 1's signal that it has read, in order and too late.
  message.acknowledged = false;
  expect_fault(message.kernel(), "race", race_of_box("a wait for it before the second"));
}

TEST(RanksLitmus, ASignalToTheWrongRankIsADeadlockThatNamesTheWord) {
  Message message;
  message.to_itself = true;
  expect_fault(message.kernel(), "deadlock",
               AllOf(HasSubstr("deadlock: "), HasSubstr("wait_flag"), HasSubstr("rank 1"),
                     HasSubstr("ready of rank 1 +0x0..0x3 >= 1, which is 0")));
}

// The second launch finds what the first has signalled.
TEST(RanksLitmus, ASignalThatIsNotCountedUp) {
  Message message;
  message.counts = false;
  expect_clean(message.kernel(), f32, 1);
  test::expect_fault_in_some(Litmus(message.kernel(), f32).program, {kSeeds, 2}, "race",
                             HasSubstr("race: global "));
}

TEST(RanksLitmus, TheNextLaunchMayNotOverwriteWhatIsStillRead) {
  Message message;
  message.acknowledged = false;
  expect_clean(message.kernel(), f32, 1);
  test::expect_fault_in_some(Litmus(message.kernel(), f32).program, {kSeeds, 3}, "race",
                             HasSubstr("race: global box of rank 1"));
}

TEST(RanksLitmus, CopiesThatAreWaitedForInFull) { expect_clean(Copied{}.kernel(), bf16, 1); }

TEST(RanksLitmus, ACopyWhoseSourceAloneIsWaitedFor) {
  Copied copied;
  copied.full_wait = false;
  expect_fault(copied.kernel(), "race",
               AllOf(HasSubstr("race: global box of rank 1"), HasSubstr("write  tma_store"),
                     HasSubstr("read   tma_load"), HasSubstr("bulk_wait, not bulk_wait_read")),
               bf16);
}

TEST(RanksLitmus, ACopyThatNobodyWaitsFor) {
  Copied copied;
  copied.waits = false;
  expect_fault(copied.kernel(), "race", HasSubstr("race: global box of rank 1"), bf16);
}

TEST(RanksLitmus, CopiesReadBehindAProxyFence) {
  Copied copied;
  copied.fenced = false;
  expect_fault(copied.kernel(), "proxy",
               AllOf(HasSubstr("proxy: global box of rank 1"),
                     HasSubstr("fence_proxy_async_global in the CTA of the second")),
               bf16);
}

// Y = X of the next rank, at the tile level: by itself ordered behind what came before it alone.
Kernel pull() {
  Kernel kernel("pull");
  const Tensor X = kernel.symmetric("X", f32, {kSize, kSize});
  const Tensor Y = kernel.out("Y", f32, {kSize, kSize});
  const auto [x] = kernel.grid(kSize / 16);
  const Block block = Dim(kSize).block(x, 16);
  const Index next = (kernel.rank() + 1) % kernel.ranks();
  store(Y(block, all), load(X.at(next)(block, all)));
  return kernel;
}

TEST(RanksLitmus, KernelsOfTheTileLevelReadPeers) {
  Program program("pull", 3);
  const Buffer x = program.buffer("x", f32, {kSize, kSize});
  const Buffer y = program.buffer("y", f32, {kSize, kSize});
  const Kernel kernel = pull();
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y}); });
  test::expect_clean(program, {}, [&](ProgramMemory& memory) {
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(memory.at(y, rank), memory.at(x, (rank + 1) % 3)) << rank;
    }
  });
}

TEST(RanksLitmus, TheInterpreterIsOneRank) {
  HostTensor x = HostTensor::random_normal(f32, {kSize, kSize}, 1);
  HostTensor y = HostTensor::poisoned(f32, {kSize, kSize});
  compile(pull(), "interpreter").run({ref(x), ref(y)});
  EXPECT_EQ(y, x);
}

// Rank 0 hands a tile to rank 1, and that to rank 2, by copies and words, once.
Program handed_on(bool tells_last, bool waits) {
  Program program("handed_on", 3);
  const Buffer x = program.in("x", f32, {kSize, kSize}), y = program.out("y", f32, {kSize, kSize});
  const Buffer box = program.scratch("box", f32, {kSize, kSize});
  const Buffer there = program.signals("there", 1), taken = program.signals("taken", 1);
  const RunNumber run = program.run();
  const Stream first = program.rank(0).stream(), second = program.rank(1).stream(),
               third = program.rank(2).stream();
  first.copy(box.on(1), x);
  first.write(there.on(1)[0], run);
  second.wait(there[0], waits ? run : run - 1);
  second.copy(box.on(2), box);
  if (tells_last) second.write(there.on(2)[0], run);
  second.wait(taken[0], run);
  third.wait(there[0], run);
  third.copy(y, box);
  third.write(taken.on(1)[0], run);
  return program;
}

TEST(RanksLitmus, AWordThatNobodyWritesIsTheCause) {
  test::expect_clean(handed_on(true, true), {kSeeds, 1}, [](ProgramMemory&) {});
  test::expect_fault(
      handed_on(false, true), {kSeeds, 1}, "deadlock",
      AllOf(HasSubstr("2 streams wait"), HasSubstr("\n    third.wait(there[0], run)"),
            HasSubstr("nothing in the program writes it")));
}

TEST(RanksLitmus, AWordThatAKernelHasMayBeWrittenByIt) {
  Kernel tell("tell");
  const Signals word = tell.signals("word", 1);
  tell.ctas(1);
  tell.roles({role("tell", warps(1), registers(64), [&] { signal(word, 0, tell.epoch()); })});
  Program program("told", 1);
  const Buffer there = program.signals("there", 1);
  const Stream stream = program.rank(0).stream();
  stream.launch(tell, {there});
  stream.wait(there[0], program.run() + 1);
  test::expect_fault(program, {kSeeds, 1}, "deadlock",
                     AllOf(HasSubstr("stream.wait(there[0], program.run() + 1)"),
                           testing::Not(HasSubstr("nothing in the program writes it"))));
}

TEST(RanksLitmus, AReadMayHaveComeTooEarly) {
  test::expect_fault_in_some(handed_on(true, false), {kSeeds, 1}, "race",
                             HasSubstr("a signal of scope system behind the write, and a wait for "
                                       "it before the read"));
}

}  // namespace
}  // namespace tilewright
