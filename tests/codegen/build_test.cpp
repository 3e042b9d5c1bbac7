#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "codegen/cuda/prelude.h"
#include "codegen/machine_text.h"
#include "codegen/nvrtc_build.h"
#include "codegen/ordered_text.h"
#include "codegen/ragged_text.h"
#include "codegen/ranks_text.h"
#include "codegen/tensor_memory_text.h"
#include "codegen/tensor_pairs_text.h"
#include "target/target.h"

// Everything that can be printed is compiled for sm_90a, which needs no GPU.
namespace tilewright::codegen {
namespace {

using ir::Op;

constexpr char kScalars[] = R"(kernel "scalars" machine
dim rows multiple_of(8)
dim columns
in X: f32[rows, columns] = %0
inout counter: i32[4] = %1
inout wide: i64[4] = %2
scalar alpha: f32 = %3
scalar half: bf16 = %4
scalar first: i32 = %5
grid (multiprocessors)
threads 128
shared_bytes 1024
body () {
  %10: shared<i32, 1x1x8> = shared {name = "flags", layout = shared_layout[1x8*4|8@1:4], stages = 1, offset = 0}
  %11: i32 = constant {value = 0}
  %12: i32 = constant {value = 3}
  %13: i32 = dim {dim = dim((rows // 8))}
  %14: i32 = cta_index
  %15: i32 = cta_count
  %16: i64 = constant {value = 1}
  cta_sync
  role {name = "only", first_warp = 0, warps = 4} (%20: i32) {
    %21: i32 = warp_index
    %22: i32 = atomic_add %1, %11, %12
    %23: i64 = atomic_add %2, %12, %16
    shared_store %10, %21, %22
    warp_sync
    %24: i32 = shared_load %10, %12
    %25: i32 = sub %24, %5
    %26: i32 = div %25, %13
    %27: i32 = mod %25, %13
    %28: i32 = ceildiv %25, %12
    %29: i32 = ceildiv %14, %12
    %30: bool = lt %26, %27
    %31: i32 = if_then %30 () {
      %32: i32 = add %28, %29
      yield %32
    } () {
      yield %15
    }
    %33: i32, %34: i32 = for_loop %11, %13, %12, %31, %26 (%35: i32, %36: i32, %37: i32) {
      yield %37, %36
    }
    %38: bool = ne %33, %11
    %39: i32, %40: i32 = while_loop %38, %33, %34 (%41: i32, %42: i32) {
      %43: i32 = sub %41, %42
      %44: bool = le %11, %43
      %45: bool = lt %43, %12
      %46: bool = logical_and %44, %45
      yield %46, %42, %43
    }
    %47: f32 = cast %39
    %48: f32 = fma %47, %3, %3
    %49: bf16 = cast %48
    %50: bf16 = add %49, %4
    %51: f32 = cast %50
    %52: i32 = cast %51
    elect () {
      %53: i32 = atomic_add %1, %12, %52
      shared_store %10, %11, %53
      yield
    }
    %54: i32 = shared_load %10, %11
    shared_store %10, %12, %54
    %55: i32 = load_index %1, %54
    shared_store %10, %11, %55
    yield
  }
}
)";

constexpr char kSynchronisation[] = R"(kernel "synchronisation" machine
in A: bf16[256, 64] = %0
out C: bf16[256, 64] = %1
grid (132)
cluster 2
threads 384
shared_bytes 24576
body () {
  %20: shared<f32, 1x2x512> = shared {name = "parts", layout = shared_layout[2x512*4|2@0:2048,512@1:4], stages = 1, offset = 17408}
  %2: shared<bf16, 2x64x64> = shared {name = "tiles", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 2, offset = 0}
  %3: mbarriers<2> = mbarriers {name = "full", arrivals = 1, offset = 16384}
  %4: mbarriers<2> = mbarriers {name = "empty", arrivals = 2, offset = 16400}
  %5: tensor_map = tensor_map %0 {name = "A", box = [64, 64], swizzle = 128}
  %6: tensor_map = tensor_map %1 {name = "C", box = [64, 64], swizzle = 128}
  %7: i32 = constant {value = 0}
  %8: i32 = constant {value = 1}
  %9: i32 = cluster_rank
  prefetch_map %5
  prefetch_map %6
  mbarrier_init %3 {arrivals = 1}
  mbarrier_init %4 {arrivals = 2}
  fence_barrier_init
  cluster_sync
  set_max_registers {count = 24, increase = 0, first_warp = 0}
  role {name = "load", first_warp = 0, warps = 1, registers = 24} (%10: i32) {
    mbarrier_wait %4, %9, %8
    mbarrier_expect_tx %3, %9 {bytes = 8192}
    tma_load %5, %2, %7, %3, %9, %7, %7 {bytes = 8192, step = 0, multicast = 3}
    tma_load %5, %2, %7, %3, %9, %7, %7 {bytes = 8192, step = 8192, multicast = 3, cache = 2}
    tma_load %5, %2, %7, %3, %8, %7, %7 {bytes = 8192, step = 8192, cache = 1}
    cluster_copy %2, %2, %7, %3, %8, %7, %9 {bytes = 4096, step = 8192}
    yield
  }
  role {name = "store", first_warp = 1, warps = 1, registers = 24} (%11: i32) {
    tma_store %6, %2, %7, %7, %7
    tma_reduce %6, %2, %7, %7, %7 {function = add}
    tma_reduce %6, %2, %7, %7, %7 {function = min, step = 8192}
    tma_reduce %6, %2, %7, %7, %7 {function = max}
    bulk_commit
    bulk_wait {count = 0, read = 1}
    bulk_wait {count = 0, read = 0}
    yield
  }
  role {name = "math", first_warp = 4, warps = 8, registers = 240} (%12: i32) {
    set_max_registers {count = 240, increase = 1}
    named_sync %12 {first = 1, threads = 256, count = 2}
    named_arrive %12 {first = 1, threads = 256, count = 2}
    named_sync %7 {first = 3, threads = 128}
    named_arrive %8 {first = 3, threads = 128}
    mbarrier_arrive %4, %7
    %21: registers<f32, 4> = registers {name = "part"}
    %22: f32 = constant {value = 1.5}
    fill %21, %22
    store_words %21, %20, %7
    fence_cluster
    mbarrier_arrive %4, %8, %9
    load_words %21, %20, %7
    load_words %21, %20, %7, %9
    fence_proxy_async
    yield
  }
  cluster_sync
}
)";

constexpr char kChecks[] = R"(kernel "checks" machine
dim count
in names: i32[count] = %0
out Y: f32[128] = %1
scalar wide: i64 = %2
grid (4)
threads 128
shared_bytes 0
body () {
  %3: i32 = cta_index
  %4: i32 = dim {dim = dim(count)}
  %5: bool = lt %3, %4
  %6: i32 = constant {value = 0}
  %7: i32 = constant {value = 128}
  %8: f32 = constant {value = 1.5}
  role {name = "only", first_warp = 0, warps = 4} (%10: i32) {
    check %5, %3, %4 {message = "index {} on axis 0 of names, which has {}"}
    %11: i32 = load_index %0, %3
    %12: bool = le %6, %11
    %13: bool = lt %11, %7
    %14: bool = logical_and %12, %13
    check %14, %11, %7, %2, %3 {message = "a block from {} that ends at {} on axis 0 of Y, which has {}; it is computed from {}, which the launch gives"}
    elect () {
      check %14 {message = "one lane"}
      yield
    }
    %15: registers<f32, 1> = registers {name = "row"}
    fill %15, %8
    store_registers %1, %15, %11, %7 {sizes = [128], layout = register_layout[128|l:32@0:1|w:4@0:32]}
    yield
  }
}
)";

// Each function of each type of elements, on register arrays and on scalars.
std::string functions_text() {
  MachineText t(R"(kernel "functions" machine
out Y: f32[128] = %0
scalar alpha: f32 = %1
scalar number: i32 = %2
scalar wide: i64 = %3
grid (1)
threads 128
shared_bytes 0
body () {
  role {name = "only", first_warp = 0, warps = 4} (%9: i32) {
    %10: registers<f32, 8> = registers {name = "f32"}
    %11: registers<bf16, 8> = registers {name = "bf16"}
    %12: registers<f16, 8> = registers {name = "f16"}
    %13: registers<f8e4m3, 8> = registers {name = "e4m3"}
    %14: registers<i32, 8> = registers {name = "i32"}
    %15: registers<i64, 8> = registers {name = "i64"}
    %19: registers<i8, 8> = registers {name = "i8"}
    %20: registers<u8, 8> = registers {name = "u8"}
    %16: registers<bool, 8> = registers {name = "truth"}
    %17: registers<f32, 1> = registers {name = "one"}
    %18: bool = lt %2, %9
    fill %10, %1
    fill %16, %18
)");
  const char* const types[] = {"f32", "bf16", "f16", "f8e4m3", "i32", "i64", "i8", "u8"};
  const char* const arrays[] = {"%10", "%11", "%12", "%13", "%14", "%15", "%19", "%20"};
  const char* const source[] = {"%1", "", "", "", "%2", "%3", "", ""};
  constexpr int kTypes = 8, kOfArithmetic = 6;
  std::string scalars[kTypes];
  for (int i = 0; i < kTypes; ++i) {
    scalars[i] = source[i][0] ? source[i] : t.value(types[i], "cast %1");
    t.line(fmt::format("fill {}, {}", arrays[i], scalars[i]));
  }
  for (int op = 0; op <= static_cast<int>(Op::cast); ++op) {
    const ir::OpInfo& info = ir::info(static_cast<Op>(op));
    const std::string name(info.name);
    const bool comparison = name == "lt" || name == "le" || name == "eq" || name == "ne";
    const bool logical = name.rfind("logical", 0) == 0;
    const bool integers = name == "mod" || name == "ceildiv" || name.rfind("bit_", 0) == 0 ||
                          name.rfind("shift_", 0) == 0;
    const bool floats = name == "fma" || name.rfind("exp", 0) == 0 || name.rfind("log", 0) == 0 ||
                        name == "sqrt" || name == "rsqrt" || name == "rcp" || name == "tanh" ||
                        name == "erf" || name == "sin" || name == "cos" || name == "floor" ||
                        name == "ceil" || name == "rint";
    const std::string same = "[1:8:1]", pairs = "[2:4:2, 1:2:1]";
    if (logical) {
      const std::string second = info.arity == 2 ? ", %16" : "";
      t.line(fmt::format("compute %16, %16{} {{function = {}, maps = maps[{}{}]}}", second, name,
                         same, info.arity == 2 ? ", " + same : ""));
      t.value("bool", fmt::format("{} %18{}", name, info.arity == 2 ? ", %18" : ""));
      continue;
    }
    const int count = name == "cast" || name == "select" ? kTypes : kOfArithmetic;
    for (int i = 0; i < count; ++i) {
      if ((integers && i < 4) || (floats && i >= 4)) continue;
      const std::string array = arrays[i];
      if (name == "cast") {
        for (int to = 0; to < kTypes; ++to) {
          t.line(fmt::format("compute {}, {} {{function = cast, maps = maps[{}]}}", arrays[to],
                             array, same));
          t.value(types[to], fmt::format("cast {}", scalars[i]));
        }
        continue;
      }
      if (name == "select") {
        t.line(fmt::format("compute {}, %16, {}, {} {{function = select, maps = maps[{}, {}, []]}}",
                           array, array, scalars[i], same, same));
        t.value(types[i], fmt::format("select %18, {}, {}", scalars[i], scalars[i]));
        continue;
      }
      std::string operands, maps, repeated;
      for (int k = 0; k < info.arity; ++k) {
        operands += fmt::format(", {}", k == 1 ? scalars[i] : array);
        maps += fmt::format("{}{}", k ? ", " : "", k == 1 ? "[]" : k == 2 ? pairs : same);
        repeated += fmt::format("{}{}", k ? ", " : "", scalars[i]);
      }
      t.line(fmt::format("compute {}{} {{function = {}, maps = maps[{}]}}",
                         comparison ? "%16" : array, operands, name, maps));
      t.value(comparison ? "bool" : types[i], fmt::format("{} {}", name, repeated));
    }
  }
  for (int i = 0; i < kTypes; ++i) {
    const std::string part =
        t.value(fmt::format("registers<{}, 4>", types[i]), "registers {name = \"part\"}");
    t.line(fmt::format("copy {}, {} {{offset = 4}}", part, arrays[i]));
    t.line(fmt::format("copy {}, {} {{offset = 1}}", part, arrays[i]));
    if (i >= kOfArithmetic) {
      t.line(
          fmt::format("compute {0}, %16, {0}, {0} {{function = select, maps = maps[[1:4:1], "
                      "[1:4:1], [2:2:1]]}}",
                      part));
      continue;
    }
    for (const char* function : {"add", "min", "max"}) {
      t.line(fmt::format("reduce_registers {}, %{} {{function = {}, maps = maps[[2:4:1]]}}", part,
                         10 + i, function));
      t.line(fmt::format("reduce_lanes {} {{function = {}, masks = [1, 16]}}", part, function));
    }
    // Reads what it has already written.
    t.line(fmt::format("compute {0}, {0}, {0} {{function = add, maps = maps[[1:4:1], [2:2:1]]}}",
                       part));
  }
  t.value("bool", "any_register %16");
  t.line("coordinate %14 {axis = 0, layout = register_layout[1024|r:8@0:1|l:32@0:8|w:4@0:256]}");
  t.line("reduce_registers %17, %10 {function = add, maps = maps[[8:1:1]]}");
  t.line(R"(%90: i32 = constant {value = 0}
%91: i32 = constant {value = 128}
store_registers %0, %17, %90, %91 {sizes = [128], layout = register_layout[128|r:1@0:1|l:32@0:1|w:4@0:32]}
yield
}
})");
  return t.text();
}

// Registers of each type from and to global memory, and to shared memory and back.
std::string stores_text() {
  MachineText t(R"(kernel "stores" machine
dim rows
dim columns
inout f32_out: f32[rows, 3, columns] = %0
inout bf16_out: bf16[rows, 3, columns] = %1
inout f16_out: f16[rows, 3, columns] = %2
inout e4m3_out: f8e4m3[rows, 3, columns] = %3
inout i32_out: i32[rows, 3, columns] = %4
inout i64_out: i64[rows, 3, columns] = %5
inout i8_out: i8[rows, 3, columns] = %6
inout u8_out: u8[rows, 3, columns] = %7
grid (1)
threads 256
shared_bytes 65536
body () {
  %10: i32 = constant {value = 0}
  %11: i32 = cta_index
  %12: i32 = dim {dim = dim(columns)}
  %13: i32 = dim {dim = dim(min(rows, 64))}
  %14: i32 = constant {value = 2}
  %15: f32 = constant {value = nan}
)");
  const char* const types[] = {"f32", "bf16", "f16", "f8e4m3", "i32", "i64", "i8", "u8"};
  const int bytes[] = {4, 2, 2, 1, 4, 8, 1, 1};
  std::string shared[8];
  for (int i = 0; i < 8; ++i) {
    shared[i] = t.value(
        fmt::format("shared<{}, 1x64x16>", types[i]),
        fmt::format("shared {{name = \"{0}\", layout = shared_layout[64x16*{1}|64@0:{2},16@1:{1}], "
                    "stages = 1, offset = {3}}}",
                    types[i], bytes[i], 16 * bytes[i], 8192 * i));
  }
  t.line(R"(role {name = "idle", first_warp = 0, warps = 2} (%20: i32) {
  yield
}
role {name = "store", first_warp = 4, warps = 4} (%21: i32) {)");
  // An accumulator's layout, one with four neighbours, and one that is replicated over lanes.
  const char* const layouts[] = {"[64x16|r:2@1:1,2@0:8,2@1:8|l:4@1:2,8@0:1|w:4@0:16]",
                                 "[64x16|r:8@1:1|l:2@1:8,16@0:1|w:4@0:16]",
                                 "[64x1|r:2@0:8|l:4*,8@0:1|w:4@0:16]"};
  for (int i = 0; i < 8; ++i) {
    for (int form = 0; form < 3; ++form) {
      const bool column = form == 2;
      const std::string array = t.value(fmt::format("registers<{}, {}>", types[i], column ? 2 : 8),
                                        "registers {name = \"held\"}");
      const std::string zero = t.value(types[i], "cast %15");
      t.line(fmt::format("fill {}, {}", array, zero));
      const std::string place = fmt::format(
          "%11, %14, %10, %13, %14, %12 {{sizes = [64, 0, {}], layout = "
          "register_layout{}}}",
          column ? 1 : 16, layouts[form]);
      t.line(fmt::format("load_registers {}, %{}, {}", array, i, place));
      if (i < 2 && !column) {  // what is read once
        t.line(fmt::format("load_registers {}, %{}, {}, cache = 1}}", array, i,
                           place.substr(0, place.size() - 1)));
      }
      t.line(fmt::format("store_registers %{}, {}, {}", i, array, place));
      if (std::string(types[i]) == "f32") {
        t.line(
            fmt::format("red_registers %{}, {}, {}", i, array,
                        std::string(place).replace(place.find("{sizes"), 1, "{function = add, ")));
      }
      if (column) continue;
      for (const int access : {4, 8, 16}) {
        const int vector = access / bytes[i];
        if (form != 1 || bytes[i] > 4 || vector < 2 || vector > 8) continue;
        for (const char* op : {"store_elements", "load_elements"}) {
          t.line(
              fmt::format("{} {}, {}, %10 {{layout = register_layout{}, row_bytes = {}, "
                          "swizzle_divisor = 4, swizzle_mask = 0, panel_columns = 16, "
                          "panel_bytes = 1024, vector = {}}}",
                          op, array, shared[i], layouts[form], 16 * bytes[i], vector));
        }
      }
      for (const char* op : {"store_elements", "load_elements"}) {
        t.line(
            fmt::format("{} {}, {}, %10 {{layout = register_layout{}, row_bytes = {}, "
                        "swizzle_divisor = 4, swizzle_mask = {}, panel_columns = 16, "
                        "panel_bytes = 1024}}",
                        op, array, shared[i], layouts[form], 16 * bytes[i], form ? 0 : 1));
      }
      if (bytes[i] != 2) continue;
      for (const char* op : {"store_matrix", "load_matrix"}) {
        for (const char* kind :
             {"", ", transposed = 1", ", count = 2", ", count = 2, transposed = 1"}) {
          t.line(
              fmt::format("{} {}, {}, %10, %11 {{register = 0, step = 0, row_bytes = 32, "
                          "column_bytes = 0, "
                          "swizzle_divisor = 4, swizzle_mask = {}{}}}",
                          op, array, shared[i], form, kind));
        }
      }
    }
  }
  t.line("yield\n}\n}");
  return t.text();
}

// wgmma of each type of operands from shared memory and from registers.
std::string products_text(std::string_view grid = "grid (1)") {
  MachineText t("kernel \"products\" machine\nout Y: f32[64, 24] = %0\n" + std::string(grid) + R"(
threads 128
shared_bytes 65536
body () {
  %10: i32 = constant {value = 0}
  %11: bool = constant {value = 1}
  %12: bool = constant {value = 0}
)");
  const char* const types[] = {"bf16", "f16", "f8e4m3"};
  for (int i = 0; i < 3; ++i) {
    const int k = i == 2 ? 32 : 16, element = 32 / k;
    t.line(
        fmt::format("%{}: shared<{}, 1x64x{}> = shared {{name = \"tile\", layout = "
                    "shared_layout[64x{}*{}|64@0:32,{}@1:{}|x1.4.3], stages = 1, offset = {}}}",
                    20 + i, types[i], k, k, element, k, element, 8192 * i));
  }
  t.line(R"(role {name = "math", first_warp = 0, warps = 4} (%19: i32) {
  %30: registers<f32, 12> = registers {name = "sums"}
  wgmma_fence %30)");
  // Of groups of 8 rows that lie so many times 16 bytes apart.
  const auto descriptor = [](std::int64_t stride) {
    return (std::int64_t{3} << 62 | stride << 32) >> 14 & ((std::int64_t{1} << 50) - 1);
  };
  for (int i = 0; i < 3; ++i) {
    const int k = i == 2 ? 32 : 16;
    for (int majors = 0; majors < (i == 2 ? 1 : 4); ++majors) {
      t.line(fmt::format(
          "wgmma_ss %30, %{0}, %10, %{0}, %10, {1} {{n = 24, k = {2}, descriptor_a = {3}, "
          "descriptor_b = {4}, transpose_a = {5}, transpose_b = {6}}}",
          20 + i, majors == 0 ? "%12" : "%11", k, descriptor(16), descriptor(32), majors % 2,
          majors / 2));
    }
  }
  t.line("wgmma_commit\nwgmma_wait %30 {count = 0}");
  for (int i = 0; i < 3; ++i) {
    const std::string a = t.value(fmt::format("registers<{}, {}>", types[i], i == 2 ? 16 : 8),
                                  "registers {name = \"a\"}");
    const std::string zero = t.value(types[i], "constant {value = 1.5}");
    t.line(fmt::format("fill {}, {}", a, zero));
    t.line(fmt::format("wgmma_fence %30, {}", a));
    t.line(fmt::format(
        "wgmma_rs %30, {}, %{}, %10, %11 {{n = 24, k = {}, register = 0, descriptor_b = {}}}", a,
        20 + i, i == 2 ? 32 : 16, descriptor(16)));
    t.line(fmt::format("wgmma_commit\nwgmma_wait %30, {} {{count = 0}}", a));
  }
  t.line(R"(%90: i32 = constant {value = 64}
%91: i32 = constant {value = 24}
store_registers %0, %30, %10, %10, %90, %91 {sizes = [64, 24], layout = register_layout[64x24|r:2@1:1,2@0:8,3@1:8|l:4@1:2,8@0:1|w:4@0:16]}
yield
}
})");
  return t.text();
}

}  // namespace

std::vector<MachineSample> machine_samples() {
  return {{"scalars", kScalars, true},
          {"synchronisation", kSynchronisation, true},
          {"functions", functions_text(), true},
          {"checks", kChecks, true},
          {"stores", stores_text(), true},
          {"products", products_text(), true},
          {"gemm", gemm_text(), true},
          {"attention", attention_text(), true},
          {"ranks", ranks_text(), true},
          {"ragged", std::string(kRaggedText), true},
          {"ordered", ordered_text(), true},
          {"watched", watched_text(), true},
          {"cluster_products", products_text("grid (2)\ncluster 2"), true},
          {"tensor_memory", std::string(kTensorMemoryText), true},
          {"tensor_pairs", std::string(kTensorPairsText), true},
          {"handed_out", std::string(kHandedOutText), true}};
}

namespace {

class Build : public testing::TestWithParam<MachineSample> {};

TEST_P(Build, CompilesWithoutStackAndWarnings) {
  const ir::Kernel kernel = parsed(GetParam().text);
  const CudaSource source = print_cuda(kernel);
  if (const std::string why = why_no_nvrtc(kernel.target); !why.empty()) GTEST_SKIP() << why;
  expect_builds(source, GetParam().exact, kernel.target);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Build, testing::ValuesIn(machine_samples()),
                         [](const auto& info) { return std::string(info.param.name); });

std::string golden_folder() { return TILEWRIGHT_SOURCE_DIR "/tests/codegen/goldens/"; }

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The whole text of each sample. TILEWRIGHT_UPDATE_GOLDENS=1 writes them.
TEST_P(Build, Golden) {
  const std::string path = golden_folder() + "sample_" + GetParam().name + ".cu";
  const CudaSource source = print_cuda(parsed(GetParam().text));
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS")) std::ofstream(path) << source.text;
  EXPECT_EQ(source.text, contents(path));
}

// So a changed line of the prelude or of any operation's text is seen by who reads the difference.
TEST(Build, GoldensHaveEveryFunctionOfThePrelude) {
  std::string all;
  for (const auto& entry : std::filesystem::directory_iterator(golden_folder())) {
    if (entry.path().extension() == ".cu") all += contents(entry.path().string());
  }
  // What a launch with delays prints is no part of what ships.
  const std::string_view delays = "inject_delay";
  for (const std::string_view name : prelude_names()) {
    if (name == delays) continue;
    const std::regex defined(
        fmt::format(R"((__forceinline__ \S+ |struct (alignas\(64\) )?){}\b)", name));
    EXPECT_TRUE(std::regex_search(all, defined)) << name;
  }
}

// Names that CUDA C++ has already: of functions, of types, and of nothing in PTX.
TEST(Build, KernelsNamedLikeWordsOfTheLanguage) {
  for (const std::string name : {"exp", "maxf", "int", "threadIdx", "_", "NULL"}) {
    const CudaSource source =
        print_cuda(parsed("kernel \"" + name + "\" machine\ngrid (1)\nthreads 32\nbody () {\n}\n"));
    EXPECT_EQ(source.entry, name + "_kernel");
    if (why_no_nvrtc().empty()) expect_builds(source);
  }
  for (const std::string name : {"expand", "half_f", "f", "gemm"}) {
    EXPECT_EQ(
        print_cuda(parsed("kernel \"" + name + "\" machine\ngrid (1)\nthreads 32\nbody () {\n}\n"))
            .entry,
        name);
  }
}

TEST(Build, SamplesHaveEveryOperationOfTheMachineForm) {
  std::set<Op> seen;
  for (const MachineSample& sample : machine_samples()) {
    ir::for_each(parsed(sample.text).body, [&](const ir::Operation& o) { seen.insert(o.op); });
  }
  for (int i = 0; i <= static_cast<int>(Op::set_max_registers); ++i) {
    const Op op = static_cast<Op>(i);
    const bool is_printed = target::find_target("sm_100a").has(ir::info(op)) ||
                            target::find_target("sm_90a").has(ir::info(op));
    if (ir::info(op).in(ir::Form::machine) && is_printed) {
      EXPECT_TRUE(seen.count(op)) << ir::info(op).name;
    }
  }
}

}  // namespace
}  // namespace tilewright::codegen
