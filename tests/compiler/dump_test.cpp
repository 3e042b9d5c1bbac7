#include "compiler/dump.h"

#include <gtest/gtest.h>

namespace tilewright::compiler {
namespace {

TEST(DumpTest, NamesOfFilesHaveLettersDigitsAndTwoSignsAlone) {
  EXPECT_EQ(file_name("gemm_128x128-2"), "gemm_128x128-2");
  EXPECT_EQ(file_name("../a b.tw"), "___a_b_tw");
  EXPECT_EQ(file_name("\xc3\xa9"), "__");
}

}  // namespace
}  // namespace tilewright::compiler
