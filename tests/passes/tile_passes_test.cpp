#include "passes/materialise_extents.h"
#include "passes/pass_case.h"
#include "passes/peel_masks.h"
#include "passes/skip_identities.h"

// What an automatic schedule begins with, case by case. How whole kernels fare is tested with the
// schedules.
namespace tilewright::passes {
namespace {

using test::expect_pass;
using test::expect_unchanged;
using test::tile_kernel;

// %10..%15: 0, n, 64, 1, 4 and -inf.
const char* const kNumbers =
    "  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
    "  %12: i32 = constant {value = 64}\n  %13: i32 = constant {value = 1}\n"
    "  %14: i32 = constant {value = 4}\n  %15: f32 = constant {value = -inf}\n";

std::string kernel(const std::string& operations) { return tile_kernel(kNumbers + operations); }

// %20 is rows %2.. of X, 4 of them, of which those below n exist.
const char* const kRows = "  %20: tile<f32, 4x64> = load %0, %2, %10, %11, %12 {sizes = [4, 64]}\n";

TEST(MaterialiseExtents, ReductionsSelectTheirNeutralValue) {
  const std::string store = "  store %1, %30, %10, %10, %13, %12 {sizes = [1, 64]}\n";
  for (const auto& [function, neutral] :
       {std::pair<std::string, std::string>{"add", "0.0"}, {"max", "-inf"}, {"min", "inf"}}) {
    const std::string reduce = " {function = " + function + ", axis = 0}\n";
    expect_pass(materialise_extents,
                kernel(kRows + ("  %30: tile<f32, 1x64> = reduce %20" + reduce) + store),
                kernel(std::string(kRows) +
                       "  %21: tile<i32, 4x1> = iota {axis = 0}\n  %22: i32 = sub %11, %2\n"
                       "  %23: tile<i32, 4x1> = splat %22\n"
                       "  %24: tile<bool, 4x1> = lt %21, %23\n"
                       "  %25: f32 = constant {value = " +
                       neutral +
                       "}\n"
                       "  %26: tile<f32, 4x64> = select %24, %20, %25\n"
                       "  %30: tile<f32, 1x64> = reduce %26" +
                       reduce + store));
  }
}

TEST(MaterialiseExtents, IntegersHaveTheLeastAndTheGreatestOfTheirDtype) {
  for (const auto& [dtype, least, greatest] :
       {std::tuple<std::string, std::string, std::string>{"i32", "-2147483648", "2147483647"},
        {"i64", "-9223372036854775808", "9223372036854775807"}}) {
    const std::string tile = ": tile<" + dtype;
    const std::string load = kRows + ("  %21" + tile + ", 4x64> = cast %20\n");
    const std::string store =
        "  %31: tile<f32, 1x64> = cast %30\n  store %1, %31, %10, %10, %13, %12 {sizes = [1, "
        "64]}\n";
    for (const auto& [function, neutral] : {std::pair{"max", least}, {"min", greatest}}) {
      const std::string reduce = std::string(" {function = ") + function + ", axis = 0}\n";
      expect_pass(materialise_extents,
                  kernel(load + "  %30" + tile + ", 1x64> = reduce %21" + reduce + store),
                  kernel(load +
                         "  %22: tile<i32, 4x1> = iota {axis = 0}\n  %23: i32 = sub %11, %2\n"
                         "  %24: tile<i32, 4x1> = splat %23\n"
                         "  %25: tile<bool, 4x1> = lt %22, %24\n  %26: " +
                         dtype + " = constant {value = " + neutral + "}\n  %27" + tile +
                         ", 4x64> = select %25, %21, %26\n  %30" + tile + ", 1x64> = reduce %27" +
                         reduce + store));
    }
  }
}

TEST(MaterialiseExtents, WhatExistsWholeIsLeftAlone) {
  expect_unchanged(
      materialise_extents,
      kernel(std::string(kRows) + "  %30: tile<f32, 4x1> = reduce %20 {function = add, axis = 1}\n"
                                  "  store %1, %30, %2, %10, %11, %13 {sizes = [4, 1]}\n"));
}

// A loop over blocks of 64 columns in which column c of block i is kept where c + 64 i OP bound.
std::string masked_loop(const std::string& condition) {
  return kernel(
      "  %20: tile<f32, 4x64> = splat %15\n  %16: tile<f32, 64x4> = splat %15\n"
      "  %17: tile<f32, 4x4> = dot %20, %16\n"
      "  %21: tile<f32, 4x64> = for_loop %10, %11, %13, %20 (%22: i32, %23: tile<f32, 4x64>) {\n"
      "    %24: i32 = mul %22, %12\n    %25: tile<i32, 1x64> = iota {axis = 1}\n"
      "    %26: tile<i32, 1x64> = splat %24\n    %27: tile<i32, 1x64> = add %25, %26\n"
      "    %28: tile<i32, 1x64> = splat %2\n    %29: tile<bool, 1x64> = " +
      condition +
      "\n"
      "    %30: tile<f32, 4x64> = select %29, %23, %15\n    yield %30\n  }\n"
      "  store %1, %21, %2, %10, %11, %12 {sizes = [4, 64]}\n");
}

struct Loops {
  int loops = 0, selects = 0;
};
Loops count(const std::string& text) {
  ir::Kernel k = test::parsed(text);
  peel_masks(k);
  ir::canonicalise(k);
  ir::verify(k);
  Loops found;
  ir::for_each(k.body, [&](const ir::Operation& o) {
    found.loops += o.op == ir::Op::for_loop;
    found.selects += o.op == ir::Op::select;
  });
  return found;
}

TEST(PeelMasks, AnUpperBoundCutsTheEnd) {
  // 64 i + 63 < %2: i <= (%2 - 64) / 64. The values of each loop are numbered from `n`.
  const auto loop = [](const std::string& n, const std::string& rest) {
    return "(%" + n + "2: i32, %" + n + "3: tile<f32, 4x64>) {\n    %" + n + "4: i32 = mul %" + n +
           "2, %12\n    %" + n + "5: tile<i32, 1x64> = iota {axis = 1}\n    %" + n +
           "6: tile<i32, 1x64> = splat %" + n + "4\n    %" + n + "7: tile<i32, 1x64> = add %" + n +
           "5, %" + n + "6\n    %" + n + "8: tile<i32, 1x64> = splat %2\n    %" + n +
           "9: tile<bool, 1x64> = lt %" + n + "7, %" + n + "8\n" + rest + "  }\n";
  };
  expect_pass(
      peel_masks, masked_loop("lt %27, %28"),
      kernel("  %20: tile<f32, 4x64> = splat %15\n  %16: tile<f32, 64x4> = splat %15\n"
             "  %17: tile<f32, 4x4> = dot %20, %16\n  %40: i32 = constant {value = -64}\n"
             "  %41: i32 = constant {value = 1}\n  %42: i32 = mul %2, %41\n"
             "  %43: i32 = add %40, %42\n  %44: i32 = constant {value = 64}\n"
             "  %45: i32 = div %43, %44\n  %46: i32 = constant {value = 1}\n"
             "  %47: i32 = add %45, %46\n  %48: i32 = min %11, %47\n  %49: i32 = max %48, %10\n"
             "  %50: tile<f32, 4x64> = for_loop %10, %49, %13, %20 " +
             loop("7", "    yield %73\n") +
             "  %51: tile<f32, 4x64> = for_loop %49, %11, %13, %50 " +
             loop("8", "    %90: tile<f32, 4x64> = select %89, %83, %15\n    yield %90\n") +
             "  store %1, %51, %2, %10, %11, %12 {sizes = [4, 64]}\n"));
}

TEST(PeelMasks, ALowerBoundCutsTheBeginning) {
  const Loops both = count(masked_loop("lt %28, %27"));
  EXPECT_EQ(both.loops, 2);
  EXPECT_EQ(both.selects, 1);
}

TEST(PeelMasks, WhatIsNotLinearStays) { expect_unchanged(peel_masks, masked_loop("eq %27, %28")); }

// y = x * factor, where the factor is 1 unless %2 < 4.
std::string scaled(const std::string& one, const std::string& product) {
  return kernel(std::string(kRows) + "  %21: f32 = constant {value = " + one +
                "}\n"
                "  %22: tile<f32, 4x1> = splat %21\n  %23: bool = lt %2, %14\n"
                "  %24: tile<f32, 4x1> = if_then %23 () {\n"
                "    %25: tile<f32, 4x1> = reduce %20 {function = max, axis = 1}\n    yield %25\n"
                "  } () {\n    yield %22\n  }\n" +
                product + "  store %1, %26, %2, %10, %11, %12 {sizes = [4, 64]}\n");
}

TEST(SkipIdentities, AProductWithOneIsSkipped) {
  expect_pass(skip_identities, scaled("1.0", "  %26: tile<f32, 4x64> = mul %20, %24\n"),
              scaled("1.0",
                     "  %26: tile<f32, 4x64> = if_then %23 () {\n"
                     "    %27: tile<f32, 4x64> = mul %20, %24\n    yield %27\n"
                     "  } () {\n    yield %20\n  }\n"));
  expect_unchanged(skip_identities, scaled("2.0", "  %26: tile<f32, 4x64> = mul %20, %24\n"));
}

}  // namespace
}  // namespace tilewright::passes
