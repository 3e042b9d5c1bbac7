#include "simulator/litmus.h"

// Which accesses to memory are ordered: threads, warps, the async proxy, copies, products, CTAs.
namespace tilewright::simulator {
namespace {

const std::string kNoBarrier = "a barrier between them";
const std::string kWaitForBar = "a wait for bar[0] phase 0 between them";
const std::string kNoWarpSync = "one lane does not wait for the others";
const std::string kNoFence =
    "fence_proxy_async between them, by the threads that made the first access";
const std::string kSync = "    named_sync %0 {first = 1, threads = 64}\n";

TEST(LitmusMemory, AMbarrierOrdersAWriteBeforeARead) {
  const auto text = [](const std::string& wait) {
    return litmus(role("writer", 0, 1, kStore + kArrive) + role("reader", 1, 1, wait + kLoad));
  };
  expect_clean(text(kWait));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {kWaitForBar, kNoBarrier}});
}

// A barrier that another role alone waits for has to do with other memory.
TEST(LitmusMemory, ABarrierOfOthersIsNotProposed) {
  const auto text = [](const std::string& waiter, const std::string& reads) {
    return litmus(role("writer", 0, 1, kStore + kArrive) + role("reader", 1, 1, reads) +
                  role("loader", 2, 1, waiter));
  };
  expect_fault(text(kWait, kLoad), {"race", "shared_store", "shared_load", {kNoBarrier}});
  expect_fault(text(kWait, kLoad + kWait),
               {"race", "shared_store", "shared_load", {kWaitForBar, kNoBarrier}});
}

TEST(LitmusMemory, AnArrivalBeforeTheWriteHandsNothingOn) {
  expect_fault(litmus(role("writer", 0, 1, kArrive + kStore) + role("reader", 1, 1, kWait + kLoad)),
               {"race", "shared_store", "shared_load", {"a wait for bar", kNoBarrier}});
}

TEST(LitmusMemory, ANamedBarrierOrdersAWriteBeforeARead) {
  const auto text = [](const std::string& sync) {
    return litmus(role("writer", 0, 1, kStore + sync) + role("reader", 1, 1, sync + kLoad));
  };
  expect_clean(text(kSync));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {kNoBarrier}});
}

TEST(LitmusMemory, AnArrivalOnANamedBarrierHandsOnButDoesNotAcquire) {
  const std::string arrive = "    named_arrive %0 {first = 1, threads = 64}\n";
  expect_clean(litmus(role("a", 0, 1, kStore + arrive) + role("b", 1, 1, kSync + kLoad)));
  expect_fault(litmus(role("a", 0, 1, arrive + kLoad) + role("b", 1, 1, kStore + kSync)),
               {"race", "shared_store", "shared_load", {kNoBarrier}});
  // Nor does it hand on what comes behind it.
  expect_fault(litmus(role("a", 0, 1, arrive + kStore) + role("b", 1, 1, kSync + kLoad)),
               {"race", "shared_store", "shared_load", {kNoBarrier}});
  // Nor do the lanes wait for each other.
  expect_fault(litmus(role("a", 0, 1, kStore + arrive + kLoad) + role("b", 1, 1, kSync)),
               {"race", "shared_store", "shared_load", {kNoWarpSync}});
}

TEST(LitmusMemory, OneLaneDoesNotWaitForTheOthersBeforeItStoresATile) {
  const auto text = [](const std::string& sync) {
    return litmus(
        role("all", 0, 1,
             store_tile() + "    fence_proxy_async\n" + sync + copy_tile_out() + kBulkWait));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race", "store_matrix", "tma_store", {kNoWarpSync}});
}

TEST(LitmusMemory, OneLaneDoesNotWaitForTheOthersReadsBeforeItArrives) {
  const auto text = [](const std::string& sync) {
    return litmus(role("reader", 0, 1, kLoad + sync + kArrive) +
                  role("writer", 1, 1, kWait + kStore));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race",
                          "shared_load",
                          "shared_store",
                          {"warp_sync in reader warp 0 between its access and its arrival"}});
}

