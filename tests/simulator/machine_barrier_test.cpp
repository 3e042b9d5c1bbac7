#include <fmt/format.h>

#include <cstring>

#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Litmus tests: `body` runs after the constants %0 to %9 (0 to 9) and the barriers %20 ("bar", two
// of `arrivals`) and %21 ("other", one of one arrival) are there and initialised.
std::string barrier_litmus(const std::string& body, int arrivals = 1, int threads = 128,
                           int cluster = 1) {
  std::string text =
      fmt::format("kernel \"litmus\" machine\ninout X: i32[64] = %90\ngrid ({})\n", cluster);
  if (cluster > 1) text += fmt::format("cluster {}\n", cluster);
  text += fmt::format("threads {}\nshared_bytes 1048\nbody () {{\n", threads);
  text += fmt::format(
      "  %20: mbarriers<2> = mbarriers {{name = \"bar\", arrivals = {0}, offset = 0}}\n"
      "  %21: mbarriers<1> = mbarriers {{name = \"other\", arrivals = 1, offset = 16}}\n"
      "  %22: shared<i32, 1x1x16> = shared {{name = \"box\", layout = "
      "shared_layout[1x16*4|16@1:4], stages = 1, offset = 128}}\n"
      "  mbarrier_init %20 {{arrivals = {0}}}\n  mbarrier_init %21 {{arrivals = 1}}\n"
      "  fence_barrier_init\n  cluster_sync\n",
      arrivals);
  for (int i = 0; i < 10; ++i) text += fmt::format("  %{0}: i32 = constant {{value = {0}}}\n", i);
  return text + body + "}\n";
}

std::string barrier_role(const char* name, int first_warp, int warps, int argument,
                         const std::string& body) {
  return fmt::format(
      "  role {{name = \"{}\", first_warp = {}, warps = {}}} (%{}: i32) {{\n{}    "
      "yield\n  }}\n",
      name, first_warp, warps, argument, body);
}

MachineReport run_barriers(const std::string& text, std::uint64_t seed = 0,
                           MachineTensor* given = nullptr) {
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  return run_seed(text, {given ? given : &x}, seed);
}

std::string kind_of(const MachineReport& report) {
  return report.ok() ? "ok" : report.faults[0].kind;
}

TEST(MachineLitmus, FreshBarrierPassesParityOneOnly) {
  EXPECT_EQ(kind_of(run_barriers(barrier_litmus("  mbarrier_wait %20, %0, %1\n"))), "ok");
  const MachineReport report = run_barriers(barrier_litmus("  mbarrier_wait %20, %0, %0\n"));
  EXPECT_EQ(kind_of(report), "deadlock");
  EXPECT_THAT(report.faults[0].missing, HasSubstr("parity 1 on bar[0]"));
}

TEST(MachineLitmus, OneFlipPassesParityZeroOnly) {
  const std::string arrive = "  mbarrier_arrive %20, %1\n";
  EXPECT_EQ(kind_of(run_barriers(barrier_litmus(arrive + "  mbarrier_wait %20, %1, %0\n"))), "ok");
  const std::string wait_one = "  cta_sync\n  mbarrier_wait %20, %1, %1\n";
  EXPECT_EQ(kind_of(run_barriers(barrier_litmus(arrive + wait_one))), "deadlock");
  // After two it looks fresh.
  EXPECT_EQ(kind_of(run_barriers(barrier_litmus(arrive + arrive + wait_one))), "ok");
}

TEST(MachineLitmus, ExpectedBytesHoldThePhase) {
  const MachineReport report = run_barriers(
      barrier_litmus("  mbarrier_expect_tx %20, %0 {bytes = 16}\n  mbarrier_wait %20, %0, %0\n"));
  EXPECT_EQ(kind_of(report), "deadlock");
  EXPECT_THAT(report.faults[0].message, HasSubstr("0 of 1 arrivals and 16 bytes pending"));
}

TEST(MachineLitmus, MoreArrivalsThanPendingAreFound) {
  const std::string expect = "  mbarrier_expect_tx %20, %0 {bytes = 16}\n";
  const MachineReport report = run_barriers(barrier_litmus(expect + "  mbarrier_arrive %20, %0\n"));
  EXPECT_EQ(kind_of(report), "mbarrier");
  EXPECT_THAT(report.faults[0].message, HasSubstr("bar[0] has got all 1 arrivals of phase 0"));
}

