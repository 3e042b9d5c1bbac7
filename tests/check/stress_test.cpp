#include "check/stress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "library/library_build.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "simulator/faults/fault_kinds.h"

namespace tilewright::checks {
namespace {

const std::vector<std::string> kSettings = {"schedule=64x96", "m=72", "n=72", "k=136"};

ir::Kernel machine() {
  const LibraryKernel& entry = find_kernel("gemm");
  return compiler::compile_to_machine(library::trace_entry(entry, resolve_options(entry, kSettings),
                                                           compiler::parse_target("sm_90a"))
                                          .finish(),
                                      ir::default_target())
      .kernel;
}

std::vector<library::Workload> workloads() {
  return {library::make_workload(find_kernel("gemm"), kSettings, {}, 0)};
}

TEST(StressTest, SimulatesBeforeAnythingRuns) {
  std::vector<library::Workload> inputs = workloads();
  const ir::Kernel kernel = machine();
  EXPECT_EQ(simulate_workloads(kernel, inputs, {}).kind, "");
  // A read before the copy is waited for.
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    if (kind.number != 9) continue;
    const std::vector<simulator::Mutant> mutants = simulator::mutants_of(kind, kernel);
    ASSERT_FALSE(mutants.empty());
    EXPECT_NE(simulate_workloads(mutants[0].apply(kernel), inputs, {}).kind, "");
  }
}

class StressOnFakeGpuTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }
  StressReport run(const StressOptions& options, int* hangs = nullptr) {
    const ir::Kernel kernel = machine();
    std::vector<library::Workload> inputs = workloads();
    return stress_on_gpu(kernel, kernel, inputs, options, [&](const StressReport&, bool) {
      if (hangs == nullptr) std::abort();
      ++*hangs;
    });
  }
  test::TemporaryFolder folder_;
  runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

// The fake driver's launches write nothing: no run is right, although all leave the same bits.
TEST_F(StressOnFakeGpuTest, CountsEveryRunThatLeavesItsOutputs) {
  StressOptions options;
  options.runs = 3;
  const StressReport report = run(options);
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.delayed_runs, 6);  // two grids
  EXPECT_EQ(report.delayed_mismatches, 6);
  EXPECT_EQ(report.plain_runs, 4);
  EXPECT_EQ(report.plain_mismatches, 4);
  EXPECT_EQ(state_->launches, 2 + 4 + 6);
  EXPECT_THAT(report.first_mismatch,
              testing::AllOf(testing::HasSubstr("C[0, 0] is"), testing::HasSubstr("nan")));
  EXPECT_FALSE(report.ok());
}

TEST_F(StressOnFakeGpuTest, ALaunchThatTakesTooLongHangs) {
  state_->synchronise_milliseconds = 60;
  StressOptions options;
  options.runs = 1;
  options.patience = std::chrono::milliseconds(10);
  int hangs = 0;
  run(options, &hangs);
  EXPECT_EQ(hangs, 6);
  options.patience = std::chrono::milliseconds(20'000);
  run(options);
}

TEST_F(StressOnFakeGpuTest, AnErrorOfTheDriverEndsTheRuns) {
  state_->max_threads = 32;  // of a block: fewer than the kernel has
  const StressReport report = run({});
  EXPECT_NE(report.error, "");
  EXPECT_EQ(report.delayed_runs, 0);
}

}  // namespace
}  // namespace tilewright::checks
