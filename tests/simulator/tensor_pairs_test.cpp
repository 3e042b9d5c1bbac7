#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "common/error_text.h"
#include "simulator/litmus.h"

// Products of pairs of CTAs, and clusters that are taken over before they start. By the PTX ISA
// 9.0: nothing here was seen on a GPU.
namespace tilewright::simulator {
namespace {

// bf16, 256 x 64, both K-major; operands as in tensor_memory_test.cpp.
constexpr std::int64_t kPairInstruction = 0x10100490;
constexpr std::int64_t kPairDescriptor = 0x4000404000010000 >> 14;

const std::string kTake = "    tcgen05_alloc %5, %3, %0\n";
const std::string kGive = "    tcgen05_dealloc %5, %40\n";
const std::string kIfFirst = "    if_then %15 () {\n";
const std::string kElse = "      yield\n    } () {\n      yield\n    }\n";
const std::string kExpect = "      mbarrier_expect_tx %23, %0 {bytes = 40960}\n";
const std::string kCopyA = "    tma_load %20, %1, %0, %23, %0, %0, %16 {bytes = 16384, pair = 1}\n";
const std::string kCommitBoth = "      tcgen05_commit %24, %0 {multicast = 3}\n";
const std::string kMet =
    "    fence_cluster\n    warp_sync\n    mbarrier_arrive %25, %0, %0\n"
    "    mbarrier_arrive %25, %0, %7\n    mbarrier_wait %25, %0, %0\n    fence_cluster\n";

// The pair multiplies A [256, 64] and B [64, 64]^T, and each CTA stores its 128 rows to Y. %0 and
// %7 to %9 are 0, 1, 128 and 64, %10 true, %11 false, %14 the CTA's rank, %15 whether it is the
// first.
std::string pair_kernel() {
  std::string text = R"(kernel "litmus" machine
target "sm_100a"
in A: bf16[256, 64] = %90
in B: bf16[64, 64] = %91
inout Y: f32[256, 64] = %92
grid (2)
cluster 2
cta_pairs
threads 256
shared_bytes 20608
body () {
  %20: tensor_map = tensor_map %90 {name = "A map", box = [128, 64], swizzle = 128}
  %21: tensor_map = tensor_map %91 {name = "B map", box = [32, 64], swizzle = 128}
  %1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %2: shared<bf16, 1x32x64> = shared {name = "b", layout = shared_layout[32x64*2|32@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
  %3: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 20480}
  %23: mbarriers<1> = mbarriers {name = "loaded", arrivals = 1, offset = 20544}
  %24: mbarriers<1> = mbarriers {name = "done", arrivals = 1, offset = 20552}
  %25: mbarriers<1> = mbarriers {name = "met", arrivals = 8, offset = 20560}
  %5: tensor_memory<64> = tensor_memory {name = "d"}
  %6: tensor_memory<64> = tensor_memory {name = "other"}
  mbarrier_init %23 {arrivals = 1}
  mbarrier_init %24 {arrivals = 1}
  mbarrier_init %25 {arrivals = 8}
  fence_barrier_init
  cluster_sync
  %0: i32 = constant {value = 0}
  %7: i32 = constant {value = 1}
  %8: i32 = constant {value = 128}
  %9: i32 = constant {value = 64}
  %10: bool = constant {value = 1}
  %11: bool = constant {value = 0}
  %12: i32 = constant {value = 2097152}
  %13: i32 = constant {value = 32}
  %14: i32 = cluster_rank
  %15: bool = eq %14, %0
  %16: i32 = mul %14, %8
  %17: i32 = mul %14, %13
  role {name = "multiply", first_warp = 4, warps = 1} (%50: i32) {
)";
  text +=
      kTake + "    named_sync %0 {first = 1, threads = 160}\n    %40: i32 = shared_load %3, %0\n";
  text += kIfFirst + kExpect + kElse + kCopyA;
  text += "    tma_load %21, %2, %0, %23, %0, %0, %17 {bytes = 4096, pair = 1}\n";
  text += kIfFirst + "      mbarrier_wait %23, %0, %0\n";
  for (int step = 0; step < 4; ++step) {
    text += fmt::format(
        "      tcgen05_mma_ss %5, %40, %1, %0, %2, %0, {} {{m = 256, n = 64, k = 16, instruction = "
        "{}, descriptor_a = {}, descriptor_b = {}, step_a = {}, step_b = {}}}\n",
        step == 0 ? "%11" : "%10", kPairInstruction, kPairDescriptor, kPairDescriptor, 32 * step,
        32 * step);
  }
  text += kCommitBoth + kElse + "    tcgen05_relinquish\n";
  text += "    named_sync %0 {first = 2, threads = 160}\n" + kGive + R"(    yield
  }
  role {name = "read", first_warp = 0, warps = 4} (%51: i32) {
    %30: registers<f32, 64> = registers {name = "sums"}
    named_sync %0 {first = 1, threads = 160}
    %44: i32 = shared_load %3, %0
    %41: i32 = warp_index
    %42: i32 = mul %41, %12
    %43: i32 = add %44, %42
    mbarrier_wait %24, %0, %0
    tcgen05_fence_after
    tcgen05_ld %30, %5, %43 {count = 64, register = 0}
    tcgen05_wait_ld %30
    tcgen05_fence_before
    %45: i32 = add %16, %8
    store_registers %92, %30, %16, %0, %45, %9 {sizes = [128, 64], layout = register_layout[128x64|r:64@1:1|l:32@0:1|w:4@0:32]}
)";
  return text + kMet +
         "    named_sync %0 {first = 2, threads = 160}\n    yield\n  }\n  cluster_sync\n}\n";
}

std::string with(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

struct PairRun {
  MachineTensor a, b{"B", DType::bf16, {64, 64}}, y;
  MachineReport report;
  explicit PairRun(const std::string& text, std::uint64_t seed = 0, std::int64_t rows = 256)
      : a("A", DType::bf16, {rows, 64}), y("Y", DType::f32, {rows, 64}) {
    ir::verify(ir::parse_text(text, "kernel.tw"));
    a.randomise(1);
    b.randomise(2);
    MachineOptions options;
    options.seed = seed;
    options.strict = true;
    report = run(text, {&a, &b, &y}, options);
  }
};

constexpr std::uint64_t kPairSeeds = 6;

// In each schedule a fault, one of which is of the kind and has the text.
void expect_faults(const std::string& text, const std::string& kind, const std::string& message) {
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    const MachineReport report = PairRun(text, seed).report;
    ASSERT_FALSE(report.ok()) << "seed " << seed;
    const Fault& fault = report.faults[0];
    EXPECT_EQ(fault.kind, kind) << fault.message;
    EXPECT_THAT(fault.message + "\n" + fault.missing, testing::HasSubstr(message));
  }
}

void expect_products(const PairRun& run) {
  ASSERT_TRUE(run.report.ok()) << first_message(run.report);
  for (std::int64_t row = 0; row < run.y.shape[0]; ++row) {
    for (std::int64_t column = 0; column < 64; ++column) {
      double wanted = 0;
      for (std::int64_t k = 0; k < 64; ++k)
        wanted += double{run.a.at(row, k)} * run.b.at(column, k);
      ASSERT_EQ(run.y.at(row, column), wanted) << row << ", " << column;  // exact in f32
    }
  }
}

TEST(TensorPairsTest, EachCtaHasItsRowsOfTheProduct) {
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_products(PairRun(pair_kernel(), seed));
  }
}

// Each of two pairs of a cluster has its own commits.
TEST(TensorPairsTest, AClusterHasSeveralPairs) {
  std::string text = with(pair_kernel(), "A: bf16[256, 64]", "A: bf16[512, 64]");
  text = with(text, "Y: f32[256, 64]", "Y: f32[512, 64]");
  text = with(text, "grid (2)\ncluster 2", "grid (4)\ncluster 4");
  text = with(text, "  %15: bool = eq %14, %0\n",
              "  %60: i32 = constant {value = 2}\n  %61: i32 = mod %14, %60\n"
              "  %62: i32 = sub %14, %61\n  %63: i32 = add %62, %7\n  %15: bool = eq %61, %0\n");
  text = with(text, "%17: i32 = mul %14, %13", "%17: i32 = mul %61, %13");
  text = with(text, "{multicast = 3}", "{multicast = 3, multicast_group = 2}");
  text = with(text, "mbarrier_arrive %25, %0, %0", "mbarrier_arrive %25, %0, %62");
  text = with(text, "mbarrier_arrive %25, %0, %7", "mbarrier_arrive %25, %0, %63");
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    SCOPED_TRACE(seed);
    expect_products(PairRun(text, seed, 512));
  }
}

// The second CTA may be without rows of a tile.
TEST(TensorPairsTest, AResultThatOneOfThePairReadsIsRead) {
  const std::string after = "    tcgen05_fence_after\n", stored = "w:4@0:32]}\n";
  const std::string text =
      with(with(pair_kernel(), after, kIfFirst + after), stored, stored + kElse);
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    const MachineReport report = PairRun(text, seed).report;
    EXPECT_TRUE(report.ok()) << first_message(report);
  }
  // But it does not end before the commit has arrived there.
  const std::string wait = "    mbarrier_wait %24, %0, %0\n";
  expect_faults(with(with(text, wait, ""), kIfFirst + after, kIfFirst + wait + after), "exit",
                "done[0]");
}