TEST(LitmusMemory, WhatALaneWroteIsReadByTheOthersBehindAWarpSync) {
  const auto text = [](const std::string& sync) {
    return litmus(role("one", 0, 1, kStore + sync + kLoad));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {kNoWarpSync}});
}

TEST(LitmusMemory, AFenceStandsBetweenThreadsWritesAndACopy) {
  const auto text = [](const std::string& by_writer, const std::string& by_issuer) {
    return litmus(role("writer", 0, 1, store_tile() + by_writer + kSync) +
                  role("storer", 1, 1, kSync + by_issuer + copy_tile_out() + kBulkWait));
  };
  const std::string fence = "    fence_proxy_async\n";
  expect_clean(text(fence, ""));
  expect_clean(text("", fence));  // by who issues the copy, behind the barrier
  expect_fault(text("", ""), {"proxy", "store_matrix", "tma_store", {kNoFence}});
  // Before the write it fences nothing.
  expect_fault(litmus(role("writer", 0, 1, fence + store_tile() + kSync) +
                      role("storer", 1, 1, kSync + copy_tile_out() + kBulkWait)),
               {"proxy", "store_matrix", "tma_store", {kNoFence}});
}

// Pipelines do without the fence behind a read. A write wants it, also where an mbarrier orders.
TEST(LitmusMemory, AnMbarrierIsNoFenceBehindAWrite) {
  const auto text = [](const std::string& fence) {
    return litmus(role("writer", 0, 1, store_tile() + fence + "    warp_sync\n" + kArrive) +
                  role("storer", 1, 1, kWait + copy_tile_out() + kBulkWait));
  };
  expect_clean(text("    fence_proxy_async\n"));
  expect_fault(text(""), {"proxy", "store_matrix", "tma_store", {kNoFence}});
}

TEST(LitmusMemory, AFenceStandsBetweenThreadsWritesAndAProduct) {
  const std::string store =
      "    store_elements %30, %23, %0 {layout = register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1], "
      "row_bytes = 16, swizzle_divisor = 1, swizzle_mask = 0, panel_columns = 8, panel_bytes = "
      "256}\n";
  const std::string sync = "    named_sync %0 {first = 1, threads = 160}\n";
  const auto text = [&](const std::string& fence) {
    return litmus(role("math", 0, 4,
                       "    fill %33, %29\n" + sync + "    wgmma_fence %33, %32\n" + product() +
                           "    wgmma_commit\n    wgmma_wait %33 {count = 0}\n") +
                      role("writer", 4, 1, store + fence + sync),
                  {1, 256});
  };
  const auto with_sum = [](std::string kernel) {
    return changed(std::move(kernel), "    fill %33, %29\n",
                   "    %61: f32 = constant {value = 0.0}\n    fill %33, %61\n");
  };
  expect_clean(with_sum(text("    fence_proxy_async\n")));
  expect_fault(with_sum(text("")), {"proxy", "store_elements", "wgmma_rs", {kNoFence}});
}

// An mbarrier between the two is what published pipelines have.
TEST(LitmusMemory, AReadBeforeACopyWantsAFenceOrAnMbarrier) {
  const std::string fence = "    fence_proxy_async\n";
  const auto alone = [](const std::string& between) {
    return litmus(role("one", 0, 1,
                       load_tile() + between + copy_tile_in() + "    mbarrier_wait %21, %1, %0\n"));
  };
  const Wanted unfenced{"proxy", "load_matrix", "tma_load", {kNoFence}};
  expect_clean(alone(fence + "    warp_sync\n"));
  expect_fault(alone("    warp_sync\n"), unfenced);
  const auto meeting = [](const std::string& before) {
    const std::string meet = "    named_sync %0 {first = 1, threads = 64}\n";
    return litmus(role("reader", 0, 1, load_tile() + before + meet) +
                  role("loader", 1, 1, meet + copy_tile_in() + "    mbarrier_wait %21, %1, %0\n"));
  };
  expect_clean(meeting(fence));
  expect_fault(meeting(""), unfenced);
  // What another access of the same threads announced says nothing of a later one.
  expect_fault(alone(kArrive + load_tile() + "    warp_sync\n"), unfenced);
}