TEST(MachineLitmus, TransactionCountBeyondItsRangeIsFound) {
  const std::string expect = "  mbarrier_expect_tx %20, %0 {bytes = 600000}\n";
  const MachineReport report = run_barriers(barrier_litmus(expect + expect, 3));
  EXPECT_EQ(kind_of(report), "mbarrier");
  EXPECT_THAT(report.faults[0].message, HasSubstr("more than 1048575 bytes"));
}

std::string copy_onto(int barrier) {
  return fmt::format("    tma_load %40, %22, %0, %20, %{}, %0 {{bytes = 64}}\n", barrier);
}

// A second copy onto what a first one brought: `second` issues it, for the second barrier's phase.
std::string second_copy(const std::string& second) {
  const auto read = [](int barrier) {
    return fmt::format("    mbarrier_wait %20, %{0}, %0\n    %6{0}: i32 = shared_load %22, %0\n",
                       barrier);
  };
  return barrier_litmus(
      "  %40: tensor_map = tensor_map %90 {name = \"map\", box = [16], swizzle = 0}\n" +
      barrier_role("all", 0, 1, 50,
                   "    mbarrier_expect_tx %20, %0 {bytes = 64}\n" + copy_onto(0) + read(0) +
                       "    fence_proxy_async\n    warp_sync\n" + second + read(1)));
}

// What lies there is not what the copy brings, until it has arrived.
TEST(MachineLitmus, WhatACopyOverwritesIsLostWhileItIsInFlight) {
  const std::string copy = copy_onto(1);
  const std::string all = second_copy("    mbarrier_expect_tx %20, %1 {bytes = 64}\n" + copy);
  const std::string none = second_copy(copy + "    mbarrier_arrive %20, %1\n");
  bool found = false;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ASSERT_EQ(kind_of(run_barriers(all, seed)), "ok");
    // Else the copy is early, and its bytes are more than the phase expects.
    const MachineReport report = run_barriers(none, seed);
    if (kind_of(report) != "race") continue;
    EXPECT_THAT(first_message(report), HasSubstr("an expect_tx of all bytes"));
    found = true;
  }
  EXPECT_TRUE(found);
}

// A wait that leaves one group in flight is for those before it: their sources may be written.
TEST(MachineLitmus, AWaitIsForTheOlderGroupsOfStores) {
  const std::string text = barrier_litmus(
      "  %23: shared<i32, 1x1x16> = shared {name = \"second\", layout = "
      "shared_layout[1x16*4|16@1:4], stages = 1, offset = 256}\n"
      "  %40: tensor_map = tensor_map %90 {name = \"map\", box = [16], swizzle = 0}\n"
      "  %41: i32 = constant {value = 32}\n  %42: i32 = constant {value = 48}\n" +
      barrier_role("all", 0, 1, 50,
                   "    mbarrier_expect_tx %20, %0 {bytes = 128}\n" + copy_onto(0) +
                       "    tma_load %40, %23, %0, %20, %0, %0 {bytes = 64}\n"
                       "    mbarrier_wait %20, %0, %0\n"
                       "    tma_store %40, %22, %0, %41\n    bulk_commit\n"
                       "    tma_store %40, %23, %0, %42\n    bulk_commit\n"
                       "    bulk_wait {count = 1, read = 1}\n    warp_sync\n"
                       "    shared_store %22, %0, %7\n    bulk_wait {count = 0}\n"));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MachineTensor x("X", DType::i32, {64});
    std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
    const MachineReport report = run_barriers(text, seed, &x);
    ASSERT_TRUE(report.ok()) << first_message(report);
    EXPECT_EQ(x.integer(32), 0) << "seed " << seed;
  }
}

TEST(MachineLitmus, SecondInitialisationIsFound) {
  EXPECT_EQ(kind_of(run_barriers(barrier_litmus("  mbarrier_init %21 {arrivals = 1}\n"))),
            "mbarrier");
}

TEST(MachineLitmus, BarrierIndexOutOfBoundsIsFound) {
  const MachineReport report =
      run_barriers(barrier_litmus("  %40: i32 = add %1, %1\n  mbarrier_arrive %20, %40\n"));
  EXPECT_EQ(kind_of(report), "out_of_bounds");
  EXPECT_THAT(report.faults[0].message, HasSubstr("bar[2] of 2 barriers"));
}

TEST(MachineLitmus, PhasesThatRunAheadOfAWaitingWarpAreFound) {
  // Whoever waits for phase 0 may find two phases done.
  const std::string text = barrier_litmus(barrier_role("fast", 0, 1, 50,
                                                       "    mbarrier_wait %21, %0, %0\n"
                                                       "    mbarrier_arrive %20, %0\n"
                                                       "    mbarrier_arrive %20, %0\n") +
                                          barrier_role("slow", 1, 1, 51,
                                                       "    mbarrier_arrive %21, %0\n"
                                                       "    mbarrier_wait %20, %0, %0\n"));
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 40; ++seed) kinds.insert(kind_of(run_barriers(text, seed)));
  EXPECT_THAT(kinds, ::testing::Contains("mbarrier"));
}

