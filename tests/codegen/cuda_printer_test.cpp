#include "codegen/cuda/cuda_printer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "codegen/cuda/delays.h"
#include "codegen/nvrtc_build.h"
#include "passes/pipeline.h"
#include "tilewright/hopper.h"

namespace tilewright::codegen {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string with_role(std::string_view body, std::string_view before = "") {
  return fmt::format(R"(kernel "tested" machine
dim rows
dim columns at_least(1)
in X: bf16[rows, columns] = %0
out Y: f32[rows, columns] = %1
inout counter: i32[1] = %2
scalar number: i32 = %3
grid (rows)
threads 384
shared_bytes 1024
body () {{
  %10: shared<i32, 1x1x8> = shared {{name = "flags", layout = shared_layout[1x8*4|8@1:4], stages = 1, offset = 0}}
  %11: mbarriers<2> = mbarriers {{name = "full", arrivals = 1, offset = 64}}
  %12: i32 = constant {{value = 0}}
  %13: i32 = constant {{value = 7}}
  {}
  role {{name = "math", first_warp = 4, warps = 8}} (%20: i32) {{
    {}
    yield
  }}
}}
)",
                     before, body);
}

std::string printed(std::string_view body, std::string_view before = "") {
  return print_cuda(parsed(with_role(body, before))).text;
}

