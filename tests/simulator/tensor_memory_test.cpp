#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "simulator/litmus.h"

// Products in tensor memory, and what has to order who uses it. By the PTX ISA 9.0: nothing here
// was seen on a GPU.
namespace tilewright::simulator {
namespace {

// bf16, 128 x 64, both K-major; operands with a swizzle of 128 bytes, 1024 between 8 rows.
constexpr std::int64_t kInstruction = 0x08100490;
constexpr std::int64_t kDescriptor = 0x4000404000010000 >> 14;

std::string product(int step, const std::string& accumulate, const std::string& address = "%40") {
  return fmt::format(
      "    tcgen05_mma_ss %5, {}, %1, %0, %2, %0, {} {{m = 128, n = 64, k = 16, instruction = {}, "
      "descriptor_a = {}, descriptor_b = {}, step_a = {}, step_b = {}}}\n",
      address, accumulate, kInstruction, kDescriptor, kDescriptor, 32 * step, 32 * step);
}

std::string products() {
  std::string text = product(0, "%11");
  for (int step = 1; step < 4; ++step) text += product(step, "%10");
  return text;
}

const std::string kAlloc = "    tcgen05_alloc %5, %3, %0\n";
const std::string kSecond = "    tcgen05_alloc %6, %3, %7\n    %45: i32 = shared_load %3, %7\n";
const std::string kDealloc = "    tcgen05_dealloc %5, %40\n";
const std::string kCommit = "    tcgen05_commit %24, %0\n";
const std::string kAwaited = "    mbarrier_wait %24, %0, %0\n";
const std::string kAfter = "    tcgen05_fence_after\n";
const std::string kBefore = "    tcgen05_fence_before\n";
const std::string kLoad = "    tcgen05_ld %30, %5, %43 {count = 64, register = 0}\n";
const std::string kLoaded = "    tcgen05_wait_ld %30\n";
const std::string kWindow = "    %42: i32 = mul %41, %12\n";
const std::string kFreed = "    named_sync %0 {first = 2, threads = 160}\n";

// A warp multiplies A [128, 64] and B [64, 64]^T, and four read the result to Y. %0 to %9 are their
// numbers, %10 true, %11 false.
std::string kernel() {
  std::string text = R"(kernel "litmus" machine
target "sm_100a"
in A: bf16[128, 64] = %90
in B: bf16[64, 64] = %91
inout Y: f32[128, 64] = %92
grid (1)
threads 256
shared_bytes 24704
body () {
  %20: tensor_map = tensor_map %90 {name = "A map", box = [128, 64], swizzle = 128}
  %21: tensor_map = tensor_map %91 {name = "B map", box = [64, 64], swizzle = 128}
  %1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %2: shared<bf16, 1x64x64> = shared {name = "b", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
  %3: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 24576}
  %23: mbarriers<2> = mbarriers {name = "loaded", arrivals = 1, offset = 24640}
  %24: mbarriers<2> = mbarriers {name = "done", arrivals = 1, offset = 24656}
  %5: tensor_memory<64> = tensor_memory {name = "d"}
  %6: tensor_memory<64> = tensor_memory {name = "other"}
  mbarrier_init %23 {arrivals = 1}
  mbarrier_init %24 {arrivals = 1}
  fence_barrier_init
  cta_sync
  %0: i32 = constant {value = 0}
  %7: i32 = constant {value = 1}
  %8: i32 = constant {value = 128}
  %9: i32 = constant {value = 64}
  %10: bool = constant {value = 1}
  %11: bool = constant {value = 0}
  %12: i32 = constant {value = 2097152}
  role {name = "multiply", first_warp = 4, warps = 1} (%50: i32) {
)";
  text += kAlloc;
  text += R"(    named_sync %0 {first = 1, threads = 160}
    %40: i32 = shared_load %3, %0
    mbarrier_expect_tx %23, %0 {bytes = 24576}
    tma_load %20, %1, %0, %23, %0, %0, %0 {bytes = 16384}
    tma_load %21, %2, %0, %23, %0, %0, %0 {bytes = 8192}
    mbarrier_wait %23, %0, %0
)";
  text += products() + kCommit + "    tcgen05_relinquish\n" + kFreed + kDealloc;
  text += R"(    yield
  }
  role {name = "read", first_warp = 0, warps = 4} (%51: i32) {
    %30: registers<f32, 64> = registers {name = "sums"}
    named_sync %0 {first = 1, threads = 160}
    %44: i32 = shared_load %3, %0
    %41: i32 = warp_index
)";
  text += kWindow + "    %43: i32 = add %44, %42\n" + kAwaited + kAfter + kLoad + kLoaded + kBefore;
  text +=
      R"(    store_registers %92, %30, %0, %0, %8, %9 {sizes = [128, 64], layout = register_layout[128x64|r:64@1:1|l:32@0:1|w:4@0:32]}
)";
  return text + kFreed + "    yield\n  }\n}\n";
}

