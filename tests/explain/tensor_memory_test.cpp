#include "explain/tensor_memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "codegen/tensor_memory_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/text.h"
#include "tilewright/blackwell.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright::explanations {
namespace {

using testing::HasSubstr;

ir::Kernel machine_of(const Kernel& kernel, const char* target) {
  return compiler::compile_to_machine(kernel.finish(), target).kernel;
}

// The sums of two tiles, one of which is stored while the other one is made.
TEST(TensorMemoryMap, SaysWhoUsesWhichColumns) {
  const ir::Kernel machine = machine_of(kernels::gemm_sm100({}), "sm_100a");
  const std::vector<TensorUse> uses = tensor_uses(machine);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(uses[0].role, "multiply");
  EXPECT_EQ(uses[0].operation, "tcgen05_mma_ss");
  EXPECT_EQ(uses[0].count, 4) << "steps of a depth of 64";
  EXPECT_EQ(uses[1].role, "store");
  EXPECT_EQ(uses[1].operation, "tcgen05_ld");
  for (const TensorUse& use : uses) {
    EXPECT_EQ(use.first, 0);
    EXPECT_EQ(use.columns, 256);
    EXPECT_THAT(use.beyond, HasSubstr("an index"));
    EXPECT_EQ(use.writes, use.role == "multiply");
    EXPECT_THAT(use.where.file, HasSubstr("gemm_sm100.cpp"));
  }
  const std::string text = tensor_memory_text(machine);
  EXPECT_THAT(text, HasSubstr("tensor_memory  columns 0 to 511\n"));
  EXPECT_THAT(text, HasSubstr("multiply   tcgen05_mma_ss " + std::string(32, 'w') +
                              std::string(32, '.') + " 0 to 255 and an index, 4 times"));
}

// Two tiles, each with its scores, weights and sums.
TEST(TensorMemoryMap, HasOperandsToo) {
  const std::vector<TensorUse> uses = tensor_uses(
      machine_of(kernels::attention_forward_sm100(kernels::with_sm100_blocks({})), "sm_100a"));
  std::int64_t last = 0, weights = 0;
  for (const TensorUse& use : uses) {
    last = std::max(last, use.first + use.columns);
    weights += use.operation == "tcgen05_mma_ts" && use.reads ? 1 : 0;
  }
  // 128 keys of 16 bits, step by step.
  for (const TensorUse& use : uses) {
    if (use.operation == "tcgen05_mma_ts" && use.reads) {
      EXPECT_EQ(use.columns, 64);
    }
  }
  EXPECT_LE(last, 512);
  EXPECT_GT(last, 256);
  EXPECT_GE(weights, 2);
}

// Lines are apart, lanes are no columns, and a memory begins behind those before it.
TEST(TensorMemoryMap, OfSeveralMemoriesAndOfHalves) {
  Kernel kernel("map");
  kernel.target("sm_100a");
  kernel.ctas(1);
  const Tensor C = kernel.out("C", f32, {64, 64});
  const SharedTile a(kernel, "a", bf16, 128, 64), b(kernel, "b", bf16, 64, 64);
  const TensorMemory wide(kernel, "wide", 256), sums(kernel, "sums", 64), last(kernel, "last", 32);
  kernel.roles({role("multiply", warps(1), registers(64),
                     [&] {
                       wide.allocate();
                       sums.allocate();
                       last.allocate();
                       const TensorColumns all = sums.attach();
                       mma(all.columns(0, 32), a, b.rows(0, 32).T(), false);
                       mma(all.columns(32, 32), a, b.rows(32, 32).T(), false);
                     }),
                role("read", warpgroups(1), registers(128),
                     [&] { store(C(all, all), load(sums.attach().half(1))); })});
  const ir::Kernel machine = machine_of(kernel, "sm_100a");
  const std::vector<TensorUse> uses = tensor_uses(machine);
  ASSERT_EQ(uses.size(), 3u);
  for (const TensorUse& use : uses) {
    EXPECT_EQ(use.begin, 256);
    EXPECT_EQ(use.beyond, "");
  }
  EXPECT_EQ(uses[0].columns, 32);
  EXPECT_EQ(uses[1].first, 32);
  EXPECT_EQ(uses[2].first, 0);
  EXPECT_EQ(uses[2].columns, 64);
  // 352 columns, 5 a letter.
  EXPECT_THAT(tensor_memory_text(machine),
              HasSubstr("tcgen05_ld     " + std::string(51, '.') + std::string(13, 'r') +
                        std::string(7, '.') + " 256 to 319"));
}

TEST(TensorMemoryMap, HasCopiesAndShifts) {
  const ir::Kernel machine = ir::parse_text(std::string(codegen::kTensorMemoryText), "map.tw");
  std::string found;
  for (const TensorUse& use : tensor_uses(machine)) {
    if (use.operation != "tcgen05_cp" && use.operation != "tcgen05_shift") continue;
    found += fmt::format("{} {} {}{} {}\n", use.operation, use.memory, use.reads ? "r" : "",
                         use.writes ? "w" : "", use.columns);
  }
  EXPECT_EQ(found, "tcgen05_shift sums rw 8\ntcgen05_cp factors w 8\ntcgen05_cp factors w 4\n");
}

TEST(TensorMemoryMap, IsEmptyWithoutTensorMemory) {
  EXPECT_EQ(tensor_memory_text(machine_of(kernels::gemm_sm90({}), "sm_90a")), "");
}

}  // namespace
}  // namespace tilewright::explanations
