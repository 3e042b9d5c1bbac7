#include "common/error_text.h"
#include "simulator/litmus.h"

// Barriers, clusters, registers: what hangs, what is misused, what a product wants.
namespace tilewright::simulator {
namespace {

const std::string kPublish =
    "mbarrier_init, fence_barrier_init and cta_sync (cluster_sync for other CTAs) before it";

TEST(LitmusBarrier, AParityIsOfTheCurrentPhaseOrOfTheOneBefore) {
  const auto wait = [](int parity) {
    return fmt::format("    mbarrier_wait %20, %0, %{}\n", parity);
  };
  const auto text = [](const std::string& body) { return litmus(role("one", 0, 1, body)); };
  expect_clean(text(wait(1)));
  expect_fault(text(wait(0)), {"deadlock", wait(0), "", {"parity 1 on bar[0]"}});
  expect_clean(text(kArrive + wait(0)));
  expect_fault(text(kArrive + wait(1)), {"deadlock", wait(1), "", {}});
  const std::string meet = "    warp_sync\n";
  expect_clean(text(kArrive + kArrive + meet + wait(1)));
  expect_fault(text(kArrive + kArrive + meet + wait(0)), {"deadlock", wait(0), "", {}});
  // PTX has no others, not those that are the same modulo 2 either.
  for (const int parity : {2, 3}) {
    expect_fault(text(wait(parity)), {"mbarrier",
                                      wait(parity),
                                      "mbarriers {name = \"bar\"",
                                      {"a parity of 0 or 1: the number of the phase modulo 2"}});
  }
}

// One warp completes both phases, and another one waits for the second: before the first is
// complete its parity is that of the phase before.
TEST(LitmusBarrier, AWaitKnowsThatThePhaseBeforeIsComplete) {
  const std::string wait = "    mbarrier_wait %20, %0, %1\n";
  const std::string take = "    warp_sync\n    mbarrier_arrive %20, %1\n";
  const auto text = [&](const std::string& between, const std::string& before) {
    return litmus(role("one", 0, 1, kArrive + between + kArrive) +
                  role("other", 1, 1, before + wait));
  };
  const std::string taken = "    mbarrier_wait %20, %1, %0\n";
  expect_clean(text(taken, kWait + take));
  // Whether it comes early, and passes on what the barrier starts with, or late.
  expect_fault(text("", ""),
               {"mbarrier",
                wait,
                "mbarriers {name = \"bar\"",
                {"a wait for phase 0 before it, by this warp or by one that signals to it",
                 "an arrival behind the wait on what the arrivals of phase 0 wait for"}});
}

// The wait for phase 0 may come so late that phase 1 is complete too.
TEST(LitmusBarrier, APhaseIsNotCompleteBeforeTheWaitsForTheOneBeforeAreOver) {
  const auto text = [](const std::string& taken, const std::string& known) {
    return litmus(role("one", 0, 1, kArrive + known + kArrive) +
                  role("other", 1, 1, kWait + taken));
  };
  const std::string take = "    mbarrier_arrive %20, %1\n";
  const std::string taken = "    mbarrier_wait %20, %1, %0\n";
  expect_clean(text("    warp_sync\n" + take, taken));
  for (const std::string& unordered : {text("", ""), text(take, "")}) {
    MachineOptions options;
    std::set<std::string> kinds;
    for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
      const MachineReport report = run_litmus(unordered, options);
      ASSERT_FALSE(report.ok()) << options.seed;
      kinds.insert(report.faults[0].kind);
      EXPECT_EQ(report.faults[0].first.line, last_line_of(unordered, "mbarrier_wait %20, %0, %0"));
    }
    EXPECT_EQ(kinds, (std::set<std::string>{"mbarrier", "deadlock"}));
  }
}

// Nor where nobody looks at the order: a warp that waits is woken too late.
TEST(LitmusBarrier, APhaseThatWentByWhileAWarpWaitedIsFound) {
  const std::string text =
      litmus(role("one", 0, 1, kArrive + kArrive) + role("other", 1, 1, kWait));
  MachineOptions options;
  options.check_order = false;
  std::set<std::string> kinds;
  for (options.seed = 0; options.seed < 8 * kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    kinds.insert(report.ok() ? "ok" : report.faults[0].kind);
  }
  EXPECT_THAT(kinds, ::testing::Contains("mbarrier"));
}

// Who waits for phase 0 learns nothing from an arrival of phase 1 that was quicker.
TEST(LitmusBarrier, AWaitKnowsWhatThePhaseHandsOnAndNoMore) {
  const std::string sync = "    named_sync %0 {first = 1, threads = 64}\n";
  const auto text = [](const std::string& between) {
    return litmus(role("one", 0, 1, kArrive + kArrive) +
                      role("writer", 1, 1, kWait + kStore + kArrive + between) +
                      role("reader", 2, 1, kWait + between + kLoad),
                  {2});
  };
  expect_clean(text(sync));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {}});
}

