#include "check/stress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "library/kernel_source.h"
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

const std::vector<std::string> kDecode = {"dim=16", "group=1", "batch=1", "kv_heads=1", "keys=70"};

struct Decode {
  Decode() {
    const LibraryKernel& entry = find_kernel("attention_decode");
    const library::KernelSource source(entry);
    recorded = source.program(resolve_options(entry, kDecode), compiler::parse_target("sm_90a"));
    machine = library::machine_forms(recorded, ir::default_target()).front();
    for (const std::int64_t count : {1, 8}) {
      StressedProgram& each = programs.emplace_back();
      each.made.workload = library::make_workload(entry, kDecode, {}, 0);
      each.made.program = library::bind_workload(recorded, each.made.workload, count);
      each.multiprocessors = count;
    }
  }
  ir::Program recorded;
  std::vector<ir::Kernel> machine;
  std::vector<StressedProgram> programs;
};

TEST(StressTest, SimulatesPrograms) {
  Decode decode;
  EXPECT_EQ(simulate_programs(decode.machine, decode.programs, {}).kind, "");
  std::vector<ir::Kernel> broken = decode.machine;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    const std::vector<simulator::Mutant> mutants = simulator::mutants_of(kind, broken.front());
    if (kind.number != 9 || mutants.empty()) continue;
    broken.front() = mutants.front().apply(decode.machine.front());
    EXPECT_NE(simulate_programs(broken, decode.programs, {}).kind, "");
    return;
  }
  FAIL() << "no mutant of kind 9";
}

TEST_F(StressOnFakeGpuTest, CountsTheRunsOfAProgram) {
  Decode decode;
  StressOptions options;
  options.runs = 3;
  const StressReport report =
      stress_on_gpu(decode.recorded, decode.machine, decode.machine, decode.programs, options,
                    [](const StressReport&, bool) { std::abort(); });
  EXPECT_EQ(report.error, "");
  EXPECT_EQ(report.delayed_runs, 12);  // two sizes, each on all multiprocessors too
  EXPECT_EQ(report.delayed_mismatches, 12);
  EXPECT_EQ(report.plain_runs, 8);
  EXPECT_EQ(state_->launches, 2 * (4 + 8 + 12));
  EXPECT_EQ(state_->live_allocations, 0);
  EXPECT_THAT(report.first_mismatch, testing::HasSubstr("nan"));
}

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
