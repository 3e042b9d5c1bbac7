#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "ir/text.h"
#include "ir/verifier.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

// What the tile-level kernels record, as text. Every compiler records the same: the goldens are
// compared by builds of all of them. TILEWRIGHT_UPDATE_GOLDENS=1 writes them.
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

TEST(Recording, Gemm) {
  Gemm g;
  g.block_m = g.block_n = 128;
  g.block_k = 64;
  expect_golden("gemm", gemm(g));
}

Attention small() {
  Attention a;
  a.heads = 8;
  a.block_q = 128;
  a.block_k = 64;
  return a;
}
TEST(Recording, Attention) { expect_golden("attention_forward", attention_forward(small())); }
TEST(Recording, AttentionWithAWindow) {
  Attention a = small();
  a.causal = true;
  a.window = 100;
  a.kv_heads = 2;
  expect_golden("attention_forward_window", attention_forward(a));
}

}  // namespace
}  // namespace tilewright::kernels