// L13: nobody gives back what the other CTA may still use.
TEST(TensorPairsTest, BothCtasGiveBackWhatNeitherUses) {
  expect_faults(with(pair_kernel(), kMet, ""), "race", "tcgen05_dealloc");
  // Each of them has to know.
  const std::string wait = "    mbarrier_wait %25, %0, %0\n";
  for (const bool first : {true, false}) {
    const std::string one =
        first ? kIfFirst + wait + kElse
              : "    if_then %15 () {\n      yield\n    } () {\n" + wait + "      yield\n    }\n";
    expect_faults(with(pair_kernel(), kMet, with(kMet, wait, one)), "race", "tcgen05_dealloc");
  }
}

// L14: the first CTA expects the bytes of both.
TEST(TensorPairsTest, TheFirstCtaExpectsTheBytesOfBoth) {
  const std::string text =
      with(pair_kernel(), kExpect, "      mbarrier_expect_tx %23, %0 {bytes = 20480}\n");
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    EXPECT_FALSE(PairRun(text, seed).report.ok()) << "seed " << seed;
  }
}

TEST(TensorPairsTest, ACopyTellsTheFirstCta) {
  const std::string alone = with(kCopyA, ", pair = 1", "");
  const std::string text = with(pair_kernel(), kCopyA, alone);
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    EXPECT_FALSE(PairRun(text, seed).report.ok()) << "seed " << seed;
  }
}

