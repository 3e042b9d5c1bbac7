#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "ir/verifier.h"
#include "kernels/attention.h"
#include "kernels/gemm.h"

// What the tile-level kernels record, as text. Every compiler records the same: the goldens are compared by
// builds of all of them. TILEWRIGHT_UPDATE_GOLDENS=1 writes them.
namespace tilewright::kernels {
namespace {

void expect_golden(const std::string& name, const Kernel& kernel) {
  ir::verify(kernel.finish());
  const std::string text = ir::to_text(kernel.finish(), {.locations = false});
  const std::string path =
      std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/kernels/goldens/" + name + ".tw";
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS")) std::ofstream(path) << text;
  std::stringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST(Recording, Gemm) { expect_golden("gemm", gemm({})); }
TEST(Recording, Attention) { expect_golden("attention_forward", attention_forward({})); }
TEST(Recording, AttentionWithAWindow) {
  Attention a;
  a.causal = true;
  a.window = 100;
  a.kv_heads = 2;
  expect_golden("attention_forward_window", attention_forward(a));
}

}  // namespace
}  // namespace tilewright::kernels
