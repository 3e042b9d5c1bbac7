#pragma once

// One small kernel in each form, as text.
namespace tilewright::ir {

// Y = exp2(X) summed over blocks of columns, with a loop and a condition.
inline constexpr char kTileSample[] = R"(kernel "row_sums" tile @"sums.cpp":3
dim rows multiple_of(8) at_least(8) at_most(4096)
dim columns
in X: bf16[rows, (columns * 2)] = %0 @"sums.cpp":4
out Y: f32[rows, 1] = %1 @"sums.cpp":5
scalar scale: f32 = %2
grid (ceil_div(rows, 64), min(columns, 4))
body (%3: i32, %4: i32) {
  %5: i32 = constant {value = 64} @"sums.cpp":8
  %6: i32 = mul %3, %5 @"sums.cpp":8
  %7: i32 = dim {dim = dim(rows)}
  %8: i32 = dim {dim = dim((columns * 2))}
  %9: i32 = constant {value = 0}
  %10: f32 = constant {value = 0.0}
  %11: tile<f32, 64x1> = splat %10
  %12: tile<f32, 64x1> = for_loop %9, %8, %5, %11 @"sums.cpp":9 (%13: i32, %14: tile<f32, 64x1>) {
    %15: tile<bf16, 64x64> = load %0, %6, %13, %7, %8 {sizes = [64, 64]} @"sums.cpp":10
    %16: tile<f32, 64x64> = cast %15
    %17: tile<f32, 64x64> = mul %16, %2
    %18: tile<f32, 64x64> = exp2 %17
    %19: tile<f32, 64x1> = reduce %18 {function = add, axis = 1} @"sums.cpp":11
    %20: tile<f32, 64x1> = add %14, %19 @"sums.cpp":11
    yield %20
  }
  %21: bool = lt %3, %4
  %22: tile<f32, 64x1> = if_then %21 () {
    %23: tile<f32, 64x1> = neg %12
    yield %23
  } () {
    yield %12
  }
  %24: i32 = constant {value = 1}
  store %1, %22, %6, %9, %7, %24 {sizes = [64, 1]} @"sums.cpp":13
}
)";

// One 64 x 64 x 64 product with TMA, a load role and a math role.
inline constexpr char kScheduledSample[] = R"(kernel "product" scheduled
in A: bf16[64, 64] = %0
in B: bf16[64, 64] = %1
out C: f32[64, 64] = %2
grid (multiprocessors)
threads 256
body () {
  %3: shared<bf16, 2x64x64> = shared {name = "tiles", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2}
  %4: mbarriers<2> = mbarriers {name = "full", arrivals = 1}
  %5: tensor_map = tensor_map %0 {name = "A", box = [64, 64], swizzle = 128}
  %6: tensor_map = tensor_map %1 {name = "B", box = [64, 64], swizzle = 128}
  %7: i32 = constant {value = 0}
  %8: i32 = constant {value = 1}
  %9: i32 = constant {value = 64}
  role {name = "load", first_warp = 4, warps = 4, registers = 24} (%10: i32) {
    elect () {
      mbarrier_expect_tx %4, %7 {bytes = 16384}
      %11: view<bf16, 64x64> = view %3, %7, %7
      tma_load_tile %5, %11, %4, %7, %7, %7 {cache = 1}
      %12: view<bf16, 64x64> = view %3, %8, %7
      tma_load_tile %6, %12, %4, %7, %7, %7
      yield
    }
    yield
  }
  role {name = "math", first_warp = 0, warps = 4, registers = 240} (%13: i32) {
    mbarrier_wait %4, %7, %7
    %14: view<bf16, 64x64> = view %3, %7, %7
    %15: view<bf16, 64x64> = view %3, %8, %7 {transposed = 1}
    %16: pending<f32, 64x64> = wgmma %14, %15
    %17: tile<f32, 64x64, [64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]> = wait %16
    named_sync %7 {first = 1, threads = 128}
    store %2, %17, %7, %7, %9, %9 {sizes = [64, 64]}
    yield
  }
}
)";

