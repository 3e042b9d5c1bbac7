#pragma once

#include <string_view>

namespace tilewright::codegen {

// Products whose results are in tensor memory, for sm_100a.
inline constexpr std::string_view kTensorMemoryText = R"(kernel "tensor_memory" machine
target "sm_100a"
out Y: f32[128, 64] = %0
grid (1)
threads 256
shared_bytes 41088
body () {
%1: shared<bf16, 1x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
%2: shared<bf16, 1x64x64> = shared {name = "b", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 16384}
%3: shared<f8e4m3, 1x128x128> = shared {name = "small", layout = shared_layout[128x128*1|128@0:128,128@1:1|x3.4.3], stages = 1, offset = 24576}
%4: shared<i32, 1x1x4> = shared {name = "address", layout = shared_layout[1x4*4|4@1:4], stages = 1, offset = 40960}
%5: mbarriers<2> = mbarriers {name = "done", arrivals = 1, offset = 41024}
%6: tensor_memory<64> = tensor_memory {name = "sums"}
%7: tensor_memory<32> = tensor_memory {name = "factors"}
mbarrier_init %5 {arrivals = 1}
fence_barrier_init
cta_sync
%10: i32 = constant {value = 0}
%11: i32 = constant {value = 1}
%12: i32 = constant {value = 128}
%13: i32 = constant {value = 64}
%14: i32 = constant {value = 2097152}
%15: bool = constant {value = 0}
%16: bool = constant {value = 1}
role {name = "multiply", first_warp = 4, warps = 1} (%20: i32) {
tcgen05_alloc %6, %4, %10
tcgen05_alloc %7, %4, %11
tcgen05_relinquish
named_sync %10 {first = 1, threads = 160}
%21: i32 = shared_load %4, %10
%22: i32 = shared_load %4, %11
named_sync %10 {first = 2, threads = 160}
tcgen05_fence_after
tcgen05_mma_ss %6, %21, %1, %10, %2, %10, %15 {m = 128, n = 64, k = 16, instruction = 135267472, descriptor_a = 281479288455172, descriptor_b = 281479288455172, step_a = 0, step_b = 0}
tcgen05_mma_ss %6, %21, %1, %10, %2, %10, %16 {m = 128, n = 64, k = 16, instruction = 135267472, descriptor_a = 281479288455172, descriptor_b = 281479288455172, step_a = 32, step_b = 32}
tcgen05_mma_ts %6, %21, %7, %22, %2, %10, %16 {m = 128, n = 64, k = 16, instruction = 135267472, descriptor_b = 281479288455172, step_b = 64}
tcgen05_mma_ss %6, %21, %3, %10, %3, %10, %16 {m = 128, n = 64, k = 32, instruction = 135266320, descriptor_a = 281479288455172, descriptor_b = 281479288455172, step_a = 0, step_b = 32}
tcgen05_shift %6, %21
tcgen05_cp %7, %22, %1, %10 {m = 128, row_bytes = 32, descriptor_a = 281479288455172, step_a = 64}
tcgen05_cp %7, %22, %1, %10 {m = 32, row_bytes = 16, descriptor_a = 281479288455172}
tcgen05_commit %5, %10
named_sync %10 {first = 3, threads = 160}
tcgen05_dealloc %7, %22
tcgen05_dealloc %6, %21
yield
}
role {name = "read", first_warp = 0, warps = 4} (%30: i32) {
%31: registers<f32, 64> = registers {name = "sums"}
%32: registers<bf16, 64> = registers {name = "factors"}
%42: registers<f32, 32> = registers {name = "half"}
%43: registers<bf16, 32> = registers {name = "half_factors"}
%33: bf16 = constant {value = 1.5}
fill %32, %33
fill %43, %33
named_sync %10 {first = 1, threads = 160}
%34: i32 = warp_index
%35: i32 = mul %34, %14
%36: i32 = shared_load %4, %10
%37: i32 = add %36, %35
%38: i32 = shared_load %4, %11
%39: i32 = add %38, %35
tcgen05_fence_after
tcgen05_st %7, %39, %32 {count = 32, register = 0}
tcgen05_st %7, %39, %43 {count = 8, register = 8, row_bytes = 16}
tcgen05_wait_st
tcgen05_fence_before
named_sync %10 {first = 2, threads = 160}
mbarrier_wait %5, %10, %10
tcgen05_fence_after
tcgen05_ld %31, %6, %37 {count = 32, register = 0}
%40: i32 = add %37, %11
tcgen05_ld %31, %6, %40 {count = 32, register = 32}
tcgen05_ld %42, %6, %37 {count = 32, register = 0, row_bytes = 32}
tcgen05_wait_ld %31, %42
compute %31, %31, %31 {function = add, maps = maps[[1:64:1], [1:64:1]]}
compute %31, %31, %31 {function = mul, maps = maps[[1:64:1], [1:64:1]]}
compute %31, %31, %31, %31 {function = fma, maps = maps[[1:64:1], [1:64:1], [1:64:1]]}
compute %31, %31, %31 {function = sub, maps = maps[[1:64:1], [1:64:1]]}
tcgen05_fence_before
store_registers %0, %31, %10, %10, %12, %13 {sizes = [128, 64], layout = register_layout[128x64|r:64@1:1|l:32@0:1|w:4@0:32]}
named_sync %10 {first = 3, threads = 160}
yield
}
}
)";

}  // namespace tilewright::codegen
