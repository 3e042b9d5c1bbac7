#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/error_text.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "tilewright/error.h"

// Operations on tensor memory: text that parses back, and what the verifier refuses.
namespace tilewright::ir {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kTensorKernel = R"(kernel "k" machine
target "sm_100a"
grid (1)
threads 256
shared_bytes 24704
body () {
  %1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %2: shared<bf16, 1x64x64> = shared {name = "b", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
  %3: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 24576}
  %4: mbarriers<2> = mbarriers {name = "done", arrivals = 1, offset = 24640}
  %5: tensor_memory<64> = tensor_memory {name = "sums"}
  %6: i32 = constant {value = 0}
  %7: bool = constant {value = 0}
  role {name = "multiply", first_warp = 4, warps = 1} (%8: i32) {
    tcgen05_alloc %5, %3, %6
    %9: i32 = shared_load %3, %6
    tcgen05_mma_ss %5, %9, %1, %6, %2, %6, %7 {m = 128, n = 64, k = 16, instruction = 135267472, descriptor_a = 281479288455172, descriptor_b = 281479288455172}
    tcgen05_mma_ts %5, %9, %5, %9, %2, %6, %7 {m = 128, n = 64, k = 16, instruction = 135267472, descriptor_b = 281479288455172}
    tcgen05_shift %5, %9
    tcgen05_cp %5, %9, %1, %6 {m = 128, row_bytes = 32, descriptor_a = 281479288455172}
    tcgen05_commit %4, %6
    tcgen05_relinquish
    tcgen05_dealloc %5, %9
    yield
  }
  role {name = "read", first_warp = 0, warps = 4} (%10: i32) {
    %11: registers<f32, 64> = registers {name = "sums"}
    tcgen05_fence_after
    tcgen05_ld %11, %5, %6 {register = 0, count = 64}
    tcgen05_wait_ld %11
    tcgen05_st %5, %6, %11 {register = 32, count = 32}
    tcgen05_wait_st
    tcgen05_fence_before
    yield
  }
}
)";

std::string problem_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::string text = kTensorKernel;
  for (const auto& [from, to] : changes) {
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
  }
  try {
    verify(parse_text(text, "kernel.tw"));
  } catch (const Error& error) {
    return test::without_source_lines(error.what());
  }
  return "no error";
}

std::string problem_with(const std::string& from, const std::string& to) {
  return problem_with({{from, to}});
}

TEST(TensorMemoryIr, TextParsesBackToAnEqualKernel) {
  const Kernel kernel = parse_text(kTensorKernel, "kernel.tw");
  verify(kernel);
  const std::string text = to_text(kernel, {.locations = false});
  EXPECT_THAT(text, HasSubstr("tensor_memory<64> = tensor_memory {name = \"sums\"}"));
  EXPECT_EQ(to_text(parse_text(text, "again.tw"), {.locations = false}), text);
}

// 16 elements of bf16 a row.
TEST(TensorMemoryIr, AFirstOperandNeedsItsColumns) {
  const std::string memory = "  %6: i32 = constant";
  const std::string narrow = R"(  %12: tensor_memory<4> = tensor_memory {name = "a"}
)";
  EXPECT_THAT(problem_with({{memory, narrow + memory}, {"%5, %9, %5, %9", "%5, %9, %12, %9"}}),
              HasSubstr("takes 8 columns of %5 (tensor_memory a), which has 4"));
}

// Of 64 rows a register holds half of two columns.
TEST(TensorMemoryIr, MatricesHaveTheirRegistersAndColumns) {
  const std::string load = "{register = 0, count = 64}";
  EXPECT_EQ(problem_with(load, "{register = 0, count = 4, row_bytes = 32}"), "no error");
  EXPECT_THAT(problem_with(load, "{register = 0, count = 2, row_bytes = 32}"),
              HasSubstr("2 registers, expected at least 4 of matrices of 32 bytes"));
  EXPECT_EQ(problem_with(load, "{register = 0, count = 32, row_bytes = 32}"), "no error");
  EXPECT_THAT(
      problem_with(load, "{register = 0, count = 64, row_bytes = 32}"),
      AllOf(HasSubstr("takes 128 columns of"), HasSubstr("(tensor_memory sums), which has 64")));
}

TEST(TensorMemoryIr, AShiftNeedsEightColumns) {
  const std::string memory = "  %6: i32 = constant", shift = "tcgen05_shift %5";
  const auto problem = [&](int columns) {
    const std::string narrow = "  %12: tensor_memory<" + std::to_string(columns) +
                               "> = tensor_memory {name = \"narrow\"}\n";
    return problem_with({{memory, narrow + memory}, {shift, "tcgen05_shift %12"}});
  };
  EXPECT_EQ(problem(8), "no error");
  EXPECT_THAT(problem(4), AllOf(HasSubstr("takes 8 columns of"),
                                HasSubstr("(tensor_memory narrow), which has 4")));
}

