#include "ir/verifier.h"

#include <gtest/gtest.h>

#include <string>

#include "common/rejected_text.h"
#include "ir/samples.h"
#include "ir/text.h"

namespace tilewright::ir {
namespace {

using Case = test::BrokenSample;

void expect_rejected(const std::string& sample, const Case& each) {
  test::expect_rejected(sample, each, [](const Kernel& kernel) {
    try {
      verify(kernel);
    } catch (const Error& error) {
      EXPECT_NE(error.location().file, nullptr) << error.what();
      throw;
    }
  });
}

void expect_rejected(const std::string& text, const std::string& message, const std::string& what) {
  test::expect_rejected(text, message, what, [](const Kernel& kernel) { verify(kernel); });
}

TEST(Verifier, RejectsMoreRegistersThanAreLookedAt) {
  const std::string text =
      "kernel \"k\" machine\ngrid (1)\nthreads 128\nbody () {\n"
      "  role {name = \"r\", first_warp = 0, warps = 4} (%1: i32) {\n"
      "    %2: registers<f32, 2000000000> = registers {name = \"x\"}\n    yield\n  }\n}\n";
  expect_rejected(text, "2^16 elements", "2000000000 registers");
}

// Products of sizes fit 64 bits then.
TEST(Verifier, RejectsNumbersThatNoSizeHas) {
  for (const char* number : {"9223372036854775807", "-9223372036854775808", "2147483649"}) {
    for (const std::string& attributes :
         {std::string("permutation = [1, ") + number + "]", std::string("axis = ") + number}) {
      const bool is_list = attributes[0] == 'p';
      const std::string text =
          std::string(
              "kernel \"k\" tile\ngrid (1)\nbody (%0: i32) {\n"
              "  %1: f32 = constant {value = 0.0}\n  %2: tile<f32, 16x32> = splat %1\n"
              "  %3: tile<f32, 32x16> = ") +
          (is_list ? "transpose %2 {" : "reduce %2 {function = add, ") + attributes + "}\n}\n";
      expect_rejected(text, "expected -2^31 to 2^31", attributes);
    }
  }
}

// Whatever stands in it, no element of the shape is read that is not there.
TEST(Verifier, RejectsWhatIsNoPermutation) {
  for (const char* list : {"[0, 7]", "[-1, 0]", "[0, 0]", "[1]", "[]", "[0, 1, 2]"}) {
    const std::string text = std::string(R"(kernel "k" tile
grid (1)
body (%0: i32) {
  %1: f32 = constant {value = 0.0}
  %2: tile<f32, 16x32> = splat %1
  %3: tile<f32, 32x16> = transpose %2 {permutation = )") +
                             list + "}\n}\n";
    expect_rejected(text, "is no permutation of 2 axes", list);
  }
}

// What ascends does so along its only axis, and only what is counted says how far.
TEST(Verifier, RejectsClaimsOfNumbersThatNothingChecks) {
  const auto text = [](const std::string& attributes) {
    return "kernel \"k\" tile\nin X: i32[4, 4] = %0\ngrid (1)\nbody (%1: i32) {\n"
           "  %2: i32 = load_index %0, %1, %1 {" +
           attributes + "}\n}\n";
  };
  verify(parse_text(text("counted = 1, at_most = dim(9)"), "k.tw"));
  expect_rejected(text("counted = 1, ascending = 1"), "X ascends and has rank 2", "of two axes");
  expect_rejected(text("at_most = dim(9)"), "and is not counted", "not counted");
}

TEST(Verifier, RejectsBrokenTileForm) {
  const Case cases[] = {
      // Signatures.
      {"neg %12", "neg %12, %12", "neg: has 2 operands, expected 1"},
      {"load %0, %6", "load %6, %6", "operand 0 is %6 (mul), which is i32, expected a tensor"},
      {"{function = add, axis = 1}", "{axis = 1}", "reduce: lacks the attribute \"function\""},
      {"axis = 1", "axis = 1.0", "the attribute \"axis\" is of type number, expected integer"},
      {"axis = 1", "axis = 1, stages = 2", "reduce: has no attribute \"stages\""},
      {"store %1, %22", "cta_sync\n  store %1, %22", "cta_sync: does not exist in the tile form"},
      {"%23: tile<f32, 64x1> = neg %12", "%23: tile<f32, 64x1>, %30: i32 = neg %12",
       "neg: has 2 results, expected 1"},
      // Values and blocks.
      {"store %1, %22", "store %1, %20", "uses %20 (add) outside the block that defines it"},
      {"mul %3, %5", "mul %3, %7", "mul: uses %7 before its definition"},
      {"yield %20", "yield %10", "number 0 is f32, but of results of the for_loop it is tile"},
      {"yield %20", "yield", "yielded values: 0, but results of the for_loop: 1"},
      {"    yield %20\n", "", "for_loop: its block does not end in a yield"},
      {"store %1, %22", "yield\n  store %1, %22", "only the last operation of a nested block"},
      {"    yield %20\n", "    yield %20\n    yield %20\n", "only the last operation of a nested"},
      {"%14: tile<f32, 64x1>)", "%14: tile<f32, 64x2>)", "arguments of the block: number 1 is"},
      {" () {\n    yield %12\n  }", "", "if_then: has 1 blocks, expected 2"},
      {"for_loop %9, %8, %5", "for_loop %9, %8, %9", "the step is 0, expected a positive one"},
      {"body (%3: i32, %4: i32)", "body (%3: i32, %4: i64)", "grid index %4 is i64, expected i32"},
      // The header.
      {"min(columns, 4))", "min(columns, 4), 5)", "the body has 2 arguments, expected 3"},
      {"out Y", "out X", "two parameters are named X"},
      // Types.
      {"%21: bool = lt %3, %4", "%21: i32 = lt %3, %4", "lt: gives i32, expected bool"},
      {"lt %3, %4", "lt %3, %10", "operand 0 is i32 but operand 1 is f32"},
      {"exp2 %17", "logical_not %17", "operand 0 is f32, expected a boolean"},
      {"add %14, %19", "add %14, %15", "operand 0 is f32 but operand 1 is bf16"},
      {"%17: tile<f32, 64x64> = mul", "%17: tile<f32, 64x32> = mul",
       "gives tile<f32, 64x32>, expected tile<f32, 64x64>"},
      {"splat %10", "splat %9", "gives tile<f32, 64x1>, expected tile<i32, 64x1>"},
      {"function = add", "function = mul",
       "there is no mul of f32, but add of f32, min of f32, max of f32"},
      {"exp2 %17", "bit_not %17", "operand 0 is f32, expected an integer"},
      {"axis = 1", "axis = 2", "axis 2 of a tile of rank 2"},
      {"axis = 1", "axis = 0", "gives tile<f32, 64x1>, expected tile<f32, 1x64>"},
      {"{sizes = [64, 64]}", "{sizes = [64, 32]}",
       "the tile has shape {64, 64}, but the sizes on X are {64, 32}"},
      {"{sizes = [64, 64]}", "{sizes = [64, 64, 0]}", "3 sizes, but X has rank 2"},
      {"load %0, %6, %13, %7, %8", "load %0, %6, %13, %7", "3 starts and limits, expected 4"},
      {"store %1", "store %0", "the tile is f32, but X is bf16"},
      {"out Y: f32", "in Y: f32", "store: writes Y, which is an input"},
      {"{value = 0.0}", "{value = 0}", "the value is an integer, but the result is f32"},
      {"%21: bool = lt %3, %4", "%30: bool = constant {value = 2}\n  %21: bool = lt %3, %4",
       "the value is 2, expected 0 to 1 for bool"},
      {"{value = 64}", "{value = 4294967360}",
       "the value is 4294967360, expected -2147483648 to 2147483647 for i32"},
      {"{value = 64}", "{value = -2147483649}", "the value is -2147483649"},
      {"%16: tile<f32, 64x64> = cast", "%16: tile<bool, 64x64> = cast",
       "cast to bool; compare with zero instead"},
  };
  for (const Case& each : cases) expect_rejected(kTileSample, each);
}

TEST(Verifier, RejectsArithmeticOnBytes) {
  constexpr char kText[] = R"(kernel "bytes" tile
in X: i8[64, 64] = %0
out Y: i8[64, 64] = %1
grid (1)
body (%2: i32) {
  %3: i32 = constant {value = 0}
  %4: i32 = constant {value = 64}
  %5: tile<i8, 64x64> = load %0, %3, %3, %4, %4 {sizes = [64, 64]}
  %6: i8 = constant {value = 3}
  %7: tile<i32, 64x64> = cast %5
  %9: tile<bool, 64x64> = lt %7, %3
  %8: tile<i8, 64x64> = select %9, %5, %6
  store %1, %8, %3, %3, %4, %4 {sizes = [64, 64]}
}
)";
  EXPECT_NO_THROW(verify(parse_text(kText, "bytes.tw")));
  const Case cases[] = {
      {"lt %7, %3", "lt %5, %6", "operand 0 is i8, a format of memory alone"},
      {"select %9, %5, %6", "add %5, %6", "operand 0 is i8, a format of memory alone"},
      {"%8: tile<i8, 64x64> = select %9, %5, %6",
       "%8: tile<i8, 64x1> = reduce %5 {function = max, axis = 1}",
       "reduces i8, a format of memory alone"},
      {"%8: tile<i8, 64x64> = select %9, %5, %6", "%8: tile<i32, 64x64> = dot %5, %5",
       "a is i8 and b is i8"},
  };
  for (const Case& each : cases) expect_rejected(kText, each);
}

TEST(Verifier, RejectsNumbersOfAFormatOfMemory) {
  expect_rejected(R"(kernel "sizes" tile
dim m
out Y: i32[m] = %0
grid (m)
body (%1: i32) {
  %2: u32 = dim {dim = dim(m)}
}
)",
                  "an integer scalar", "u32");
}

TEST(Verifier, RejectsBrokenLoadsIntoRegisters) {
  const char* scheduled = R"(kernel "loads" scheduled
in A: bf16[64, 32] = %0
grid (1)
threads 128
body () {
  role {name = "all", first_warp = 0, warps = 4} (%1: i32) {
    %2: i32 = constant {value = 0}
    %3: i32 = constant {value = 64}
    %4: tile<bf16, 64x32> = load %0, %2, %2, %3, %3 {sizes = [64, 32], layout = register_layout[64x32|r:8@1:1,2@0:32|l:4@1:8,8@0:1|w:4@0:8]}
    yield
  }
}
)";
  ASSERT_NO_THROW(verify(parse_text(scheduled, "")));
  for (const Case& each : {Case{"[64x32|r:8@1:1,2@0:32|l:4@1:8,8@0:1|w:4@0:8]",
                                "[32x32|r:8@1:1|l:4@1:8,8@0:1|w:4@0:8]",
                                "the tile has shape {64, 32}, but its layout is of shape {32, 32}"},
                           Case{"sizes = [64, 32]", "sizes = [64, 16]",
                                "the tile has shape {64, 32}, but the sizes on A are {64, 16}"}}) {
    expect_rejected(scheduled, each);
  }
  const char* machine = R"(kernel "loads" machine
in A: bf16[64, 32] = %0
grid (1)
threads 128
body () {
  role {name = "all", first_warp = 0, warps = 4} (%1: i32) {
    %2: i32 = constant {value = 0}
    %3: i32 = constant {value = 64}
    %4: registers<bf16, 16> = registers {name = "r"}
    load_registers %4, %0, %2, %2, %3, %3 {sizes = [64, 32], layout = register_layout[64x32|r:8@1:1,2@0:32|l:4@1:8,8@0:1|w:4@0:8]}
    yield
  }
}
)";
  ASSERT_NO_THROW(verify(parse_text(machine, "")));
  for (const Case& each :
       {Case{"registers<bf16, 16>", "registers<f16, 16>", "loads f16 from A, which is bf16"},
        Case{"registers<bf16, 16>", "registers<bf16, 8>", "has 8 elements, but its layout"},
        Case{"sizes = [64, 32]", "sizes = [64, 16]", "the sizes on A are {64, 16}, but the layout"},
        Case{"%2, %2, %3, %3", "%2, %2, %3", "3 starts and limits, expected 4: A has rank 2"}}) {
    expect_rejected(machine, each);
  }
}