TEST(CudaPrinter, ParametersAreInTheOrderOfTheSignature) {
  const CudaSource source = print_cuda(parsed(R"(kernel "copy_rows" machine
dim rows
in X: bf16[rows, 64] = %0
out Y: f32[rows, 64] = %1
scalar scale: f32 = %2
grid (rows)
cluster 2
threads 128
shared_bytes 8192
body () {
  %3: shared<bf16, 1x64x64> = shared {name = "tile", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %4: tensor_map = tensor_map %0 {name = "X", box = [64, 64], swizzle = 128}
  %5: i32 = dim {dim = dim((rows // 64))}
  %6: i32 = dim {dim = dim((rows // 64))}
  %7: i32 = constant {value = 64}
  role {name = "only", first_warp = 0, warps = 4} (%10: i32) {
    %11: registers<f32, 8> = registers {name = "row"}
    fill %11, %2
    store_registers %1, %11, %5, %6, %7, %7 {sizes = [16, 64], layout = register_layout[16x64|r:8@1:1|l:8@1:8,4@0:1|w:4@0:4]}
    yield
  }
}
)"));
  EXPECT_EQ(source.entry, "copy_rows");
  EXPECT_THAT(source.text, HasSubstr("copy_rows(const __grid_constant__ TensorMap X_4, float* Y_1, "
                                     "i64 Y_1_stride0, int dim0, int dim_rows, float scale_2) {"));
  EXPECT_THAT(source.text, HasSubstr("__cluster_dims__(2, 1, 1) __launch_bounds__(128, 1)"));
  using Kind = LaunchParameter::Kind;
  const std::vector<LaunchParameter>& parameters = source.parameters;
  ASSERT_EQ(parameters.size(), 6u);
  EXPECT_EQ(parameters[0].kind, Kind::tensor_map);
  EXPECT_EQ(parameters[0].index, 0);
  EXPECT_EQ(parameters[1].kind, Kind::pointer);
  EXPECT_EQ(parameters[1].index, 1);
  EXPECT_EQ(parameters[2].kind, Kind::stride);
  EXPECT_EQ(parameters[2].index, 1);
  EXPECT_EQ(parameters[2].axis, 0);
  EXPECT_EQ(parameters[3].kind, Kind::dim);
  EXPECT_EQ(parameters[3].dim.to_string(), "(rows // 64)");
  EXPECT_EQ(parameters[4].dim.to_string(), "rows");
  EXPECT_EQ(parameters[5].kind, Kind::scalar);
  EXPECT_EQ(parameters[5].index, 2);
  EXPECT_EQ(parameters[5].dtype, f32);
}

// The parser refuses such names; a kernel that a program makes may have them.
TEST(CudaPrinter, NamesAndPlacesCannotLeaveTheirComments) {
  ir::Kernel kernel = parsed(with_role("%30: i32 = cta_index", ""));
  kernel.name = "k\n#error";
  for (ir::Operation& operation : kernel.body.body) {
    if (operation.op != ir::Op::role) continue;
    operation.attributes.set(ir::Key::name, std::string("math\nasm(\"trap;\");\\"));
    operation.blocks[0].body[0].where = {"a/b\r\nasm(\"trap;\");", 3};
    operation.where = operation.blocks[0].body[0].where;
  }
  std::istringstream text(print_cuda(kernel).text);
  int names = 0;
  for (std::string line; std::getline(text, line);) {
    const std::size_t at = std::min(line.find("trap"), line.find("#error"));
    if (at == std::string::npos) continue;
    ++names;
    EXPECT_LT(line.find("//"), at) << line;
    EXPECT_FALSE(line.ends_with("\\")) << line;
    EXPECT_EQ(line.find('\r'), std::string::npos) << line;
  }
  EXPECT_EQ(names, 3);
}

TEST(CudaPrinter, DivisionFloorsWhereAnOperandMayBeNegative) {
  const std::string text = printed(R"(
    %30: i32 = dim {dim = dim(columns)}
    %31: i32 = cta_index
    %32: i32 = div %31, %30
    %33: i32 = sub %32, %30
    %34: i32 = div %33, %30
    %35: i32 = mod %33, %13
    %36: i32 = ceildiv %3, %13
    %37: i32 = ceildiv %32, %13)");
  EXPECT_THAT(text, HasSubstr(" = dim_div(v10, dim_columns, dim1)"));
  EXPECT_THAT(text, HasSubstr(" = floor_div("));
  EXPECT_THAT(text, HasSubstr(" = floor_mod("));
  EXPECT_THAT(text, HasSubstr(" = ceil_div(number_3, 7)"));
  EXPECT_THAT(text, HasSubstr(" + 7 - 1, 7)"));
}

// As dim_div in the prelude, with what the host passes for the inverse.
std::int64_t divided_by_inverse(std::int64_t a, std::int64_t b, std::int64_t inverse) {
  const std::int64_t q = (2 * a % (std::int64_t{1} << 32) * inverse) >> 32;
  return q + (a - q * b >= b ? 1 : 0);
}

TEST(CudaPrinter, DivisionByADimensionTakesTheHostsInverse) {
  const CudaSource source = print_cuda(parsed(with_role(R"(
    %30: i32 = dim {dim = dim(columns)}
    %31: i32 = cta_index
    %32: i32 = div %31, %30
    %33: i32 = mod %31, %30
    %34: i32 = sub %31, %30
    %35: i32 = div %34, %30)")));
  EXPECT_THAT(source.text, HasSubstr(" = dim_div(v10, dim_columns, dim1)"));
  EXPECT_THAT(source.text, HasSubstr(" = dim_mod(v10, dim_columns, dim1)"));
  EXPECT_THAT(source.text, HasSubstr(" = floor_div("));  // of what may be negative
  ASSERT_EQ(source.parameters.size(), 3u);               // columns, its inverse, the scalar
  ASSERT_EQ(source.parameters[1].kind, LaunchParameter::Kind::dim);
  constexpr std::int64_t kMost = INT32_MAX;
  for (const std::int64_t b :
       {std::int64_t{1}, std::int64_t{2}, std::int64_t{3}, std::int64_t{7}, std::int64_t{8},
        std::int64_t{641}, std::int64_t{65536}, std::int64_t{65537}, kMost / 2, kMost - 1, kMost}) {
    const std::int64_t inverse =
        source.parameters[1].dim.evaluate([&](const std::string&) { return b; });
    ASSERT_LE(inverse, kMost);
    for (const std::int64_t near :
         {std::int64_t{0}, b, 2 * b, kMost / b / 2 * b, kMost / b * b, kMost}) {
      for (const std::int64_t a : {near - 1, near, near + 1}) {
        if (a < 0 || a > kMost) continue;
        EXPECT_EQ(divided_by_inverse(a, b, inverse), a / b) << a << " / " << b;
      }
    }
  }
}

TEST(CudaPrinter, CarriedValuesStayNonnegativeOnlyWhenEveryPathSaysSo) {
  const char* const loop = R"(
    %30: i32 = for_loop %12, %13, %13, %12 (%31: i32, %32: i32) {{
      %33: i32 = {} %32, %13
      yield %33
    }}
    %34: i32 = div %30, %13)";
  EXPECT_THAT(printed(fmt::format(fmt::runtime(loop), "add")), HasSubstr("= unsigned_div("));
  EXPECT_THAT(printed(fmt::format(fmt::runtime(loop), "sub")), HasSubstr("= floor_div("));
}

TEST(CudaPrinter, AnIndexIsLoadedOnceForTheWarp) {
  const std::string text = printed(R"(
    %30: i32 = load_index %2, %12
    %31: i32 = load_index %2, %30
    elect () {
      %32: i32 = load_index %2, %31
      mbarrier_arrive %11, %32
      yield
    })");
  EXPECT_THAT(text, HasSubstr("= __shfl_sync(0xffffffffu, *(counter_2), 0);"));
  EXPECT_THAT(text, HasSubstr("= __shfl_sync(0xffffffffu, *(counter_2 + v9), 0);"));
  EXPECT_THAT(text, HasSubstr("      const int v11 = *(counter_2 + v10);"));
}

// What one of the lanes that hold an element has been given the others take: the one whose number
// is the same but for the part that repeats.
TEST(CudaPrinter, WhatLanesRepeatIsGivenToAllOfThem) {
  const auto of_lanes = [](const std::string& lanes) {
    return printed(fmt::format(R"(
    %30: registers<i32, 1> = registers {{name = "one"}}
    fill %30, %13
    atomic_registers %2, %30, %12, %13 {{function = add, sizes = [32], )"
                               R"(layout = register_layout[32|l:{}|w:8@0:4], )"
                               R"(semantics = "relaxed", scope = "gpu"}})",
                               lanes));
  };
  EXPECT_THAT(of_lanes("4@0:1,8*"), HasSubstr("[i], lane - lane / 4 % 8 * 4);"));
  EXPECT_THAT(of_lanes("8*,4@0:1"), HasSubstr("[i], lane - lane / 1 % 8 * 1);"));
}

// Barrier i of those that begin at `first`.
TEST(CudaPrinter, NamedBarriersAreCountedFromTheirFirst) {
  const std::string text = printed(R"(
    %30: i32 = constant {value = 1}
    named_sync %30 {first = 3, threads = 256, count = 2}
    named_arrive %12 {first = 3, threads = 256, count = 2})");
  EXPECT_THAT(text, HasSubstr("named_sync<4, 256>();"));
  EXPECT_THAT(text, HasSubstr("named_arrive<3, 256>();"));
  // Which of them is not known: index i is barrier 3 + i.
  const std::string chosen = printed("    named_sync %3 {first = 3, threads = 256, count = 2}");
  EXPECT_THAT(chosen, HasSubstr("      \"setp.eq.s32 p, %0, 0;\\n\"\n"
                                "      \"@p bar.sync 3, 256;\\n\"\n"
                                "      \"setp.eq.s32 p, %0, 1;\\n\"\n"
                                "      \"@p bar.sync 4, 256;\\n\"\n"));
}

// A block that may begin before its tensor, at the scalar: element 0 exists, and element -1 does
// not.
TEST(CudaPrinter, WhatLiesBeforeATensorIsAskedFor) {
  const std::string text = printed(R"(
    %30: registers<f32, 2> = registers {name = "part"}
    load_registers %30, %1, %3, %12, %13, %13 {sizes = [32, 16], layout = register_layout[32x16|r:2@1:1|l:8@1:2,4@0:1|w:8@0:4]})");
  EXPECT_THAT(text, HasSubstr("c0 >= 0 && c0 < e0"));
  EXPECT_THAT(text, Not(HasSubstr("c1 >= 0")));
}

// Of the lanes that wait together the first one reports.
TEST(CudaPrinter, OneLaneReportsAWait) {
  const std::string text = printed("    mbarrier_wait %11, %12, %12 {watched = 3}");
  EXPECT_THAT(text, HasSubstr("const u32 waiting = __activemask();\n"
                              "  if ((waiting & ((1u << (threadIdx.x & 31u)) - 1u)) == 0) {"));
  EXPECT_THAT(text, HasSubstr("mbarrier_wait_watched("));
}

TEST(CudaPrinter, YieldThatPermutesGoesThroughACopy) {
  const std::string text = printed(R"(
    %30: i32, %31: i32 = for_loop %12, %13, %13, %12, %13 (%32: i32, %33: i32, %34: i32) {
      yield %34, %33
    })");
  EXPECT_THAT(text, HasSubstr("      const int next_v10 = v9;\n"
                              "      v9 = v10;\n"
                              "      v10 = next_v10;\n"));
}

TEST(CudaPrinter, OneLaneActsInARoleAndOneThreadOutside) {
  const std::string text = printed(
      "%30: i32 = constant {value = 1}\nmbarrier_arrive %11, %30\n"
      "elect () {\nmbarrier_arrive %11, %20\nyield\n}",
      "mbarrier_init %11 {arrivals = 1}\nfence_barrier_init\ncta_sync");
  EXPECT_THAT(text, HasSubstr("  if (threadIdx.x == 0) fence_barrier_init();\n"));
  EXPECT_THAT(text, HasSubstr("    if (lane == 0) mbarrier_arrive(full_5 + 8);\n"));
  EXPECT_THAT(text, HasSubstr("    if (lane == 0) {\n"));
  EXPECT_THAT(text, HasSubstr("      mbarrier_arrive(full_5 + 8 * v"));
}

// What orders lanes stands in the machine form.
TEST(CudaPrinter, NothingIsPrintedBetweenLanesButWhatIsThere) {
  const std::string body = R"(
    shared_store %10, %12, %13
    %30: i32 = shared_load %10, %12
    {}mbarrier_arrive %11, %12)";
  EXPECT_THAT(printed(fmt::format(fmt::runtime(body), "")), Not(HasSubstr("__syncwarp")));
  EXPECT_THAT(
      printed(fmt::format(fmt::runtime(body), "warp_sync\n")),
      HasSubstr("    __syncwarp();\n    // kernel.tw:22\n    if (lane == 0) mbarrier_arrive("));
}

TEST(CudaPrinter, RolesStandInsideTheWarpgroupWhoseRegistersTheyShare) {
  const std::string text = print_cuda(parsed(R"(kernel "roles" machine
grid (1)
threads 256
body () {
  set_max_registers {count = 24, increase = 0, first_warp = 0}
  role {name = "load", first_warp = 0, warps = 1, registers = 24} (%1: i32) {
    yield
  }
  role {name = "store", first_warp = 1, warps = 1, registers = 24} (%2: i32) {
    yield
  }
  role {name = "math", first_warp = 4, warps = 4, registers = 240} (%3: i32) {
    set_max_registers {count = 240, increase = 1}
    yield
  }
}
)",
                                             "roles.tw"))
                               .text;
  EXPECT_THAT(text, HasSubstr(R"(  // roles.tw:5
  if (warp < 4) {
    decrease_registers<24>();
    // roles.tw:6
    if (warp == 0) {
      // load
    }
    // roles.tw:9
    else if (warp == 1) {
      // store
    }
  }
  // roles.tw:12
  else if (warp >= 4) {
    // math
    // roles.tw:13
    increase_registers<240>();
  }
)"));
}

TEST(CudaPrinter, NumbersAreExact) {
  const std::string text = printed(R"(
    %30: registers<f32, 1> = registers {name = "a"}
    %31: registers<bf16, 2> = registers {name = "b"}
    %32: f32 = constant {value = -inf}
    %33: f32 = constant {value = 0.1}
    %34: bf16 = constant {value = 1.0}
    %35: f32 = constant {value = 3.0}
    fill %30, %32
    fill %30, %33
    fill %30, %35
    fill %31, %34)");
  EXPECT_THAT(text, HasSubstr("a_9[0] = __int_as_float(0xff800000);"));
  EXPECT_THAT(text, HasSubstr("a_9[0] = 0.1f;"));
  EXPECT_THAT(text, HasSubstr("a_9[0] = 3.0f;"));
  EXPECT_THAT(text, HasSubstr("pack_bf16(from_bf16(0x3f80u), from_bf16(0x3f80u))"));
}

// Numbers from 2^31 on are not negative.
TEST(CudaPrinter, UnsignedNumbersAreSaturatedUpwards) {
  EXPECT_THAT(printed(R"(
    %30: registers<u32, 4> = registers {name = "a"}
    %31: registers<i8, 4> = registers {name = "b"}
    compute %31, %30 {function = cast, maps = maps[[1:4:1]]})"),
              HasSubstr("saturate_i8((i64)a_9[0])"));
}

// The conversion of four bytes at once takes those that follow each other.
TEST(CudaPrinter, BytesOfAMapAreConvertedOneByOne) {
  const auto text_of = [](const char* map) {
    return printed(fmt::format(R"(
    %30: registers<i8, 8> = registers {{name = "a"}}
    %31: registers<bf16, 8> = registers {{name = "b"}}
    compute %31, %30 {{function = cast, maps = maps[[{}]]}})",
                               map));
  };
  EXPECT_THAT(text_of("1:8:1"), HasSubstr("bf16_of_i8(b_10 + 2 * i, a_9[i])"));
  EXPECT_THAT(text_of("2:4:1"), Not(HasSubstr("bf16_of_i8(b_10")));
}

TEST(CudaPrinter, ComputeThatReadsWhatItWroteReadsACopy) {
  const std::string text = printed(R"(
    %30: registers<f32, 4> = registers {name = "a"}
    compute %30, %30, %30 {function = add, maps = maps[[1:4:1], [2:2:1]]})");
  EXPECT_THAT(text, HasSubstr("a_9[i] = a_9_before[i] + a_9_before[i / 2];"));
}

// Of the role, whose first warp is the kernel's fifth: a remainder by 8 would give it the last
// part.
TEST(CudaPrinter, WarpsOfARoleAreCountedFromItsFirst) {
  const std::string text = printed(R"(
    %30: registers<i32, 2> = registers {name = "row"}
    coordinate %30 {axis = 0, layout = register_layout[512|r:2@0:1|l:32@0:2|w:8@0:64]})");
  EXPECT_THAT(text, HasSubstr("row_9[i] = i + lane * 2 + (warp - 4) * 64;"));
}

// Registers that hold more than one part of an axis begin again with each.
TEST(CudaPrinter, CoordinatesOfRegistersWrap) {
  const std::string text = printed(R"(
    %30: registers<i32, 8> = registers {name = "column"}
    coordinate %30 {axis = 1, layout = register_layout[128x16|r:2@1:1,2@0:8,2@1:8|l:4@1:2,8@0:1|w:8@0:16]})");
  EXPECT_THAT(text, HasSubstr("column_9[i] = i % 2 + i / 4 * 8 + lane % 4 * 2;"));
}

std::string occurrences(const std::string& text, const std::string& word) {
  int count = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return fmt::format("{} {}", count, word);
}

// Of many vectors a thread asks first whether all of them exist, and loads them then without a
// branch at each.
TEST(CudaPrinter, ManyVectorsAreAskedForTogether) {
  const auto text_of = [](int columns) {
    return printed(fmt::format(R"(
    %31: i32 = dim {{dim = dim(rows)}}
    %32: i32 = constant {{value = {0}}}
    %30: registers<bf16, {0}> = registers {{name = "row"}}
    load_registers %30, %0, %12, %12, %31, %32 {{sizes = [256, {0}], layout = register_layout[256x{0}|r:{0}@1:1|l:32@0:1|w:8@0:32]}})",
                               columns));
  };
  const std::string few = text_of(64), many = text_of(128);
  EXPECT_EQ(occurrences(few, "load_vector_16(row"), "1 load_vector_16(row");
  EXPECT_EQ(occurrences(many, "load_vector_16(row"), "2 load_vector_16(row");
  EXPECT_THAT(many, HasSubstr("if (c0 + 0 < e0 && c1 + 127 < e1)"));
  EXPECT_THAT(many, HasSubstr("first + (i), true);"));
}

// Where the limit cuts a vector its elements are added one by one.
TEST(CudaPrinter, AdditionsMayEndInsideAVector) {
  const auto text_of = [](int limit) {
    std::string kernel = with_role(fmt::format(R"(
    %31: i32 = dim {{dim = dim(rows)}}
    %32: i32 = constant {{value = {}}}
    %33: f32 = constant {{value = 1.0}}
    %30: registers<f32, 8> = registers {{name = "row"}}
    fill %30, %33
    red_registers %1, %30, %12, %12, %31, %32 {{function = add, sizes = [256, 8], layout = register_layout[256x8|r:8@1:1|l:32@0:1|w:8@0:32]}})",
                                               limit));
    const std::string least = "columns at_least(1)";
    kernel.replace(kernel.find(least), least.size(), "columns at_least(8)");
    return print_cuda(parsed(kernel)).text;
  };
  EXPECT_THAT(text_of(8), Not(HasSubstr("red_add(first")));
  EXPECT_THAT(text_of(6), HasSubstr("red_add(first"));
}

// Panels lie apart, whether they are swizzled or not.
TEST(CudaPrinter, PanelsThatAreNotSwizzled) {
  const auto text_of = [](int panel) {
    return printed(fmt::format(R"(
    %30: registers<i32, 8> = registers {{name = "row"}}
    load_elements %30, %10, %12 {{layout = register_layout[256x8|r:8@1:1|l:32@0:1|w:8@0:32], row_bytes = 16, swizzle_divisor = 1, swizzle_mask = 0, panel_columns = {}, panel_bytes = 4096}})",
                               panel));
  };
  EXPECT_THAT(text_of(4), HasSubstr("column / 4 * 4096"));
  EXPECT_THAT(text_of(8), Not(HasSubstr("4096")));
}

TEST(CudaPrinter, OnlyWhatIsUsedOfThePreludeIsPrinted) {
  const std::string text = printed("mbarrier_wait %11, %12, %12");
  EXPECT_THAT(text, HasSubstr("mbarrier_wait(u32 barrier"));
  EXPECT_THAT(text, Not(HasSubstr("mbarrier_arrive")));
  EXPECT_THAT(text, Not(HasSubstr("wgmma")));
}

TEST(CudaPrinter, DelaysStandBeforeWhatSynchronisesAndChangeNothingElse) {
  const ir::Kernel kernel = parsed(with_role(R"(mbarrier_wait %11, %12, %20
    mbarrier_expect_tx %11, %12 {bytes = 128}
    fence_proxy_async
    mbarrier_arrive %11, %12)"));
  const CudaSource plain = print_cuda(kernel);
  const CudaSource delayed = print_cuda_with_delays(kernel, 1);
  EXPECT_THAT(plain.text, Not(HasSubstr("inject_delay")));
  EXPECT_EQ(plain.parameters.size(), delayed.parameters.size());
  const std::string head = "__global__ void";
  std::istringstream lines(delayed.text.substr(delayed.text.find(head)));
  std::string rest;
  int delays = 0;
  bool is_next = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("inject_delay(") != std::string::npos) {
      ++delays;
      is_next = true;
      continue;
    }
    if (is_next) {
      EXPECT_TRUE(line.find("mbarrier_") != std::string::npos ||
                  line.find("fence_") != std::string::npos)
          << line;
    }
    is_next = false;
    rest += line + "\n";
  }
  EXPECT_EQ(delays, 4);
  EXPECT_EQ(rest, plain.text.substr(plain.text.find(head)));
  EXPECT_NE(delayed.text, print_cuda_with_delays(kernel, 2).text);
  if (const std::string why = why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  expect_builds(delayed);
}

TEST(CudaPrinter, RefusesOtherForms) {
  ir::Kernel kernel;
  kernel.name = "early";
  EXPECT_THROW(print_cuda(kernel), Error);
}

// Goldens: whole texts of two small kernels. TILEWRIGHT_UPDATE_GOLDENS=1 writes them.
void expect_golden(const std::string& name) {
  const std::string folder = std::string(TILEWRIGHT_SOURCE_DIR) + "/tests/codegen/goldens/";
  const auto contents = [](const std::string& path) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  };
  const std::string input = contents(folder + name + ".tw");
  ASSERT_FALSE(input.empty()) << folder + name + ".tw";
  const CudaSource source = print_cuda(parsed(input, name + ".tw"));
  if (std::getenv("TILEWRIGHT_UPDATE_GOLDENS")) {
    std::ofstream(folder + name + ".cu") << source.text;
  }
  EXPECT_EQ(source.text, contents(folder + name + ".cu"));
  if (why_no_nvrtc().empty()) expect_builds(source, true);
}

TEST(CudaPrinter, ReductionsNameTheirFunction) {
  std::string kernel = with_role(
      "tma_reduce %14, %10, %12, %12, %20 {function = add}\n"
      "    tma_reduce %14, %10, %12, %13, %20 {function = max}",
      "%14: tensor_map = tensor_map %1 {name = \"Y\", box = [1, 8], swizzle = 0}");
  kernel.replace(kernel.find("out Y: f32"), 10, "out Y: f16");
  const std::string text = print_cuda(parsed(kernel)).text;
  EXPECT_THAT(text, HasSubstr("tma_reduce_add_2d(flags_4, Y_8, 0, v9);"));
  EXPECT_THAT(text, HasSubstr("tma_reduce_max_2d(flags_4, Y_8, 7, v9);"));
  EXPECT_THAT(text,
              HasSubstr("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
                        "[%1, {%2, %3}], [%0];"));
}

TEST(CudaPrinter, GoldenProduct) { expect_golden("product"); }
TEST(CudaPrinter, GoldenRowSums) { expect_golden("row_sums"); }

// Four CTAs of eight whose places differ by two: those at the sender's place modulo two.
TEST(CudaPrinter, MulticastToEverySecondCta) {
  Kernel kernel("every_second");
  const Tensor X = kernel.in("X", bf16, {64, 64}), Y = kernel.out("Y", f32, {64, 64});
  kernel.ctas(8, 8);
  Ring ring(kernel, "x", stages(2), {{bf16, 64, 64}});
  ring.multicast(8);
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       ring.produce([&](const Slot& slot) {
                         tma_load(X(all, all), slot, {Cache::normal, true, 4, 2});
                       });
                     }),
                role("math", warpgroups(1), registers(240), [&] {
                  const Slot slot = ring.consume();
                  store(Y(all, all), wait(wgmma(slot, slot)));
                  ring.release(slot);
                })});
  ir::Kernel machine = kernel.finish();
  passes::lower_to_machine(machine);
  const std::string text = print_cuda(machine).text;
  EXPECT_NE(text.find("0x55 << (cluster_rank() / 8 * 8 + cluster_rank() % 2)"), std::string::npos)
      << text;
}