// try_wait may return false at any time.
TEST(LitmusBarrier, AWaitLooksAgainUnderSomeSchedules) {
  constexpr int kTurns = 32, kWaits = 8;  // all of them for a phase that is over
  std::string waits;
  for (int i = 0; i < kWaits; ++i) waits += "      mbarrier_wait %20, %0, %1\n";
  const std::string text = litmus(role(
      "one", 0, 1, "    for_loop %0, %17, %1 (%60: i32) {\n" + waits + "      yield\n    }\n"));
  constexpr std::int64_t kOthers = 4 * 2;  // of the copy that each warp waits for, once or twice
  std::int64_t most = 0;
  MachineOptions options;
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text, options);
    ASSERT_TRUE(report.ok()) << first_message(report);
    most = std::max(most, report.instructions.at("mbarrier_wait"));
  }
  EXPECT_GT(most, kTurns * kWaits + kOthers);
}

TEST(LitmusBarrier, EachPhaseTakesAsManyArrivalsAsItWasInitialisedWith) {
  const auto text = [](int arrivals) {
    return litmus(role("a", 0, 1, kStore + kArrive) + role("b", 1, 1, kArrive) +
                      role("c", 2, 1, kWait + kLoad),
                  {arrivals});
  };
  expect_clean(text(2));
  expect_fault(text(3), {"deadlock", "mbarrier_wait %20", "", {}});
  // The phase that one arrival completes is waited for before the store, or not.
  std::set<std::string> kinds;
  MachineOptions options;
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report = run_litmus(text(1), options);
    kinds.insert(report.ok() ? "ok" : report.faults[0].kind);
  }
  EXPECT_THAT(kinds, ::testing::Contains("race"));
}

TEST(LitmusBarrier, AnArrivalBeyondThePhasesCountIsFound) {
  // The bytes keep the phase from completing.
  const std::string expect = "    mbarrier_expect_tx %20, %0 {bytes = 512}\n";
  expect_fault(litmus(role("one", 0, 1, expect + kArrive)),
               {"mbarrier", kArrive, "mbarriers {name = \"bar\"", {"an arrival count above 1"}});
}

TEST(LitmusBarrier, AsManyBytesAreExpectedAsCopiesBring) {
  const auto text = [](int bytes) {
    return litmus(role("one", 0, 1,
                       changed(copy_tile_in(), "512", std::to_string(bytes)) +
                           "    mbarrier_wait %21, %1, %0\n" + load_tile()));
  };
  expect_clean(text(512));
  expect_fault(text(496), {"mbarrier",
                           "tma_load",
                           "mbarriers {name = \"loaded\"",
                           {"an expect_tx, before the copies, of all bytes that they write"}});
  expect_fault(text(528), {"deadlock", "mbarrier_wait %21, %1", "", {}});
}

// No wait can stand between two copies of one phase, and the fix names none.
TEST(LitmusBarrier, CopiesOfOnePhaseNeedPlacesOfTheirOwn) {
  const std::string copy = "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512}\n";
  expect_fault(
      litmus(role("one", 0, 1, changed(copy_tile_in(), "bytes = 512", "bytes = 1024") + copy)),
      {"race",
       "tma_load",
       "",
       {"another place for one of the two: both are copies of loaded[1] phase 0"}});
  const std::string apart =
      "    mbarrier_expect_tx %21, %0 {bytes = 512}\n    tma_load %25, %23, %0, %21, %0, %0, %0 "
      "{bytes = 512}\n";
  expect_fault(litmus(role("one", 0, 1, copy_tile_in() + apart)),
               {"race", "tma_load", "", {"a wait for loaded[1] phase 0 between them"}});
}