TEST(Verifier, RejectsBrokenShapeOperations) {
  const char* sample = R"(kernel "shapes" tile
in A: bf16[64, 32] = %0
grid (1)
body (%1: i32) {
  %2: i32 = constant {value = 64}
  %3: tile<bf16, 64x32> = load %0, %1, %1, %2, %2 {sizes = [64, 32]}
  %4: tile<bf16, 32x64> = transpose %3 {permutation = [1, 0]}
  %5: tile<f32, 64x64> = dot %3, %4
  %6: tile<f32, 64x64> = dot %3, %4, %5
  %7: tile<f32, 32x128> = reshape %6
  %8: tile<f32, 8x16> = slice %7 {offsets = [24, 112]}
  %9: tile<i32, 4x4> = iota {axis = 1}
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"dot %3, %4\n", "dot %3, %3\n",
       "inner dimensions differ: %3 (load) {64, 32} x %3 (load) {64, 32}"},
      {"%5: tile<f32, 64x64>", "%5: tile<bf16, 64x64>", "expected tile<f32, 64x64>"},
      {"dot %3, %4, %5", "dot %3, %4, %3", "the accumulator is tile<bf16, 64x32>, expected"},
      {"permutation = [1, 0]", "permutation = [1, 1]", "{1, 1} is no permutation of 2 axes"},
      {"permutation = [1, 0]", "permutation = [0, 1]", "expected tile<bf16, 64x32>"},
      {"permutation = [1, 0]", "permutation = []", "{} is no permutation of 2 axes"},
      {"f32, 32x128", "f32, 32x127", "{64, 64} has 4096 elements, {32, 127} has 4064"},
      {"[24, 112]", "[24, 113]", "axis 1: 16 elements from 113 of 128"},
      {"[24, 112]", "[24]", "1 offsets and a result of rank 2, of a tile of rank 2"},
      {"axis = 1", "axis = -1", "axis -1 of a tile of rank 2"},
      {"tile<i32, 4x4>", "tile<i32, 0x4>", "sizes are at least 1"},
      {"tile<i32, 4x4>", "tile<i32, 999999x999999>", "more than 2^31 elements"},
      {"tile<i32, 4x4>", "tile<i32, 4x4, [4x4|r:4@1:1,4@0:1|l:32*]>",
       "only tiles of the scheduled"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
}

TEST(Verifier, RejectsWhatTmaDoesNotReduce) {
  const char* sample = R"(kernel "reduce" machine
inout Y: f32[64, 32] = %0
in X: f32[64, 32] = %1
grid (1)
threads 32
shared_bytes 8192
body () {
  %2: shared<f32, 1x64x32> = shared {name = "box", layout = shared_layout[64x32*4|64@0:128,32@1:4|x3.4.3], stages = 1, offset = 0}
  %3: tensor_map = tensor_map %0 {name = "Y", box = [64, 32], swizzle = 128}
  %4: tensor_map = tensor_map %1 {name = "X", box = [64, 32], swizzle = 128}
  %5: i32 = constant {value = 0}
  tma_reduce %3, %2, %5, %5, %5 {function = add}
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"{function = add}", "{function = max}",
       "there is no max of f32, but add of f32, max of f16, max of bf16, max of i32"},
      {"{function = add}", "{function = mul}", "there is no mul of f32, but add of f32"},
      {"{function = add}", "", "lacks the attribute \"function\" (function)"},
      {"{function = add}", "{function = add, cache = 1}", "has no attribute \"cache\""},
      {"tma_reduce %3", "tma_reduce %4", "writes X, which is an input"},
      {"%5, %5, %5 {", "%5, %5 {", "1 coordinates, but the map of Y has 2"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
}

TEST(Verifier, RejectsBrokenCopiesInACluster) {
  const char* const sample = R"(kernel "exchange" machine
grid (2)
cluster 2
threads 128
shared_bytes 16640
body () {
  %1: shared<bf16, 1x64x64> = shared {name = "own", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 0}
  %2: shared<bf16, 1x64x64> = shared {name = "others", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1, offset = 8192}
  %3: mbarriers<1> = mbarriers {name = "full", arrivals = 1, offset = 16384}
  %4: i32 = constant {value = 0}
  cluster_copy %1, %2, %4, %3, %4, %4, %4 {bytes = 8192}
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"{bytes = 8192}", "{bytes = 8200}", "8200 bytes, expected a multiple of 16"},
      {"{bytes = 8192}", "{bytes = 8192, step = 128}",
       "8192 bytes at offset 0 + 128 of %1 (shared others), which has 8192"},
      {"{bytes = 8192}", "{bytes = 8192, cache = 1}", "has no attribute \"cache\""},
      {"{bytes = 8192}", "", "lacks the attribute \"bytes\" (integer)"},
      {"%3, %4, %4, %4 {", "%3, %4, %4 {", "has 6 operands"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
}

TEST(Verifier, RejectsBrokenScheduledForm) {
  const Case cases[] = {
      {"grid (multiprocessors)", "grid (1, 2)", "the grid has 2 axes, expected 1"},
      {"stages = 2", "stages = 3", "tiles is shared<bf16, 2x64x64>, but its stages and layout say"},
      {"2x64x64> = shared", "2x64x32> = shared", "its stages and layout say {2, 64, 64}"},
      {"arrivals = 1}", "arrivals = 0}", "full expects 0 arrivals a phase"},
      {"arrivals = 1}", "arrivals = 1048576}",
       "full expects 1048576 arrivals a phase, expected 1 to 2^20 - 1"},
      {"{bytes = 16384}", "{bytes = 1048576}", "1048576 bytes, expected 0 to 2^20 - 1"},
      {"box = [64, 64]", "box = [48, 64]", "which are no whole boxes of 3072 elements"},
      {"box = [64, 64]", "box = [64]", "a box of rank 1, but A has rank 2"},
      {"box = [64, 64]", "box = [64, 128]",
       "rows of 256 bytes, more than the swizzle's span of 128"},
      {"swizzle = 128", "swizzle = 16", "a swizzle of 16 bytes, expected 0, 32, 64 or 128"},
      {"view %3, %8, %7\n", "view %3, %9, %7\n", "stage 64 of the 2 of %3 (shared tiles)"},
      {"%8: i32 = constant {value = 1}", "%8: i32 = constant {value = 2}",
       "stage 2 of the 2 of %3 (shared tiles)"},
      {"view %3, %7, %7\n", "view %3, %7, %8\n", "64 rows from 1 of the 64 of %3 (shared tiles)"},
      {"%11: view<bf16, 64x64> = view %3, %7, %7", "%11: view<bf16, 32x64> = view %3, %7, %8",
       "32 rows from 1 of the 64 of %3 (shared tiles), expected a multiple of 8 inside"},
      {"{transposed = 1}", "{column = 8}", "64 columns from 8 of the 64 of %3 (shared tiles)"},
      {"tma_load_tile %5, %11, %4, %7, %7, %7", "tma_load_tile %5, %11, %4, %7, %7",
       "1 coordinates, but the map of A has 2"},
      {"swizzle = 128}\n  %6", "swizzle = 128, ragged = 0}\n  %6",
       "2 coordinates, but the map of A has 3"},
      {"swizzle = 128", "swizzle = 128, ragged = 1", "axis 1 of 2 is ragged"},
      {"swizzle = 128", "swizzle = 128, single = [0]", "axis 0 has blocks of 1, expected one of "},
      {"swizzle = 128", "swizzle = 128, single = [2]", "axis 2 has blocks of 1, expected one of "},
      {"    elect () {", "    %40: i32 = load_index %0, %7, %7\n    elect () {",
       "reads an integer of A, which is bf16, expected i32"},
      {"    elect () {", "    %40: i32 = load_index %0, %7\n    elect () {",
       "1 indices, but A has rank 2"},
      {"tma_load_tile %5, %11, %4, %7", "tma_load_tile %5, %11, %4, %9",
       "index 64 of the 2 barriers of %4 (mbarriers full)"},
      {"mbarrier_wait %4, %7, %7", "%40: i32 = constant {value = 2}\n    mbarrier_wait %4, %40, %7",
       "index 2 of the 2 barriers of %4 (mbarriers full)"},
      {"%16: pending<f32, 64x64>", "%16: pending<f32, 64x32>",
       "gives pending<f32, 64x32>, expected pending<f32, 64x64>"},
      {"wait %16", "wait %14", "operand 0 is %14 (view), which is view<bf16, 64x64>"},
      {"named_sync %7 {first", "named_sync %13 {first",
       "named_sync: %13 chooses among barriers, expected their count"},
      {"first = 1, threads = 128", "first = 1, threads = 384",
       "384 threads, expected a multiple of 32 up to the CTA's 256"},
      {"    elect () {",
       "    %40: mbarriers<1> = mbarriers {name = \"late\", arrivals = 1}\n    elect () {",
       "mbarriers: is inside a block; places are made at the kernel's top"},
      {"(%13: i32) {", "() {", "role: arguments of the block: 0, but what it is given: 1"},
  };
  for (const Case& each : cases) {
    expect_rejected(kScheduledSample, each);
  }
}

TEST(Verifier, RejectsBrokenCopiesOfTilesInACluster) {
  const char* const sample = R"(kernel "exchange" scheduled
grid (2)
cluster 2
threads 128
body () {
  %1: shared<bf16, 1x64x64> = shared {name = "own", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1}
  %2: shared<bf16, 1x64x64> = shared {name = "others", layout = shared_layout[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1}
  %3: mbarriers<1> = mbarriers {name = "full", arrivals = 1}
  %4: i32 = constant {value = 0}
  role {name = "send", first_warp = 0, warps = 1, registers = 24} (%5: i32) {
    elect () {
      %6: view<bf16, 64x64> = view %1, %4, %4
      %7: view<bf16, 64x64> = view %2, %4, %4
      cluster_copy_tile %6, %7, %3, %4, %4
      yield
    }
    yield
  }
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1}\n  %2",
       "[64x64*2|64@0:64,32@1:2,2@1:4096|x2.4.3], stages = 1}\n  %2", "have other panels"},
      {"[64x64*2|64@0:128,64@1:2|x3.4.3], stages = 1}\n  %2",
       "[64x64*2|64@0:128,64@1:2], stages = 1}\n  %2", "have other panels"},
      {"%7: view<bf16, 64x64>", "%7: view<bf16, 32x64>", "differ"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
  // Without a swizzle panels may differ in their width alone.
  std::string plain = sample;
  for (std::size_t at; (at = plain.find("|x3.4.3")) != std::string::npos;) plain.erase(at, 7);
  ASSERT_NO_THROW(verify(parse_text(plain, "")));
  expect_rejected(plain.c_str(),
                  {"[64x64*2|64@0:128,64@1:2], stages = 1}\n  %2",
                   "[64x64*2|64@0:64,32@1:2,2@1:4096], stages = 1}\n  %2", "have other panels"});
}

// A fragment is 64 rows of a product's result, whole.
TEST(Verifier, RejectsFragmentsThatDoNotFitTheirPlace) {
  const char* const sample = R"(kernel "fragments" scheduled
grid (1)
threads 128
body () {
  %1: shared<f32, 1x1x2048> = shared {name = "sums", layout = shared_layout[1x2048*4|2048@1:4], stages = 1}
  %2: i32 = constant {value = 0}
  role {name = "all", first_warp = 0, warps = 4} (%3: i32) {
    %4: tile<f32, 64x32> = load_fragment %1, %2
    store_fragment %4, %1, %2
    yield
  }
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"tile<f32, 64x32>", "tile<f32, 64x16>", "tile<f32, 64x16> in places of"},
      {"tile<f32, 64x32>", "tile<f32, 128x16>", "tile<f32, 128x16> in places of"},
      {"tile<f32, 64x32>", "tile<i32, 64x32>", "tile<i32, 64x32> in places of"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
}

TEST(Verifier, RejectsProductsThatDoNotMeet) {
  const char* sample = R"(kernel "products" scheduled
grid (1)
threads 128
body () {
  %0: shared<bf16, 1x64x64> = shared {name = "a", layout = shared_layout[64x64*2|64@0:128,64@1:2], stages = 1}
  %1: shared<bf16, 1x320x64> = shared {name = "b", layout = shared_layout[320x64*2|320@0:128,64@1:2], stages = 1}
  %2: i32 = constant {value = 0}
  %3: view<bf16, 64x64> = view %0, %2, %2
  %4: view<bf16, 256x64> = view %1, %2, %2 {transposed = 1}
  %5: pending<f32, 64x256> = wgmma %3, %4
}
)";
  ASSERT_NO_THROW(verify(parse_text(sample, "")));
  const Case cases[] = {
      {"{transposed = 1}", "", "inner dimensions differ: %3 (view) {64, 64} x %4 (view) {256, 64}"},
  };
  for (const Case& each : cases) expect_rejected(sample, each);
  std::string narrow = sample;
  const std::string wide_a = "%3: view<bf16, 64x64>", wide_b = "%4: view<bf16, 256x64>";
  narrow.replace(narrow.find(wide_a), wide_a.size(), "%3: view<bf16, 64x24>");
  expect_rejected(narrow, {wide_b.c_str(), "%4: view<bf16, 256x24>",
                           "k is 24, expected a multiple of 16 for bf16"});
}

TEST(Verifier, RejectsBrokenMachineForm) {
  const Case cases[] = {
      {"offset = 0}", "offset = 512}", "tiles lies at offset 512, expected a multiple of 1024"},
      {"offset = 16384}", "offset = 16380}", "full lies at offset 16380, expected a multiple of 8"},
      {"mbarrier_init %4 {arrivals = 1}", "mbarrier_init %4 {arrivals = 2}",
       "2 arrivals, but %4 (mbarriers full) expects 1"},
      {"registers<f32, 32> = ", "registers<f32, 33> = ",
       "the accumulator %13 (registers sums) has 33 elements, expected n / 2 = 32"},
      {"registers<f32, 32> = ", "registers<bf16, 32> = ", "the accumulator is bf16, expected f32"},
      {"k = 16", "k = 32", "k is 32, expected 16 elements of bf16"},
      {"step_a = 32", "step_a = 16384", "of %3 (shared tiles), which has 16384"},
      {"descriptor_a = 7", "descriptor_a = -7", "expected the 50 bits above the address"},
      {"register = 12", "register = 13",
       "registers 13 to 16 of %14 (registers packed), which has 16"},
      {"maps = maps[[1:32:1], [2:2:1]]", "maps = maps[[1:32:1], [2:4:1]]",
       "takes element 4 to register 2 of %15 (registers row), which has 2"},
      {"maps = maps[[1:32:1], [2:2:1]]", "maps = maps[[1:32:1]]", "1 maps, expected 2"},
      {"maps = maps[[2:2:1]]", "maps = maps[[2:0:1]]", "expected positive divisor and modulus"},
      {"maps = maps[[2:2:1]]", "maps = maps[[1:32:1]]",
       "takes element 2 to register 2 of %15 (registers row), which has 2"},
      {"masks = [1, 2]", "masks = [1, 32]", "the mask 32, expected 1 to 31"},
      {"    reduce_lanes", "    copy %15, %13 {offset = 31}\n    reduce_lanes",
       "copies 2 elements from element 31 of 32"},
      {"function = cast", "function = neg", "neg gives f32, but the destination is bf16"},
      {"bytes = 8192, step = 0", "bytes = 4096",
       "bytes says 4096, but the box of its map has 8192"},
      {"bytes = 8192, step = 0", "bytes = 8192, step = 64",
       "a step of 64 bytes, expected a multiple"},
      {"tma_load %5, %3, %7, %4, %7, %7, %7", "tma_load %5, %3, %7, %4, %7, %7",
       "1 coordinates, but the map of A has 2"},
      {"{sizes = [64, 64], layout", "{sizes = [64, 32], layout",
       "the sizes on C are {64, 32}, but the layout has shape {64, 64}"},
      {"count = 2, register = 14", "count = 3, register = 14", "3 matrices, expected 2 or 4"},
      {"count = 2, register = 14", "count = 4, register = 14", "registers 14 to 17 of 16"},
      {"transposed = 1, count", "transposed = 2, count", "transposed is 2, expected 0 or 1"},
      {"column_bytes = 96", "column_bytes = 112", "32 bytes from byte 112 of rows of 128"},
      {"wgmma_wait %13 {count = 0}", "wgmma_wait %13 {count = 8}", "a count of 8, expected 0 to 7"},
  };
  for (const Case& each : cases) {
    expect_rejected(kMachineSample, each);
  }
}

TEST(Verifier, RejectsWhatDoesNotReachOtherRanks) {
  const Case cases[] = {
      {"symmetric parts", "inout parts", "has peers, but parts is in this rank alone"},
      {"signals arrived", "inout arrived", "peer: arrived is in this rank alone"},
      {"tensor<i32, 1x2> = peer", "tensor<i32, 1> = peer", "gives tensor<i32, 1>, expected"},
      {"tensor<i32, 1x2> = peer", "tensor<i32, 1x1> = peer", "expected tensor<i32, 1x2>"},
      {", peers = 1}", "}", "peer_map: takes %4 (tensor_map parts_peers), expected a tensor map"},
      {"tma_store %13", "tma_store %4", "which has a map for each rank, expected a peer_map"},
      {"wait_flag %2", "wait_flag %1", "parts is f32 of rank 3, expected i32 of rank 1"},
      // Orders that PTX does not have.
      {"\"release\", scope", "\"acquire\", scope",
       "store_index: it is acquire, expected weak, relaxed or release"},
      {"\"acquire\", scope", "\"release\", scope",
       "wait_flag: it is release, expected relaxed or acquire"},
      {"\"relaxed\", scope", "\"acquire\", scope",
       "reduce_add: it is acquire, expected relaxed or release"},
      {"{semantics = \"weak\"}", "{semantics = \"release\", scope = \"gpu\"}",
       "load_index: it is release, expected weak, relaxed or acquire"},
      {"\"acq_rel\"", "\"weak\"", "atomic_add: it is weak, expected relaxed, acquire, release or"},
      {"{semantics = \"weak\"}", "{semantics = \"weak\", scope = \"gpu\"}",
       "semantics \"weak\" with a scope"},
      {"\"relaxed\", scope = \"gpu\"", "\"relaxed\"", "reduce_add: lacks the attribute \"scope\""},
      {"{semantics = \"weak\"}", "{scope = \"gpu\"}", "a scope without semantics"},
      {"\"cluster\"", "\"sys\"", "\"scope\" is \"sys\", expected block, cluster, gpu or system"},
      {"\"relaxed\"", "\"loose\"", "\"semantics\" is \"loose\", expected weak, relaxed"},
      {"\"ge\"", "\"at_least\"", "\"compare\" is \"at_least\", expected eq, ne"},
      {"fence {scope = \"system\"}", "fence", "fence: lacks the attribute \"scope\""},
  };
  for (const Case& each : cases) {
    SCOPED_TRACE(each.to);
    expect_rejected(kRanksSample, each);
  }
}

TEST(Verifier, RejectsRaggedMapsOfWhichNoneIsChosen) {
  constexpr char kText[] = R"(kernel "copy" machine
dim ranks at_least(1) at_most(8)
symmetric X: f32[ranks, 16, 16] = %0
grid (1)
threads 32
shared_bytes 1024
body () {
  %1: shared<f32, 1x16x16> = shared {name = "tile", layout = shared_layout[16x16*4|16@0:64,16@1:4], stages = 1, offset = 0}
  %2: tensor_map = tensor_map %0 {name = "one", box = [1, 16, 16], swizzle = 0}
  %3: tensor_map = tensor_map %0 {name = "two", box = [1, 16, 16], swizzle = 0, ragged = 1}
  %4: tensor_map = tensor_map %0 {name = "all", box = [1, 16, 16], swizzle = 0, ragged = 1, peers = 1}
  %5: i32 = constant {value = 0}
  %6: bool = constant {value = 0}
  %7: tensor_map = ragged_map %3, %6
  tma_store %7, %1, %5, %5, %5, %5, %5
  %8: tensor_map = peer_map %4, %5
  %9: tensor_map = ragged_map %8, %6
  tma_store %9, %1, %5, %5, %5, %5, %5
  bulk_commit
  bulk_wait {count = 0}
}
)";
  EXPECT_NO_THROW(verify(parse_text(kText, "copy.tw")));
  const Case cases[] = {
      {"tma_store %7", "tma_store %3",
       "takes %3 (tensor_map two), which has another map for boxes that lie outside, expected a "
       "ragged_map"},
      {"tma_store %9", "tma_store %8", "which has another map for boxes that lie outside"},
      {"ragged_map %3", "ragged_map %2", "takes %2 (tensor_map one), expected a ragged tensor map"},
      {"ragged_map %8", "ragged_map %7", "expected a ragged tensor map"},
      {"ragged_map %8", "ragged_map %4", "which has a map for each rank, expected a peer_map"},
      {"ragged_map %3, %6", "ragged_map %3, %5", "operand 1"},
  };
  for (const Case& each : cases) expect_rejected(kText, each);
}

TEST(Verifier, RejectsValuesOutsideTheTable) {
  Kernel kernel = parse_text(kTileSample, "");
  kernel.body.body.back().operands[1] = 1000;
  EXPECT_THROW(verify(kernel), Error);
  kernel = parse_text(kTileSample, "");
  kernel.body.body.front().results[0] = kNoValue;
  EXPECT_THROW(verify(kernel), Error);
  kernel = parse_text(kTileSample, "");
  kernel.body.body[1].results = kernel.body.body[0].results;
  EXPECT_THROW(verify(kernel), Error);
}

TEST(Verifier, PointsAtTheUsersLine) {
  Kernel kernel = parse_text(kTileSample, "");
  for_each(kernel.body, [](Operation& operation) {
    if (operation.op == Op::reduce) operation.attributes.set(Key::axis, std::int64_t{5});
  });
  try {
    verify(kernel);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.location().file, "sums.cpp");
    EXPECT_EQ(error.location().line, 11);
  }
}

}  // namespace
}  // namespace tilewright::ir
