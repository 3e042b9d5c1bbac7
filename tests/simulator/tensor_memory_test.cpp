#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "simulator/litmus.h"
#include "simulator/tensor_litmus.h"

// Products in tensor memory, and what has to order who uses it. By the PTX ISA 9.0: nothing here
// was seen on a GPU.
namespace tilewright::simulator {
namespace {

using tensor_litmus::changed;
using tensor_litmus::copied_kernel;
using tensor_litmus::Execution;
using tensor_litmus::kAfter;
using tensor_litmus::kAlloc;
using tensor_litmus::kAwaited;
using tensor_litmus::kBefore;
using tensor_litmus::kCommit;
using tensor_litmus::kDealloc;
using tensor_litmus::kDescriptor;
using tensor_litmus::kernel;
using tensor_litmus::kFreed;
using tensor_litmus::kInstruction;
using tensor_litmus::kLoaded;
using tensor_litmus::kSecond;
using tensor_litmus::kTensorLoad;
using tensor_litmus::kWindow;
using tensor_litmus::product;
using tensor_litmus::products;

std::string without(const std::string& passage) { return changed(kernel(), passage, ""); }

constexpr std::uint64_t kSeeds = 10;

// In each schedule a fault of the kind, the text of which has these.
void expect_fault(const std::string& text, const std::string& kind, const std::string& message,
                  const std::string& missing) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const MachineReport report = Execution(text, seed).report;
    ASSERT_FALSE(report.ok()) << "seed " << seed;
    const Fault& fault = report.faults[0];
    EXPECT_EQ(fault.kind, kind) << fault.message;
    EXPECT_THAT(fault.message, testing::HasSubstr(message));
    EXPECT_THAT(fault.missing, testing::HasSubstr(missing)) << fault.message;
    EXPECT_GT(fault.first.line, 0);
  }
}

TEST(TensorMemoryTest, AProductIsThatOfItsOperands) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Execution run(kernel(), seed);
    ASSERT_TRUE(run.report.ok()) << "seed " << seed << ": " << first_message(run.report);
    for (std::int64_t row = 0; row < 128; ++row) {
      for (std::int64_t column = 0; column < 64; ++column) {
        double wanted = 0;
        for (std::int64_t k = 0; k < 64; ++k)
          wanted += double{run.a.at(row, k)} * run.b.at(column, k);
        ASSERT_EQ(run.y.at(row, column), wanted) << row << ", " << column;  // exact in f32
      }
    }
  }
}

// L1, L2: what is read has to be committed, waited for and fenced.
// A fence of one lane is for that lane.
TEST(TensorMemoryTest, EachLaneHasItsFence) {
  expect_fault(changed(kernel(), kAwaited + kAfter,
                       kAwaited + "    elect () {\n  " + kAfter + "      yield\n    }\n"),
               "race", "tcgen05_ld", "tcgen05_fence_after behind what orders the two");
}

TEST(TensorMemoryTest, AProductIsOverBehindItsCommit) {
  const std::string issued = "    named_sync %0 {first = 3, threads = 160}\n";
  expect_fault(changed(changed(kernel(), kCommit, kCommit + issued), kAwaited, issued), "race",
               "tensor memory, columns",
               "Ring::commit or Barrier::commit, and who consumes or waits");
  expect_fault(without(kAfter), "race", "tcgen05_ld",
               "tcgen05_fence_after behind what orders the two");
  expect_fault(without(kCommit), "deadlock", "",
               "an arrival on done[0]: nothing in the kernel arrives there");
}

// L3: columns are given back once they have been read, and registers are there behind the wait.
TEST(TensorMemoryTest, ALoadIsOverBehindItsWait) {
  expect_fault(without(kLoaded), "tcgen05", "sums is being loaded", "tcgen05_wait_ld between them");
  expect_fault(without(kBefore), "race", "tcgen05_dealloc",
               "a ClusterBarrier that they wait for, before TensorMemory::free");
  expect_fault(changed(kernel(), kBefore, "    elect () {\n  " + kBefore + "      yield\n    }\n"),
               "race", "tcgen05_dealloc", "tcgen05_fence_before");
  // Read and not announced, the columns are multiplied into again.
  expect_fault(changed(changed(kernel(), kBefore, ""), kFreed, kFreed + products()), "race",
               "tcgen05_mma_ss",
               "tcgen05_fence_after (Ring::release or Barrier::arrive behind the load");
  // L13 of one CTA: nobody may use what is given back.
  expect_fault(changed(kernel(), kFreed, ""), "race", "tcgen05_dealloc",
               "tcgen05_commit behind the product, and a wait for its barrier");
}

