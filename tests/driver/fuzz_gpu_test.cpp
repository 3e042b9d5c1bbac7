#include <gtest/gtest.h>

#include "driver/fuzz/campaign.h"
#include "kernels/gpu.h"

namespace tilewright::driver::fuzz {
namespace {

using FuzzGpuTest = test::HopperTest;

// Hardware beside the simulated one, within bounds that know its approximate instructions.
TEST_F(FuzzGpuTest, RandomKernelsComputeWhatTheySay) {
  CampaignOptions options;
  options.count = 100;
  options.target = Target::cuda;
  const CampaignReport report = run_campaign(options);
  for (const Failure& failure : report.failures) {
    ADD_FAILURE() << "seed " << failure.seed << ", " << failure.verdict.stage << ": "
                  << failure.shrunken.text << "\n"
                  << text_of(failure.recipe);
  }
  EXPECT_GT(report.agreed, options.count * 8 / 10);
}

}  // namespace
}  // namespace tilewright::driver::fuzz
