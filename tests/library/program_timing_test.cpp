#include "library/program_timing.h"

#include <gtest/gtest.h>

#include <functional>

#include "compiler/compile_to_machine.h"
#include "library/program_simulation.h"
#include "library/schedule_choice.h"
#include "target/devices.h"
#include "tilewright/asynchronous.h"
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
                      std::int64_t multiprocessors = 132, std::int64_t runs = 1,
                      const std::vector<HostTensor>& passed = {}) {
  simulator::MachineOptions options;
  options.multiprocessors = options.resident = multiprocessors;
  const ir::Program recorded = program.finish();
  const std::vector<ir::Kernel> machine = machine_forms(recorded, "sm_90a").front();
  const PredictedTime timing = time_program(ir::bind_program(recorded, sizes, multiprocessors),
                                            machine, passed, options, runs);
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
// Of the tile that a warpgroup stores; what its own memory takes for it is less.
constexpr double kTileBytes = 64 * kernels::kLinkColumns * 4, kPort = 600;
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
  EXPECT_GT(behind_a_tile(true) - behind_a_tile(false),
            kTileBytes / link().sent + cycles_of(link().arrival) - kPort);
}

// Its bytes leave a multiprocessor one after the other, and the last one has to arrive.
TEST(ProgramTimingTest, ATileOfThreadsGoesAndComes) {
  const PeerAccess access;
  const auto whole = [](const Tensor& x) { return x(Dim(64).block(0, 64), all); };
  const double pushed = access.cycles([&](const Tensor& x, const Tensor&, const Index& other) {
    store(whole(x.at(other)), zeros({64, kernels::kLinkColumns}));
  });
  EXPECT_NEAR(pushed, kTileBytes / link().sent + cycles_of(link().arrival), 0.1 * pushed);
  // What has no place on its way keeps the warps, the last of four by the three before it.
  const auto behind = [&](bool pushes) {
    return access.cycles([&](const Tensor& x, const Tensor& words, const Index& other) {
      if (pushes) store(whole(x.at(other)), zeros({64, kernels::kLinkColumns}));
      for (int i = 0; i < 8; ++i) store_index(words(load_index(words(0))), 1, kRelaxed);
    });
  };
  EXPECT_GT(behind(true) - behind(false), kTileBytes / link().sent / 2);
  const double pulled = access.cycles([&](const Tensor& x, const Tensor&, const Index& other) {
    store(whole(x), load(whole(x.at(other))));
  });
  EXPECT_NEAR(pulled, cycles_of(link().answer + kTileBytes / link().loaded), 0.3 * pulled);
}

// Additions to another's memory come slower than what is stored there.
TEST(ProgramTimingTest, AdditionsGoAtTheirOwnRate) {
  Kernel kernel("adds");
  const Dim rows = kernel.dim("rows");
  const Tensor x = kernel.symmetric("x", f32, {rows, kernels::kLinkColumns});
  Ring ring(kernel, "tiles", stages(6), {{f32, 64, kernels::kLinkColumns}});
  kernel.ctas(multiprocessors());
  const auto each_tile = [&](const auto& body) {
    for (Index tile : range(cta_index(), ceil_div(rows, 64), cta_count())) {
      body(rows.block(tile, 64));
    }
  };
  const auto load_role = [&] {
    each_tile([&](const Block& own) {
      ring.produce([&](const Slot& slot) { tma_load(x(own, all), slot); });
    });
  };
  const auto add_role = [&] {
    each_tile([&](const Block& own) {
      const Slot slot = ring.consume();
      tma_reduce(x.at(1 - kernel.rank())(own, all), slot);
      bulk_commit();
      bulk_wait_read(0);
      ring.release(slot);
    });
    bulk_wait(0);
  };
  kernel.roles({role("load", warps(1), registers(40), load_role),
                role("add", warps(1), registers(40), add_role)});
  Program program("adds", 2);
  const Buffer of_x = program.scratch("x", f32, {program.dim("rows"), kernels::kLinkColumns});
  program.rank(0).stream().launch(kernel, {of_x});
  const double wire = kBytes / 4 / link().reduced;
  const double added = time_of(program, {{"rows", kRows / 4}}).seconds;
  EXPECT_GT(added, wire);
  EXPECT_LT(added, wire + 8e-6);
}

// Of several runs in a row each is told, and so are its bytes.
TEST(ProgramTimingTest, RunsInARowTakeTheirTimeEach) {
  const auto copied = [](std::int64_t runs) {
    return time_of(kernels::link_copy({}), {{"rows", kRows / 64}}, 132, runs);
  };
  EXPECT_EQ(copied(3).sent, copied(1).sent);
  EXPECT_NEAR(copied(3).seconds, copied(1).seconds, 0.1 * copied(1).seconds);
}

// A kernel by itself has its launch in its time, as in a stream.
TEST(ProgramTimingTest, AKernelAloneHasItsLaunch) {
  Workload workload = make_workload(find_kernel("gemm"), {"m=64", "n=64", "k=64"}, {}, 1);
  const ir::Kernel machine =
      compiler::compile_to_machine(
          build_choice(*workload.kernel,
                       choose_schedule(*workload.kernel, workload.options, "sm_90a"))
              .finish(),
          "sm_90a")
          .kernel;
  const double alone = time_kernel(machine, workload, {}).seconds;
  EXPECT_GT(alone, link().launch + 600 / target::device_of("sm_90a").reached.product_clock);
  EXPECT_LT(alone, link().launch + 5e-6);
}

// Integers that a caller passes have their values: here, how often the loop goes around.
TEST(ProgramTimingTest, PassedIntegersCount) {
  const auto looped = [](double times) {
    Kernel kernel("loop");
    const Tensor n = kernel.in("n", i32, {1});
    const Tensor x = kernel.inout("x", i32, {64});
    kernel.ctas(1);
    kernel.roles({role("only", warps(1), registers(40), [&] {
      for ([[maybe_unused]] Index i : range(load_index(n(0)))) {
        store_index(x(load_index(x(0))), 1, kRelaxed);
      }
    })});
    Program program("loop");
    const Buffer of_n = program.in("n", i32, {1}), of_x = program.scratch("x", i32, {64});
    program.rank(0).stream().launch(kernel, {of_n, of_x});
    return cycles_of(
        time_of(program, {}, 1, 1, {HostTensor::from_values(i32, {1}, {times})}).seconds);
  };
  EXPECT_GT(looped(5) - looped(1), 4 * 600);
}

}  // namespace
}  // namespace tilewright::library