// L5: products of one shape on one result are in order, others are not.
TEST(TensorMemoryTest, ProductsOfOtherShapesAreNotInOrder) {
  std::string other = product(3, "%10");
  other = changed(other, "n = 64", "n = 32");
  other = changed(other, std::to_string(kInstruction), std::to_string(0x08080490));
  expect_fault(changed(kernel(), product(3, "%10"), other), "race", "tcgen05_mma_ss",
               "a commit and a wait between products of other shapes");
}

// L8: an arrival does not wait for a product that still reads its operands.
TEST(TensorMemoryTest, OperandsAreReadUntilTheCommitIsOver) {
  const std::string again =
      "    mbarrier_expect_tx %23, %7 {bytes = 16384}\n"
      "    tma_load %20, %1, %0, %23, %7, %0, %0 {bytes = 16384}\n"
      "    mbarrier_wait %23, %7, %0\n";
  const std::string wait = "    mbarrier_wait %24, %7, %0\n";
  const std::string arrive = "    mbarrier_arrive %24, %7\n";
  const std::string commit = "    tcgen05_commit %24, %7\n";
  const std::string text = kernel();
  EXPECT_TRUE(Execution(changed(text, kCommit, kCommit + commit + wait + again)).report.ok());
  expect_fault(changed(text, kCommit, kCommit + arrive + wait + again), "race", "shared a",
               "Ring::release_behind_products in place of release");
}

// L11: a warp reaches 32 lanes.
TEST(TensorMemoryTest, AWarpReadsItsOwnLanes) {
  expect_fault(changed(kernel(), kWindow, "    %42: i32 = mul %41, %0\n"), "tensor_memory",
               "d: lanes from 0 on, and the warp reaches lanes", "32 * warp_index()");
  // 16 lanes begin where its own do, or in the middle of them.
  const auto half = [](int lane) {
    return changed(kernel(), kTensorLoad,
                   fmt::format("    %61: i32 = constant {{value = {}}}\n"
                               "    %62: i32 = add %43, %61\n"
                               "    tcgen05_ld %30, %5, %62 {{count = 32, register = 0, "
                               "row_bytes = 16}}\n",
                               lane << 16));
  };
  for (const int lane : {8, 24}) {
    expect_fault(half(lane), "tensor_memory", "and the warp reaches lanes", "32 * warp_index()");
  }
  // Windows begin where its own does.
  expect_fault(
      changed(half(16), "count = 32, register = 0, row_bytes = 16", "count = 32, register = 0"),
      "tensor_memory", "and the warp reaches lanes", "32 * warp_index()");
  for (const int lane : {0, 16}) {
    const MachineReport report = Execution(half(lane), 0).report;
    EXPECT_THAT(first_message(report), testing::Not(testing::HasSubstr("reaches lanes")));
  }
}

