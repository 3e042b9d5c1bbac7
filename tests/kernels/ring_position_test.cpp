#include <gtest/gtest.h>

#include <string>

#include "tilewright/compile.h"
#include "tilewright/error.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Stages that a role comes back to before it releases them: Ring::consume_at.
namespace tilewright {
namespace {

constexpr int kBlocks = 7, kStages = 3;

// Y's block i is the sum of X's blocks i and i - 1, each of which is loaded once. `kept`: a block
// stays until the next one has been added to it.
Kernel sums_of_neighbours(bool kept) {
  Kernel kernel("sums_of_neighbours");
  const Dim rows(64 * kBlocks);
  const Tensor X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {rows, 64});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(kStages), {{bf16, 64, 64}});
  const auto load_role = [&] {
    for (Index i : range(kBlocks)) {
      ring.produce([&](const Slot& slot) { tma_load(X(rows.block(i, 64), all), slot); });
    }
  };
  const auto math_role = [&](const Index&) {
    const auto give_back = [&](const Slot& slot) {
      fence_proxy_async();
      warp_sync();
      ring.release(slot);
    };
    for (Index i : range(kBlocks)) {
      const Slot own = ring.consume_at(i);
      const Slot before = ring.consume_at(i - 1);  // of the first block itself
      const Tile sum = load(own[0]).cast(f32) + load(before[0]).cast(f32);
      store(Y(rows.block(i, 64), all), sum);
      if (kept) {
        when(i > 0, [&] { give_back(before); });
      } else {
        give_back(own);
      }
    }
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(160), math_role)});
  return kernel;
}

HostTensor random_blocks() { return HostTensor::random_normal(bf16, {64 * kBlocks, 64}, 3); }

TEST(RingPosition, KeepsStagesUntilTheyAreReleased) {
  HostTensor X = random_blocks(), Y = HostTensor::poisoned(f32, {64 * kBlocks, 64});
  compile(sums_of_neighbours(true), "sim:sm_90a").run({ref(X), ref(Y)});
  for (std::int64_t i = 0; i < 64 * kBlocks; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      const double before = X.at({i < 64 ? i : i - 64, j});
      ASSERT_FLOAT_EQ(Y.at({i, j}), X.at({i, j}) + before) << i << ", " << j;
    }
  }
}

// A stage that was given back is another block's by the time the role comes back to it.
TEST(RingPosition, AReleasedStageIsNotThereAnyMore) {
  HostTensor X = random_blocks(), Y = HostTensor::poisoned(f32, {64 * kBlocks, 64});
  try {
    compile(sums_of_neighbours(false), "sim:sm_90a").run({ref(X), ref(Y)});
    FAIL() << "no fault";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ring_position_test.cpp"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace tilewright
