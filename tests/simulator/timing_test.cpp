#include <gmock/gmock.h>

#include <functional>
#include <set>
#include <string>

#include "simulator/litmus.h"
#include "simulator/machine_kernels.h"

// What depends on the order of the work is told, in whichever order.
namespace tilewright::simulator {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kTimedRuns = 30;

// What is told under each seed; the run is clean.
std::set<std::string> told(const std::function<MachineReport(const MachineOptions&)>& run) {
  std::set<std::string> told;
  MachineOptions options;
  options.timing = true;
  for (options.seed = 0; options.seed < kTimedRuns; ++options.seed) {
    const MachineReport report = run(options);
    EXPECT_TRUE(report.ok()) << "seed " << options.seed << ": " << first_message(report);
    told.insert(report.timing.substr(0, report.timing.find(" at ")));
  }
  return told;
}

std::set<std::string> told_of(const std::string& text) {
  return told([&](const MachineOptions& options) { return run_litmus(text, options); });
}

std::set<std::string> told_of_gemm(const std::string& text) {
  return told([&](const MachineOptions& options) {
    GemmTensors tensors(128, 256, 512);
    return run(text, {&tensors.a, &tensors.b, &tensors.c}, options);
  });
}

TEST(Timing, NothingHangsOnItInAPipeline) {
  EXPECT_EQ(told_of_gemm(gemm_text()), std::set<std::string>{""});
}

// Both take a number from a word.
TEST(Timing, WhatAWordHolds) {
  const std::string take =
      "    %60: i32 = atomic_add %90, %0, %1 {semantics = \"relaxed\"}\n"
      "    shared_store %22, %5, %60\n";
  const std::string add = "    atomic_add %90, %0, %1 {semantics = \"relaxed\"}\n";
  const auto words = [&](const std::string& text, bool timing = true) {
    MachineOptions options;
    options.timing = timing;
    const MachineReport report = run_litmus(text, options);
    EXPECT_TRUE(report.ok()) << first_message(report);
    EXPECT_EQ(report.timing, "");
    return report.words;
  };
  const std::string both = litmus(role("a", 0, 1, take) + role("b", 1, 1, add));
  EXPECT_THAT(words(both), HasSubstr("what a word of global memory holds at"));
  EXPECT_EQ(words(both, false), "");
  EXPECT_EQ(words(litmus(role("a", 0, 1, take + add))), "");
  EXPECT_EQ(words(litmus(role("a", 0, 1, add) + role("b", 1, 1, add))), "");
}

// Two warps take a number each: there are two orders. A warp that reads the word may come anywhere.
TEST(Timing, AdditionsOfOneClusterAreHandedOut) {
  const std::string take =
      "    %60: i32 = atomic_add %90, %0, %1 {semantics = \"relaxed\"}\n"
      "    shared_store %22, %5, %60\n";
  const std::string read =
      "    %61: i32 = load_index %90, %0 {semantics = \"relaxed\"}\n"
      "    shared_store %22, %5, %61\n";
  MachineOptions options;
  options.timing = true;
  options.search = Search::handed;
  const auto run = [&](const std::string& one, const std::string& other) {
    return run_litmus(litmus(role("a", 0, 1, one) + role("b", 1, 1, other)), options);
  };
  for (options.seed = 0; options.seed < 2; ++options.seed) {
    const MachineReport taken = run(take, "    atomic_add %90, %0, %1 {semantics = \"relaxed\"}\n");
    EXPECT_TRUE(taken.is_handed_out);
    EXPECT_EQ(taken.stood, std::vector<std::uint8_t>{2});
    EXPECT_FALSE(run(take, read).is_handed_out);
  }
}

// Two warps arrive behind a wait that both are told of. One of them does so twice, for two phases
// or for one.
TEST(Timing, APhaseThatAnArrivalCountsFor) {
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string go = "    mbarrier_arrive %21, %1\n";
  const std::string is_over = "    mbarrier_wait %21, %1, %0\n";
  const auto told_with = [&](const std::string& of_a, const std::string& of_b,
                             const std::string& behind) {
    return told_of(litmus(role("a", 0, 1, kArrive + is_over + of_a) +
                              role("b", 1, 1, kArrive + is_over + of_b) +
                              role("waits", 2, 1, kWait + go + behind),
                          setup));
  };
  const std::string waits_again = "    mbarrier_wait %20, %0, %1\n";
  EXPECT_EQ(told_with(kArrive, kArrive, waits_again), std::set<std::string>{""});
  EXPECT_EQ(told_with(kArrive, kArrive + kArrive, waits_again),
            std::set<std::string>{"the phase of bar[0] that an arrival counts for"});
  // Nobody waits for these phases.
  EXPECT_EQ(told_with(kArrive + kArrive, kArrive + kArrive, ""), std::set<std::string>{""});
}

// Nobody waits for these phases, but a warp that arrives for them does not know of one of the waits
// before: in another order it might come first, and the phase end before the wait has looked.
TEST(Timing, AnArrivalThatDoesNotKnowOfAWaitBeforeIt) {
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string hear = "    mbarrier_wait %21, %1, %0\n",
                    hear_both = "    mbarrier_wait %20, %1, %0\n";
  const std::string tell = "    mbarrier_arrive %21, %1\n",
                    tell_of_both = "    mbarrier_arrive %20, %1\n";
  const auto told_with = [&](const std::string& heard_by_a) {
    return told_of(litmus(role("a", 0, 1, kArrive + heard_by_a + kArrive) +
                              role("b", 1, 1, kArrive + hear_both + kArrive + kArrive + kArrive) +
                              role("waits", 2, 1, kWait + tell_of_both) +
                              role("tells", 3, 1, kWait + tell + tell_of_both),
                          setup));
  };
  EXPECT_EQ(told_with(hear),
            std::set<std::string>{"the phase of bar[0] that an arrival counts for"});
  EXPECT_EQ(told_with(hear_both), std::set<std::string>{""});
}

// Who has met the others since they arrived knows that the phase is over, though it waits for none.
TEST(Timing, AnArrivalThatKnowsOfAllArrivalsBeforeIt) {
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string meet = "    named_sync %0 {first = 1, threads = 64}\n";
  const std::string hear = "    mbarrier_wait %21, %1, %0\n";
  const std::string third = role(
      "waits", 2, 1, kWait + "    mbarrier_arrive %21, %1\n" + "    mbarrier_wait %20, %0, %1\n");
  const auto both = [&](const std::string& of_a, const std::string& of_b) {
    return litmus(role("a", 0, 1, of_a + hear + kArrive) + role("b", 1, 1, of_b + kArrive) + third,
                  setup);
  };
  EXPECT_EQ(told_of(both(kArrive + meet, kArrive + meet)), std::set<std::string>{""});
  const std::set<std::string> timing{"the phase of bar[0] that an arrival counts for"};
  EXPECT_EQ(told_of(both(kArrive, kArrive)), timing);
  EXPECT_EQ(told_of(both(meet + kArrive, kArrive + meet)), timing);
  // A phase that waits for bytes, too, may go on: in another order the arrival is a fault.
  const std::string copied =
      "    mbarrier_expect_tx %20, %0 {bytes = 512}\n"
      "    tma_load %25, %23, %0, %20, %0, %0, %0 {bytes = 512}\n";
  MachineOptions options;
  options.timing = true;
  int clean = 0;
  for (options.seed = 0; options.seed < kTimedRuns; ++options.seed) {
    const MachineReport report = run_litmus(both(copied + meet, kArrive + meet), options);
    if (!report.ok()) continue;
    ++clean;
    EXPECT_THAT(report.timing, HasSubstr("the phase of bar[0] that an arrival counts for"));
  }
  EXPECT_GT(clean, 0);
}

// Nor for those of the last turns of a loop. Where nobody waits for any of an instruction, nothing
// is known of launches with more turns.
TEST(Timing, AnArrivalThatNobodyWaitsFor) {
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string go = "    mbarrier_arrive %21, %1\n";
  const std::string turn = kArrive + "    mbarrier_wait %21, %1, %0\n";
  const auto never_awaited = [&](const std::string& of_both, const std::string& of_third) {
    MachineOptions options;
    options.timing = true;
    const MachineReport report = run_litmus(
        litmus(role("both", 0, 2, of_both) + role("waits", 2, 1, of_third), setup), options);
    EXPECT_TRUE(report.ok()) << first_message(report);
    EXPECT_EQ(report.timing, "");
    return report.arrivals.never_awaited();
  };
  EXPECT_EQ(never_awaited(turn, kWait + go), "");
  EXPECT_THAT(never_awaited(turn + turn + turn, kWait + go),
              HasSubstr("the phase of bar[0] that an arrival counts for at"));
  EXPECT_EQ(never_awaited("    for_loop %0, %3, %1 (%71: i32) {\n" + turn + "      yield\n    }\n",
                          kWait + go),
            "");
  // A kernel without a wait has none in any launch.
  EXPECT_EQ(never_awaited(turn + turn + turn, go), "");
}

// Whether anybody would wait for it is a matter of the sizes.
TEST(Timing, APhaseThatIsNotOverAtTheEnd) {
  LitmusSetup setup;
  setup.arrivals = 2;
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, kArrive), setup)),
            std::set<std::string>{"a phase of bar[0] that is not over when its CTA ends"});
}