// Who waits once more than anybody arrives is told so where no other cause shows.
TEST(LitmusBarrier, AWaitForOnePhaseMoreThanComeIsNamed) {
  const auto text = [](const std::string& more) {
    return litmus(role("one", 0, 1, kArrive) + role("other", 1, 1, kWait + more));
  };
  expect_clean(text(""));
  expect_fault(
      text("    mbarrier_wait %20, %0, %1\n"),
      {"deadlock",
       "mbarrier_wait %20, %0, %1",
       "mbarriers {name = \"bar\"",
       {"as many phases of bar[0] as waits for them: 1 came, and this waits for one more"}});
}

TEST(LitmusBarrier, ABarrierIsInitialisedOnce) {
  expect_fault(
      litmus("  mbarrier_init %21 {arrivals = 1}\n"),
      {"mbarrier", "mbarrier_init %21", "mbarriers {name = \"loaded\"", {"one mbarrier_init"}});
}

TEST(LitmusBarrier, InitialisationReachesOtherWarpsThroughASynchronisation) {
  const std::string text = litmus(role("other", 1, 1, kArrive));
  const std::string unsynchronised = changed(
      changed(text, "  cta_sync\n", ""),
      "  mbarrier_expect_tx %21, %0 {bytes = 512}\n  tma_load %25, %23, %0, %21, %0, %0, %0 "
      "{bytes = 512}\n  mbarrier_wait %21, %0, %0\n",
      "");
  expect_clean(text);
  expect_fault(unsynchronised, {"mbarrier", kArrive, "mbarriers {name = \"bar\"", {kPublish}});
}

TEST(LitmusBarrier, InitialisationReachesCopiesThroughAFence) {
  const std::string text = litmus("");
  expect_clean(text);
  expect_fault(changed(text, "  fence_barrier_init\n", ""),
               {"mbarrier", "tma_load", "mbarriers {name = \"loaded\"", {kPublish}});
  expect_clean(changed(text, "  fence_barrier_init\n", "  fence_proxy_async\n"));
  // It is one of the warp that initialises: what others have done it does not publish.
  const std::string of_other = role("other", 1, 1, "    fence_barrier_init\n");
  expect_fault(changed(text, "  fence_barrier_init\n", of_other),
               {"mbarrier", "tma_load", "mbarriers {name = \"loaded\"", {kPublish}});
  // Threads of the CTA need none.
  const std::string no_copy = changed(
      litmus(role("other", 1, 1, kArrive)),
      "  mbarrier_expect_tx %21, %0 {bytes = 512}\n  tma_load %25, %23, %0, %21, %0, %0, %0 "
      "{bytes = 512}\n  mbarrier_wait %21, %0, %0\n",
      "");
  expect_clean(changed(no_copy, "  fence_barrier_init\n", ""));
}

// CTA r arrives on the barrier of CTA 1 - r.
const std::string kPeer = "  %40: i32 = cluster_rank\n  %41: i32 = sub %1, %40\n";
const std::string kRemoteArrive = "  mbarrier_arrive %20, %0, %41\n";
const std::string kClusterSync = "  cluster_sync\n";

std::string for_pair(const std::string& body) { return litmus(kPeer + body, {1, 32, 2}); }

TEST(LitmusCluster, InitialisationReachesOtherCtasThroughAFence) {
  std::string text = for_pair(kRemoteArrive + "  mbarrier_wait %20, %0, %0\n" + kClusterSync);
  expect_clean(text);
  text = changed(text, "  mbarrier_expect_tx %21, %0 {bytes = 512}\n", "");
  text = changed(text, "  mbarrier_wait %21, %0, %0\n", "");
  text = changed(text, "  tma_load %25, %23, %0, %21, %0, %0, %0 {bytes = 512}\n", "");
  expect_clean(text);
  const Wanted unpublished{"mbarrier", "mbarrier_arrive", "mbarriers {name = \"bar\"", {kPublish}};
  expect_fault(changed(text, "  fence_barrier_init\n", ""), unpublished);
  // A proxy fence is of the CTA.
  expect_fault(changed(text, "  fence_barrier_init\n", "  fence_proxy_async\n"), unpublished);
}