// L12: what is allocated is given back, once; and nothing is allocated behind relinquish.
TEST(TensorMemoryTest, ColumnsAreTakenAndGivenBack) {
  expect_fault(without(kDealloc), "tensor_memory", "d is held when CTA 0 ends",
               "tcgen05_dealloc (TensorMemory::free) before the kernel ends");
  expect_fault(changed(kernel(), kDealloc, kDealloc + kDealloc), "tensor_memory",
               "where it is not held", "TensorMemory::allocate and free, once each");
  expect_fault(changed(kernel(), kDealloc, "    tcgen05_dealloc %6, %40\n"), "tensor_memory",
               "other is given back at lane 0", "one tcgen05_dealloc for each tcgen05_alloc");
  const std::string second = kSecond + "    tcgen05_dealloc %6, %45\n";
  EXPECT_TRUE(Execution(changed(kernel(), kCommit, kCommit + second)).report.ok());
  expect_fault(changed(kernel(), kDealloc, kDealloc + second), "tensor_memory",
               "other is allocated behind tcgen05_relinquish", "the allocation before it");
  std::string larger = changed(kernel(), "tensor_memory<64> = tensor_memory {name = \"other\"}",
                               "tensor_memory<128> = tensor_memory {name = \"other\"}");
  expect_fault(changed(larger, kCommit, kCommit + second), "tensor_memory",
               "takes 128 columns after an allocation of 64", "the largest allocation first");
  expect_fault(changed(kernel(), kCommit, kCommit + kSecond), "tensor_memory",
               "other is held when CTA 0 ends",
               "tcgen05_dealloc (TensorMemory::free) before the kernel ends");
}

// L19: CTAs of one multiprocessor share its columns. Who finds too few waits until another one
// gives some back, which nobody does who waits for more himself.
TEST(TensorMemoryTest, ACtaWaitsForColumnsOfAnother) {
  const auto columns = [](int first, const std::string& second) {
    return fmt::format(R"(kernel "columns" machine
target "sm_100a"
grid (3)
threads 32
shared_bytes 32
body () {{
  %3: shared<i32, 1x1x4> = shared {{name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 0}}
  %5: tensor_memory<{0}> = tensor_memory {{name = "d"}}
  %6: tensor_memory<256> = tensor_memory {{name = "other"}}
  %0: i32 = constant {{value = 0}}
  %7: i32 = constant {{value = 1}}
  role {{name = "take", first_warp = 0, warps = 1}} (%50: i32) {{
    tcgen05_alloc %5, %3, %0
    %40: i32 = shared_load %3, %0
{1}    tcgen05_dealloc %5, %40
    yield
  }}
}}
)",
                       first, second);
  };
  const std::string more =
      "    tcgen05_alloc %6, %3, %7\n    %45: i32 = shared_load %3, %7\n"
      "    tcgen05_dealloc %6, %45\n";
  const MachineReport beyond = run(columns(512, more), {}, {});
  EXPECT_EQ(beyond.faults.at(0).missing, "a tcgen05_dealloc (TensorMemory::free) before it");
  std::string found;
  for (std::uint64_t seed = 0; seed < 2 * kSeeds; ++seed) {
    const MachineOptions both{.seed = seed, .resident = 2};
    const MachineReport alone = run(columns(512, ""), {}, both);
    EXPECT_TRUE(alone.ok()) << first_message(alone);
    EXPECT_TRUE(run(columns(256, more), {}, {.seed = seed}).ok());
    const MachineReport report = run(columns(256, more), {}, both);
    if (!report.ok()) found = report.faults[0].message + report.faults[0].missing;
  }
  EXPECT_THAT(found, testing::AllOf(testing::HasSubstr("deadlock: 2 warps wait"),
                                    testing::HasSubstr("256 columns for other: of 512 on its "
                                                       "multiprocessor CTA"),
                                    testing::HasSubstr("cycle: "),
                                    testing::HasSubstr("one tcgen05_alloc of all columns")));
}

// A warp takes 32 columns and stores to two of them, and `again` may stand before it loads these.
std::string one_warp(const std::string& dtype, int elements, const std::string& again = "") {
  return fmt::format(R"(kernel "columns" machine
target "sm_100a"
inout Y: i32[32, 2] = %92
grid (1)
threads 32
shared_bytes 16
body () {{
  %3: shared<i32, 1x1x4> = shared {{name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 0}}
  %5: tensor_memory<32> = tensor_memory {{name = "d"}}
  %0: i32 = constant {{value = 0}}
  %7: i32 = constant {{value = 2}}
  %8: i32 = constant {{value = 32}}
  role {{name = "take", first_warp = 0, warps = 1}} (%50: i32) {{
    %30: registers<{0}, {1}> = registers {{name = "given"}}
    %31: registers<i32, 2> = registers {{name = "taken"}}
    %47: {0} = constant {{value = 1.5}}
    fill %30, %47
    tcgen05_alloc %5, %3, %0
    %40: i32 = shared_load %3, %0
    tcgen05_st %5, %40, %30 {{count = 2, register = 0}}
    tcgen05_wait_st
{2}    %41: i32 = shared_load %3, %0
    tcgen05_ld %31, %5, %41 {{count = 2, register = 0}}
    tcgen05_wait_ld %31
    store_registers %92, %31, %0, %0, %8, %7 {{sizes = [32, 2], layout = register_layout[32x2|r:2@1:1|l:32@0:1]}}
    tcgen05_dealloc %5, %41
    yield
  }}
}}
)",
                     dtype, elements, again);
}