// A kernel of pairs in clusters of four, with the operation.
std::string problem_in_pairs(const std::string& operation) {
  return problem_with({{"grid (1)\n", "grid (4)\ncluster 4\ncta_pairs\n"},
                       {kTensorKernel.substr(kTensorKernel.find("    tcgen05_mma_ss"),
                                             kTensorKernel.find("    tcgen05_relinquish") -
                                                 kTensorKernel.find("    tcgen05_mma_ss")),
                        "    " + operation + "\n"}});
}

TEST(TensorMemoryIr, WhatNoPairHasIsRefused) {
  const std::string commit = "tcgen05_commit %4, %6 {multicast = 3, multicast_group = ";
  EXPECT_EQ(problem_in_pairs(commit + "2}"), "no error");
  EXPECT_THAT(problem_in_pairs(commit + "3}"),
              HasSubstr("multicast to CTAs 0b11 of groups of 3 in clusters of 4"));
  EXPECT_THAT(problem_in_pairs("tcgen05_shift %5, %9"),
              HasSubstr("in a kernel with cta_pairs, expected one CTA"));
  EXPECT_THAT(problem_in_pairs("tcgen05_cp %5, %9, %1, %6 {m = 128, row_bytes = 32, descriptor_a = "
                               "281479288455172}"),
              HasSubstr("in a kernel with cta_pairs, expected one CTA"));
}

TEST(TensorMemoryIr, AnAnswerIsFourIntegers) {
  const auto problem = [](const std::string& answer) {
    return problem_with("tcgen05_shift %5, %9", "try_cancel " + answer + ", %6, %4, %6");
  };
  EXPECT_EQ(problem("%3"), "no error");
  EXPECT_THAT(problem("%1"), HasSubstr("an answer in shared memory of bf16, expected i32"));
}

TEST(TensorMemoryIr, WhatNoInstructionHasIsRefused) {
  EXPECT_THAT(problem_with("tensor_memory<64>", "tensor_memory<48>"),
              HasSubstr("sums is tensor_memory<48>, expected a power of two of columns"));
  EXPECT_THAT(problem_with("tensor_memory<64>", "tensor_memory<32>"),
              HasSubstr("takes 64 columns of"));
  EXPECT_THAT(problem_with("tcgen05_alloc %5, %3", "tcgen05_alloc %5, %1"),
              HasSubstr("leaves the address in shared memory of bf16, expected i32"));
  EXPECT_THAT(problem_with("m = 128, n = 64", "m = 96, n = 64"), HasSubstr("m is 96"));
  EXPECT_THAT(problem_with("m = 128, n = 64", "m = 128, n = 56"), HasSubstr("n is 56"));
  EXPECT_THAT(problem_with("k = 16", "k = 32"), HasSubstr("k is 32, expected 16 elements of bf16"));
  EXPECT_THAT(problem_with("instruction = 135267472", "instruction = 135267473"),
              HasSubstr("the instruction descriptor is 0x8100491, but its shape and dtypes say "
                        "0x8100490"));
  EXPECT_THAT(problem_with("descriptor_a = 281479288455172", "descriptor_a = -1"),
              HasSubstr("descriptor_a is -1, expected the 50 bits above the address"));
  EXPECT_THAT(problem_with("tcgen05_mma_ss %5, %9, %1", "tcgen05_mma_ss %5, %9, %3"),
              HasSubstr("a is i32 and b is bf16"));
  EXPECT_THAT(problem_with("register = 0, count = 64", "register = 0, count = 48"),
              HasSubstr("48 registers, expected a power of two up to 128"));
  EXPECT_THAT(problem_with("register = 32, count = 32", "register = 48, count = 32"),
              HasSubstr("registers 48 to 79 of"));
  EXPECT_THAT(problem_with("m = 128, row_bytes = 32", "m = 32, row_bytes = 32"),
              HasSubstr("32 rows of 32 bytes, expected 128 of 16 or 32, or 32 of 16"));
  EXPECT_THAT(problem_with("tcgen05_commit %4, %6", "tcgen05_commit %4, %6 {multicast = 3}"),
              HasSubstr("multicast in a kernel without cta_pairs"));
  EXPECT_THAT(problem_with("tcgen05_commit %4", "tcgen05_commit %5"),
              HasSubstr("which is tensor_memory<64>, expected mbarriers"));
}

}  // namespace
}  // namespace tilewright::ir