std::string changed(std::string text, const std::string& from, const std::string& to,
                    bool last = false) {
  const std::size_t at = last ? text.rfind(from) : text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}
std::string without(const std::string& passage) { return changed(kernel(), passage, ""); }

struct Execution {
  MachineTensor a{"A", DType::bf16, {128, 64}}, b{"B", DType::bf16, {64, 64}},
      y{"Y", DType::f32, {128, 64}};
  MachineReport report;
  explicit Execution(const std::string& text, std::uint64_t seed = 0) {
    ir::verify(ir::parse_text(text, "kernel.tw"));
    a.randomise(1);
    b.randomise(2);
    MachineOptions options;
    options.seed = seed;
    report = run(text, {&a, &b, &y}, options);
  }
};

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
TEST(TensorMemoryTest, AProductIsOverBehindItsCommit) {
  const std::string issued = "    named_sync %0 {first = 3, threads = 160}\n";
  expect_fault(changed(changed(kernel(), kCommit, kCommit + issued), kAwaited, issued), "race",
               "tensor memory, columns",
               "tcgen05_commit behind the product, and a wait for its barrier");
  expect_fault(without(kAfter), "race", "tcgen05_ld",
               "tcgen05_fence_after behind what orders the two");
  expect_fault(without(kCommit), "deadlock", "", "");
}

// L3: columns are given back once they have been read, and registers are there behind the wait.
TEST(TensorMemoryTest, ALoadIsOverBehindItsWait) {
  expect_fault(without(kLoaded), "tcgen05", "sums is being loaded", "tcgen05_wait_ld between them");
  expect_fault(without(kBefore), "race", "tcgen05_dealloc", "tcgen05_fence_before");
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
               "tcgen05_commit behind the product");
}

// L11: a warp reaches 32 lanes.
TEST(TensorMemoryTest, AWarpReadsItsOwnLanes) {
  expect_fault(changed(kernel(), kWindow, "    %42: i32 = mul %41, %0\n"), "tensor_memory",
               "d: lanes from 0 on, and the warp reaches lanes", "32 * warp_index()");
}

// L12: what is allocated is given back, once; and nothing is allocated behind relinquish.
TEST(TensorMemoryTest, ColumnsAreTakenAndGivenBack) {
  expect_fault(without(kDealloc), "tensor_memory", "d is held when CTA 0 ends",
               "tcgen05_dealloc before the kernel ends");
  expect_fault(changed(kernel(), kDealloc, kDealloc + kDealloc), "tensor_memory",
               "where it is not held", "one tcgen05_dealloc for each tcgen05_alloc");
  const std::string second = kSecond + "    tcgen05_dealloc %6, %45\n";
  EXPECT_TRUE(Execution(changed(kernel(), kCommit, kCommit + second)).report.ok());
  expect_fault(changed(kernel(), kDealloc, kDealloc + second), "tensor_memory",
               "other is allocated behind tcgen05_relinquish", "the allocation before it");
  std::string larger = changed(kernel(), "tensor_memory<64> = tensor_memory {name = \"other\"}",
                               "tensor_memory<128> = tensor_memory {name = \"other\"}");
  expect_fault(changed(larger, kCommit, kCommit + second), "tensor_memory",
               "takes 128 columns after an allocation of 64", "the largest allocation first");
  expect_fault(changed(kernel(), kCommit, kCommit + kSecond), "tensor_memory",
               "other is held when CTA 0 ends", "tcgen05_dealloc before the kernel ends");
}

// The address that is given has to be asked for: it need not be 0.
TEST(TensorMemoryTest, ColumnsOutsideAreNotUsed) {
  expect_fault(changed(kernel(), "    %43: i32 = add %44, %42\n",
                       "    %45: i32 = add %44, %42\n    %43: i32 = add %45, %7\n"),
               "tensor_memory", "and d has", "");
  expect_fault(changed(kernel(), kCommit,
                       "    %46: i32 = add %40, %12\n" + product(0, "%11", "%46") + kCommit),
               "tcgen05", "rows from lane 32 on", "");
}

// L15: nobody has written what the first product would add to.
TEST(TensorMemoryTest, TheFirstProductDoesNotAccumulate) {
  expect_fault(changed(kernel(), product(0, "%11"), product(0, "%10")), "uninitialised",
               "tensor memory d", "a first product that does not accumulate");
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

// What was stored by threads is read by products behind the wait for it, and two fences.
TEST(TensorMemoryTest, WhatThreadsStoreIsReadBack) {
  const std::string store = "    tcgen05_st %5, %43, %30 {count = 64, register = 0}\n";
  const std::string stored = "    tcgen05_wait_st\n";
  const std::string text = changed(kernel(), kBefore, store + stored + kLoad + kLoaded + kBefore);
  EXPECT_TRUE(Execution(text).report.ok()) << first_message(Execution(text).report);
  expect_fault(changed(text, stored, ""), "race", "tcgen05_st", "tcgen05_wait_st");
}

}  // namespace
}  // namespace tilewright::simulator
