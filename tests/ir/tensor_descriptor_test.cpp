#include "ir/tensor_descriptor.h"

#include <gtest/gtest.h>

#include "tilewright/error.h"

namespace tilewright::ir {
namespace {

// By the tables of the PTX ISA 9.0, "instruction descriptor" of .kind::f16 and .kind::f8f6f4.
TEST(TensorDescriptorTest, InstructionsAreThoseOfThePtxTable) {
  EXPECT_EQ(instruction_descriptor({bf16, 128, 128}), 0x08200490u);
  EXPECT_EQ(instruction_descriptor({bf16, 128, 128, Major::k, Major::mn}), 0x08210490u);
  EXPECT_EQ(instruction_descriptor({bf16, 128, 128, Major::mn, Major::mn}), 0x08218490u);
  EXPECT_EQ(instruction_descriptor({bf16, 64, 64}), 0x04100490u);
  EXPECT_EQ(instruction_descriptor({bf16, 128, 256}), 0x08400490u);
  EXPECT_EQ(instruction_descriptor({f16, 128, 128}), 0x08200010u);
  EXPECT_EQ(instruction_descriptor({f8e4m3, 128, 128}), 0x08200010u);
}

TEST(TensorDescriptorTest, ShapesThatNoProductHasAreErrors) {
  const auto problem = [](DType element, std::int64_t m, std::int64_t n, Major a = Major::k) {
    return problem_of({element, m, n, a, Major::k});
  };
  EXPECT_EQ(problem(bf16, 96, 128), "m is 96, expected 64 or 128");
  EXPECT_EQ(problem(bf16, 128, 24), "n is 24, expected a multiple of 16 up to 256");
  EXPECT_EQ(problem(bf16, 64, 24), "");
  EXPECT_EQ(problem(bf16, 64, 0), "n is 0, expected a multiple of 8 up to 256");
  EXPECT_EQ(problem(bf16, 128, 272), "n is 272, expected a multiple of 16 up to 256");
  EXPECT_EQ(problem(f8e4m3, 64, 24), "n is 24, expected a multiple of 16 up to 256");
  EXPECT_EQ(problem(f8e4m3, 128, 128, Major::mn), "an operand of f8e4m3 whose k is not contiguous");
  EXPECT_EQ(problem(f32, 128, 128), "of f32, expected bf16, f16 or f8e4m3");
  EXPECT_THROW(instruction_descriptor({bf16, 96, 128}), Error);
  const auto of_pair = [](std::int64_t m, std::int64_t n) {
    return TensorProductShape{bf16, m, n, Major::k, Major::k, 2};
  };
  EXPECT_EQ(problem_of(of_pair(64, 64)), "m is 64, expected 128 or 256 of two CTAs");
  EXPECT_EQ(problem_of(of_pair(128, 48)), "n is 48, expected a multiple of 32 up to 256");
  EXPECT_EQ(result_columns(of_pair(256, 64)), 64);
  EXPECT_EQ(result_columns(of_pair(128, 64)), 32);
}

// Of PTX's "shared memory descriptor", of tiles that begin at 0x400.
TEST(TensorDescriptorTest, OperandsAreThoseOfThePtxTable) {
  const auto bits = [](std::int64_t rows, std::int64_t columns, int swizzle, int k_axis) {
    const SharedLayout layout = SharedLayout::panels(rows, columns, 2, swizzle);
    return tensor_operand(layout, k_axis).encode(0x400);
  };
  EXPECT_EQ(bits(128, 64, 128, 1), 0x4000404000010040u);
  EXPECT_EQ(bits(128, 32, 64, 1), 0x8000402000010040u);
  EXPECT_EQ(bits(128, 16, 32, 1), 0xc000401000010040u);
  EXPECT_EQ(bits(64, 128, 128, 0), 0x4000404002000040u) << "64 rows of k in panels of 8192 bytes";
}

// 32 bytes of K in a swizzled row, 16 rows of K where M or N is contiguous.
TEST(TensorDescriptorTest, StepsAlongK) {
  const SharedLayout layout = SharedLayout::panels(128, 64, 2, 128);
  EXPECT_EQ(tensor_operand(layout, 1).k_steps, (std::vector<std::int64_t>{0, 32, 64, 96}));
  EXPECT_EQ(tensor_operand(SharedLayout::panels(64, 128, 2, 128), 0).k_steps,
            (std::vector<std::int64_t>{0, 2048, 4096, 6144}));
}

}  // namespace
}  // namespace tilewright::ir