TEST(MachineLitmus, NamedBarrierLetsArriversGoOn) {
  const std::string text =
      barrier_litmus(barrier_role("a", 0, 1, 50,
                                  "    named_arrive %0 {first = 1, threads = 64}\n"
                                  "    shared_store %22, %0, %7\n"
                                  "    named_arrive %0 {first = 2, threads = 64}\n") +
                     barrier_role("b", 1, 1, 51,
                                  "    named_sync %0 {first = 1, threads = 64}\n"
                                  "    named_sync %0 {first = 2, threads = 64}\n"
                                  "    %60: i32 = shared_load %22, %0\n"
                                  "    %61: i32 = atomic_add %90, %3, %60\n"));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MachineTensor x("X", DType::i32, {64});
    std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
    ASSERT_EQ(kind_of(run_barriers(text, seed, &x)), "ok");
    EXPECT_EQ(x.integer(3), 7);
  }
}

TEST(MachineLitmus, NamedBarrierCountsThatDisagreeAreFound) {
  const std::string text =
      barrier_litmus(barrier_role("a", 0, 1, 50, "    named_sync %0 {first = 1, threads = 64}\n") +
                     barrier_role("b", 1, 1, 51, "    named_sync %1 {first = 0, threads = 96}\n"));
  const MachineReport report = run_barriers(text);
  EXPECT_EQ(kind_of(report), "named_barrier");
  EXPECT_THAT(report.faults[0].message, HasSubstr("named barrier 1: "));
  EXPECT_GT(report.faults[0].second.line, 0);
}

// A GPU would meet at no barrier at all.
TEST(MachineLitmus, NamedBarrierOutOfItsRangeIsFound) {
  const std::string text =
      barrier_litmus(barrier_role("a", 0, 1, 50,
                                  "    named_sync %50 {first = 1, threads = 32, count = 2}\n"
                                  "    %60: i32 = add %50, %2\n"
                                  "    named_sync %60 {first = 1, threads = 32, count = 2}\n"));
  const MachineReport report = run_barriers(text);
  ASSERT_EQ(kind_of(report), "named_barrier");
  EXPECT_THAT(report.faults[0].message, HasSubstr("named barrier 3: index 2 of 2 barriers"));
  EXPECT_EQ(report.faults[0].missing, "an index from 0 to 1");
}

TEST(MachineLitmus, NamedBarrierThatNobodyJoinsDeadlocks) {
  const std::string text =
      barrier_litmus(barrier_role("a", 0, 1, 50, "    named_sync %0 {first = 1, threads = 64}\n") +
                     barrier_role("b", 1, 1, 51, "    named_sync %0 {first = 2, threads = 64}\n"));
  const MachineReport report = run_barriers(text);
  ASSERT_EQ(kind_of(report), "deadlock");
  EXPECT_THAT(report.faults[0].message,
              HasSubstr("a warp 0  kernel.tw:25  waits for named barrier 1: 32 of 64 threads"));
  // Nobody else comes to either of them, so that neither waits for the other.
  EXPECT_THAT(report.faults[0].message, Not(HasSubstr("cycle")));
  EXPECT_EQ(report.faults[0].missing,
            "an arrival at named barrier 1 of 32 more threads: no other warp comes there; or 32 "
            "threads for named barrier 1");
}

// A chain of warps that wait for each other ends at a named barrier: that is the cause, and not the
// ring that its first waits for.
TEST(MachineLitmus, TheEndOfAChainOfWaitsIsNamed) {
  const auto report_of = [](const std::string& store) {
    return run_barriers(
        barrier_litmus(barrier_role("load", 0, 1, 50,
                                    "    mbarrier_wait %20, %0, %0\n"
                                    "    mbarrier_wait %20, %0, %1\n") +
                       barrier_role("math", 1, 1, 51,
                                    "    mbarrier_arrive %20, %0\n"
                                    "    named_sync %0 {first = 1, threads = 64, count = 1}\n"
                                    "    mbarrier_arrive %20, %0\n") +
                       barrier_role("store", 2, 1, 52, store)));
  };
  const MachineReport waits = report_of(
      "    named_sync %0 {first = 2, threads = 64, count = 1}\n"
      "    named_arrive %0 {first = 1, threads = 64, count = 1}\n");
  ASSERT_EQ(kind_of(waits), "deadlock");
  EXPECT_THAT(waits.faults[0].missing,
              HasSubstr("an arrival at named barrier 2 of 32 more threads: no other warp comes"));
  EXPECT_THAT(waits.faults[0].message,
              HasSubstr(fmt::format("kernel.tw:{}  waits for named barrier 2",
                                    waits.faults[0].first.line)));
  // Where the other one's role comes there by its text, and has ended.
  const MachineReport ended = report_of(
      "    %60: bool = lt %0, %0\n    if_then %60 () {\n"
      "    named_arrive %0 {first = 1, threads = 64, count = 1}\n    yield\n    } () {\n    "
      "yield\n    }\n");
  ASSERT_EQ(kind_of(ended), "deadlock");
  EXPECT_THAT(ended.faults[0].missing,
              AllOf(HasSubstr("an arrival at named barrier 1 of 32 more threads: store warp 0"),
                    HasSubstr("has ended, and came less often")));
}