TEST(LitmusCluster, ThreadsWritesReachOtherCtasThroughFencesOnBothSides) {
  const std::string fence = "  fence_cluster\n";
  const auto text = [&](const std::string& before, const std::string& behind) {
    return for_pair("  store_words %31, %24, %0\n  warp_sync\n" + before + kRemoteArrive +
                    "  mbarrier_wait %20, %0, %0\n" + behind + "  load_words %31, %24, %0, %41\n" +
                    kClusterSync);
  };
  expect_clean(text(fence, fence));
  const Wanted race{"race", "store_words", "load_words", {"fence_cluster before the arrival"}};
  expect_fault(text("", fence), race);
  expect_fault(text(fence, ""), race);
  expect_fault(text("", ""), race);
  // A barrier of the cluster does without.
  expect_clean(for_pair("  store_words %31, %24, %0\n" + kClusterSync +
                        "  load_words %31, %24, %0, %41\n" + kClusterSync));
}

// Before the lanes meet, one lane's fence says nothing of what the others have written.
TEST(LitmusCluster, AFenceOfOneLaneIsNoneOfTheOthers) {
  const auto text = [&](const std::string& fence) {
    return for_pair("  store_words %31, %24, %0\n" + fence + "  warp_sync\n" + kRemoteArrive +
                    "  mbarrier_wait %20, %0, %0\n  fence_cluster\n"
                    "  load_words %31, %24, %0, %41\n" +
                    kClusterSync);
  };
  expect_clean(text("  fence_cluster\n"));
  expect_fault(text("  elect () {\n    fence_cluster\n    yield\n  }\n"),
               {"race", "store_words", "load_words", {}});
}

TEST(LitmusCluster, ARemoteArrivalOrdersWhatCopiesHaveRead) {
  // Both CTAs store their tile; the first then copies onto both tiles.
  const std::string copy =
      "  %42: bool = eq %40, %0\n  if_then %42 () {\n    mbarrier_wait %20, %0, %0\n"
      "    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512, multicast = 3}\n    yield\n  } () "
      "{\n    yield\n  }\n";
  const auto text = [&](const std::string& wait, const std::string& late) {
    return litmus(kPeer + "  mbarrier_expect_tx %21, %1 {bytes = 512}\n" + copy_tile_out() + wait +
                      "  mbarrier_arrive %20, %0, %0\n" + copy + late +
                      "  mbarrier_wait %21, %1, %0\n" + kClusterSync,
                  {2, 32, 2});
  };
  // Y is each CTA's own, so that the two stores do not race.
  const auto apart = [](std::string kernel) {
    kernel = changed(std::move(kernel), "inout Y: bf16[16, 16]", "inout Y: bf16[32, 16]");
    kernel = changed(std::move(kernel), "    tma_store %26, %23, %0, %0, %0\n",
                     "  %43: i32 = mul %40, %16\n  tma_store %26, %23, %0, %0, %43\n");
    return kernel;
  };
  const auto run_pair = [](const std::string& kernel, std::uint64_t seed) {
    MachineTensor x("X", DType::i32, {64}), a("A", DType::bf16, {16, 16}),
        y("Y", DType::bf16, {32, 16});
    a.randomise(1);
    return run_seed(kernel, {&x, &a, &y}, seed);
  };
  const std::string wait = "  bulk_wait {count = 0, read = 1}\n";
  const std::string clean = apart(text(wait, "")), early = apart(text("", wait));
  for (std::uint64_t seed = 0; seed < kLitmusSeeds; ++seed) {
    const MachineReport good = run_pair(clean, seed);
    ASSERT_TRUE(good.ok()) << first_message(good);
    const MachineReport bad = run_pair(early, seed);
    ASSERT_FALSE(bad.ok());
    EXPECT_EQ(bad.faults[0].kind, "race") << first_message(bad);
    EXPECT_EQ(bad.faults[0].first.line, last_line_of(early, "tma_store"));
    EXPECT_EQ(bad.faults[0].second.line, last_line_of(early, "tma_load"));
    EXPECT_THAT(bad.faults[0].missing, ::testing::HasSubstr("bulk_wait_read between them"));
  }
}

TEST(LitmusCluster, ArrivalsAreOnCtasThatThereAre) {
  const std::string text = for_pair("  mbarrier_arrive %20, %0, %2\n" + kClusterSync);
  expect_fault(text, {"mbarrier", "mbarrier_arrive %20, %0, %2", "mbarriers {name = \"bar\"", {}});
}