// There an address has the rank above its 18 bits, which would reach into the descriptor's fields.
TEST(CudaPrinter, DescriptorsInClustersLeaveOutTheRank) {
  for (const int cluster : {1, 2}) {
    Kernel kernel("product");
    const Tensor X = kernel.in("X", bf16, {64, 64}), Y = kernel.out("Y", f32, {64, 64});
    kernel.ctas(2, cluster);
    Ring ring(kernel, "x", stages(2), {{bf16, 64, 64}});
    kernel.roles(
        {role("load", warps(1), registers(24),
              [&] { ring.produce([&](const Slot& slot) { tma_load(X(all, all), slot); }); }),
         role("math", warpgroups(1), registers(240), [&] {
           const Slot slot = ring.consume();
           store(Y(all, all), wait(wgmma(slot, slot)));
           ring.release(slot);
         })});
    ir::Kernel machine = kernel.finish();
    passes::lower_to_machine(machine);
    const std::string text = print_cuda(machine).text;
    const auto masked = HasSubstr("(address & 0x3ffff) >> 4");
    EXPECT_THAT(text, HasSubstr(cluster > 1 ? "descriptor_in_cluster(0x" : "descriptor(0x"));
    if (cluster > 1) {
      EXPECT_THAT(text, masked);
    } else {
      EXPECT_THAT(text, Not(masked));
    }
  }
}

}  // namespace
}  // namespace tilewright::codegen