// Narrow elements are packed.
TEST(TensorMemoryTest, AColumnHas32Bits) {
  const auto bits = [](const std::string& dtype, int elements) {
    MachineTensor y("Y", DType::i32, {32, 2});
    const MachineReport report = run(one_warp(dtype, elements), {&y});
    EXPECT_TRUE(report.ok()) << first_message(report);
    for (std::size_t i = 1; i < 64; ++i) EXPECT_EQ(y.integer(i), y.integer(0)) << i;
    return y.integer(0);
  };
  EXPECT_EQ(bits("f32", 2), 0x3fc00000);
  EXPECT_EQ(bits("bf16", 4), 0x3fc03fc0);
  EXPECT_EQ(bits("f16", 4), 0x3e003e00);
  EXPECT_EQ(bits("f8e4m3", 8), 0x3c3c3c3c);
}

TEST(TensorMemoryTest, ColumnsThatAreTakenAgainHoldNothing) {
  MachineTensor y("Y", DType::i32, {32, 2});
  const MachineReport report =
      run(one_warp("f32", 2, "    tcgen05_dealloc %5, %40\n    tcgen05_alloc %5, %3, %0\n"), {&y});
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "uninitialised") << report.faults[0].message;
  EXPECT_NE(report.faults[0].missing.find("a wait for its commit"), std::string::npos);
}

// What a product leaves is for somebody: a result that nobody reads is that of another's columns.
TEST(TensorMemoryTest, SomebodyReadsAResult) {
  const std::string other =
      changed(product(0, "%11", "%45"), "tcgen05_mma_ss %5", "tcgen05_mma_ss %6");
  const std::string freed = "    tcgen05_dealloc %6, %45\n";
  const std::string beside = changed(kernel(), kCommit, kSecond + other + kCommit);
  expect_fault(changed(beside, kDealloc, freed + kDealloc), "tensor_memory",
               "nobody reads the result in columns 0 to 63 of other", "a load of these columns");
  // Nor one that another product takes the place of; one that is added to is no loss.
  expect_fault(changed(kernel(), product(3, "%10"), product(3, "%11")), "tensor_memory",
               "nobody reads the result in columns 0 to 63 of d", "a load of these columns");
  // One of which a part is left may still be read.
  const std::string awaited =
      "    tcgen05_commit %24, %7\n    mbarrier_wait %24, %7, %0\n" + kAfter;
  std::string half = changed(product(0, "%11"), "n = 64", "n = 32");
  half = changed(half, std::to_string(kInstruction), std::to_string(0x08080490));
  const MachineReport left =
      Execution(changed(kernel(), kCommit, awaited + half + kCommit), 0).report;
  EXPECT_TRUE(left.ok()) << first_message(left);
  // Nor one over which rows are copied.
  std::string narrow = changed(other, "m = 128, n = 64", "m = 64, n = 8");
  narrow = changed(narrow, std::to_string(kInstruction), std::to_string(0x04020490));
  const std::string over =
      awaited + fmt::format(
                    "    tcgen05_cp %6, %45, %1, %0 {{m = 128, row_bytes = 32, "
                    "descriptor_a = {}}}\n",
                    kDescriptor);
  expect_fault(changed(changed(kernel(), kCommit, kSecond + narrow + over + kCommit), kDealloc,
                       freed + kDealloc),
               "tensor_memory", "lose   tcgen05_cp", "a load of these columns");
}

