#include <gtest/gtest.h>

#include <set>
#include <string>

#include "codegen/example_kernels.h"
#include "codegen/nvrtc_build.h"
#include "compiler/build.h"

// The tile-level kernels of examples/ by the automatic schedule for Blackwell. No such GPU has run
// them.
namespace tilewright::codegen {
namespace {

TEST(ExamplesForBlackwell, HaveNeitherStackNorSpills) {
  const std::set<std::string> tile_level = {
      "alibi_sigmoid_attention", "attention",  "fused_mlp",   "layernorm_gemm",
      "linear_attention",        "mla_decode", "softmax_rows"};
  if (const std::string why = why_no_nvrtc("sm_100a"); !why.empty()) GTEST_SKIP() << why;
  std::size_t built = 0;
  for (const Kernel& kernel : example_kernels()) {
    if (tile_level.count(kernel.name()) == 0) continue;
    for (const char* target : {"sm_100a", "sm_110a"}) {
      SCOPED_TRACE(kernel.name() + " for " + target);
      expect_builds(compiler::choose_form(kernel.finish(), target).source, /*exact=*/false, target);
    }
    ++built;
  }
  EXPECT_EQ(built, tile_level.size());
}

}  // namespace
}  // namespace tilewright::codegen