TEST(TensorPairsTest, BothCtasHearOfACommit) {
  expect_faults(with(pair_kernel(), " {multicast = 3}", ""), "deadlock", "done[0]");
}

// L20, and who issues.
TEST(TensorPairsTest, TheFirstCtaIssuesProducts) {
  std::string text = with(pair_kernel(), "mbarrier_wait %23, %0, %0\n",
                          "mbarrier_wait %23, %0, %0\n      yield\n    } () {\n");
  text = with(text, kCommitBoth + kElse, kCommitBoth + "      yield\n    }\n");
  expect_faults(text, "tcgen05", "the second one of its pair");
}

// The second CTA is told that its copies are there, and not that the products are over.
TEST(TensorPairsTest, NeitherEndsWhileItsMemoryIsMultiplied) {
  const std::string after = "    tcgen05_fence_after\n", stored = "w:4@0:32]}\n",
                    wait = "    mbarrier_wait %24, %0, %0\n",
                    met = "    mbarrier_wait %25, %0, %0\n",
                    loaded = "      mbarrier_wait %23, %0, %0\n",
                    init = "  mbarrier_init %25 {arrivals = 8}\n",
                    place = "  %5: tensor_memory<64>";
  std::string text = with(pair_kernel(), wait, "");
  text = with(
      with(text, after, kIfFirst + wait + after), stored,
      stored + "      yield\n    } () {\n      mbarrier_wait %26, %0, %0\n      yield\n    }\n");
  text = with(with(text, " {multicast = 3}", ""), met, kIfFirst + met + kElse);
  text = with(
      text, place,
      "  %26: mbarriers<1> = mbarriers {name = \"told\", arrivals = 1, offset = 20568}\n" + place);
  text = with(with(text, init, init + "  mbarrier_init %26 {arrivals = 1}\n"), loaded,
              loaded + "      mbarrier_arrive %26, %0, %7\n");
  text = with(with(text, "  cluster_sync\n}\n", "}\n"), kGive, "");
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
    const MachineReport report = PairRun(text, seed).report;
    ASSERT_FALSE(report.ok()) << "seed " << seed;
    const Fault& fault = report.faults[0];
    found += fault.kind == "exit" &&
             fault.message.find("CTA 1 may end before its shared memory") != std::string::npos &&
             fault.message.find("tcgen05_mma_ss") != std::string::npos;
  }
  EXPECT_GT(found, 0u);
}

