#include "simulator/machine/instruction_descriptor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewright::simulator {
namespace {

using testing::HasSubstr;

// By the tables of the PTX ISA 9.0, without what makes descriptors.
constexpr std::uint32_t kProduct = 0x08200490;  // bf16, 128 x 128, both K-major
constexpr std::uint64_t kOperand = 0x4000404000010040;

TEST(InstructionDescriptorTest, EachFieldIsWhereThePtxTableHasIt) {
  const InstructionDescriptor product = decode_instruction(kProduct, 2);
  EXPECT_EQ(product.problem, "");
  EXPECT_EQ(product.m, 128);
  EXPECT_EQ(product.n, 128);
  EXPECT_EQ(product.a, DType::bf16);
  EXPECT_EQ(product.b, DType::bf16);
  EXPECT_FALSE(product.a_is_mn_major);
  EXPECT_FALSE(product.b_is_mn_major);
  EXPECT_TRUE(decode_instruction(kProduct | 1 << 15, 2).a_is_mn_major);
  EXPECT_TRUE(decode_instruction(kProduct | 1 << 16, 2).b_is_mn_major);
  EXPECT_EQ(decode_instruction(0x04100490, 2).m, 64);
  EXPECT_EQ(decode_instruction(0x04100490, 2).n, 64);
  EXPECT_EQ(decode_instruction(0x08400490, 2).n, 256);
  EXPECT_EQ(decode_instruction(0x08200010, 2).a, DType::f16);
  EXPECT_EQ(decode_instruction(0x08200010, 1).a, DType::f8e4m3);
  EXPECT_EQ(decode_instruction(0x08200010 | 1 << 7, 2).a, DType::bf16);
  EXPECT_EQ(decode_instruction(0x08200010 | 1 << 7, 2).b, DType::f16);
}

TEST(InstructionDescriptorTest, WhatNoProductHasIsSaid) {
  const auto problem = [](std::uint32_t bits, int bytes = 2) {
    return decode_instruction(bits, bytes).problem;
  };
  EXPECT_THAT(problem(kProduct | 1 << 2), HasSubstr("sparse"));
  EXPECT_THAT(problem(kProduct | 1 << 3), HasSubstr("saturates"));
  EXPECT_THAT(problem(kProduct & ~0x30u), HasSubstr("say sums 0"));
  EXPECT_THAT(problem(kProduct | 1 << 6), HasSubstr("bit 6"));
  EXPECT_THAT(problem(kProduct | 2 << 7), HasSubstr("types 3 and 1"));
  EXPECT_THAT(problem(kProduct, 1), HasSubstr("types 1 and 1 of 1 bytes"));
  EXPECT_THAT(problem(kProduct | 1 << 13), HasSubstr("negate"));
  EXPECT_THAT(problem(0x08200010 | 1 << 15, 1), HasSubstr("MN-major"));
  EXPECT_THAT(problem(kProduct | 1 << 23), HasSubstr("bit 23"));
  EXPECT_THAT(problem(kProduct | 1u << 29), HasSubstr("bits 29 to 31"));
  EXPECT_THAT(problem(0x06200490), HasSubstr("m = 96"));
  EXPECT_THAT(problem(0x08000490), HasSubstr("n = 0"));
  EXPECT_THAT(problem(0x08060490), HasSubstr("n = 24"));
  EXPECT_EQ(problem(0x04060490), "") << "m = 64 takes n in steps of 8";
  // Of two CTAs each has a half of the columns.
  const auto of_pair = [](std::uint32_t bits) { return decode_instruction(bits, 2, 2).problem; };
  EXPECT_EQ(of_pair(0x10100490), "");
  EXPECT_THAT(of_pair(0x100c0490), HasSubstr("n = 48"));
  EXPECT_THAT(of_pair(0x10040490), HasSubstr("n = 16"));
  EXPECT_EQ(of_pair(0x08100490), "") << "64 rows in each";
  EXPECT_THAT(of_pair(0x04100490), HasSubstr("m = 64, not 128 or 256 of two CTAs"));
}

TEST(InstructionDescriptorTest, OfOperandsInSharedMemory) {
  EXPECT_EQ(problem_of_descriptor(kOperand), "");
  for (const std::uint64_t swizzle : {0u, 2u, 4u, 6u}) {
    EXPECT_EQ(problem_of_descriptor(0x0000404000010040 | swizzle << 61), "") << swizzle;
  }
  const auto bit = [](int number) { return std::uint64_t{1} << number; };
  EXPECT_THAT(problem_of_descriptor(kOperand & ~bit(46)), HasSubstr("bits 46 to 48 are 0"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(47)), HasSubstr("bits 46 to 48 are 3"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(49)), HasSubstr("base offset 1"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(52)), HasSubstr("bit 52"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(55)), HasSubstr("bits 53 to 60"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(61)), HasSubstr("swizzle 3"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(14)), HasSubstr("reserved"));
  EXPECT_THAT(problem_of_descriptor(kOperand | bit(30)), HasSubstr("reserved"));
}

}  // namespace
}  // namespace tilewright::simulator
