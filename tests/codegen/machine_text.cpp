#include "codegen/machine_text.h"

namespace tilewright::codegen {
namespace {

// Bits 14..63 of descriptors with a swizzle of 128 bytes and 1024 bytes between groups of 8 rows.
constexpr std::int64_t kSwizzled128 = (std::int64_t{1} << 62 | std::int64_t{64} << 32) >> 14;
constexpr std::int64_t kKMajor = kSwizzled128 | 1 << 2;

std::int64_t mn_major(std::int64_t panel_bytes) { return kSwizzled128 | panel_bytes / 16 << 2; }

// Position in a ring of `stages`: after %stage, %phase come these.
struct Ring {
  std::string stage, phase;
};

Ring next(MachineText& t, const Ring& now, int stages) {
  const std::string one = t.integer(1), zero = t.integer(0);
  const std::string after = t.value("i32", fmt::format("add {}, {}", now.stage, one));
  const std::string wraps = t.value("bool", fmt::format("eq {}, {}", after, t.integer(stages)));
  const std::string flipped = t.value("i32", fmt::format("sub {}, {}", one, now.phase));
  return {t.value("i32", fmt::format("select {}, {}, {}", wraps, zero, after)),
          t.value("i32", fmt::format("select {}, {}, {}", wraps, flipped, now.phase))};
}

std::string scaled(MachineText& t, const std::string& index, std::int64_t factor) {
  return t.value("i32", fmt::format("mul {}, {}", index, t.integer(factor)));
}

}  // namespace

std::string gemm_text() {
  MachineText t(R"(kernel "gemm" machine
dim m multiple_of(128)
dim n multiple_of(256)
dim k multiple_of(64)
in A: bf16[m, k] = %0
in B: bf16[n, k] = %1
out C: bf16[m, n] = %2
grid (multiprocessors)
threads 384
shared_bytes 230464
body () {
%3: shared<bf16, 4x128x64> = shared {name = "a", layout = shared_layout[128x64*2|128@0:128,64@1:2|x3.4.3], stages = 4, offset = 0}
%4: shared<bf16, 4x256x64> = shared {name = "b", layout = shared_layout[256x64*2|256@0:128,64@1:2|x3.4.3], stages = 4, offset = 65536}
%5: shared<bf16, 8x16x64> = shared {name = "c", layout = shared_layout[16x64*2|16@0:128,64@1:2|x3.4.3], stages = 8, offset = 196608}
%6: mbarriers<4> = mbarriers {name = "full", arrivals = 1, offset = 229376}
%7: mbarriers<4> = mbarriers {name = "empty", arrivals = 8, offset = 229408}
%8: tensor_map = tensor_map %0 {name = "map_a", box = [128, 64], swizzle = 128}
%9: tensor_map = tensor_map %1 {name = "map_b", box = [256, 64], swizzle = 128}
%10: tensor_map = tensor_map %2 {name = "map_c", box = [16, 64], swizzle = 128}
%11: i32 = constant {value = 0}
%12: i32 = constant {value = 1}
%13: i32 = constant {value = 128}
%14: i32 = constant {value = 256}
%15: i32 = dim {dim = dim((m // 128))}
%16: i32 = dim {dim = dim(((m // 128) * (n // 256)))}
%17: i32 = dim {dim = dim((k // 64))}
%18: i32 = cta_index
%19: i32 = cta_count
%20: bool = constant {value = 1}
%21: i32 = constant {value = 64}
mbarrier_init %6 {arrivals = 1}
mbarrier_init %7 {arrivals = 8}
fence_barrier_init
cta_sync
role {name = "load", first_warp = 0, warps = 4, registers = 40} (%30: i32) {
  set_max_registers {count = 40, increase = 0}
  %31: i32 = warp_index
  %32: bool = eq %31, %11
  if_then %32 () {
    elect () {
      %33: i32, %34: i32 = for_loop %18, %16, %19, %11, %12 (%35: i32, %36: i32, %37: i32) {
        %38: i32 = mod %35, %15
        %39: i32 = mul %38, %13
        %40: i32 = div %35, %15
        %41: i32 = mul %40, %14
        %42: i32, %43: i32 = for_loop %11, %17, %12, %36, %37 (%44: i32, %45: i32, %46: i32) {
          %47: i32 = mul %44, %21
          mbarrier_wait %7, %45, %46
          mbarrier_expect_tx %6, %45 {bytes = 49152}
)");
  const std::string a = scaled(t, "%45", 16384), b = scaled(t, "%45", 32768);
  t.line(fmt::format("tma_load %8, %3, {}, %6, %45, %47, %39 {{bytes = 16384}}", a));
  t.line(fmt::format("tma_load %9, %4, {}, %6, %45, %47, %41 {{bytes = 32768}}", b));
  const Ring loaded = next(t, {"%45", "%46"}, 4);
  t.line(fmt::format("yield {}, {}", loaded.stage, loaded.phase));
  t.close();
  t.line("yield %42, %43");
  t.close();
  t.line("yield");
  t.close();
  t.line("yield");
  t.close();
  t.open("()");
  t.line("yield");
  t.close();
  t.line("yield");
  t.close();
  t.line(R"(role {name = "math", first_warp = 4, warps = 8, registers = 232} (%50: i32) {
  set_max_registers {count = 232, increase = 1}
  %51: registers<f32, 128> = registers {name = "sums"}
  %52: registers<bf16, 128> = registers {name = "rounded"}
  %53: i32 = warp_index
  %54: i32, %55: i32 = for_loop %18, %16, %19, %11, %11 (%56: i32, %57: i32, %58: i32) {
    %59: i32 = mod %56, %15
    %60: i32 = mul %59, %13
    %61: i32 = div %56, %15
    %62: i32 = mul %61, %14
    %63: i32, %64: i32, %65: i32 = for_loop %11, %17, %12, %57, %58, %11 (%66: i32, %67: i32, %68: i32, %69: i32) {
      mbarrier_wait %6, %67, %68
      wgmma_fence %51)");
  const std::string a_stage = scaled(t, "%67", 16384), group = scaled(t, "%50", 8192);
  const std::string a_offset = t.value("i32", fmt::format("add {}, {}", a_stage, group));
  const std::string b_offset = scaled(t, "%67", 32768);
  const std::string more = t.value("bool", "lt %11, %66");
  for (int step = 0; step < 4; ++step) {
    t.line(fmt::format(
        "wgmma_ss %51, %3, {}, %4, {}, {} {{n = 256, k = 16, descriptor_a = {}, "
        "descriptor_b = {}, step_a = {}, step_b = {}}}",
        a_offset, b_offset, step == 0 ? more : "%20", kKMajor, kKMajor, 32 * step, 32 * step));
  }
  t.line("wgmma_commit");
  t.line("wgmma_wait {count = 1}");
  t.open(fmt::format("if_then {} ()", more));
  t.line("mbarrier_arrive %7, %69");
  t.line("yield");
  t.close();
  t.open("()");
  t.line("yield");
  t.close();
  const Ring used = next(t, {"%67", "%68"}, 4);
  t.line(fmt::format("yield {}, {}, %67", used.stage, used.phase));
  t.close();
  t.line("wgmma_wait %51 {count = 0}");
  t.line("mbarrier_arrive %7, %65");
  t.line("compute %52, %51 {function = cast, maps = maps[[1:128:1]]}");
  const std::string warp = t.value("i32", fmt::format("add {}, %53", scaled(t, "%50", 4)));
  const std::string place = scaled(t, warp, 2048);
  const std::string warp_row = t.value("i32", fmt::format("add %60, {}", scaled(t, warp, 16)));
  for (int box = 0; box < 4; ++box) {
    t.line("bulk_wait {count = 0, read = 1}");
    for (int chunk = 0; chunk < 4; ++chunk) {
      t.line(
          fmt::format("store_matrix %52, %5, {}, %11 {{register = {}, row_bytes = 128, "
                      "column_bytes = {}, swizzle_divisor = 1, swizzle_mask = 7}}",
                      place, box * 16 + chunk * 4, chunk * 32));
    }
    t.line("fence_proxy_async");
    const std::string column = t.value("i32", fmt::format("add %62, {}", t.integer(64 * box)));
    t.line(fmt::format("tma_store %10, %5, {}, {}, {}", place, column, warp_row));
    t.line("bulk_commit");
  }
  t.line("yield %63, %64");
  t.close();
  t.line("bulk_wait {count = 0, read = 0}");
  t.line("yield");
  t.close();
  t.close();
  return t.text();
}

std::string attention_text() {
  MachineText t(R"(kernel "attention" machine
dim queries
dim keys
in Q: bf16[4, queries, 16, 128] = %0
in K: bf16[4, keys, 16, 128] = %1
in V: bf16[4, keys, 16, 128] = %2
out O: bf16[4, queries, 16, 128] = %3
out L: f32[4, 16, queries] = %4
scalar scale: f32 = %5
grid ((64 * ceil_div(queries, 128)))
threads 384
shared_bytes 163968
body () {
%6: shared<bf16, 1x128x128> = shared {name = "q", layout = shared_layout[128x128*2|128@0:128,64@1:2,2@1:16384|x3.4.3], stages = 1, offset = 0}
%7: shared<bf16, 2x128x128> = shared {name = "k", layout = shared_layout[128x128*2|128@0:128,64@1:2,2@1:16384|x3.4.3], stages = 2, offset = 32768}
%8: shared<bf16, 2x128x128> = shared {name = "v", layout = shared_layout[128x128*2|128@0:128,64@1:2,2@1:16384|x3.4.3], stages = 2, offset = 98304}
%9: mbarriers<1> = mbarriers {name = "q_full", arrivals = 1, offset = 163840}
%10: mbarriers<2> = mbarriers {name = "k_full", arrivals = 1, offset = 163848}
%11: mbarriers<2> = mbarriers {name = "k_empty", arrivals = 8, offset = 163864}
%12: mbarriers<2> = mbarriers {name = "v_full", arrivals = 1, offset = 163880}
%13: mbarriers<2> = mbarriers {name = "v_empty", arrivals = 8, offset = 163896}
%14: tensor_map = tensor_map %0 {name = "map_q", box = [1, 128, 1, 64], swizzle = 128}
%15: tensor_map = tensor_map %1 {name = "map_k", box = [1, 128, 1, 64], swizzle = 128}
%16: tensor_map = tensor_map %2 {name = "map_v", box = [1, 128, 1, 64], swizzle = 128}
%17: i32 = constant {value = 0}
%18: i32 = constant {value = 1}
%19: i32 = constant {value = 2}
%20: i32 = constant {value = 16}
%21: i32 = constant {value = 64}
%22: i32 = constant {value = 128}
%23: bool = constant {value = 1}
%24: bool = constant {value = 0}
%25: f32 = constant {value = 0.0}
%26: f32 = constant {value = -inf}
%27: f32 = constant {value = 0.6931471805599453}
%28: i32 = cta_index
%29: i32 = dim {dim = dim(ceil_div(queries, 128))}
%30: i32 = dim {dim = dim(queries)}
%31: i32 = dim {dim = dim(keys)}
%32: i32 = dim {dim = dim(ceil_div(keys, 128))}
%33: i32 = mod %28, %29
%34: i32 = mul %33, %22
%35: i32 = div %28, %29
%36: i32 = mod %35, %20
%37: i32 = div %35, %20
%38: i32 = constant {value = 4}
mbarrier_init %9 {arrivals = 1}
mbarrier_init %10 {arrivals = 1}
mbarrier_init %11 {arrivals = 8}
mbarrier_init %12 {arrivals = 1}
mbarrier_init %13 {arrivals = 8}
fence_barrier_init
cta_sync
role {name = "load", first_warp = 0, warps = 4, registers = 24} (%40: i32) {
  set_max_registers {count = 24, increase = 0}
  %41: i32 = warp_index
  %42: bool = eq %41, %17
  if_then %42 () {
    elect () {
      mbarrier_expect_tx %9, %17 {bytes = 32768}
      tma_load %14, %6, %17, %9, %17, %17, %36, %34, %37 {bytes = 16384, cache = 1}
      tma_load %14, %6, %17, %9, %17, %21, %36, %34, %37 {bytes = 16384, step = 16384, cache = 1}
      %43: i32, %44: i32 = for_loop %17, %32, %18, %17, %18 (%45: i32, %46: i32, %47: i32) {
        %48: i32 = mul %45, %22)");
  const std::string place = scaled(t, "%46", 32768);
  for (const bool v : {false, true}) {
    t.line(fmt::format("mbarrier_wait %{}, %46, %47", v ? 13 : 11));
    t.line(fmt::format("mbarrier_expect_tx %{}, %46 {{bytes = 32768}}", v ? 12 : 10));
    for (int half = 0; half < 2; ++half) {
      t.line(
          fmt::format("tma_load %{}, %{}, {}, %{}, %46, %{}, %36, %48, %37 {{bytes = 16384, "
                      "step = {}, cache = 2}}",
                      v ? 16 : 15, v ? 8 : 7, place, v ? 12 : 10, half ? 21 : 17, 16384 * half));
    }
  }
  const Ring loaded = next(t, {"%46", "%47"}, 2);
  t.line(fmt::format("yield {}, {}", loaded.stage, loaded.phase));
  t.close();
  t.line(R"(      yield
    }
    yield
  } () {
    yield
  }
  yield
}
role {name = "math", first_warp = 4, warps = 8, registers = 240} (%60: i32) {
  set_max_registers {count = 240, increase = 1}
  %61: registers<f32, 64> = registers {name = "s"}
  %62: registers<f32, 64> = registers {name = "o"}
  %63: registers<bf16, 64> = registers {name = "p"}
  %64: registers<f32, 2> = registers {name = "highest"}
  %65: registers<f32, 2> = registers {name = "before"}
  %66: registers<f32, 2> = registers {name = "rescale"}
  %67: registers<f32, 2> = registers {name = "sum"}
  %68: registers<f32, 2> = registers {name = "shift"}
  %69: registers<f32, 2> = registers {name = "part"}
  %70: registers<i32, 64> = registers {name = "column"}
  %71: registers<bool, 64> = registers {name = "visible"}
  %72: registers<bf16, 64> = registers {name = "rounded"}
  %73: i32 = mul %60, %21
  fill %62, %25
  fill %67, %25
  fill %64, %26
  mbarrier_wait %9, %17, %17
  %74: i32 = sub %18, %60
  %75: bool = eq %60, %18
  if_then %75 () {
    named_arrive %74 {first = 1, threads = 256, count = 2}
    yield
  } () {
    yield
  }
  mbarrier_wait %10, %17, %17
  wgmma_fence %61)");
  const std::string q = scaled(t, "%60", 8192);
  const auto scores = [&](const std::string& stage) {
    const std::string k = scaled(t, stage, 32768);
    for (int step = 0; step < 8; ++step) {
      const int offset = step / 4 * 16384 + step % 4 * 32;
      t.line(
          fmt::format("wgmma_ss %61, %6, {}, %7, {}, {} {{n = 128, k = 16, descriptor_a = {}, "
                      "descriptor_b = {}, step_a = {}, step_b = {}}}",
                      q, k, step ? "%23" : "%24", kKMajor, kKMajor, offset, offset));
    }
    t.line("wgmma_commit");
  };
  const auto outputs = [&](const std::string& stage) {
    const std::string v = scaled(t, stage, 32768);
    for (int step = 0; step < 8; ++step) {
      t.line(
          fmt::format("wgmma_rs %62, %63, %8, {}, %23 {{n = 128, k = 16, descriptor_b = {}, "
                      "step_b = {}, transpose_b = 1, register = {}}}",
                      v, mn_major(16384), step * 2048, step * 4));
    }
    t.line("wgmma_commit");
  };
  // The softmax of s against the running maximum, up to the sums.
  const auto softmax = [&] {
    t.line(R"(copy %65, %64
reduce_registers %64, %61 {function = max, maps = maps[[2:2:1]]}
reduce_lanes %64 {function = max, masks = [1, 2]}
compute %64, %64, %65 {function = max, maps = maps[[1:2:1], [1:2:1]]}
compute %66, %65, %64 {function = sub, maps = maps[[1:2:1], [1:2:1]]}
compute %66, %66, %5 {function = mul, maps = maps[[1:2:1], []]}
compute %66, %66 {function = exp2, maps = maps[[1:2:1]]}
compute %68, %64, %5 {function = mul, maps = maps[[1:2:1], []]}
compute %68, %68 {function = neg, maps = maps[[1:2:1]]}
compute %61, %61, %5, %68 {function = fma, maps = maps[[1:64:1], [], [2:2:1]]}
compute %61, %61 {function = exp2, maps = maps[[1:64:1]]}
compute %67, %67, %66 {function = mul, maps = maps[[1:2:1], [1:2:1]]}
reduce_registers %69, %61 {function = add, maps = maps[[2:2:1]]}
compute %67, %67, %69 {function = add, maps = maps[[1:2:1], [1:2:1]]})");
  };
  scores("%17");
  t.line("wgmma_wait %61 {count = 0}");
  t.line("mbarrier_arrive %11, %17");
  t.line(
      "coordinate %70 {axis = 1, layout = "
      "register_layout[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]}");
  t.line("compute %71, %70, %31 {function = lt, maps = maps[[1:64:1], []]}");
  t.line("compute %61, %71, %61, %26 {function = select, maps = maps[[1:64:1], [1:64:1], []]}");
  softmax();
  t.line("compute %63, %61 {function = cast, maps = maps[[1:64:1]]}");
  t.line(
      "%80: i32, %81: i32, %82: i32, %83: i32 = for_loop %18, %32, %18, %18, %17, %17, %17 "
      "(%84: i32, %85: i32, %86: i32, %87: i32, %88: i32) {");
  t.line("mbarrier_wait %10, %85, %86");
  t.line("named_sync %60 {first = 1, threads = 256, count = 2}");
  t.line("wgmma_fence %61");
  scores("%85");
  t.line("mbarrier_wait %12, %87, %88");
  t.line("wgmma_fence %62, %63");
  outputs("%87");
  t.line("named_arrive %74 {first = 1, threads = 256, count = 2}");
  t.line("wgmma_wait %61 {count = 1}");
  t.line("mbarrier_arrive %11, %85");
  softmax();
  t.line("wgmma_wait %62, %63 {count = 0}");
  t.line("mbarrier_arrive %13, %87");
  t.line("compute %63, %61 {function = cast, maps = maps[[1:64:1]]}");
  t.line("compute %62, %62, %66 {function = mul, maps = maps[[1:64:1], [2:2:1]]}");
  const Ring k = next(t, {"%85", "%86"}, 2), v = next(t, {"%87", "%88"}, 2);
  t.line(fmt::format("yield {}, {}, {}, {}", k.stage, k.phase, v.stage, v.phase));
  t.close();
  t.line("mbarrier_wait %12, %82, %83");
  t.line("wgmma_fence %62, %63");
  outputs("%82");
  t.line(R"(reduce_lanes %67 {function = add, masks = [1, 2]}
compute %66, %67 {function = rcp, maps = maps[[1:2:1]]}
wgmma_wait %62, %63 {count = 0}
mbarrier_arrive %13, %82
%90: bool = eq %60, %17
if_then %90 () {
  named_sync %60 {first = 1, threads = 256, count = 2}
  yield
} () {
  yield
}
compute %62, %62, %66 {function = mul, maps = maps[[1:64:1], [2:2:1]]}
compute %72, %62 {function = cast, maps = maps[[1:64:1]]}
compute %67, %67 {function = log2, maps = maps[[1:2:1]]}
compute %67, %64, %5, %67 {function = fma, maps = maps[[1:2:1], [], [1:2:1]]}
compute %67, %67, %27 {function = mul, maps = maps[[1:2:1], []]}
%91: i32 = add %34, %73
%92: i32 = add %37, %18
%93: i32 = add %36, %18
store_registers %3, %72, %37, %91, %36, %17, %92, %30, %93, %22 {sizes = [0, 64, 0, 128], layout = register_layout[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|w:4@0:16]}
store_registers %4, %67, %37, %36, %91, %92, %93, %30 {sizes = [0, 0, 64], layout = register_layout[64|r:2@0:8|l:4*,8@0:1|w:4@0:16]}
yield
}
})");
  return t.text();
}

}  // namespace tilewright::codegen
