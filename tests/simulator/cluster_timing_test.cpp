#include <gmock/gmock.h>

#include <set>
#include <string>

#include "simulator/litmus.h"

// What depends on the order of the work in a cluster. A wait that comes late, or a copy that comes
// early, is a matter of time where the other CTA does not know of it.
namespace tilewright::simulator {
namespace {

const std::string kRank =
    "  %40: i32 = cluster_rank\n  %41: i32 = sub %1, %40\n  %42: bool = eq %40, %0\n";

// What is told under some seed, up to the line.
std::set<std::string> told_by(const std::string& text) {
  std::set<std::string> told;
  MachineOptions options;
  options.timing = true;
  options.stop_at_first = false;
  for (options.seed = 0; options.seed < 2 * kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    told.insert(report.timing.substr(0, report.timing.find(" at ")));
  }
  return told;
}

// The first CTA copies to both, twice.
std::string two_copies(const std::string& between) {
  const std::string expect = "  mbarrier_expect_tx %21, %1 {bytes = 512}\n";
  const std::string copy =
      "  if_then %42 () {\n    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512, multicast = "
      "3}\n"
      "    yield\n  } () {\n    yield\n  }\n";
  return litmus(kRank + expect + "  cluster_sync\n" + copy + "  mbarrier_wait %21, %1, %0\n" +
                    expect + between + copy + "  mbarrier_wait %21, %1, %1\n  cluster_sync\n",
                {1, 32, 2});
}

TEST(ClusterTiming, ThePhaseThatACopyToAnotherCtaCountsFor) {
  EXPECT_EQ(told_by(two_copies("  cluster_sync\n")), std::set<std::string>{""});
  EXPECT_THAT(told_by(two_copies("")),
              testing::Contains("the phase of loaded[1] that a copy counts for"));
}

// The second CTA arrives once more when the first warp of the first CTA says so, which does not
// know whether the other warp has looked.
std::string two_arrivals(const std::string& by_other) {
  const std::string first =
      "    if_then %42 () {\n      mbarrier_wait %20, %0, %0\n      warp_sync\n"
      "      mbarrier_arrive %20, %1, %41\n      yield\n    } () {\n"
      "      mbarrier_arrive %20, %0, %41\n      mbarrier_wait %20, %1, %0\n"
      "      mbarrier_arrive %20, %0, %41\n      yield\n    }\n    cluster_sync\n";
  const std::string second = "    if_then %42 () {\n" + by_other +
                             "      yield\n    } () {\n      yield\n    }\n    cluster_sync\n";
  return litmus(kRank + role("a", 0, 1, first) + role("b", 1, 1, second), {1, 64, 2});
}

TEST(ClusterTiming, AWaitThatMayLookTooLate) {
  EXPECT_EQ(told_by(two_arrivals("")), std::set<std::string>{""});
  EXPECT_THAT(told_by(two_arrivals("      mbarrier_wait %20, %0, %0\n")),
              testing::Contains("whether a wait for bar[0] looks before the next phase is over"));
}

}  // namespace
}  // namespace tilewright::simulator