// Of 64 rows a result has one half of each window's lanes, and another one may have the other half.
TEST(TensorMemoryTest, SomebodyReadsTheResultOfEachHalf) {
  std::string lower = changed(product(0, "%11", "%45"), "tcgen05_mma_ss %5", "tcgen05_mma_ss %6");
  lower = changed(lower, "m = 128, n = 64", "m = 64, n = 8");
  lower = changed(lower, std::to_string(kInstruction), std::to_string(0x04020490));
  const std::string upper =
      fmt::format("    %61: i32 = constant {{value = {}}}\n    %62: i32 = add %45, %61\n",
                  16 << 16) +
      changed(lower, "%45", "%62");
  const std::string in_half = " {count = 4, register = 0, row_bytes = 16}\n";
  const std::string read = kAwaited + kAfter +
                           "    %34: registers<f32, 4> = registers {name = \"low\"}\n"
                           "    tcgen05_ld %34, %6, %45" +
                           in_half + "    tcgen05_wait_ld %34\n";
  const std::string also =
      "    %35: registers<f32, 4> = registers {name = \"high\"}\n"
      "    tcgen05_ld %35, %6, %62" +
      in_half + "    tcgen05_wait_ld %35\n";
  const auto kernel_of = [&](const std::string& reads) {
    const std::string multiplied = kSecond + lower + upper + kCommit + reads + kBefore;
    return changed(changed(kernel(), kCommit, multiplied), kDealloc,
                   "    tcgen05_dealloc %6, %45\n" + kDealloc);
  };
  const MachineReport report = Execution(kernel_of(read + also), 0).report;
  EXPECT_TRUE(report.ok()) << first_message(report);
  expect_fault(kernel_of(read), "tensor_memory", "nobody reads the result in columns 0 to 7",
               "a load of these columns");
}

// The address that is given has to be asked for: it need not be 0.
TEST(TensorMemoryTest, ColumnsOutsideAreNotUsed) {
  expect_fault(changed(kernel(), "    %43: i32 = add %44, %42\n",
                       "    %45: i32 = add %44, %42\n    %43: i32 = add %45, %7\n"),
               "tensor_memory", "and d has", "");
  expect_fault(changed(kernel(), kCommit,
                       "    %46: i32 = add %40, %12\n" + product(0, "%11", "%46") + kCommit),
               "tcgen05", "rows from lane 32 on", "");
  // Of 64 rows a and the result are in the same half of the lanes.
  const std::string first = fmt::format(
      "    tcgen05_mma_ts %5, %40, %6, %70, %2, %0, %11 {{m = 128, n = 64, k = 16, instruction = "
      "{}",
      kInstruction);
  const std::string half = fmt::format(
      "    %46: i32 = constant {{value = 1048576}}\n    %47: i32 = add %70, %46\n"
      "    tcgen05_mma_ts %5, %40, %6, %47, %2, %0, %11 {{m = 64, n = 64, k = 16, instruction = {}",
      0x04100490);
  expect_fault(changed(copied_kernel(), first, half), "tcgen05",
               "a from lane 16 on and the result from lane 0 on", "");
}

// L15: nobody has written what the first product would add to.
TEST(TensorMemoryTest, TheFirstProductDoesNotAccumulate) {
  const std::string text = changed(kernel(), product(0, "%11"), product(0, "%10"));
  expect_fault(text, "uninitialised", "tensor memory d",
               "a first product that does not accumulate");
  // Also where nothing is computed.
  const MachineReport report = Execution(text, 0, {.control_only = true}).report;
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "uninitialised") << report.faults[0].message;
}

// Nobody may take it for granted that columns begin at 0.
TEST(TensorMemoryTest, ColumnsDoNotBeginAtZero) {
  const std::string reads = "    %40: i32 = shared_load %3, %0\n";
  EXPECT_TRUE(Execution(kernel()).report.ok());
  expect_fault(changed(kernel(), reads, "    %40: i32 = constant {value = 0}\n"), "tensor_memory",
               "columns 0 to 63, and d has 448 to 511", "");
}

