#include <gtest/gtest.h>

#include "check/fuzz/campaign.h"
#include "kernels/gpu.h"

namespace tilewright::checks::fuzz {
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

// Found by a random kernel: columns of B beyond the first panel, in a CTA of rank 1.
TEST_F(FuzzGpuTest, ProductsOfClustersReadAllOfTheirOperand) {
  Recipe recipe = random_recipe(40003);
  recipe.steps.clear();
  ASSERT_EQ(recipe.plan.cluster, 2);
  ASSERT_FALSE(recipe.plan.b_by_rows);
  const Verdict verdict = judge(recipe, Target::cuda, ir::default_target());
  EXPECT_EQ(verdict.kind, Verdict::Kind::agrees) << verdict.stage << ": " << verdict.text;
}

}  // namespace
}  // namespace tilewright::checks::fuzz
