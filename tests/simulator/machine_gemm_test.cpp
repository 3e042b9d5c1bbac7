#include <fmt/format.h>

#include "simulator/machine_kernels.h"

namespace tilewright::simulator {
namespace {

using ::testing::HasSubstr;

MachineReport run_gemm(const std::string& text, std::uint64_t seed, std::int64_t k = 256) {
  GemmTensors tensors(64, 128, k);
  return run_seed(text, {&tensors.a, &tensors.b, &tensors.c}, seed);
}

// The first fault of the kind over some schedules, whatever other faults it brings.
Fault find_fault(const std::string& text, const std::string& kind, int second_line = 0) {
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    GemmTensors tensors(64, 128, 256);
    MachineOptions options;
    options.seed = seed;
    options.stop_at_first = false;
    const MachineReport report = run(text, {&tensors.a, &tensors.b, &tensors.c}, options);
    for (const Fault& fault : report.faults) {
      if (fault.kind != kind) continue;
      if (second_line == 0 || fault.second.line == second_line) return fault;
    }
  }
  ADD_FAILURE() << "no schedule shows a fault of kind " << kind;
  return {};
}

TEST(MachineGemm, IsWellFormed) { ir::verify(ir::parse_text(gemm_text(), "kernel.tw")); }

TEST(MachineGemm, MatchesFloat64OnManySchedules) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GemmTensors tensors(100, 256, 320);
    MachineOptions options;
    options.seed = seed;
    options.resident = 1 + static_cast<std::int64_t>(seed % 3);
    const MachineReport report = run(gemm_text(), {&tensors.a, &tensors.b, &tensors.c}, options);
    ASSERT_TRUE(report.ok()) << "seed " << seed << "\n" << first_message(report);
    ASSERT_LT(tensors.error(), 1e-6) << "seed " << seed;
    // 4 CTAs, 5 blocks of k, 4 steps each, 4 warps.
    EXPECT_EQ(report.instructions.at("wgmma_ss"), 4 * 5 * 4 * 4);
    EXPECT_EQ(report.instructions.at("tma_load"), 4 * 5 * 2);
  }
}

TEST(MachineGemm, RepeatsFromASeed) {
  const std::string broken = changed(gemm_text(), "wgmma_wait %61 {count = 0}\n", "");
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    const MachineReport a = run_gemm(broken, seed), b = run_gemm(broken, seed);
    EXPECT_EQ(a.operations, b.operations);
    EXPECT_EQ(first_message(a), first_message(b));
  }
}

TEST(MachineGemm, ProducerThatStartsAtParityZeroDeadlocks) {
  const std::string text =
      changed(gemm_text(), "for_loop %20, %28, %21, %20, %21", "for_loop %20, %28, %21, %20, %20");
  const MachineReport report = run_gemm(text, 3);
  ASSERT_EQ(report.faults.size(), 1u);
  const Fault& fault = report.faults[0];
  EXPECT_EQ(fault.kind, "deadlock");
  EXPECT_THAT(fault.message,
              HasSubstr(fmt::format("load warp 0  kernel.tw:{}  waits for empty[0] parity 0: phase "
                                    "0 is not complete, 4 of 4 arrivals and 0 bytes pending",
                                    line_of(text, "mbarrier_wait %15"))));
  EXPECT_THAT(fault.message, HasSubstr(fmt::format(
                                 "math warp 0 and 3 more  kernel.tw:{}  waits for full[0] parity "
                                 "0: phase 0 is not complete, 1 of 1 arrivals and 0 bytes",
                                 line_of(text, "mbarrier_wait %14"))));
  EXPECT_THAT(fault.message, HasSubstr("cycle: "));
  EXPECT_THAT(fault.missing, HasSubstr("a first wait for parity 1 on empty[0]"));
  const int lines[] = {fault.first.line, fault.second.line};
  EXPECT_THAT(lines, ::testing::UnorderedElementsAre(line_of(text, "mbarrier_wait %15"),
                                                     line_of(text, "mbarrier_wait %14")));
}