TEST(LitmusMemory, AReadBeforeACopyWantsAFenceBehindAnMbarrierInStrictModeAlone) {
  const auto text = [](const std::string& fence) {
    return litmus(role("reader", 0, 1,
                       load_tile() + fence + "    warp_sync\n" + kArrive +
                           "    mbarrier_wait %21, %1, %0\n") +
                  role("loader", 1, 1, kWait + copy_tile_in()));
  };
  MachineOptions strict;
  strict.strict = true;
  expect_clean(text(""));
  expect_clean(text("    fence_proxy_async\n"), strict);
  expect_fault(text(""), {"proxy", "load_matrix", "tma_load", {kNoFence}}, strict);
}

TEST(LitmusMemory, ACopyIsReadBehindTheWaitForItsPhase) {
  const auto text = [](const std::string& first, const std::string& wait) {
    return litmus(
        role("all", 0, 1,
             first + copy_tile_in() + wait + load_tile() + "    mbarrier_wait %21, %1, %0\n"));
  };
  const std::string wait = "    mbarrier_wait %21, %1, %0\n";
  expect_clean(text("", wait));
  const Wanted race{
      "race", "tma_load", "load_matrix", {"a wait for loaded[1] phase 0 between them"}};
  expect_fault(text("", ""), race);
  // Of another barrier.
  expect_fault(text("", "    mbarrier_wait %20, %1, %1\n"), race);
}

TEST(LitmusMemory, AProductReadsItsOperandUntilItIsWaitedFor) {
  const std::string wait = "    wgmma_wait %33 {count = 0}\n";
  const auto text = [&](const std::string& before, const std::string& behind) {
    return litmus(
        role("math", 0, 4,
             "    %61: f32 = constant {value = 0.0}\n    fill %33, %61\n"
             "    wgmma_fence %33, %32\n" +
                 product() + "    wgmma_commit\n" + before + kArrive + behind) +
            role("loader", 4, 1, kWait + copy_tile_in() + "    mbarrier_wait %21, %1, %0\n"),
        {4, 256});
  };
  expect_clean(text(wait, ""));
  expect_fault(text("", wait), {"race", "wgmma_rs", "tma_load", {"this product in math warp"}});
  // A wait for all but the last group is none for it.
  expect_fault(text("    wgmma_wait %33 {count = 1}\n", wait),
               {"race", "wgmma_rs", "tma_load", {"this product in math warp"}});
}

TEST(LitmusMemory, ABulkStoreReadsItsSourceUntilItIsWaitedFor) {
  const auto text = [](const std::string& before, const std::string& behind) {
    return litmus(role("storer", 0, 1, copy_tile_out() + before + kArrive + behind) +
                  role("loader", 1, 1, kWait + copy_tile_in() + "    mbarrier_wait %21, %1, %0\n"));
  };
  expect_clean(text("    bulk_wait {count = 0, read = 1}\n", ""));
  expect_fault(text("", kBulkWait),
               {"race", "tma_store", "tma_load", {"bulk_commit and bulk_wait_read between them"}});
}

TEST(LitmusMemory, AnotherWarpReadsWhatABulkStoreWroteBehindTheFullWait) {
  const std::string load =
      "    load_registers %30, %92, %0, %0, %16, %16 {sizes = [16, 16], layout = "
      "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}\n";
  const auto text = [&](const std::string& wait) {
    return litmus(role("storer", 0, 1, copy_tile_out() + wait + kArrive) +
                  role("reader", 1, 1, kWait + load));
  };
  expect_clean(text(kBulkWait));
  expect_fault(
      text("    bulk_wait {count = 0, read = 1}\n"),
      {"race", "tma_store", "load_registers", {"bulk_wait_read waits for the source alone"}});
}

