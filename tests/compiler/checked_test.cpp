#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "common/loaded_bounds.h"
#include "compiler/compiled.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"

// What the host makes of a check that fails, on a driver that executes nothing.
namespace tilewright::compiler {
namespace {

using runtime::expect_error;
using test::rows_by_index;

constexpr int kLaunchFailed = 719;

std::size_t report_parameter = 0;

// The kernel's second check fails, of X's rows.
int fail(void** arguments) {
  codegen::CheckReport& report = **static_cast<codegen::CheckReport**>(arguments[report_parameter]);
  report.check = 1;
  report.cta = 5;
  report.warp = 2;
  report.numbers[0] = 128;
  report.numbers[1] = 100;
  report.numbers[2] = 128;
  report.written = 1;
  return kLaunchFailed;
}

class CheckedTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override { state_->max_threads = 1024; }
  ~CheckedTest() override { state_->executes = nullptr; }

  std::unique_ptr<CompiledKernel> compiled(bool checked = true) {
    MachineOptions options;
    options.checked = checked;
    GpuProgram program = translate(rows_by_index().finish(), "sm_90a", options);
    const auto& parameters = program.source.parameters;
    const auto report = std::find_if(parameters.begin(), parameters.end(), [](const auto& each) {
      return each.kind == codegen::LaunchParameter::Kind::report;
    });
    EXPECT_EQ(report != parameters.end(), checked);
    report_parameter = static_cast<std::size_t>(report - parameters.begin());
    runtime::Build build;
    build.kernel.cubin = "no cubin";
    return std::make_unique<CompiledKernel>(std::move(program), std::move(build),
                                            runtime::Device::get());
  }
  static std::vector<TensorRef> tensors() {
    const auto at = [](std::uintptr_t address) { return reinterpret_cast<void*>(address); };
    return {{at(0x10000), i32, {8}, {}},
            {at(0x20000), bf16, {100, 64}, {}},
            {at(0x30000), f32, {8, 64}, {}}};
  }
  void launch(const CompiledKernel& kernel) {
    kernel.launch(runtime::Stream::borrow(kernel.device(), nullptr), tensors(), {});
  }
};

TEST_F(CheckedTest, ARunRaisesWhatTheKernelReports) {
  const auto kernel = compiled();
  EXPECT_NO_THROW(launch(*kernel));
  state_->executes = fail;
  expect_error(ErrorKind::result,
               {"loaded_bounds.h:27",
                "out of bounds: index 128 on axis 0 of X, which has 100; it is computed "
                "from 128, which the launch gives",
                "warp 2 of CTA 5", "must be restarted"},
               [&] { launch(*kernel); });
  // Whatever else the driver is asked then.
  state_->executes = nullptr;
  state_->next_result = kLaunchFailed;
  expect_error(ErrorKind::result, {"index 128 on axis 0 of X"},
               [&] { runtime::Stream stream(kernel->device()); });
}

TEST_F(CheckedTest, ALaunchThatFailsOtherwiseIsToldAsItIs) {
  const auto kernel = compiled();
  state_->executes = [](void**) { return kLaunchFailed; };
  expect_error(ErrorKind::result, {"cuStreamSynchronize"}, [&] { launch(*kernel); });
  EXPECT_NO_THROW(launch(*compiled(/*checked=*/false)));
}

TEST_F(CheckedTest, NothingIsWaitedForInACapture) {
  const auto kernel = compiled();
  launch(*kernel);
  state_->capturing = 1;
  state_->executes = [](void**) { return kLaunchFailed; };
  EXPECT_NO_THROW(launch(*kernel));
  state_->next_result = 0;
}

// By its number within its role.
TEST_F(CheckedTest, AReportNamesTheWarp) {
  MachineOptions options;
  options.checked = true;
  const ir::Kernel machine =
      translate(test::blocks_by_number(/*products=*/true).finish(), "sm_90a", options).machine;
  int roles = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::role) return;
    ++roles;
    const std::int64_t first = o.attributes.integer(ir::Key::first_warp);
    for (std::int64_t warp = 0; warp < o.attributes.integer(ir::Key::warps); ++warp) {
      const FailedCheck failed = failed_check({1, 1, 0, 5, first + warp, {}}, machine);
      EXPECT_THAT(failed.message, testing::HasSubstr(o.attributes.text(ir::Key::name) + " warp " +
                                                     std::to_string(warp) + " of CTA 5"));
    }
  });
  EXPECT_EQ(roles, 2);
  // One of no role.
  const FailedCheck failed = failed_check({1, 1, 0, 5, machine.threads / 32, {}}, machine);
  EXPECT_THAT(failed.message,
              testing::HasSubstr("kernel warp " + std::to_string(machine.threads / 32) + " of"));
}

// Nor is it held to what its author claims of the one that ships.
TEST_F(CheckedTest, ClaimsAreNotAskedOf) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  Kernel kernel = rows_by_index();
  kernel.require({wgmma_rs, registers <= 1});
  BuildOptions options;
  expect_error(ErrorKind::usage, {"instructions(\"wgmma_rs\") >= 1, and it is 0"},
               [&] { build_kernel(kernel.finish(), "sm_90a", options); });
  options.machine.checked = true;
  EXPECT_NO_THROW(build_kernel(kernel.finish(), "sm_90a", options));
}

TEST_F(CheckedTest, AReportThatNoCheckMadeIsAnError) {
  const ir::Kernel machine =
      translate(rows_by_index().finish(), "sm_90a").machine;  // it has no checks
  const FailedCheck failed = failed_check({1, 1, 0, 0, 0, {}}, machine);
  EXPECT_FALSE(failed.exists);
  EXPECT_EQ(failed.message, "rows_by_index reports its check 0, and it has 0");
}

}  // namespace
}  // namespace tilewright::compiler
