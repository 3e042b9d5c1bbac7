#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "check/stress.h"
#include "common/temporary_folder.h"
#include "compiler/compile_to_machine.h"
#include "library/kernel_source.h"
#include "library/library_build.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"

// Before each of its launches stress fills outputs, and scratch memory of programs, with NaN: a run
// that leaves them would else pass for the one before. The fake driver counts what is filled.
namespace tilewright::checks {
namespace {

class StressPoisonTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }
  // How many more are filled, and launched, where there are two runs more.
  struct More {
    int filled, launched;
  };
  template <typename Run>
  More more(const Run& run) const {
    const auto counted = [&](std::int64_t runs) {
      state_->memsets = state_->launches = 0;
      StressOptions options;
      options.runs = runs;
      EXPECT_EQ(run(options, [](const StressReport&, bool) { std::abort(); }).error, "");
      return More{state_->memsets, state_->launches};
    };
    const More few = counted(3), many = counted(5);
    return {many.filled - few.filled, many.launched - few.launched};
  }
  test::TemporaryFolder folder_;
  runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

TEST_F(StressPoisonTest, OutputsOfAKernel) {
  const std::vector<std::string> settings = {"schedule=64x96", "m=72", "n=72", "k=136"};
  const LibraryKernel& entry = find_kernel("gemm");
  const ir::Kernel kernel =
      compiler::compile_to_machine(library::trace_entry(entry, resolve_options(entry, settings),
                                                        compiler::parse_target("sm_90a"))
                                       .finish(),
                                   ir::default_target())
          .kernel;
  std::vector<library::Workload> inputs = {library::make_workload(entry, settings, {}, 0)};
  const More of = more([&](const StressOptions& options, const auto& hung) {
    return stress_on_gpu(kernel, kernel, inputs, options, hung);
  });
  EXPECT_EQ(of.launched, 4);  // two grids
  EXPECT_EQ(of.filled, of.launched);
}

TEST_F(StressPoisonTest, OutputsAndScratchOfAProgram) {
  const std::vector<std::string> settings = {"dim=16", "group=1", "batch=1", "kv_heads=1",
                                             "keys=70"};
  const LibraryKernel& entry = find_kernel("attention_decode");
  const ir::Program recorded = library::KernelSource(entry).program(
      resolve_options(entry, settings), compiler::parse_target("sm_90a"));
  const std::vector<ir::Kernel> machine =
      library::machine_forms(recorded, ir::default_target()).front();
  std::vector<StressedProgram> programs(1);
  programs[0].made.workload = library::make_workload(entry, settings, {}, 0);
  programs[0].made.program = library::bind_workload(recorded, programs[0].made.workload, 1);
  programs[0].multiprocessors = 1;
  const More of = more([&](const StressOptions& options, const auto& hung) {
    return stress_on_gpu(recorded, machine, machine, programs, options, hung);
  });
  // Two kernels a run; O, LSE, and what the first kernel leaves for the second.
  EXPECT_EQ(of.launched % 2, 0);
  EXPECT_EQ(of.filled, of.launched / 2 * 4);
}

}  // namespace
}  // namespace tilewright::checks