TEST(LitmusCluster, ACtaStaysUntilItsPeersHaveUsedItsSharedMemory) {
  const auto words = [](const std::string& last) {
    return for_pair("  store_words %31, %24, %0\n" + kClusterSync +
                    "  load_words %31, %24, %0, %41\n" + last);
  };
  expect_clean(words(kClusterSync));
  expect_fault(words(""), {"exit", "load_words", "", {"cluster_sync before the kernel ends"}});
  expect_fault(for_pair(kRemoteArrive), {"exit", kRemoteArrive, "", {"before the kernel ends"}});
  // The second CTA waits for nothing, whether it ends before the first comes to it or after that.
  const auto by_first = [](const std::string& body,
                           const std::string& before =
                               "  mbarrier_expect_tx %21, %1 {bytes = 512}\n") {
    return for_pair(before + kClusterSync + "  %42: bool = eq %40, %0\n  if_then %42 () {\n" +
                    body + "    yield\n  } () {\n    yield\n  }\n");
  };
  expect_fault(by_first("  " + kRemoteArrive), {"exit", kRemoteArrive, "", {}});
  expect_fault(by_first("    load_words %31, %24, %0, %41\n", "  store_words %31, %24, %0\n"),
               {"exit", "load_words", "", {}});
  expect_fault(by_first("    tma_load %25, %23, %0, %21, %1, %0, %0 {bytes = 512, multicast = 3}\n"
                        "    mbarrier_wait %21, %1, %0\n"),
               {"exit", "multicast = 3", "", {}});
}

TEST(LitmusNamedBarrier, ThreadsAndNumbersAgree) {
  const auto text = [](const std::string& a, const std::string& b) {
    return litmus(role("a", 0, 1, "    named_sync %0 {" + a + "}\n") +
                  role("b", 1, 1, "    named_sync %0 {" + b + "}\n"));
  };
  expect_clean(text("first = 1, threads = 64", "first = 1, threads = 64"));
  expect_fault(text("first = 1, threads = 64", "first = 1, threads = 96"),
               {"named_barrier", "threads = 64", "threads = 96", {"the same thread count"}});
  expect_fault(text("first = 1, threads = 64", "first = 2, threads = 64"),
               {"deadlock", "first = 1", "first = 2", {}});
  // There are 16 of them, whatever an index makes of the first.
  const auto sync = [](const std::string& index, const std::string& what) {
    return litmus(role("a", 0, 1, "    named_sync " + index + " {" + what + "}\n"));
  };
  expect_clean(sync("%3", "first = 12, threads = 32"));
  expect_fault(sync("%4", "first = 12, threads = 32"), {"named_barrier", "named_sync", "", {}});
  expect_fault(sync("%0", "first = 1, threads = 48"), {"named_barrier", "named_sync", "", {}});
  expect_fault(sync("%0", "first = 1, threads = 0"), {"named_barrier", "named_sync", "", {}});
}

std::string set_registers(int count, int increase) {
  return fmt::format("    set_max_registers {{count = {}, increase = {}}}\n", count, increase);
}

TEST(LitmusRegisters, AnIncreaseWaitsForWhatOthersGiveUp) {
  // 384 threads begin with 168 each.
  const auto text = [](const std::string& less, const std::string& more) {
    return litmus(role("less", 0, 4, less) + role("more", 4, 4, more), {1, 384});
  };
  expect_clean(text(set_registers(160, 0), set_registers(176, 1)));
  // What another warpgroup gives up only once this one has gone on.
  expect_fault(litmus(role("less", 0, 4, kWait + set_registers(160, 0)) +
                          role("more", 4, 4, set_registers(176, 1) + kArrive),
                      {4, 384}),
               {"deadlock", "mbarrier_wait %20", "increase = 1", {}});
  expect_fault(text(set_registers(160, 0), set_registers(184, 1)),
               {"capacity", "role {name = \"less\"", "role {name = \"more\"", {}});
}

// One warpgroup; %33 starts as zeros.
std::string math(const std::string& body) {
  return litmus(
      role("math", 0, 4, "    %61: f32 = constant {value = 0.0}\n    fill %33, %61\n" + body));
}
const std::string kFence = "    wgmma_fence %33, %32\n";
const std::string kCommit = "    wgmma_commit\n";
const std::string kProductWait = "    wgmma_wait %33 {count = 0}\n";
const std::string kRead = "    compute %33, %33, %61 {function = add, maps = maps[[1:8:1], []]}\n";