// The same product as a machine program.
inline constexpr char kMachineSample[] = R"(kernel "product" machine
in A: bf16[64, 64] = %0
in B: bf16[64, 64] = %1
out C: f32[64, 64] = %2
grid (1)
cluster 1
threads 256
resident 2
shared_bytes 16400
body () {
  %3: shared<bf16, 2x64x64> = shared {name = "tiles", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2, offset = 0}
  %4: mbarriers<2> = mbarriers {name = "full", arrivals = 1, offset = 16384}
  %5: tensor_map = tensor_map %0 {name = "A", box = [64, 64], swizzle = 128}
  %6: tensor_map = tensor_map %1 {name = "B", box = [64, 64], swizzle = 128}
  %7: i32 = constant {value = 0}
  %8: i32 = constant {value = 8192}
  %9: i32 = constant {value = 64}
  %10: bool = constant {value = 0}
  mbarrier_init %4 {arrivals = 1}
  fence_barrier_init
  cta_sync
  role {name = "load", first_warp = 4, warps = 4, registers = 24} (%11: i32) {
    set_max_registers {count = 24, increase = 0}
    elect () {
      mbarrier_expect_tx %4, %7 {bytes = 16384}
      tma_load %5, %3, %7, %4, %7, %7, %7 {bytes = 8192, step = 0}
      tma_load %6, %3, %8, %4, %7, %7, %7 {bytes = 8192}
      yield
    }
    yield
  }
  role {name = "math", first_warp = 0, warps = 4, registers = 240} (%12: i32) {
    %13: registers<f32, 32> = registers {name = "sums"}
    %14: registers<bf16, 32> = registers {name = "packed"}
    %15: registers<f32, 2> = registers {name = "row"}
    mbarrier_wait %4, %7, %7
    wgmma_fence %13
    wgmma_ss %13, %3, %7, %3, %8, %10 {n = 64, k = 16, descriptor_a = 70368744177665, descriptor_b = 70368744177665, step_a = 32, transpose_b = 1}
    wgmma_commit
    wgmma_wait %13 {count = 0}
    reduce_registers %15, %13 {function = max, maps = maps[[2:2:1]]}
    reduce_lanes %15 {function = max, masks = [1, 2]}
    compute %13, %13, %15 {function = sub, maps = maps[[1:32:1], [2:2:1]]}
    compute %14, %13 {function = cast, maps = maps[[1:32:1]]}
    store_matrix %14, %3, %7, %7, %7 {transposed = 1, count = 2, register = 14, step = 0, row_bytes = 128, column_bytes = 96, swizzle_divisor = 1, swizzle_mask = 7}
    wgmma_rs %13, %14, %3, %7, %10 {n = 64, k = 16, descriptor_b = 70368744177665, register = 12}
    store_registers %2, %13, %7, %7, %9, %9 {sizes = [64, 64], layout = register_layout[64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]}
    yield
  }
}
)";

// Each rank sends a tile to the next one and waits for what the one before has sent.
inline constexpr char kRanksSample[] = R"(kernel "pass_on" machine
dim ranks at_least(1) at_most(8)
in X: f32[16, 16] = %0 @"ring.cpp":4
symmetric parts: f32[ranks, 16, 16] = %1 @"ring.cpp":5
signals arrived: i32[8] = %2 @"ring.cpp":6
grid (1)
threads 128
shared_bytes 1024
body () {
  %3: shared<f32, 1x16x16> = shared {name = "tile", layout = shared_layout[16x16*4|16@0:64,16@1:4], stages = 1, offset = 0}
  %4: tensor_map = tensor_map %1 {name = "parts_peers", box = [1, 16, 16], swizzle = 0, peers = 1}
  %5: i32 = rank
  %6: i32 = epoch
  %7: i32 = dim {dim = dim(ranks)}
  %8: i32 = constant {value = 1}
  %9: i32 = constant {value = 0}
  %10: i32 = add %5, %8
  %11: i32 = mod %10, %7
  role {name = "send", first_warp = 0, warps = 1} (%12: i32) {
    %13: tensor_map = peer_map %4, %11
    tma_store %13, %3, %9, %9, %9, %5 @"ring.cpp":20
    bulk_commit
    bulk_wait {count = 0}
    %14: tensor<i32, 1x2> = peer %2, %11
    store_index %14, %5, %6 {semantics = "release", scope = "system"} @"ring.cpp":24
    reduce_add %14, %5, %9 {semantics = "relaxed", scope = "gpu"}
    wait_flag %2, %10, %6 {compare = "ge", semantics = "acquire", scope = "system"} @"ring.cpp":26
    fence {scope = "system"}
    fence_proxy_async_global
    %15: i32 = load_index %2, %9 {semantics = "weak"}
    %16: i32 = atomic_add %14, %9, %15 {semantics = "acq_rel", scope = "cluster"}
    yield
  }
}
)";

}  // namespace tilewright::ir