TEST(MachineGemm, PhaseThatIsNotFlippedIsFound) {
  const std::string text =
      changed(gemm_text(), "%74: i32 = select %71, %73, %66", "%74: i32 = select %71, %66, %66");
  EXPECT_EQ(find_fault(text, "race").second.line, line_of(text, "wgmma_ss"));
}

TEST(MachineGemm, TooManyExpectedBytesDeadlock) {
  const std::string text = changed(gemm_text(), "{bytes = 24576}", "{bytes = 24592}");
  const MachineReport report = run_gemm(text, 1);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "deadlock");
  EXPECT_THAT(report.faults[0].message, HasSubstr("0 of 1 arrivals and 16 bytes pending"));
  EXPECT_THAT(report.faults[0].missing, HasSubstr("copies of 16 bytes onto full[0]"));
}

TEST(MachineGemm, TooFewExpectedBytesAreAFaultOfTheBarrier) {
  const std::string text = changed(gemm_text(), "{bytes = 24576}", "{bytes = 16384}");
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const MachineReport report = run_gemm(text, seed);
    ASSERT_FALSE(report.ok());
    EXPECT_THAT(report.faults[0].kind, ::testing::AnyOf("mbarrier", "race"));
  }
  const Fault fault = find_fault(text, "mbarrier");
  EXPECT_THAT(fault.message, HasSubstr("full["));
  EXPECT_THAT(fault.missing, HasSubstr("expect_tx"));
}

TEST(MachineGemm, MissingWgmmaWaitIsFoundWhereTheAccumulatorIsRead) {
  const std::string text = changed(gemm_text(), "wgmma_wait %61 {count = 0}\n", "");
  const Fault fault = find_fault(text, "wgmma");
  EXPECT_EQ(fault.first.line, line_of(text, "store_registers"));
  EXPECT_EQ(fault.second.line, line_of(text, "wgmma_ss"));
  EXPECT_THAT(fault.message, HasSubstr("acc is in flight as an accumulator"));
  EXPECT_EQ(fault.missing, "wgmma_wait between them");
}

TEST(MachineGemm, MissingCommitIsFound) {
  const Fault fault = find_fault(changed(gemm_text(), "      wgmma_commit\n", ""), "wgmma");
  EXPECT_EQ(fault.missing, "wgmma_commit and wgmma_wait between them");
}

TEST(MachineGemm, MissingFenceIsFound) {
  const std::string text = changed(gemm_text(), "      wgmma_fence %61\n", "");
  const MachineReport report = run_gemm(text, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "wgmma");
  EXPECT_EQ(report.faults[0].first.line, line_of(text, "wgmma_ss"));
  EXPECT_THAT(report.faults[0].missing, HasSubstr("wgmma_fence"));
}

TEST(MachineGemm, ProductBeforeTheFullWaitIsARace) {
  const std::string text = changed(gemm_text(), "      mbarrier_wait %14, %65, %66\n", "");
  EXPECT_EQ(find_fault(text, "uninitialised").first.line, line_of(text, "wgmma_ss"));
  const Fault fault = find_fault(text, "race", line_of(text, "wgmma_ss"));
  EXPECT_THAT(fault.message, HasSubstr("race: shared "));
  EXPECT_THAT(fault.message, HasSubstr("[stage "));
  EXPECT_THAT(fault.missing, HasSubstr("wait for full["));
}

TEST(MachineGemm, StageReleasedBeforeTheProductEndsIsARace) {
  std::string text = changed(gemm_text(), "      mbarrier_arrive %15, %65\n", "");
  text =
      changed(text, "      wgmma_commit\n", "      wgmma_commit\n      mbarrier_arrive %15, %65\n");
  const Fault fault = find_fault(text, "race");
  EXPECT_EQ(fault.first.line, line_of(text, "wgmma_ss"));
  EXPECT_EQ(fault.second.line, line_of(text, "tma_load"));
  EXPECT_THAT(fault.missing, HasSubstr("wait or retire of this product in math warp "));
}

TEST(MachineGemm, OffsetPastTheAllocationIsFound) {
  // Stages of A are taken 16384 bytes apart, as those of B.
  const std::string text =
      changed(gemm_text(), "%67: i32 = mul %65, %25", "%67: i32 = mul %65, %26");
  const MachineReport report = run_gemm(text, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "out_of_bounds");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared A[stage 1]"));
  EXPECT_EQ(report.faults[0].first.line, line_of(text, "wgmma_ss"));
  EXPECT_EQ(report.faults[0].second.line, line_of(text, "name = \"A\""));
}