TEST(LitmusProducts, AFenceStandsBetweenTheUseOfRegistersAndAProduct) {
  expect_clean(math(kFence + product() + kCommit + kProductWait + kRead));
  expect_fault(math(product() + kCommit + kProductWait),
               {"wgmma", "wgmma_rs", "registers {name = \"S\"}", {"wgmma_fence between"}});
  // A product that adds to the one before it needs none between them.
  expect_clean(math(kFence + product() + product() + kCommit + kProductWait));
}

// Roles of which some warps would take part in no product, or in that of two warpgroups.
TEST(LitmusProducts, WarpgroupsAreWhole) {
  for (const auto& [first, warps] : {std::pair(0, 6), {2, 4}}) {
    const std::string text = litmus(role("math", first, warps, product()), {.threads = 192});
    EXPECT_THAT(
        test::usage_error_of([&] { run_litmus(text); }),
        ::testing::HasSubstr("math covers warps " + std::to_string(first) + " to 5, not whole"));
  }
}

// PTX orders the accumulator's registers between products of the same shape alone.
TEST(LitmusProducts, AFenceStandsBetweenProductsOfDifferentShapeOnOneAccumulator) {
  // The same bytes as f8: 32 of them are as long as 16 of bf16.
  const auto text = [](const std::string& body) {
    const std::string init = "  mbarrier_init %20 {arrivals = 1}\n";
    return changed(math(body), init,
                   "  %70: shared<f8e4m3, 1x16x32> = shared {name = \"bytes\", layout = "
                   "shared_layout[16x32*1|16@0:32,32@1:1], stages = 1, offset = 256}\n" +
                       init);
  };
  const std::string bytes =
      "    %71: registers<f8e4m3, 16> = registers {name = \"P8\"}\n"
      "    %72: f8e4m3 = constant {value = 1.0}\n    fill %71, %72\n";
  const std::string fence = "    wgmma_fence %33, %32, %71\n";
  const std::string deep =
      changed(changed(product(), "%33, %32, %23", "%33, %71, %70"), "k = 16", "k = 32");
  const std::string end = kCommit + kProductWait;
  const Wanted shapes{"wgmma", "k = 16", "k = 32", {"wgmma_fence of S between the two"}};
  expect_clean(text(bytes + fence + product() + fence + deep + end));
  expect_fault(text(bytes + fence + product() + deep + end), shapes);
  // The wait is no fence.
  expect_clean(text(bytes + fence + product() + end + fence + deep + end));
  expect_fault(text(bytes + fence + product() + end + deep + end), shapes);
}

TEST(LitmusLanes, OneLaneExecutesNoAlignedInstruction) {
  const auto text = [](const std::string& body) {
    return litmus(role("one", 0, 1, "    elect () {\n  " + body + "      yield\n    }\n"));
  };
  expect_clean(text(kArrive));
  const std::string meet = "    named_sync %0 {first = 1, threads = 32}\n";
  expect_clean(litmus(role("one", 0, 1, meet)));
  for (const std::string& aligned : {meet, load_tile(), std::string("    warp_sync\n")}) {
    expect_fault(text(aligned), {"divergence", aligned, "", {"outside of elect"}});
  }
}

TEST(LitmusProducts, RegistersAreInFlightUntilTheWait) {
  expect_fault(math(kFence + product() + kCommit + kRead + kProductWait),
               {"wgmma", "compute", "", {"wgmma_wait"}});
  expect_fault(math(kFence + product() + kCommit + "    fill %32, %29\n" + kProductWait),
               {"wgmma", "fill %32, %29\n    wgmma_wait", "", {"wgmma_wait"}});
  expect_fault(math(kFence + product() + kProductWait + kRead),
               {"wgmma", "compute", "", {"wgmma_commit"}});
  expect_fault(math(kFence + product() + kCommit),
               {"wgmma", "wgmma_rs", "", {"wait or retire of it before the kernel ends"}});
}