// What the first CTA issues behind the last that the second one does.
TEST(TensorPairsTest, NeitherHasEndedWhereTheFirstMultipliesOrCommits) {
  const auto is_found = [](const std::string& last, const std::string& message) {
    std::string text = with(pair_kernel(), kGive, kGive + kIfFirst + last + kElse);
    text = with(text, "  cluster_sync\n}\n", "}\n");
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < kPairSeeds; ++seed) {
      for (const Fault& fault : PairRun(text, seed).report.faults) {
        found += fault.kind == "exit" && fault.message.find(message) != std::string::npos;
      }
    }
    return found > 0;
  };
  std::string product = pair_kernel();
  product = product.substr(product.find("      tcgen05_mma_ss"));
  product = product.substr(0, product.find('\n') + 1);
  EXPECT_TRUE(is_found(product, "of which CTA 1 has ended"));
  EXPECT_TRUE(is_found(kCommitBoth, "done[0] of CTA 1, which has ended"));
}

TEST(TensorPairsTest, BothCtasAllocateInStep) {
  expect_faults(with(pair_kernel(), kGive, kIfFirst + "  " + kGive + kElse), "deadlock",
                "of its pair to execute the same");
  const std::string other = kIfFirst + "  " + kTake + "      yield\n    } () {\n" +
                            "      tcgen05_alloc %6, %3, %0\n      yield\n    }\n";
  expect_faults(with(pair_kernel(), kTake, other), "tensor_memory", "out of step");
}

TEST(TensorPairsTest, WhatNoPairHasIsRefused) {
  const auto problem = [](const std::string& text) {
    try {
      ir::verify(ir::parse_text(text, "kernel.tw"));
    } catch (const Error& error) {
      return test::without_source_lines(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(problem(pair_kernel()), "no error");
  EXPECT_THAT(problem(with(pair_kernel(), "cluster 2", "cluster 3")),
              testing::HasSubstr("cta_pairs in clusters of 3 CTAs"));
  EXPECT_THAT(problem(with(pair_kernel(), "cta_pairs\n", "")),
              testing::HasSubstr("the kernel has no cta_pairs"));
  EXPECT_THAT(problem(with(pair_kernel(), "m = 256", "m = 64")),
              testing::HasSubstr("m is 64, expected 128 or 256 of two CTAs"));
  EXPECT_THAT(problem(with(pair_kernel(), "multicast = 3", "multicast = 4")),
              testing::HasSubstr("multicast to CTAs 0b100 of groups of 2"));
}

// Each place in the grid once, by clusters that take over those that have not started. X: i32[8].
std::string asking_kernel(const std::string& wait, const std::string& again = "le %0, %31") {
  return R"(kernel "asks" machine
target "sm_100a"
inout X: i32[8] = %90
grid (8)
threads 32
shared_bytes 64
body () {
  %1: shared<i32, 1x1x4> = shared {name = "answer", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 0}
  %2: mbarriers<1> = mbarriers {name = "there", arrivals = 1, offset = 16}
  mbarrier_init %2 {arrivals = 1}
  fence_barrier_init
  cta_sync
  %0: i32 = constant {value = 0}
  %3: i32 = constant {value = 1}
  %4: bool = constant {value = 1}
  %5: i32 = cta_index
  role {name = "work", first_warp = 0, warps = 1} (%6: i32) {
    %20: i32, %21: i32 = while_loop %4, %5, %0 (%22: i32, %23: i32) {
      %30: i32 = atomic_add %90, %22, %3
      mbarrier_expect_tx %2, %0 {bytes = 16}
      try_cancel %1, %0, %2, %0
)" + wait +
         R"(      %31: i32 = query_cancel %1, %0
      fence_proxy_async
      warp_sync
      %32: bool = )" +
         again + R"(
      %33: i32 = sub %3, %23
      %34: i32 = max %31, %0
      yield %32, %34, %33
    }
    yield
  }
}
)";
}

