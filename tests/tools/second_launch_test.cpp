#include <fstream>
#include <string>

#include "common/temporary_folder.h"
#include "ir/text.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/hopper.h"
#include "tools/run_command.h"

// A launch that stores nothing is not saved by what the launch before it has left.
namespace tilewright::test {
namespace {

// Stores its output in its first launch alone, which it knows by scratch memory.
std::string once() {
  Kernel kernel("once");
  const Tensor X = kernel.in("X", f32, {64, 32}), Y = kernel.out("Y", f32, {64, 32});
  const Tensor seen = kernel.scratch("seen", 64, 32);
  kernel.ctas(1);
  kernel.roles({role("all", warpgroups(1), registers(240), [&] {
    const Tile before = load(seen(all, all));
    when(
        any(before == 7), [] {}, [&] { store(Y(all, all), load(X(all, all)) + 1); });
    store(seen(all, all), full({64, 32}, 7));
  })});
  return ir::to_text(kernel.finish());
}

class SecondLaunch : public testing::Test {
 protected:
  SecondLaunch() { std::ofstream(file_) << once(); }
  const TemporaryFolder folder_;
  const std::string file_ = folder_ / "once.tw";
};

TEST_F(SecondLaunch, IsSimulatedOnPoisonedOutputs) {
  EXPECT_EQ(tilewright("simulate " + file_ + " --target sm_90a --schedules 1 --launches 1").status,
            0);
  expect_failure("simulate " + file_ + " --target sm_90a --schedules 1", 1, {"nobody writes Y["});
}

TEST_F(SecondLaunch, IsStressedOnPoisonedOutputs) {
  if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  expect_failure("stress " + file_ + " --target sm_90a --schedules 1", 1,
                 {"once on simulated sm_90a: mismatch"});
}

}  // namespace
}  // namespace tilewright::test
