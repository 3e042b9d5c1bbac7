#include <gtest/gtest.h>

#include <cstdint>

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
  int judged = 0;
  for (std::uint64_t seed = 40000; judged < 5 && seed < 41000; ++seed) {
    Recipe recipe = random_recipe(seed);
    recipe.steps.clear();
    const bool is_explicit = recipe.style == Recipe::Style::explicit_level;
    if (!is_explicit || recipe.plan.cluster != 2 || recipe.plan.b_by_rows) continue;
    const Verdict verdict = judge(recipe, Target::cuda, ir::default_target());
    EXPECT_EQ(verdict.kind, Verdict::Kind::agrees)
        << "seed " << seed << ", " << verdict.stage << ": " << verdict.text;
    ++judged;
  }
  EXPECT_EQ(judged, 5);
}

}  // namespace
}  // namespace tilewright::checks::fuzz
