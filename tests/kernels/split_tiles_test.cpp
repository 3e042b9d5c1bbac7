#include "kernels/split_tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>

#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// How many parts the last tiles of attention have.
namespace tilewright::kernels {
namespace {

// Of very many keys six parts are the fastest also where not all of them could leave what they
// have.
TEST(SplitTiles, WhatPartsLeaveHasRoom) {
  constexpr std::int64_t kMultiprocessors = 132, kBlocks = 2000;
  Attention a;
  a.block_q = 64;
  Kernel kernel("parts");
  const Dim tiles = kernel.dim("tiles"), blocks = kernel.dim("blocks");
  kernel.in("of_tiles", i32, {tiles});
  kernel.in("of_blocks", i32, {blocks});
  const Tensor runs = kernel.inout("runs", i32, {1});
  const SplitMemory memory(kernel, a);
  const SplitTiles split(memory, a, tiles, blocks);
  kernel.ctas(1);
  kernel.roles(
      {role("count", warps(1), registers(24), [&] { atomic_add(runs(0), Index(split.runs())); })});
  const Executable executable = compile(kernel, "sim:sm_90a");
  HostTensor of_blocks = HostTensor::zeros(i32, {kBlocks});
  std::int64_t most = 0;
  for (std::int64_t last = 1; last < kMultiprocessors; ++last) {
    HostTensor of_tiles = HostTensor::zeros(i32, {kMultiprocessors + last});
    HostTensor counted = HostTensor::zeros(i32, {1});
    executable.run({ref(of_tiles), ref(of_blocks), ref(counted)});
    const auto of_last = static_cast<std::int64_t>(counted.flat(0)) - kMultiprocessors;
    ASSERT_EQ(of_last % last, 0);
    const std::int64_t parts = of_last / last;
    EXPECT_LE(last * (parts - 1), SplitMemory::kLeft) << last << " tiles";
    most = std::max(most, parts);
  }
  EXPECT_EQ(most, 6);
}

}  // namespace
}  // namespace tilewright::kernels