TEST(TensorMemoryTest, NothingFollowsWhereItsElementsComeFrom) {
  const std::string text = kernel();
  try {
    const Execution execution(text, 0, {.provenance = true});
    FAIL() << "nothing was raised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    EXPECT_NE(std::string(error.what()).find("leaves its own in tensor memory"), std::string::npos)
        << error.what();
  }
}

TEST(TensorMemoryTest, DescriptorsAreDecoded) {
  const std::string no_version = std::to_string(kDescriptor & ~(std::int64_t{1} << 32));
  std::string text = product(0, "%11");
  text = changed(text, "descriptor_a = " + std::to_string(kDescriptor),
                 "descriptor_a = " + no_version);
  expect_fault(changed(kernel(), product(0, "%11"), text), "tcgen05", "bits 46 to 48 are 0", "");
}

TEST(TensorMemoryTest, AProductIsCommittedBeforeItsWarpEnds) {
  const std::string other =
      changed(product(0, "%11", "%45"), "tcgen05_mma_ss %5", "tcgen05_mma_ss %6");
  expect_fault(changed(kernel(), kCommit, kCommit + kSecond + other), "tcgen05",
               "a product may be in flight when its warp ends", "tcgen05_commit");
}

// L4. What was stored by threads is read by products behind the wait for it, and two fences.
TEST(TensorMemoryTest, WhatThreadsStoreIsReadBack) {
  const std::string store = "    tcgen05_st %5, %43, %30 {count = 64, register = 0}\n";
  const std::string stored = "    tcgen05_wait_st\n";
  const std::string text =
      changed(kernel(), kBefore, store + stored + kTensorLoad + kLoaded + kBefore);
  EXPECT_TRUE(Execution(text).report.ok()) << first_message(Execution(text).report);
  expect_fault(changed(text, stored, ""), "race", "tcgen05_st", "tcgen05_wait_st");
}

// L7: products read what threads wrote to shared memory behind a fence of the writers.
TEST(TensorMemoryTest, WhatThreadsWriteToSharedMemoryIsFencedForProducts) {
  const std::string write =
      "    %47: bf16 = constant {value = 1.0}\n"
      "    %31: registers<bf16, 8> = registers {name = \"ones\"}\n    fill %31, %47\n"
      "    store_matrix %31, %1, %0, %0 {register = 0, row_bytes = 128, column_bytes = 0, "
      "swizzle_divisor = 128, swizzle_mask = 7}\n";
  const std::string fence = "    fence_proxy_async\n    warp_sync\n";
  const std::string text = changed(kernel(), product(0, "%11"), write + fence + product(0, "%11"));
  EXPECT_TRUE(Execution(text).report.ok()) << first_message(Execution(text).report);
  expect_fault(changed(text, fence, "    warp_sync\n"), "proxy", "", "fence_proxy_async");
}

// L9: a commit is of the products of its own thread. One by another warp waits for none of them.
TEST(TensorMemoryTest, ACommitIsOfItsOwnThreadsProducts) {
  std::string text = changed(kernel(), kCommit, "    tcgen05_commit %24, %7\n");
  text = changed(text, kAwaited, "    tcgen05_commit %24, %0\n" + kAwaited);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_FALSE(Execution(text, seed).report.ok()) << "seed " << seed;
  }
}

// A commit tells nothing of what threads wrote before it, not even of what one lane wrote.
TEST(TensorMemoryTest, ACommitTellsNothingOfWhatLanesWrote) {
  const std::string write = "    elect () {\n      shared_store %3, %7, %7\n      yield\n    }\n";
  const std::string read = "    %46: i32 = shared_load %3, %7\n";
  const std::string text = changed(kernel(), kAwaited, kAwaited + read);
  expect_fault(changed(text, kCommit, write + kCommit), "race", "shared_load", "");
  expect_fault(changed(text, kCommit, write + "    warp_sync\n" + kCommit), "race", "shared_load",
               "");
}

