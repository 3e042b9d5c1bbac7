#pragma once

#include <string_view>

namespace tilewright::codegen {

// Products of pairs of CTAs, and tiles that are handed out to clusters, for sm_100a.
inline constexpr std::string_view kTensorPairsText = R"(kernel "tensor_pairs" machine
target "sm_100a"
in A: bf16[256, 64] = %90
grid (2)
cluster 2
cta_pairs
threads 160
shared_bytes 24704
body () {
%20: tensor_map = tensor_map %90 {name = "A map", box = [128, 64], swizzle = 128}
%1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
%2: shared<bf16, 1x32x64> = shared {name = "b", layout = shared_layout[32x64*2|32@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
%3: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 20480}
%4: shared<i32, 1x1x4> = shared {name = "answer", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 20608}
%5: mbarriers<2> = mbarriers {name = "done", arrivals = 1, offset = 20544}
%6: tensor_memory<64> = tensor_memory {name = "sums"}
%7: tensor_memory<32> = tensor_memory {name = "factors"}
mbarrier_init %5 {arrivals = 1}
fence_barrier_init
cluster_sync
%10: i32 = constant {value = 0}
%11: i32 = constant {value = 1}
%15: bool = constant {value = 0}
%16: bool = constant {value = 1}
role {name = "multiply", first_warp = 4, warps = 1} (%30: i32) {
tcgen05_alloc %6, %3, %10
tcgen05_alloc %7, %3, %11
tcgen05_relinquish
%21: i32 = shared_load %3, %10
%22: i32 = shared_load %3, %11
tma_load %20, %1, %10, %5, %10, %10, %10 {bytes = 16384, pair = 1}
tma_load %20, %1, %10, %5, %10, %10, %10 {bytes = 16384, pair = 1, cache = 1, multicast = 3}
tcgen05_mma_ss %6, %21, %1, %10, %2, %10, %15 {m = 256, n = 64, k = 16, instruction = 269485200, descriptor_a = 281479288455172, descriptor_b = 281479288455172}
tcgen05_mma_ts %6, %21, %7, %22, %2, %10, %16 {m = 256, n = 64, k = 16, instruction = 269485200, descriptor_b = 281479288455172}
tcgen05_commit %5, %10
tcgen05_commit %5, %11 {multicast = 3}
tcgen05_commit %5, %11 {multicast = 1, multicast_group = 1}
try_cancel %4, %10, %5, %10
%23: i32 = query_cancel %4, %10
%24: bool = lt %23, %10
if_then %24 () {
tcgen05_dealloc %7, %22
tcgen05_dealloc %6, %21
yield
} () {
yield
}
yield
}
cluster_sync
}
)";

inline constexpr std::string_view kHandedOutText = R"(kernel "handed_out" machine
target "sm_100a"
inout X: i32[64] = %90
grid (8)
threads 32
shared_bytes 64
body () {
%1: shared<i32, 2x1x4> = shared {name = "answer", layout = shared_layout[1x4*4|4@1:4], stages = 2, offset = 0}
%2: mbarriers<1> = mbarriers {name = "there", arrivals = 1, offset = 32}
mbarrier_init %2 {arrivals = 1}
fence_barrier_init
cta_sync
%3: i32 = constant {value = 0}
mbarrier_expect_tx %2, %3 {bytes = 16}
%6: i32 = constant {value = 4}
try_cancel %1, %6, %2, %3
mbarrier_wait %2, %3, %3
%4: i32 = query_cancel %1, %6
%5: i32 = cta_index
store_index %90, %5, %4 {semantics = "weak"}
}
)";

}  // namespace tilewright::codegen