TEST(Timing, TheUseOfANamedBarrier) {
  const std::string arrive = "    named_arrive %0 {first = 1, threads = 64}\n";
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, arrive + arrive) + role("b", 1, 1, arrive + arrive))),
            std::set<std::string>{"the use of a named barrier that an arrival counts for"});
  const std::string sync = "    named_sync %0 {first = 1, threads = 64}\n";
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, sync + sync) + role("b", 1, 1, sync + sync))),
            std::set<std::string>{""});
}

// Who waits for a copy knows in time what its issuer did before, though that is not ordered for
// what it reads and writes.
TEST(Timing, TheUseOfANamedBarrierThatACopyTellsOf) {
  const std::string expect = "    mbarrier_expect_tx %21, %1 {bytes = 512}\n";
  const std::string arrive = "    named_arrive %0 {first = 1, threads = 64}\n";
  const std::string wait = "    mbarrier_wait %21, %1, %0\n";
  const std::string sync = "    named_sync %0 {first = 1, threads = 64}\n";
  const std::string copy = "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512}\n";
  const std::string waits = role("a", 0, 1, expect + arrive + wait + arrive);
  EXPECT_EQ(told_of(litmus(waits + role("b", 1, 1, sync + copy + sync))),
            std::set<std::string>{""});
  // Of an arrival that the copy comes before it says nothing.
  const std::string third = "    named_sync %0 {first = 2, threads = 64}\n";
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, expect + third + arrive + wait + arrive) +
                           role("b", 1, 1, third + copy + arrive + arrive))),
            std::set<std::string>{"the use of a named barrier that an arrival counts for"});
  // What one lane does comes behind the arrival of all.
  const std::string arrive_other = "    mbarrier_arrive %20, %1\n";
  const std::string wait_other = "    mbarrier_wait %20, %1, %0\n";
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, arrive + kArrive + wait_other + arrive) +
                           role("b", 1, 1, arrive + arrive_other + kWait + arrive))),
            std::set<std::string>{""});
}