// L10: a fresh barrier passes a wait for the phase before, and holds one for its own.
// Two are for the phase that is waited for, as far as their thread knows, and so would a third be.
TEST(TensorMemoryTest, ACommitCountsForThePhaseThatItsThreadKnowsOf) {
  std::string text = changed(kernel(), "\"done\", arrivals = 1", "\"done\", arrivals = 2");
  text = changed(text, "mbarrier_init %24 {arrivals = 1", "mbarrier_init %24 {arrivals = 2");
  const std::string twice = changed(text, kCommit, kCommit + kCommit);
  const std::string thrice = changed(twice, kCommit, kCommit + kCommit);
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const MachineReport sure = Execution(twice, seed, {.timing = true}).report;
    ASSERT_TRUE(sure.ok()) << first_message(sure);
    EXPECT_EQ(sure.timing + sure.words, "");
    const MachineReport unsure = Execution(thrice, seed, {.timing = true}).report;
    ASSERT_TRUE(unsure.ok()) << first_message(unsure);
    EXPECT_THAT(unsure.timing, testing::HasSubstr("the phase of done[0] that an arrival counts"));
  }
}

TEST(TensorMemoryTest, AFreshBarrierIsNotPrimed) {
  const std::string before = "    mbarrier_wait %24, %7, %7\n";
  EXPECT_TRUE(Execution(changed(kernel(), kAlloc, kAlloc + before)).report.ok());
  expect_fault(changed(kernel(), kAlloc, kAlloc + "    mbarrier_wait %24, %7, %0\n"), "deadlock",
               "", "");
  // Priming it with an arrival completes the phase that the commit should: the wait for it is over
  // before the products are.
  const std::string primed = changed(kernel(), kAlloc, kAlloc + "    mbarrier_arrive %24, %0\n");
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    EXPECT_FALSE(Execution(primed, seed).report.ok()) << "seed " << seed;
  }
}

// The largest error of A times B^T, or times B, of which the first columns are shifted down by a
// row.
double largest_error(const Execution& run, bool transposed = true,
                     std::int64_t shifted_columns = 0) {
  double largest = 0;
  for (std::int64_t row = 0; row < 128; ++row) {
    for (std::int64_t column = 0; column < 64; ++column) {
      const std::int64_t from = row - (row > 0 && column < shifted_columns ? 1 : 0);
      double wanted = 0;
      for (std::int64_t k = 0; k < 64; ++k) {
        wanted +=
            double{run.a.at(from, k)} * (transposed ? run.b.at(column, k) : run.b.at(k, column));
      }
      largest = std::max(largest, std::abs(run.y.at(row, column) - wanted));
    }
  }
  return largest;
}

// A step along k of an operand with a swizzle is 32 bytes on, whoever says otherwise in its bits.
TEST(TensorMemoryTest, AWrongStepIsAWrongResult) {
  std::string step = product(1, "%10");
  step = changed(step, "step_b = 32", "step_b = 64");
  const Execution run(changed(kernel(), product(1, "%10"), step));
  EXPECT_GT(largest_error(run), 1) << "the literal bits decide";
}

// L18: of an operand whose k is not contiguous a step is 16 rows of the swizzle on.
TEST(TensorMemoryTest, AStepAcrossRowsIsNotOneAlongThem) {
  const auto with_step = [](int bytes) {
    std::string text = kernel();
    for (int step = 0; step < 4; ++step) {
      const std::string before = product(step, step == 0 ? "%11" : "%10");
      std::string other = changed(before, std::to_string(kInstruction),
                                  std::to_string(kInstruction | std::int64_t{1} << 16));
      other = changed(other, fmt::format("step_b = {}}}", 32 * step),
                      fmt::format("step_b = {}, transpose_b = 1}}", bytes * step));
      text = changed(text, before, other);
    }
    return text;
  };
  const Execution run(with_step(16 * 128));
  ASSERT_TRUE(run.report.ok()) << first_message(run.report);
  EXPECT_EQ(largest_error(run, /*transposed=*/false), 0);
  EXPECT_GT(largest_error(Execution(with_step(32)), /*transposed=*/false), 1);
}