// Two turns that wait for each other, and a warp that waits for one of them: the turns are named.
TEST(MachineLitmus, NamedBarriersThatWaitForEachOtherAreACycle) {
  const auto turn = [](const char* mine, const char* other) {
    return fmt::format(
        "    named_sync %0 {{first = {}, threads = 64, count = 1}}\n"
        "    named_arrive %0 {{first = {}, threads = 64, count = 1}}\n",
        mine, other);
  };
  const MachineReport report = run_barriers(
      barrier_litmus(barrier_role("reader", 0, 1, 50, "    mbarrier_wait %20, %0, %0\n") +
                     barrier_role("a", 1, 1, 51, turn("1", "2") + "    mbarrier_arrive %20, %0\n") +
                     barrier_role("b", 2, 1, 52, turn("2", "1"))));
  ASSERT_EQ(kind_of(report), "deadlock");
  EXPECT_THAT(report.faults[0].message,
              HasSubstr("cycle: a warp 0 waits for b warp 0 waits for a warp 0"));
  EXPECT_THAT(report.faults[0].missing,
              AllOf(HasSubstr("an arrival at named barrier 1 of 32 more threads"),
                    HasSubstr("32 threads for named barrier 1, if no others belong there")));
}

TEST(MachineLitmus, ReadOfUnwrittenSharedMemoryIsFound) {
  const MachineReport report = run_barriers(barrier_litmus("  %60: i32 = shared_load %22, %5\n"));
  EXPECT_EQ(kind_of(report), "uninitialised");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared box +0x14..0x17"));
  EXPECT_THAT(report.faults[0].missing, HasSubstr("a barrier between the two"));
}

TEST(MachineLitmus, SharedElementOutOfBoundsIsFound) {
  const MachineReport report =
      run_barriers(barrier_litmus("  %60: i32 = mul %8, %2\n  shared_store %22, %60, %1\n"));
  EXPECT_EQ(kind_of(report), "out_of_bounds");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared box +0x40..0x43"));
}

TEST(MachineLitmus, IndicesAreLoadedFromTheTensorAndNowhereElse) {
  MachineTensor x("X", DType::i32, {64});
  for (int i = 0; i < 64; ++i) {
    const std::int32_t value = 63 - i;
    std::memcpy(x.bytes.data() + 4 * i, &value, sizeof(value));
  }
  const std::string text = barrier_litmus(
      "  %60: i32 = load_index %90, %5\n  %61: i32 = load_index %90, %60\n  cta_sync\n" +
      barrier_role("a", 0, 1, 50, "    %62: i32 = atomic_add %90, %61, %60\n"));
  ASSERT_EQ(kind_of(run_barriers(text, 0, &x)), "ok");
  EXPECT_EQ(x.integer(5), 58 + 58);
  const MachineReport report =
      run_barriers(barrier_litmus("  %60: i32 = mul %8, %8\n  %61: i32 = load_index %90, %60\n"));
  EXPECT_EQ(kind_of(report), "out_of_bounds");
  EXPECT_THAT(report.faults[0].message, HasSubstr("index 64 on axis 0 of X, which has 64"));
}