// Of global memory, where no mbarrier counts for a fence.
TEST(LitmusMemory, AReadBeforeABulkStoreWantsAFenceOfGlobalMemoryInStrictModeAlone) {
  const std::string load =
      "    load_registers %30, %92, %0, %0, %16, %16 {sizes = [16, 16], layout = "
      "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}\n";
  const auto text = [&](const std::string& fence) {
    return litmus(role("reader", 0, 1, load + fence + "    warp_sync\n" + kArrive) +
                  role("storer", 1, 1, kWait + copy_tile_out() + kBulkWait));
  };
  MachineOptions strict;
  strict.strict = true;
  expect_clean(text(""));
  expect_clean(text("    fence_proxy_async_global\n"), strict);
  expect_fault(text(""),
               {"proxy", "load_registers", "tma_store", {"fence_proxy_async_global between"}},
               strict);
}

// The lane alone knows what it has waited for.
std::string by_one_lane(const std::string& body) {
  return "    elect () {\n" + body + "      yield\n    }\n";
}

TEST(LitmusLanes, AWaitOfOneLaneIsOneOfTheOthersBehindAWarpSyncAlone) {
  const auto text = [](const std::string& sync) {
    return litmus(role("writer", 0, 1, kStore + kArrive) +
                  role("reader", 1, 1, by_one_lane(kWait) + sync + kLoad));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {}});
}