// L6: a product behind a copy is in order, a copy behind a product is not.
TEST(TensorMemoryTest, ACopyComesBeforeItsProductAlone) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const Execution run(copied_kernel(), seed);
    ASSERT_TRUE(run.report.ok()) << first_message(run.report);
    EXPECT_EQ(largest_error(run), 0);
  }
  const std::string again =
      fmt::format("    tcgen05_cp %6, %70, %1, %0 {{m = 128, row_bytes = 32, descriptor_a = {}}}\n",
                  kDescriptor);
  expect_fault(copied_kernel(again), "race", "tcgen05_cp", "a commit and a wait before the copy");
  expect_fault(changed(kernel(), kCommit, changed(again, "%6, %70", "%5, %40") + kCommit), "race",
               "tcgen05_cp", "a commit and a wait before the copy");
  EXPECT_TRUE(Execution(copied_kernel(again), 0, {.issue_order = true}).report.ok());
}

// Of 32 rows each window gets all: columns 4 j to 4 j + 3 have the j-th 16 bytes of A's rows,
// twice.
TEST(TensorMemoryTest, ThirtyTwoRowsGoToEachWindow) {
  std::string copies;
  for (int j = 0; j < 16; ++j) {
    copies += fmt::format(
        "    %{0}: i32 = constant {{value = {2}}}\n    %{1}: i32 = add %40, %{0}\n"
        "    tcgen05_cp %5, %{1}, %1, %0 {{m = 32, row_bytes = 16, descriptor_a = {3}, step_a = "
        "{4}}}\n",
        100 + j, 200 + j, 4 * j, kDescriptor, 16 * (j % 8));
  }
  const Execution run(changed(kernel(), products(), copies));
  ASSERT_TRUE(run.report.ok()) << first_message(run.report);
  for (std::size_t row = 0; row < 128; ++row) {
    for (std::size_t column = 0; column < 64; ++column) {
      ASSERT_EQ(run.y.integer(64 * row + column), run.a.integer(32 * (row % 32) + column % 32))
          << row << ", " << column;
    }
  }
}

// Each lane but the first has what the one before it had: of 8 columns, behind the product.
TEST(TensorMemoryTest, AShiftMovesRowsDown) {
  const Execution run(changed(kernel(), kCommit, "    tcgen05_shift %5, %40\n" + kCommit));
  ASSERT_TRUE(run.report.ok()) << first_message(run.report);
  EXPECT_EQ(largest_error(run, true, 8), 0);
  const std::string freed = "    tcgen05_dealloc %6, %45\n";
  expect_fault(
      changed(changed(kernel(), kCommit, kSecond + "    tcgen05_shift %6, %45\n" + kCommit),
              kDealloc, freed + kDealloc),
      "uninitialised", "all that it shifts", "");
}

// L16: weights over scores. The next scores may not come while a product reads the weights, unless
// the pipe keeps the order of issue; and the weights not while the scores are read.
TEST(TensorMemoryTest, WeightsOverScoresAreInUseUntilTheirProductIsOver) {
  std::string next = changed(product(0, "%11", "%45"), "tcgen05_mma_ss %5", "tcgen05_mma_ss %6");
  const std::string read =
      kAwaited + kAfter +
      "    %34: registers<f32, 64> = registers {name = \"next\"}\n"
      "    tcgen05_ld %34, %6, %45 {count = 64, register = 0}\n    tcgen05_wait_ld %34\n" +
      kBefore;
  const std::string over = changed(copied_kernel(next), kCommit, kCommit + read);
  expect_fault(over, "race", "tcgen05_mma_ss",
               "a commit and a wait between products of other shapes, or on other columns");
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const MachineReport report = Execution(over, seed, {.issue_order = true}).report;
    EXPECT_TRUE(report.ok()) << first_message(report);
  }
  const std::string weights =
      "    %47: f32 = constant {value = 1.0}\n"
      "    %33: registers<f32, 64> = registers {name = \"weights\"}\n    fill %33, %47\n"
      "    tcgen05_st %5, %43, %33 {count = 64, register = 0}\n    tcgen05_wait_st\n";
  EXPECT_TRUE(Execution(changed(kernel(), kLoaded, kLoaded + weights)).report.ok());
  expect_fault(changed(kernel(), kLoaded, weights + kLoaded), "race", "tcgen05_st",
               "tcgen05_wait_ld behind the first");
}

}  // namespace
}  // namespace tilewright::simulator