TEST(MachineGemm, CopyPastTheAllocationIsFound) {
  const MachineReport report =
      run_gemm(changed(gemm_text(), "%46: i32 = mul %43, %26", "%46: i32 = mul %26, %22"), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "out_of_bounds");
  EXPECT_THAT(report.faults[0].message, HasSubstr("shared B"));
}

TEST(MachineGemm, ReadOfAnUnwrittenAccumulatorIsFound) {
  const MachineReport report =
      run_gemm(changed(gemm_text(), "%69: bool = ne %64, %20", "%69: bool = eq %64, %20"), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "uninitialised");
  EXPECT_THAT(report.faults[0].message, HasSubstr("register array acc"));
}

TEST(MachineGemm, WrongArrivalCountIsFound) {
  // One arrival a stage too few: the producer never gets the stage again.
  std::string text = changed(gemm_text(), "\"empty\", arrivals = 4", "\"empty\", arrivals = 5");
  text = changed(text, "mbarrier_init %15 {arrivals = 4}", "mbarrier_init %15 {arrivals = 5}");
  const MachineReport report = run_gemm(text, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "deadlock");
  EXPECT_EQ(report.faults[0].missing, "1 of the 5 arrivals of empty[0] phase 0");
}

TEST(MachineGemm, BarriersThatAreNotPublishedAreFound) {
  const Fault fault = find_fault(changed(gemm_text(), "  cta_sync\n", ""), "mbarrier");
  EXPECT_THAT(fault.message, HasSubstr("is not initialised"));
  EXPECT_THAT(fault.missing, HasSubstr("cta_sync"));
}

TEST(MachineGemm, RegistersBeyondTheBudgetAreFound) {
  // 384 threads hold 168 registers each.
  std::string text =
      changed(gemm_text(), "{count = 24, increase = 0,", "{count = 256, increase = 1,");
  text = changed(text, "threads 256", "threads 384");
  const MachineReport report = run_gemm(text, 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "capacity");
  EXPECT_THAT(report.faults[0].message, HasSubstr("math: 4 warps of 256 registers a thread"));
}

TEST(MachineGemm, SharedMemoryBeyondTheBudgetIsFound) {
  const MachineReport report =
      run_gemm(changed(gemm_text(), "shared_bytes 49184", "shared_bytes 49000"), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "capacity");
  const MachineReport larger =
      run_gemm(changed(gemm_text(), "shared_bytes 49184", "shared_bytes 232464"), 0);
  ASSERT_FALSE(larger.ok());
  EXPECT_THAT(larger.faults[0].message,
              HasSubstr("232464 bytes of shared memory, a CTA has 232448"));
}

TEST(MachineGemm, BarriersThatOverlapAnAllocationAreFound) {
  const MachineReport report =
      run_gemm(changed(gemm_text(), "arrivals = 1, offset = 49152", "arrivals = 1, offset = 0"), 0);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.faults[0].kind, "capacity");
  EXPECT_THAT(report.faults[0].message, HasSubstr("barriers full at 0x0..0xf overlap A"));
}

TEST(MachineGemm, AllFaultsAreKeptWhenAsked) {
  std::string text = changed(gemm_text(), "      wgmma_fence %61\n", "");
  text = changed(text, "      wgmma_commit\n", "");
  GemmTensors tensors(64, 128, 256);
  MachineOptions options;
  options.stop_at_first = false;
  const MachineReport report = run(text, {&tensors.a, &tensors.b, &tensors.c}, options);
  EXPECT_GE(report.faults.size(), 2u);
  // A wait on a barrier that does not exist is reported and passed.
  const MachineReport no_barriers =
      run(changed(gemm_text(), "  mbarrier_init %14 {arrivals = 1}\n", ""),
          {&tensors.a, &tensors.b, &tensors.c}, options);
  EXPECT_FALSE(no_barriers.ok());
}

}  // namespace
}  // namespace tilewright::simulator
