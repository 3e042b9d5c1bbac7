#include "library/program_timing.h"

#include <gtest/gtest.h>

#include <functional>

#include "library/program_simulation.h"
#include "target/devices.h"
#include "tilewright/hopper.h"
#include "tilewright/kernels/link.h"
#include "tilewright/ranks.h"

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

// One warp or warpgroup of rank 0, in cycles beyond those of a kernel that does nothing.
class PeerAccess {
 public:
  // `x` and `words` are every rank's, and the other one's is at(other).
  using Body = std::function<void(const Tensor& x, const Tensor& words, const Index& other)>;
  explicit PeerAccess(int ranks = 2) : ranks_(ranks) {}
  double cycles(const Body& body) const {
    return end(body) - end([](auto&&...) {});
  }

 private:
  double end(const Body& body) const {
    Kernel kernel("access");
    const Tensor x = kernel.symmetric("x", f32, {64, kernels::kLinkColumns});
    const Tensor words = kernel.symmetric("words", i32, {64});
    kernel.ctas(1);
    kernel.roles(
        {role("only", warpgroups(1), registers(128), [&] { body(x, words, 1 - kernel.rank()); })});
    Program program("access", ranks_);
    const Buffer of_x = program.buffer("x", f32, {64, kernels::kLinkColumns});
    const Buffer of_words = program.buffer("words", i32, {64});
    program.rank(0).stream().launch(kernel, {of_x, of_words});
    return time_of(program, {}, 1).seconds * target::device_of("sm_90a").reached.product_clock;
  }
  int ranks_;
};

double cycles_of(double seconds) {
  return seconds * target::device_of("sm_90a").reached.product_clock;
}
constexpr double kRounding = 4;  // cycles
constexpr MemoryOrder kRelaxed{Semantics::relaxed, Scope::system};
constexpr MemoryOrder kRelease{Semantics::release, Scope::system};

TEST(ProgramTimingTest, WordsOfOthersAreAskedForOverTheWire) {
  const PeerAccess access;
  const auto loaded = [&](bool is_own) {
    return access.cycles([=](const Tensor&, const Tensor& words, const Index& other) {
      const Index found = load_index((is_own ? words : words.at(other))(0), kRelaxed);
      store_index(words(found), 1, kRelaxed);
    });
  };
  EXPECT_NEAR(loaded(false) - loaded(true), cycles_of(link().answer), kRounding);
}

// A release and a fence of the system take their time, and wait for what is on its way. Those of a
// narrower scope do not.
TEST(ProgramTimingTest, WhatAReleaseWaitsFor) {
  const PeerAccess access;
  const auto stored = [&](MemoryOrder order) {
    return access.cycles([=](const Tensor&, const Tensor& words, const Index& other) {
      store_index(words.at(other)(0), 1, order);
    });
  };
  EXPECT_NEAR(stored(kRelease) - stored(kRelaxed), cycles_of(link().release), kRounding);
  EXPECT_NEAR(stored({Semantics::release, Scope::gpu}), stored(kRelaxed), kRounding);
  const auto fenced = [&](Scope scope) { return access.cycles([=](auto&&...) { fence(scope); }); };
  EXPECT_NEAR(fenced(Scope::system) - fenced(Scope::gpu), cycles_of(link().release), kRounding);
  const auto behind_a_tile = [&](bool is_peers) {
    return access.cycles([=](const Tensor& x, const Tensor&, const Index& other) {
      store((is_peers ? x.at(other) : x)(Dim(64).block(0, 64), all),
            zeros({64, kernels::kLinkColumns}));
      fence(Scope::system);
    });
  };
  EXPECT_GT(behind_a_tile(true) - behind_a_tile(false), cycles_of(link().arrival));
}

// Its bytes leave a multiprocessor one after the other, and the last one has to arrive.
TEST(ProgramTimingTest, ATileOfThreadsGoesAndComes) {
  const PeerAccess access;
  const double bytes = 64 * kernels::kLinkColumns * 4;
  const auto whole = [](const Tensor& x) { return x(Dim(64).block(0, 64), all); };
  const double pushed = access.cycles([&](const Tensor& x, const Tensor&, const Index& other) {
    store(whole(x.at(other)), zeros({64, kernels::kLinkColumns}));
  });
  EXPECT_NEAR(pushed, bytes / link().sent + cycles_of(link().arrival), 0.1 * pushed);
  const double pulled = access.cycles([&](const Tensor& x, const Tensor&, const Index& other) {
    store(whole(x), load(whole(x.at(other))));
  });
  EXPECT_NEAR(pulled, cycles_of(link().answer + bytes / link().loaded), 0.3 * pulled);
}

}  // namespace
}  // namespace tilewright::library