const std::string kAnswered = "      mbarrier_wait %2, %0, %23\n";

MachineReport ask(const std::string& text, MachineTensor& x, std::uint64_t seed,
                  bool check_order = true) {
  ir::verify(ir::parse_text(text, "kernel.tw"));
  MachineOptions options;
  options.seed = seed;
  options.check_order = check_order;
  options.multiprocessors = 2;
  options.timing = true;
  return run(text, {&x}, options);
}

TEST(LaunchControlTest, EachPlaceIsWorkedOnOnce) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    MachineTensor x("X", DType::i32, {8});  // -1 each
    const MachineReport report = ask(asking_kernel(kAnswered), x, seed);
    ASSERT_TRUE(report.ok()) << first_message(report);
    EXPECT_THAT(report.words, testing::HasSubstr("whose place a cluster of asks takes over at"));
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(x.integer(i), 0) << "place " << i;
  }
}

// Who takes which place depends on the order where several clusters run, and on nothing where one
// runs after the other.
TEST(LaunchControlTest, TakesOverAsManyPlacesAsAreSaid) {
  for (const int resident : {1, 2}) {
    MachineTensor x("X", DType::i32, {8});
    MachineOptions options;
    options.resident = resident;
    options.timing = true;
    options.takes = 2;
    const MachineReport report = run(asking_kernel(kAnswered), {&x}, options);
    ASSERT_TRUE(report.ok()) << first_message(report);
    EXPECT_EQ(report.taken, 2);
    EXPECT_EQ(report.words.empty(), resident == 1) << report.words;
    for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(x.integer(i), 0) << "place " << i;
  }
}

// L17.
TEST(LaunchControlTest, NobodyAsksAgainBehindAnAnswerOfNone) {
  MachineTensor x("X", DType::i32, {8});
  const MachineReport report = ask(asking_kernel(kAnswered, "le %0, %0"), x, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "launch_control");
  EXPECT_THAT(report.faults[0].message, testing::HasSubstr("asks again after an answer of none"));
}

TEST(LaunchControlTest, AnAnswerIsThereBehindItsBarrier) {
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    MachineTensor x("X", DType::i32, {8});
    const MachineReport report = ask(asking_kernel(""), x, seed);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.faults[0].kind, "race") << report.faults[0].message;
  }
  // The answer before is no longer there while the next one is under way.
  const std::string first_alone = "      %40: bool = eq %23, %0\n      if_then %40 () {\n  " +
                                  kAnswered +
                                  "        yield\n      } () {\n        yield\n      }\n";
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    MachineTensor x("X", DType::i32, {8});
    const MachineReport report = ask(asking_kernel(first_alone), x, seed, false);
    found += !report.ok() && report.faults[0].kind == "uninitialised";
  }
  EXPECT_GT(found, 0u);
}

TEST(LaunchControlTest, AnAnswerIsAligned) {
  std::string text = with(asking_kernel(kAnswered), "shared<i32, 1x1x4>", "shared<i32, 1x1x8>");
  text = with(text, "shared_layout[1x4*4|4@1:4]", "shared_layout[1x8*4|8@1:4]");
  text = with(text, "offset = 16", "offset = 32");
  text = with(text, "try_cancel %1, %0", "try_cancel %1, %3");
  MachineTensor x("X", DType::i32, {8});
  const MachineReport report = ask(with(text, "query_cancel %1, %0", "query_cancel %1, %3"), x, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_THAT(report.faults[0].message, testing::HasSubstr("aligned"));
}

TEST(LaunchControlTest, NobodyEndsBeforeAnAnswerIsThere) {
  const std::string text =
      with(asking_kernel(""), "%31: i32 = query_cancel %1, %0", "%31: i32 = sub %0, %3");
  std::size_t found = 0;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    MachineTensor x("X", DType::i32, {8});
    const MachineReport report = ask(text, x, seed);
    found += !report.ok() && report.faults[0].kind == "exit";
  }
  EXPECT_EQ(found, 4u);
}

}  // namespace
}  // namespace tilewright::simulator
