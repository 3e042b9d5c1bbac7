#pragma once

#include <string_view>

namespace tilewright::codegen {

// Copies that may lie wholly outside of a ragged map, of this rank's tensor and of another's.
inline constexpr std::string_view kRaggedText = R"(kernel "ragged" machine
dim ranks at_least(1) at_most(8)
in X: f32[16, 16] = %0
symmetric parts: f32[ranks, 16, 16] = %1
grid (1)
threads 128
shared_bytes 1152
body () {
  %3: shared<f32, 1x16x16> = shared {name = "tile", layout = shared_layout[16x16*4|16@0:64,16@1:4], stages = 1, offset = 0}
  %4: tensor_map = tensor_map %1 {name = "parts", box = [1, 16, 16], swizzle = 0, ragged = 1, peers = 1}
  %5: tensor_map = tensor_map %0 {name = "X", box = [16, 16], swizzle = 0, ragged = 0}
  %6: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 1024}
  %7: i32 = rank
  %8: i32 = constant {value = 0}
  %9: i32 = constant {value = 16}
  mbarrier_init %6 {arrivals = 1}
  fence_barrier_init
  cta_sync
  role {name = "only", first_warp = 0, warps = 4} (%20: i32) {
    %21: bool = eq %7, %8
    %22: tensor_map = peer_map %4, %7
    %23: tensor_map = ragged_map %22, %21
    %24: tensor_map = ragged_map %5, %21
    elect () {
      mbarrier_expect_tx %6, %8 {bytes = 2048}
      tma_load %23, %3, %8, %6, %8, %9, %8, %8, %7 {bytes = 1024}
      tma_load %24, %3, %8, %6, %8, %9, %8, %8 {bytes = 1024}
      yield
    }
    mbarrier_wait %6, %8, %8
    yield
  }
}
)";

}  // namespace tilewright::codegen