TEST(LitmusLanes, ACopyThatOneLaneWaitsForIsThereForTheOthersBehindAWarpSyncAlone) {
  const auto text = [](const std::string& sync) {
    return litmus(
        role("reader", 0, 1,
             by_one_lane(copy_tile_in() + "    mbarrier_wait %21, %1, %0\n") + sync + load_tile()));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race", "tma_load", "load_matrix", {}});
}

TEST(LitmusLanes, AWordThatOneLaneWaitsForIsKnownToTheOthersBehindAWarpSyncAlone) {
  const std::string tell =
      "    store_index %90, %3, %7 {semantics = \"release\", scope = \"gpu\"}\n";
  const std::string hear =
      "    wait_flag %90, %3, %7 {compare = \"eq\", semantics = \"acquire\", scope = \"gpu\"}\n";
  const auto text = [&](const std::string& sync) {
    return litmus(role("writer", 0, 1, kStore + tell) +
                  role("reader", 1, 1, by_one_lane(hear) + sync + kLoad));
  };
  expect_clean(text("    warp_sync\n"));
  expect_fault(text(""), {"race", "shared_store", "shared_load", {}});
}

// Who finds a later value, which was not written by an atomic that read the first one, learns
// nothing of who wrote that.
TEST(LitmusMemory, AWordHandsOnWhatItsLastWriteSays) {
  const auto text = [](const char* heard, const char* told) {
    const auto write = [](int value, const char* semantics) {
      return fmt::format("    store_index %90, %3, %{} {{semantics = \"{}\", scope = \"gpu\"}}\n",
                         value, semantics);
    };
    const auto await = [](int value, const char* semantics) {
      return fmt::format(
          "    wait_flag %90, %3, %{} {{compare = \"eq\", semantics = \"{}\", scope = "
          "\"gpu\"}}\n",
          value, semantics);
    };
    return litmus(role("first", 0, 1, kStore + write(7, "release")) +
                  role("second", 1, 1, await(7, heard) + "    warp_sync\n" + write(8, told)) +
                  role("third", 2, 1, await(8, "acquire") + kLoad));
  };
  expect_clean(text("acquire", "release"));
  expect_fault(text("relaxed", "relaxed"), {"race", "shared_store", "shared_load", {}});
}

// Words that all lanes write hand on what a fence of all of them stands behind. That of one lane is
// in front of this lane's word alone.
TEST(LitmusMemory, WordsOfAllLanesWantAFenceOfAllLanes) {
  const auto text = [](const std::string& fence) {
    const std::string tell =
        "    %61: registers<i32, 1> = registers {name = \"sevens\"}\n    fill %61, %7\n"
        "    store_registers %90, %61, %0, %17 {sizes = [32], layout = "
        "register_layout[32|l:32@0:1], semantics = \"relaxed\", scope = \"gpu\"}\n";
    return litmus(role("first", 0, 1, kStore + "    warp_sync\n" + fence + tell) +
                  role("second", 1, 1,
                       "    wait_flag %90, %3, %7 {compare = \"eq\", semantics = \"acquire\", "
                       "scope = \"gpu\"}\n" +
                           kLoad));
  };
  const std::string fence = "    fence {scope = \"gpu\"}\n";
  expect_clean(text(fence));
  expect_fault(text(by_one_lane(fence)), {"race", "shared_store", "shared_load", {}});
  expect_fault(text(""), {"race", "shared_store", "shared_load", {}});
}

// An atomic that reads the word as well carries on what was handed on before it.
TEST(LitmusMemory, AWordHandsOnThroughAtomicAdditions) {
  const auto text = [](const char* told) {
    const std::string tell =
        fmt::format("    store_index %90, %3, %7 {{semantics = \"{}\", scope = \"gpu\"}}\n", told);
    const auto await = [](int value, const char* semantics) {
      return fmt::format(
          "    wait_flag %90, %3, %{} {{compare = \"eq\", semantics = \"{}\", scope = "
          "\"gpu\"}}\n",
          value, semantics);
    };
    const std::string count =
        "    %70: i32 = atomic_add %90, %3, %1 {semantics = \"relaxed\", scope = \"gpu\"}\n";
    return litmus(role("first", 0, 1, kStore + tell) +
                  role("second", 1, 1, await(7, "relaxed") + "    warp_sync\n" + count) +
                  role("third", 2, 1, await(8, "acquire") + kLoad));
  };
  expect_clean(text("release"));
  expect_fault(text("relaxed"), {"race", "shared_store", "shared_load", {}});
}

TEST(LitmusLanes, AProxyFenceOfOneLaneIsNoneOfTheOthers) {
  const auto text = [](const std::string& fence) {
    return litmus(role("writer", 0, 1, store_tile() + fence + kSync) +
                  role("storer", 1, 1, kSync + copy_tile_out() + kBulkWait));
  };
  const std::string fence = "    fence_proxy_async\n";
  expect_clean(text(fence));
  expect_fault(text(by_one_lane(fence)), {"proxy", "store_matrix", "tma_store", {kNoFence}});
}

TEST(LitmusLanes, AProxyFenceOfGlobalMemoryByOneLaneIsNoneOfTheOthers) {
  const std::string store =
      "    store_registers %92, %30, %0, %0, %16, %16 {sizes = [16, 16], layout = "
      "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}\n";
  const auto text = [&](const std::string& fence) {
    return litmus(role("writer", 0, 1, store + fence + kSync) +
                  role("storer", 1, 1, kSync + copy_tile_out() + kBulkWait));
  };
  const std::string fence = "    fence_proxy_async_global\n";
  expect_clean(text(fence));
  expect_fault(text(by_one_lane(fence)),
               {"proxy", "store_registers", "tma_store", {"fence_proxy_async_global between"}});
}

// What was there before is no longer there, also where nobody looks at the order.
TEST(LitmusMemory, ACopyUnderWayLeavesNothingToRead) {
  MachineOptions options;
  options.check_order = false;
  const std::string wait = "    mbarrier_wait %21, %1, %0\n";
  expect_clean(litmus(role("one", 0, 1, copy_tile_in() + wait + load_tile())), options);
  int found = 0;
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    const MachineReport report =
        run_litmus(litmus(role("one", 0, 1, copy_tile_in() + load_tile() + wait)), options);
    if (report.ok()) continue;  // the copy was over
    EXPECT_EQ(report.faults[0].kind, "race");
    EXPECT_THAT(report.faults[0].missing, ::testing::HasSubstr("a wait for loaded[1] phase 0"));
    ++found;
  }
  EXPECT_GT(found, 0);
}

