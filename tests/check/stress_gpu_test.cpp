#include "check/stress.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/compile_to_machine.h"
#include "kernels/gpu.h"
#include "library/library_build.h"

namespace tilewright::checks {
namespace {

using StressGpuTest = test::HopperTest;

TEST_F(StressGpuTest, DelaysChangeNoBit) {
  for (const char* schedule :
       {"schedule=128x128_a4", "schedule=48x64x128_t_split6", "schedule=tile"}) {
    const std::vector<std::string> settings = {schedule, "m=400", "n=264", "k=328"};
    const LibraryKernel& entry = find_kernel("gemm");
    const ir::Kernel machine =
        compiler::compile_to_machine(library::trace_entry(entry, resolve_options(entry, settings),
                                                          compiler::parse_target("sm_90a"))
                                         .finish(),
                                     ir::default_target())
            .kernel;
    std::vector<library::Workload> workloads = {library::make_workload(entry, settings, {}, 0)};
    EXPECT_EQ(simulate_workloads(machine, workloads, {}).kind, "");
    const StressReport report = stress_on_gpu(machine, machine, workloads, {},
                                              [](const StressReport&, bool) { std::abort(); });
    EXPECT_TRUE(report.ok()) << schedule << ": " << report.error << report.first_mismatch;
    EXPECT_EQ(report.delayed_runs, 40);
  }
}

}  // namespace
}  // namespace tilewright::checks