TEST(LitmusProducts, TheWarpsOfAWarpgroupIssueTheSameProducts) {
  const std::string one = product();
  const std::string other = changed(product(), "descriptor_b = 2097216", "descriptor_b = 2097217");
  const std::string split =
      "    %62: i32 = warp_index\n    %63: bool = lt %62, %2\n    if_then %63 () {\n" + one +
      "      yield\n    } () {\n" + other + "      yield\n    }\n";
  const std::string same = "the same products, in the same order and on the same operands";
  expect_clean(math(kFence + one + other + kCommit + kProductWait));
  expect_fault(math(kFence + split + kCommit + kProductWait),
               {"wgmma", "descriptor_b = 2097216", "descriptor_b = 2097217", {same}});
  // The same instruction, on rows that depend on the warp.
  const std::string rows =
      "    %62: i32 = warp_index\n    %63: i32 = mul %62, %16\n    %64: i32 = min %63, %1\n"
      "    %65: i32 = mul %64, %17\n    %66: i32 = mul %65, %4\n"
      "    %67: registers<f32, 4> = registers {name = \"T\"}\n    fill %67, %61\n"
      "    wgmma_fence %67, %32\n" +
      changed(changed(product(), "%33, %32, %23, %0,", "%67, %32, %23, %66,"), "n = 16", "n = 8") +
      kCommit + "    wgmma_wait %67 {count = 0}\n";
  expect_fault(math(rows), {"wgmma", "wgmma_rs", "wgmma_rs", {same}});
  // Some of the warps do without.
  const std::string some =
      "    %62: i32 = warp_index\n    %63: bool = lt %62, %2\n    if_then %63 () {\n" + one +
      "      yield\n    } () {\n      yield\n    }\n";
  expect_fault(math(kFence + some + kCommit + kProductWait),
               {"wgmma", "wgmma_rs", "", {"the same products in all four warps"}});
}

// Four copies, of whose bytes the first phase expects those of `first`, and the second the rest.
std::string copies_of_two_phases(int first) {
  std::string text = R"(kernel "phases" machine
in A: bf16[64, 16] = %0
grid (1)
threads 32
shared_bytes 2064
body () {
  %1: tensor_map = tensor_map %0 {name = "A map", box = [16, 16], swizzle = 0}
  %2: shared<bf16, 4x16x16> = shared {name = "tiles", layout = shared_layout[16x16*2|16@0:32,16@1:2], stages = 4, offset = 0}
  %3: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 2048}
  mbarrier_init %3 {arrivals = 1}
  fence_barrier_init
  cta_sync
  %4: i32 = constant {value = 0}
  %5: i32 = constant {value = 1}
)";
  for (int i = 0; i < 4; ++i) {
    const int row = 16 * i, byte = 512 * i;
    text += fmt::format("  %{}: i32 = constant {{value = {}}}\n", 10 + i, row);
    text += fmt::format("  %{}: i32 = constant {{value = {}}}\n", 20 + i, byte);
  }
  const auto phase = [&](int number, int copies) {
    text += fmt::format("  mbarrier_expect_tx %3, %4 {{bytes = {}}}\n", 512 * copies);
    for (int i = 2 * number; i < 2 * number + 2; ++i) {
      text +=
          fmt::format("  tma_load %1, %2, %{}, %3, %4, %4, %{} {{bytes = 512}}\n", 20 + i, 10 + i);
    }
    text += fmt::format("  mbarrier_wait %3, %4, %{}\n", 4 + number);
  };
  phase(0, first);
  phase(1, 4 - first);
  return text + "}\n";
}

// As many bytes come as are expected of both phases together: that alone will not do.
TEST(LitmusBarrier, ACopyIsOfThePhaseInWhichItBegins) {
  const auto messages = [](int first) {
    std::set<std::string> all;
    for (std::uint64_t seed = 0; seed < kLitmusSeeds; ++seed) {
      MachineTensor a("A", DType::bf16, {64, 16});
      all.insert(first_message(run_seed(copies_of_two_phases(first), {&a}, seed)));
    }
    return all;
  };
  using ::testing::HasSubstr;
  EXPECT_THAT(messages(2), ::testing::ElementsAre(""));
  // The second copy may also begin when the first has ended the phase.
  EXPECT_THAT(messages(1), ::testing::Contains(HasSubstr(
                               "was in phase 0 when a copy of 512 bytes began and is in phase 1")));
  EXPECT_THAT(messages(3), ::testing::Each(HasSubstr("deadlock")));
}

}  // namespace
}  // namespace tilewright::simulator