TEST(LitmusMemory, AtomicAdditionsRaceWithOtherAccessesAlone) {
  const std::string add = "    %61: i32 = atomic_add %90, %3, %1\n";
  const std::string read = "    %62: i32 = load_index %90, %3\n";
  const std::string again = "    %63: i32 = atomic_add %90, %3, %1\n";
  expect_clean(litmus(role("a", 0, 1, add) + role("b", 1, 1, again)));
  expect_clean(litmus(role("a", 0, 1, add + kArrive) + role("b", 1, 1, kWait + read)));
  expect_fault(litmus(role("a", 0, 1, add) + role("b", 1, 1, read)),
               {"race", "atomic_add", "load_index", {kNoBarrier}});
}

TEST(LitmusMemory, EveryReaderIsWaitedFor) {
  const std::string other = changed(kLoad, "%60", "%61");
  const auto text = [&](const std::string& last) {
    return litmus(role("one", 0, 1, other + "    warp_sync\n" + kArrive) +
                      role("writer", 1, 1, kWait + kStore) + role("two", 2, 1, kLoad + last),
                  {2});
  };
  expect_clean(text("    warp_sync\n" + kArrive));
  expect_fault(litmus(role("one", 0, 1, other + "    warp_sync\n" + kArrive) +
                      role("writer", 1, 1, kWait + kStore) + role("two", 2, 1, kLoad)),
               {"race", "shared_store", "shared_load", {}});
}

TEST(LitmusMemory, EveryAtomicIsWaitedFor) {
  const std::string first =
      "    %61: i32 = atomic_add %90, %3, %1 {semantics = \"relaxed\", scope = \"gpu\"}\n";
  const std::string other =
      "    %63: i32 = atomic_add %90, %3, %2 {semantics = \"relaxed\", scope = \"gpu\"}\n";
  const std::string read = "    %62: i32 = load_index %90, %3\n";
  const auto text = [&](int arrivals, const std::string& last) {
    return litmus(role("one", 0, 1, first + kArrive) + role("reader", 1, 1, kWait + read) +
                      role("two", 2, 1, other + last),
                  {arrivals});
  };
  expect_clean(text(2, kArrive));
  expect_fault(text(1, ""), {"race", "atomic_add %90, %3, %2", "load_index", {}});
}

// A launch leaves its workspace zero, and finds nothing in scratch memory.
TEST(LitmusMemory, WhatLaunchesFindAndLeave) {
  const auto text = [](const std::string& body) {
    const std::string y = "inout Y: bf16[16, 16] = %92\n";
    return changed(litmus("  %45: i32 = constant {value = -1}\n" + role("one", 0, 1, body)), y,
                   y + "workspace count: i32[1] = %93\nscratch left: i32[1] = %94\n");
  };
  const auto add = [](int id, int value) {
    return fmt::format("    %{}: i32 = atomic_add %93, %0, %{}\n", id, value);
  };
  expect_clean(text(add(61, 45) + add(62, 1)));
  for (const int value : {45, 1}) {
    const MachineReport report = run_litmus(text(add(61, value)));
    ASSERT_FALSE(report.ok()) << value;
    EXPECT_EQ(report.faults[0].kind, "workspace");
    // It shows the last of the lines that change it.
    const MachineReport twice = run_litmus(text(add(61, value) + add(62, value)));
    ASSERT_FALSE(twice.ok()) << value;
    EXPECT_GT(report.faults[0].second.line, report.faults[0].first.line);
    EXPECT_EQ(twice.faults[0].second.line, report.faults[0].second.line + 1);
  }
  MachineTensor x("X", DType::i32, {64}), a("A", DType::bf16, {16, 16}),
      y("Y", DType::bf16, {16, 16});
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  const MachineReport read = run(text("    %61: i32 = load_index %94, %0\n"
                                      "    %62: i32 = atomic_add %90, %3, %61\n"),
                                 {&x, &a, &y});
  ASSERT_TRUE(read.ok()) << first_message(read);
  EXPECT_EQ(x.integer(3), -1);  // the bits of a NaN
  // A later launch finds what the one before has left there.
  OwnedMemory owned;
  MachineOptions options;
  options.owned = &owned;
  std::fill(x.bytes.begin(), x.bytes.end(), std::byte{0});
  const std::string leave = text(
      "    %61: i32 = load_index %94, %0\n    %62: i32 = atomic_add %90, %3, %61\n"
      "    warp_sync\n    store_index %94, %0, %7 {semantics = \"weak\"}\n");
  for (options.launch = 0; options.launch < 2; ++options.launch) {
    ASSERT_TRUE(run(leave, {&x, &a, &y}, options).ok());
  }
  EXPECT_EQ(x.integer(3), -1 + 7);
}

