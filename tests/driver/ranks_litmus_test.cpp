#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "support/diagnostic.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// One rule each of what a signal from rank to rank orders: rank 0 writes into the memory of rank 1.
namespace tilewright {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

constexpr int kSize = 64;
constexpr MemoryOrder kRelease{Semantics::release, Scope::system};
constexpr MemoryOrder kAcquire{Semantics::acquire, Scope::system};
constexpr MemoryOrder kRelaxed{Semantics::relaxed, Scope::system};

// By threads. What is not as it should be is set.
struct Message {
  MemoryOrder signal = kRelease, wait = kAcquire;
  std::optional<Scope> signal_fence, wait_fence;
  bool early = false;  // signals before the data
  bool meets = true;   // waits for the other warps before the signal
  bool waits = true;
  bool to_itself = false;    // signals its own word instead of rank 1's
  bool counts = true;        // up with the launches
  bool acknowledged = true;  // rank 1 tells that it has read

  Kernel kernel() const {
    Kernel kernel("message");
    const Tensor X = kernel.in("X", f32, {kSize, kSize}), Y = kernel.out("Y", f32, {kSize, kSize});
    const Tensor box = kernel.symmetric("box", f32, {kSize, kSize});
    const Signals ready = kernel.signals("ready", 2);
    NamedBarrier all_warps(kernel, 128);
    kernel.ctas(1);
    kernel.roles({role("both", warpgroups(1), registers(240), [&] {
      const Index me = kernel.rank();
      const Index turn = counts ? kernel.epoch() : Index(1);
      const auto one_warp = [&](const std::function<void()>& body) {
        when(warp_index() == 0, body);
      };
      when(
          me == 0,
          [&] {
            if (acknowledged) wait_flag(ready, 1, Compare::ge, turn - 1);
            const auto tell = [&] {
              if (signal_fence) fence(*signal_fence);
              tilewright::signal(ready.at(to_itself ? 0 : 1), 0, turn, signal);
            };
            if (early) one_warp(tell);
            store(box.at(1)(all, all), load(X(all, all)));
            if (meets) all_warps.sync();
            if (!early) one_warp(tell);
          },
          [&] {
            if (waits) wait_flag(ready, 0, Compare::ge, turn, wait);
            if (wait_fence) fence(*wait_fence);
            store(Y(all, all), load(box(all, all)));
            all_warps.sync();
            if (acknowledged) one_warp([&] { tilewright::signal(ready.at(0), 1, turn); });
          });
    })});
    return kernel;
  }
};

// By TMA, through shared memory on both sides.
struct Copied {
  bool full_wait = true;  // not for the source alone
  bool waits = true;      // for its copy at all
  bool fenced = true;     // before rank 1's copy reads

  Kernel kernel() const {
    Kernel kernel("copied");
    const Tensor X = kernel.in("X", bf16, {kSize, kSize}),
                 Y = kernel.out("Y", bf16, {kSize, kSize});
    const Tensor box = kernel.symmetric("box", bf16, {kSize, kSize});
    const Signals ready = kernel.signals("ready", 1);
    SharedTile staging(kernel, "staging", bf16, kSize, kSize);
    Ring ring(kernel, "ring", stages(1), {{bf16, kSize, kSize}});
    NamedBarrier all_warps(kernel, 128);
    kernel.ctas(1);
    kernel.roles({
        role("load", warps(1), registers(24),
             [&] {
               when(kernel.rank() == 1, [&] {
                 wait_flag(ready, 0, Compare::ge, kernel.epoch());
                 if (fenced) fence_proxy_async_global();
                 ring.produce([&](const Slot& slot) { tma_load(box(all, all), slot); });
               });
             }),
        role("both", warpgroups(1), registers(240),
             [&] {
               when(
                   kernel.rank() == 0,
                   [&] {
                     store(staging, load(X(all, all)));
                     fence_proxy_async();
                     all_warps.sync();
                     when(warp_index() == 0, [&] {
                       tma_store(box.at(1)(all, all), staging);
                       bulk_commit();
                       if (waits && full_wait) bulk_wait(0);
                       if (waits && !full_wait) bulk_wait_read(0);
                       signal_add(ready.at(1), 0, 1);
                       bulk_wait(0);
                     });
                   },
                   [&] {
                     const Slot slot = ring.consume();
                     store(Y(all, all), load(slot));
                     ring.release(slot);
                   });
             }),
    });
    return kernel;
  }
};

struct Outcome {
  SimulationReport report;
  bool arrived = true;  // what rank 0 sent is in rank 1's Y
  std::string text() const { return report.ok() ? std::string() : report.faults.front().text; }
};

// The first of some schedules with a fault.
Outcome run(const Kernel& kernel, DType dtype, int runs, std::uint64_t seed = 0,
            int schedules = 8) {
  Program program("litmus", 2);
  const Buffer x = program.buffer("x", dtype, {kSize, kSize});
  const Buffer y = program.buffer("y", dtype, {kSize, kSize});
  const Buffer box = program.buffer("box", dtype, {kSize, kSize});
  program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, box}); });
  ProgramMemory memory(program);
  SimulationOptions options;
  options.seed = seed;
  options.schedules = schedules;
  options.runs = runs;
  Outcome outcome{simulate(program, memory, options)};
  for (std::int64_t i = 0; i < kSize * kSize; ++i) {
    outcome.arrived = outcome.arrived && memory.at(y, 1).flat(i) == memory.at(x, 0).flat(i);
  }
  return outcome;
}

void expect_clean(const Kernel& kernel, DType dtype = f32, int runs = 2) {
  const Outcome outcome = run(kernel, dtype, runs);
  EXPECT_TRUE(outcome.report.ok()) << outcome.text();
  EXPECT_TRUE(outcome.arrived);
}

// In every schedule, whichever access comes first in it.
void expect_fault(const Kernel& kernel, const std::string& kind,
                  const testing::Matcher<std::string>& text, DType dtype = f32, int runs = 1) {
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Outcome outcome = run(kernel, dtype, runs, seed, 1);
    ASSERT_FALSE(outcome.report.ok()) << "seed " << seed;
    EXPECT_EQ(outcome.report.faults.front().kind, kind) << "seed " << seed;
    EXPECT_THAT(outcome.text(), text) << "seed " << seed;
  }
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
  bool found = false;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    const Outcome outcome = run(message.kernel(), f32, 2, seed, 1);
    found = found || !outcome.report.ok();
    if (!outcome.report.ok()) {
      EXPECT_EQ(outcome.report.faults.front().kind, "race");
    }
  }
  EXPECT_TRUE(found);
}

TEST(RanksLitmus, TheNextLaunchMayNotOverwriteWhatIsStillRead) {
  Message message;
  message.acknowledged = false;
  expect_clean(message.kernel(), f32, 1);
  expect_fault(message.kernel(), "race", HasSubstr("race: global box of rank 1"), f32, 3);
}

TEST(RanksLitmus, CopiesThatAreWaitedForInFull) { expect_clean(Copied{}.kernel(), bf16, 1); }

TEST(RanksLitmus, ACopyWhoseSourceAloneIsWaitedFor) {
  Copied copied;
  copied.full_wait = false;
  expect_fault(copied.kernel(), "race",
               AllOf(HasSubstr("race: global box of rank 1"), HasSubstr("write  tma_store"),
                     HasSubstr("read   tma_load"), HasSubstr("bulk_wait {count}")),
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

}  // namespace
}  // namespace tilewright
