#include <gmock/gmock.h>

#include <string>

#include "simulator/litmus.h"

// What arrivals and waits tell of phases, and what they do not.
namespace tilewright::simulator {
namespace {

using testing::Contains;
using testing::HasSubstr;

std::vector<std::string> messages_of(const std::string& text, bool timing = false) {
  std::vector<std::string> messages;
  MachineOptions options;
  options.timing = timing;
  for (options.seed = 0; options.seed < 2 * kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    messages.push_back(timing ? report.timing : first_message(report));
  }
  return messages;
}

// Of two that wait for each other it is the barrier at which some have arrived that lacks others.
TEST(PhaseKnowledge, TheBarrierThatLacksArrivalsIsNamed) {
  const std::string wait_other = "    mbarrier_wait %20, %1, %0\n";
  const std::string arrive_other = "    mbarrier_arrive %20, %1\n";
  LitmusSetup setup;
  setup.arrivals = 2;
  for (const bool swapped : {false, true}) {
    const std::string one = kWait + arrive_other, other = kArrive + wait_other + kArrive;
    const MachineReport report = run_litmus(
        litmus(role("a", 0, 1, swapped ? other : one) + role("b", 1, 1, swapped ? one : other),
               setup),
        {});
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.faults[0].missing, "1 of the 2 arrivals of bar[0] phase 0");
  }
}

// Whether it comes last is a matter of the schedule.
TEST(PhaseKnowledge, AnArrivalAmongOthersTellsNothingOfItsPhase) {
  const std::string late = "    warp_sync\n    mbarrier_wait %20, %0, %1\n";
  LitmusSetup setup;
  setup.arrivals = 2;
  const std::string text =
      litmus(role("a", 0, 1, kArrive + kArrive + late) + role("b", 1, 1, kArrive + kArrive), setup);
  EXPECT_THAT(messages_of(text), testing::Each(HasSubstr("nothing but the parity tells")));
  // An arrival that is the only one does.
  setup.arrivals = 1;
  expect_clean(litmus(role("a", 0, 1, kArrive + kArrive + late), setup));
}

TEST(PhaseKnowledge, AWaitTellsOfItsPhaseAndOfNoLaterOne) {
  const std::string body =
      kArrive + kWait + "    named_sync %0 {first = 1, threads = 64}\n" + kArrive;
  LitmusSetup setup;
  setup.arrivals = 2;
  const auto pair = [&](const std::string& each) {
    return litmus(role("a", 0, 1, each) + role("b", 1, 1, each), setup);
  };
  EXPECT_THAT(messages_of(pair(body), true), testing::Each(""));
  // Of b's two arrivals and a's one, which a waits for.
  const std::string waits_again = "    warp_sync\n    mbarrier_wait %20, %0, %1\n";
  EXPECT_THAT(
      messages_of(
          litmus(role("a", 0, 1, body + waits_again) + role("b", 1, 1, body + kArrive), setup),
          true),
      Contains(HasSubstr("the phase of bar[0] that an arrival counts for")));
  // Nobody waits for these phases.
  EXPECT_THAT(messages_of(pair(body + kArrive), true), testing::Each(""));
}

TEST(PhaseKnowledge, TheOnlyArrivalTellsItsOwnWarp) {
  EXPECT_THAT(messages_of(litmus(role("a", 0, 1, kArrive + kArrive)), true), testing::Each(""));
}

// What was expected in the phase before does not count in the next.
TEST(PhaseKnowledge, BytesAreExpectedInTheirPhase) {
  const std::string expect = "    mbarrier_expect_tx %21, %1 {bytes = 512}\n",
                    copy = "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512}\n",
                    wait = "    mbarrier_wait %21, %1, %0\n",
                    meet = "    named_sync %0 {first = 1, threads = 64}\n";
  const auto pair = [&](const std::string& second) {
    return litmus(role("a", 0, 1,
                       expect + meet + wait + expect + second + "    mbarrier_wait %21, %1, %1\n") +
                  role("b", 1, 1, meet + copy + wait + second + copy));
  };
  EXPECT_THAT(messages_of(pair(meet), true), testing::Each(""));
  EXPECT_THAT(messages_of(pair(""), true),
              Contains(HasSubstr("whether loaded[1] expects a copy's bytes")));
}

// What came from another CTA in one phase says nothing of those that complete the next.
TEST(PhaseKnowledge, ARemoteArrivalIsOneOfItsPhase) {
  const std::string rank =
      "  %40: i32 = cluster_rank\n  %41: i32 = sub %1, %40\n  %42: bool = eq %40, %0\n";
  const auto in_first = [](const std::string& first, const std::string& second) {
    return "    if_then %42 () {\n" + first + "      yield\n    } () {\n" + second +
           "      yield\n    }\n    cluster_sync\n";
  };
  const std::string text = litmus(
      rank +
          role(
              "a", 0, 1,
              in_first("      mbarrier_arrive %20, %0\n", "      mbarrier_arrive %20, %0, %41\n")) +
          role("b", 1, 1, in_first("      mbarrier_wait %20, %0, %0\n", "")),
      {1, 64, 2});
  EXPECT_THAT(messages_of(text),
              Contains(HasSubstr("may complete phase 1 before this wait for phase 0 looks")));
}

}  // namespace
}  // namespace tilewright::simulator