TEST(LitmusMemory, CtasOfOneLaunchAreNotOrdered) {
  const std::string store =
      "    store_registers %92, %30, %0, %0, %16, %16 {sizes = [16, 16], layout = "
      "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}\n";
  const auto text = [&](int grid) { return litmus(role("a", 0, 1, store), {1, 128, 1, grid}); };
  expect_clean(text(1));
  expect_fault(text(2),
               {"race", "store_registers", "store_registers", {"blocks of one launch are not"}});
  expect_clean(litmus(role("a", 0, 1, "    %61: i32 = atomic_add %90, %3, %1\n"), {1, 128, 1, 3}));
}

// Tiles from a counter, which store to the same place. A CTA that runs alone takes both of them.
TEST(LitmusMemory, CtasThatCountRunBesideEachOtherInSomeLaunches) {
  std::string body;
  for (int turn = 0; turn < 8; ++turn) {
    body += fmt::format(
        "    %{0}: i32 = atomic_add %90, %3, %1 {{semantics = \"relaxed\", scope = \"gpu\"}}\n"
        "    %{1}: bool = lt %{0}, %8\n"
        "    if_then %{1} () {{\n"
        "      store_registers %92, %30, %0, %0, %16, %16 {{sizes = [16, 16], layout = "
        "register_layout[16x16|r:8@1:2|l:2@1:1,16@0:1]}}\n      yield\n    }} () {{\n      yield\n "
        "   }}\n",
        61 + 2 * turn, 62 + 2 * turn);
  }
  const std::string text = litmus(role("a", 0, 1, body), {1, 128, 1, 2});
  ir::verify(ir::parse_text(text, "kernel.tw"));
  int found = 0;
  MachineOptions options;
  OwnedMemory owned;
  options.owned = &owned;
  for (options.seed = 0; options.seed < kLitmusSeeds; ++options.seed) {
    for (options.launch = 0; options.launch < 2; ++options.launch) {
      const MachineReport report = run_litmus(text, options);
      if (report.ok()) continue;
      ++found;
      EXPECT_EQ(report.faults[0].kind, "race");
      EXPECT_EQ((options.seed + options.launch) % 2, 1u);
    }
  }
  EXPECT_GT(found, 0);
}

// Wherever the host puts it.
TEST(LitmusMemory, ARaceInScratchNamesTheSameBytesInEveryRun) {
  const std::string y = "inout Y: bf16[16, 16] = %92\n";
  const std::string store =
      "    store_registers %93, %31, %0, %0, %16, %17 {sizes = [16, 8], layout = "
      "register_layout[16x8|r:2@1:1,2@0:8|l:4@1:2,8@0:1]}\n";
  const std::string text = changed(litmus(role("a", 0, 1, store), {1, 128, 1, 2}), y,
                                   y + "scratch left: f32[16, 32] = %93\n");
  ir::verify(ir::parse_text(text, "kernel.tw"));
  std::set<std::string> messages;
  std::vector<std::vector<std::int32_t>> others;
  for (std::size_t i = 0; i < 16; ++i) {
    others.emplace_back(508 + 20 * i);  // as long as the scratch memory, and longer
    const MachineReport report = run_litmus(text);
    ASSERT_FALSE(report.ok());
    messages.insert(report.faults[0].message);
  }
  EXPECT_EQ(messages.size(), 1u) << fmt::format("{}", fmt::join(messages, "\n"));
}

}  // namespace
}  // namespace tilewright::simulator