// What is given back once may be asked for by several.
TEST(Timing, RegistersThatAreAskedForAgain) {
  const auto set = [](int count, int increase) {
    return fmt::format("    set_max_registers {{count = {}, increase = {}}}\n", count, increase);
  };
  EXPECT_EQ(told_of(litmus(role("a", 0, 4, set(24, 0)))), std::set<std::string>{""});
  EXPECT_EQ(told_of(litmus(role("a", 0, 4, set(24, 0) + set(40, 1)))),
            std::set<std::string>{"who gets the registers that are left"});
}

// The bytes are expected by another warp, before or behind the copy.
TEST(Timing, BytesThatAreExpectedTooLate) {
  const std::string expect = "    mbarrier_expect_tx %21, %1 {bytes = 512}\n";
  const std::string copy = "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512}\n";
  const std::string wait = "    mbarrier_wait %21, %1, %0\n";
  EXPECT_EQ(told_of(litmus(role("a", 0, 1, expect + copy + wait))), std::set<std::string>{""});
  MachineOptions options;
  options.timing = true;
  bool clean = false;
  const std::string text = litmus(role("a", 0, 1, expect + wait) + role("b", 1, 1, copy));
  for (options.seed = 0; options.seed < kTimedRuns; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    if (!report.ok()) continue;
    clean = true;
    EXPECT_THAT(report.timing, HasSubstr("whether loaded[1] expects a copy's bytes"));
  }
  EXPECT_TRUE(clean);
}

// Warp a of each CTA waits for what its peer's b signals, which signals again once it has heard of
// the first wait: from a's elected lane, or from a warp that waits beside it.
std::string signals_twice(const std::string& hears_from) {
  const std::string wait = "    mbarrier_wait %20, %0, %0\n";
  const std::string tell =
      "    elect () {\n      mbarrier_arrive %20, %1, %41\n      yield\n    }\n";
  const std::string signal = "    mbarrier_arrive %20, %0, %41\n";
  LitmusSetup setup;
  setup.cluster = 2;
  return litmus("  %40: i32 = cluster_rank\n  %41: i32 = sub %1, %40\n" +
                    role("a", 0, 1, wait + (hears_from == "a" ? tell : "")) +
                    role("b", 1, 1, signal + "    mbarrier_wait %20, %1, %0\n" + signal) +
                    role("c", 2, 1, hears_from == "c" ? wait + tell : "") + "  cluster_sync\n",
                setup);
}

// The warp's wait is over where one of its lanes has gone on.
TEST(Timing, AWaitThatTheElectedLaneTellsOf) {
  EXPECT_EQ(told_of(signals_twice("a")), std::set<std::string>{""});
}

// Nobody tells of a's wait: under some seeds it looks too late, and hangs.
TEST(Timing, AWaitThatNobodyTellsOf) {
  MachineOptions options;
  options.timing = true;
  int clean = 0;
  for (options.seed = 0; options.seed < kTimedRuns; ++options.seed) {
    const MachineReport report = run_litmus(signals_twice("c"), options);
    if (!report.ok()) {
      EXPECT_TRUE(report.faults[0].kind == "deadlock" || report.faults[0].kind == "mbarrier")
          << first_message(report);
      continue;
    }
    ++clean;
    EXPECT_THAT(report.timing, HasSubstr("whether a wait for bar[0] looks before"));
  }
  EXPECT_GT(clean, 0);
  EXPECT_LT(clean, static_cast<int>(kTimedRuns));
}

}  // namespace
}  // namespace tilewright::simulator