TEST(MachineLitmus, RemoteArrivalCompletesThePeersBarrier) {
  // CTA r arrives on the barrier of CTA 1 - r and waits for its own.
  const std::string body =
      "  %60: i32 = cluster_rank\n  %61: i32 = sub %1, %60\n"
      "  mbarrier_arrive %21, %0, %61\n  mbarrier_wait %21, %0, %0\n";
  const std::string text = barrier_litmus(body + "  cluster_sync\n", 1, 128, 2);
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    EXPECT_EQ(kind_of(run_barriers(text, seed)), "ok");
  }
  // Without the last synchronisation a CTA may be gone when its peer arrives.
  const std::string gone = barrier_litmus(
      "  %60: i32 = cluster_rank\n  %61: i32 = sub %1, %60\n"
      "  mbarrier_arrive %21, %0, %61\n",
      1, 128, 2);
  std::set<std::string> kinds;
  for (std::uint64_t seed = 0; seed < 20; ++seed) kinds.insert(kind_of(run_barriers(gone, seed)));
  EXPECT_THAT(kinds, ::testing::Contains("exit"));
}

TEST(MachineLitmus, OperationsOfALaneRunOnceOutsideRolesAndOncePerWarpInside) {
  const std::string add = "  %60: i32 = atomic_add %90, %0, %1\n";
  const std::string text = barrier_litmus(
      add + barrier_role("all", 0, 4, 50, "    %61: i32 = atomic_add %90, %1, %1\n"));
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  ASSERT_EQ(kind_of(run_barriers(text, 0, &x)), "ok");
  EXPECT_EQ(x.integer(0), 1);
  EXPECT_EQ(x.integer(1), 4);
}

TEST(MachineLitmus, ElectedBlockOutsideRolesRunsInOneWarp) {
  const std::string text = barrier_litmus(
      "  elect () {\n    for_loop %0, %3, %1 (%60: i32) {\n      %61: i32 = atomic_add %90, %2, "
      "%1\n"
      "      yield\n    }\n    yield\n  }\n");
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  ASSERT_EQ(kind_of(run_barriers(text, 0, &x)), "ok");
  EXPECT_EQ(x.integer(2), 3);
}

TEST(MachineLitmus, ControlFlowCarriesValues) {
  // while (x < 9) x = x + 2 if x is even, else x + 1.
  const std::string text = barrier_litmus(barrier_role("one", 0, 1, 50, R"(    %60: bool = lt %0, %9
    %61: i32, %62: i32 = while_loop %60, %0, %1 (%63: i32, %64: i32) {
      %65: i32 = mod %63, %2
      %66: bool = eq %65, %0
      %67: i32 = if_then %66 () {
        %68: i32 = add %63, %2
        yield %68
      } () {
        %69: i32 = add %63, %1
        yield %69
      }
      %70: bool = lt %67, %9
      yield %70, %67, %63
    }
    %71: i32 = atomic_add %90, %0, %61
    %72: i32 = atomic_add %90, %1, %62
)"));
  MachineTensor x("X", DType::i32, {64});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  const MachineReport report = run_barriers(text, 0, &x);
  ASSERT_TRUE(report.ok()) << first_message(report);
  EXPECT_EQ(x.integer(0), 10);
  EXPECT_EQ(x.integer(1), 8);
}

TEST(MachineLitmus, RegisterPoolGrantsWhatOthersGaveUp) {
  // 384 threads hold 168 registers each, so that an increase waits until a warp gives up its own.
  const auto set = [](int count, int increase) {
    return fmt::format("    set_max_registers {{count = {}, increase = {}}}\n", count, increase);
  };
  const auto run_roles = [](const std::string& roles, std::uint64_t seed) {
    return kind_of(run_barriers(barrier_litmus(roles, 1, 384), seed));
  };
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    EXPECT_EQ(run_roles(barrier_role("less", 0, 4, 50, set(160, 0)) +
                            barrier_role("more", 4, 4, 51, set(176, 1)),
                        seed),
              "ok");
  }
  EXPECT_EQ(run_roles(barrier_role("more", 1, 1, 51, set(176, 1)), 0), "capacity");
  // A warpgroup's warps, those of no role too, give up theirs before the roles.
  EXPECT_EQ(run_roles("  set_max_registers {count = 24, increase = 0, first_warp = 8}\n" +
                          barrier_role("load", 8, 1, 50, "") +
                          barrier_role("math", 0, 8, 51, set(240, 1)),
                      0),
            "ok");
  EXPECT_EQ(run_roles(barrier_role("load", 8, 1, 50, set(24, 0)) +
                          barrier_role("math", 0, 8, 51, set(240, 1)),
                      0),
            "capacity");
  // Registers change hands by eights.
  for (const int count : {30, 28, 20}) {
    EXPECT_EQ(run_roles(barrier_role("less", 1, 1, 51, set(count, 0)), 0), "registers") << count;
  }
  EXPECT_EQ(run_roles(barrier_role("less", 1, 1, 51, set(160, 1)), 0), "registers");
}

}  // namespace
}  // namespace tilewright::simulator
