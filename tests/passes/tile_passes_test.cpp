#include "passes/drop_selects.h"
#include "passes/materialise_extents.h"
#include "passes/overlap_products.h"
#include "passes/pass_case.h"
#include "passes/peel_masks.h"
#include "passes/separate_columns.h"
#include "passes/skip_hidden.h"
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

std::string kernel(const std::string& operations) {
  return test::planned(tile_kernel(kNumbers + operations));
}

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

// Of rows that are joined with columns 64 times as many elements exist, which might be more than an
// index has.
TEST(MaterialiseExtents, ElementsOfJoinedAxesDoNotOverflow) {
  ir::Kernel joined = test::parsed(
      kernel(kRows + std::string("  %21: tile<f32, 1x256> = reshape %20\n"
                                 "  %30: tile<f32, 1x1> = reduce %21 {function = add, axis = 1}\n"
                                 "  store %1, %30, %10, %10, %13, %13 {sizes = [1, 1]}\n")));
  materialise_extents(joined);
  ir::verify(joined);
  int bounded = 0;
  ir::for_each(joined.body, [&](const ir::Operation& o) {
    bounded += o.op == ir::Op::constant && o.results[0] < joined.types.size() &&
               o.attributes.has(ir::Key::value) && joined.type(o.results[0]).dtype == DType::i32 &&
               o.attributes.integer(ir::Key::value) == INT32_MAX / 64;
  });
  EXPECT_EQ(bounded, 1);
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
  int loops = 0, selects = 0, minima = 0, maxima = 0;
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
    found.minima += o.op == ir::Op::min;
    found.maxima += o.op == ir::Op::max;
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
  // Where whole blocks begin is no less than where the loop does, and no more than where it ends.
  EXPECT_EQ(both.minima, 1);
  EXPECT_EQ(both.maxima, 1);
}

TEST(PeelMasks, OfOtherStepsNothingIsPeeled) {
  std::string by_four = masked_loop("lt %27, %28");
  const std::string step = "for_loop %10, %11, %13";
  expect_unchanged(peel_masks,
                   by_four.replace(by_four.find(step), step.size(), "for_loop %10, %11, %14"));
}

// A mask that is the same in every iteration, and hides something in each.
TEST(PeelMasks, WhatHidesInEveryIterationStays) {
  expect_unchanged(peel_masks, masked_loop("lt %25, %25"));
}

TEST(PeelMasks, WhatIsNotLinearStays) { expect_unchanged(peel_masks, masked_loop("eq %27, %28")); }

// Columns 64 * %2 ... of a row, of which those below n have been kept by `mask`; `rest` asks again.
std::string twice_masked(const std::string& mask, const std::string& function,
                         const std::string& again) {
  return kernel(std::string(kRows) +
                "  %21: i32 = mul %2, %12\n  %22: tile<i32, 1x64> = iota {axis = 1}\n"
                "  %23: tile<i32, 1x64> = splat %21\n  %24: tile<i32, 1x64> = add %22, %23\n"
                "  %25: tile<i32, 1x64> = splat %11\n  %26: tile<bool, 1x64> = " +
                mask + "\n  %27: tile<f32, 4x64> = select %26, %20, %15\n" + function +
                "  %30: i32 = sub %11, %21\n  %31: tile<i32, 1x64> = splat %30\n"
                "  %32: tile<bool, 1x64> = lt %22, %31\n" +
                again);
}

TEST(DropSelects, WhatTheMaskHasHiddenIsNotAskedAgain) {
  const std::string exponential = "  %28: tile<f32, 4x64> = exp2 %27\n";
  const std::string zero = "  %33: f32 = constant {value = 0.0}\n";
  const std::string select = "  %34: tile<f32, 4x64> = select %32, %28, %33\n";
  const auto stored = [](const std::string& value) {
    return "  store %1, " + value + ", %2, %10, %11, %12 {sizes = [4, 64]}\n";
  };
  // 64 %2 + column < n, and column < n - 64 %2.
  expect_pass(drop_selects, twice_masked("lt %24, %25", exponential, zero + select + stored("%34")),
              twice_masked("lt %24, %25", exponential, zero + select + stored("%28")));
  // One column more; another function of -inf.
  expect_unchanged(drop_selects,
                   twice_masked("le %24, %25", exponential, zero + select + stored("%34")));
  expect_unchanged(drop_selects, twice_masked("lt %24, %25", "  %28: tile<f32, 4x64> = neg %27\n",
                                              zero + select + stored("%34")));
  // One of two comparisons, of which the other may hold where this one does not.
  const auto joined = [&](const std::string& how, const std::string& kept) {
    std::string text = twice_masked("lt %24, %25", exponential, zero + select + stored(kept));
    const std::size_t mask = text.find("  %27:");
    text.insert(mask, "  %35: tile<bool, 1x64> = lt %25, %22\n  %36: tile<bool, 1x64> = " + how +
                          " %26, %35\n");
    return text.replace(text.find("select %26"), 10, "select %36");
  };
  expect_pass(drop_selects, joined("logical_and", "%34"), joined("logical_and", "%28"));
  expect_unchanged(drop_selects, joined("logical_or", "%34"));
}

// Of numbers that are no integers a comparison says nothing about another one.
TEST(DropSelects, ComparisonsOfFloatsAreNotFollowed) {
  expect_unchanged(drop_selects,
                   kernel(std::string(kRows) +
                          "  %21: tile<f32, 4x64> = exp2 %20\n  %22: tile<f32, 4x64> = neg %20\n"
                          "  %23: tile<bool, 4x64> = lt %20, %21\n"
                          "  %24: tile<bool, 4x64> = lt %22, %20\n"
                          "  %25: tile<f32, 4x64> = select %24, %21, %15\n"
                          "  %26: tile<f32, 4x64> = select %23, %25, %15\n"
                          "  store %1, %26, %2, %10, %11, %12 {sizes = [4, 64]}\n"));
}

// A sum of rows that a load found nothing for, and of what is made of them.
TEST(DropSelects, WhatIsNotLoadedIsZeroAlready) {
  const auto summed = [](const std::string& made, const std::string& kept,
                         const char* row = "%25") {
    return kernel(
        "  %21: i32 = mul %2, %14\n"
        "  %22: tile<f32, 4x64> = load %0, %21, %10, %11, %12 {sizes = [4, 64]}\n" +
        made +
        "  %24: i32 = sub %11, %21\n  %25: tile<i32, 4x1> = iota {axis = 0}\n"
        "  %26: tile<i32, 4x1> = add %25, %13\n  %27: tile<bool, 4x1> = lt " +
        row +
        ", %24\n  %28: f32 = constant {value = 0.0}\n"
        "  %29: tile<f32, 4x64> = select %27, %23, %28\n"
        "  %30: tile<f32, 1x64> = reduce " +
        kept +
        " {function = add, axis = 0}\n  store %1, %30, %2, %10, %11, %12 {sizes = [1, 64]}\n");
  };
  const std::string square = "  %23: tile<f32, 4x64> = mul %22, %22\n";
  expect_pass(drop_selects_of_loads, summed(square, "%29"), summed(square, "%23"));
  expect_unchanged(drop_selects, summed(square, "%29"));
  // One row more is hidden; 1 more is not zero.
  expect_unchanged(drop_selects_of_loads, summed(square, "%29", "%26"));
  expect_unchanged(drop_selects_of_loads, summed("  %23: tile<f32, 4x64> = add %22, %15\n", "%29"));
}

// A causal attention of 128 rows of X without a softmax, in blocks of 64 keys: weights are exp2 of
// scores, which are -inf where the key comes behind the row. `more` may change the new sum, %39.
std::string causal_sums(const std::string& more = "") {
  return "kernel \"case\" tile\ntarget \"sm_90a\"\ndim n multiple_of(128) at_least(128) "
         "at_most(4096)\n"
         "in Q: bf16[n, 64] = %0\nin K: bf16[n, 64] = %1\nin V: bf16[n, 64] = %3\n"
         "out Y: f32[n, 64] = %4\ngrid (n)\nbody (%2: i32) {\n"
         "  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
         "  %12: i32 = constant {value = 64}\n  %13: i32 = constant {value = 1}\n"
         "  %14: i32 = constant {value = 128}\n  %15: f32 = constant {value = -inf}\n"
         "  %16: f32 = constant {value = 0.0}\n  %17: i32 = mul %2, %14\n"
         "  %18: tile<bf16, 128x64> = load %0, %17, %10, %11, %12 {sizes = [128, 64]}\n"
         "  %19: tile<f32, 128x64> = splat %16\n  %20: i32 = div %11, %12\n"
         "  %21: tile<f32, 128x64> = for_loop %10, %20, %13, %19 "
         "(%22: i32, %23: tile<f32, 128x64>) {\n"
         "    %24: i32 = mul %22, %12\n"
         "    %25: tile<bf16, 64x64> = load %1, %24, %10, %11, %12 {sizes = [64, 64]}\n"
         "    %26: tile<bf16, 64x64> = transpose %25 {permutation = [1, 0]}\n"
         "    %27: tile<f32, 128x64> = dot %18, %26\n"
         "    %28: tile<i32, 128x1> = iota {axis = 0}\n"
         "    %29: tile<i32, 128x1> = splat %17\n    %30: tile<i32, 128x1> = add %28, %29\n"
         "    %31: tile<i32, 1x64> = iota {axis = 1}\n    %32: tile<i32, 1x64> = splat %24\n"
         "    %33: tile<i32, 1x64> = add %31, %32\n"
         "    %34: tile<bool, 128x64> = le %33, %30\n"
         "    %35: tile<f32, 128x64> = select %34, %27, %15\n"
         "    %36: tile<f32, 128x64> = exp2 %35\n    %37: tile<bf16, 128x64> = cast %36\n"
         "    %38: tile<bf16, 64x64> = load %3, %24, %10, %11, %12 {sizes = [64, 64]}\n"
         "    %39: tile<f32, 128x64> = dot %37, %38, %23\n" +
         more + "    yield " + (more.empty() ? "%39" : "%40") +
         "\n  }\n"
         "  store %4, %21, %17, %10, %11, %12 {sizes = [128, 64]}\n}\n";
}

// The operations of the loop over products, which are to stay, without their numbers.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  const std::size_t begin = text.find(from);
  return text.substr(begin, text.find(to, begin) - begin);
}

TEST(SkipHidden, EndsWhereTheOwnRowsSeeNothing) {
  // 64 i - (own_end - 1 + 128 x) - 1 >= 0 hides all: i <= (-1 + own_end + 128 x) / 64 is seen.
  const std::string before = causal_sums();
  const std::string head = before.substr(0, before.find("  %10: i32"));
  const std::string preamble = between(before, "  %10: i32", "  %21: tile");
  const std::string loop = between(before, " (%22: i32", "  store %4");
  expect_pass(skip_hidden, before,
              head + "  %50: i32 = own_first {count = 128}\n  %51: i32 = own_end {count = 128}\n" +
                  preamble +
                  "  %54: i32 = constant {value = 0}\n  %55: i32 = constant {value = -1}\n"
                  "  %56: i32 = mul %17, %55\n  %57: i32 = add %54, %56\n"
                  "  %58: i32 = constant {value = -1}\n  %59: i32 = mul %51, %58\n"
                  "  %60: i32 = add %57, %59\n  %52: i32 = constant {value = 1}\n"
                  "  %62: i32 = constant {value = 64}\n  %53: i32 = constant {value = -1}\n"
                  "  %61: i32 = sub %53, %60\n  %63: i32 = div %61, %62\n"
                  "  %64: i32 = add %63, %52\n  %65: i32 = min %20, %64\n"
                  "  %66: i32 = max %65, %10\n"
                  "  %21: tile<f32, 128x64> = for_loop %10, %66, %13, %19" +
                  loop +
                  "  for_loop %66, %20, %13 (%70: i32) {\n    %71: i32 = mul %70, %12\n"
                  "    %72: tile<bf16, 64x64> = load %1, %71, %10, %11, %12 {sizes = [64, 64]}\n"
                  "    discard %72\n"
                  "    %73: tile<bf16, 64x64> = load %3, %71, %10, %11, %12 {sizes = [64, 64]}\n"
                  "    discard %73\n    yield\n  }\n" +
                  "  store %4, %21, %17, %10, %11, %12 {sizes = [128, 64]}\n}\n");
}

int loops_cut(const std::string& text) {
  ir::Kernel k = test::parsed(text);
  return skip_hidden(k);
}

TEST(SkipHidden, OnlyWhereABlockThatIsHiddenChangesNothing) {
  EXPECT_EQ(loops_cut(causal_sums()), 1);
  EXPECT_EQ(loops_cut(causal_sums("    %40: tile<f32, 128x64> = max %39, %15\n")), 1);
  EXPECT_EQ(loops_cut(causal_sums("    %40: tile<f32, 128x64> = max %39, %16\n")), 0);
  EXPECT_EQ(loops_cut(causal_sums("    %40: tile<f32, 128x64> = add %39, %27\n")), 0);
  // What a condition loads the schedule does not count among the loop's.
  const auto conditional = [](const std::string& load) {
    return causal_sums("    %41: bool = lt %22, %12\n    if_then %41 () {\n" + load +
                       "      yield\n    } () {\n      yield\n    }\n" +
                       "    %40: tile<f32, 128x64> = max %39, %15\n");
  };
  EXPECT_EQ(loops_cut(conditional("")), 1);
  EXPECT_EQ(loops_cut(conditional("      %42: tile<bf16, 64x64> = load %1, %24, %10, %11, %12 "
                                  "{sizes = [64, 64]}\n")),
            0);
  std::string finite = causal_sums();
  finite.replace(finite.find("value = -inf"), 12, "value = -9.0");
  EXPECT_EQ(loops_cut(finite), 0);
}

// Where the rows of a block may not all exist, a warpgroup may have none.
TEST(SkipHidden, RowsThatDoNotExistNeedNoLoop) {
  std::string any = causal_sums("    %40: tile<f32, 128x64> = max %39, %16\n");
  any.replace(any.find(" multiple_of(128)"), 17, "");
  EXPECT_EQ(loops_cut(any), 1);
}

TEST(OverlapProducts, ASumWaitsForTheNextIteration) {
  const std::string before = causal_sums();
  const std::string preamble = before.substr(0, before.find("  %21: tile"));
  // What comes before the weights, for the block with the index `i`; values are numbered from `n`.
  const auto scores = [](const std::string& n, const std::string& i) {
    return "    %" + n + "24: i32 = mul " + i + ", %12\n    %" + n +
           "25: tile<bf16, 64x64> = load %1, %" + n +
           "24, %10, %11, %12 {sizes = [64, 64]}\n    %" + n +
           "26: tile<bf16, 64x64> = transpose %" + n + "25 {permutation = [1, 0]}\n    %" + n +
           "27: tile<f32, 128x64> = dot %18, %" + n + "26\n";
  };
  const auto weights = [](const std::string& n) {
    return "    %" + n + "28: tile<i32, 128x1> = iota {axis = 0}\n    %" + n +
           "29: tile<i32, 128x1> = splat %17\n    %" + n + "30: tile<i32, 128x1> = add %" + n +
           "28, %" + n + "29\n    %" + n + "31: tile<i32, 1x64> = iota {axis = 1}\n    %" + n +
           "32: tile<i32, 1x64> = splat %" + n + "24\n    %" + n + "33: tile<i32, 1x64> = add %" +
           n + "31, %" + n + "32\n    %" + n + "34: tile<bool, 128x64> = le %" + n + "33, %" + n +
           "30\n    %" + n + "35: tile<f32, 128x64> = select %" + n + "34, %" + n +
           "27, %15\n    %" + n + "36: tile<f32, 128x64> = exp2 %" + n + "35\n    %" + n +
           "37: tile<bf16, 128x64> = cast %" + n + "36\n";
  };
  const auto value = [](const std::string& n) {
    return "    %" + n + "38: tile<bf16, 64x64> = load %3, %" + n +
           "24, %10, %11, %12 {sizes = [64, 64]}\n";
  };
  // The sum that the block with the index `i` left.
  const auto sum = [](const std::string& n, const std::string& i, const std::string& operand,
                      const std::string& accumulator) {
    return "    %" + n + "02: i32 = mul " + i + ", %12\n    %" + n +
           "03: tile<bf16, 64x64> = load %3, %" + n +
           "02, %10, %11, %12 {sizes = [64, 64]}\n    %" + n + "04: tile<f32, 128x64> = dot " +
           operand + ", %" + n + "03, " + accumulator + "\n";
  };
  expect_pass(
      overlap_products, before,
      preamble + "  %40: bool = lt %10, %20\n  %21: tile<f32, 128x64> = if_then %40 () {\n" +
          scores("1", "%10") + weights("1") + value("1") + "    %41: i32 = add %10, %13\n" +
          "    %42: tile<f32, 128x64>, %43: tile<bf16, 128x64> = for_loop %41, %20, %13, "
          "%19, %137 (%44: i32, %45: tile<f32, 128x64>, %46: tile<bf16, 128x64>) {\n" +
          scores("2", "%44") + "    %47: i32 = sub %44, %13\n" + sum("3", "%47", "%46", "%45") +
          weights("2") + value("2") + "    yield %304, %237\n    }\n    %48: i32 = sub %20, %13\n" +
          sum("4", "%48", "%43", "%42") +
          "    yield %404\n  } () {\n    yield %19\n  }\n"
          "  store %4, %21, %17, %10, %11, %12 {sizes = [128, 64]}\n}\n");
}

void replace_once(std::string& text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  text.replace(at, from.size(), to);
}

int loops_rotated(const std::string& text) {
  ir::Kernel k = test::parsed(text);
  return overlap_products(k);
}

// Why the only sum of a loop stays where it is.
std::string why_in_turn(const std::string& text) {
  ir::Kernel k = test::parsed(text);
  EXPECT_EQ(overlap_products(k), 0);
  const std::vector<SumInTurn> sums = sums_in_turn(k);
  return sums.size() == 1 ? sums[0].why : std::to_string(sums.size()) + " sums";
}

// The block of V that is multiplied with, by a number of a table, as a page has one.
std::string sums_of_pages(const std::string& kind) {
  std::string text = causal_sums();
  replace_once(text, "out Y:", kind + " table: i32[n] = %5\nout Y:");
  replace_once(text, "    %38: tile<bf16, 64x64> = load %3, %24,",
               "    %70: i32 = load_index %5, %22\n    %71: i32 = mul %70, %12\n"
               "    %38: tile<bf16, 64x64> = load %3, %71,");
  return text;
}

TEST(OverlapProducts, NumbersThatAreLoadedAreLoadedAgain) {
  ir::Kernel k = test::parsed(sums_of_pages("in"));
  EXPECT_TRUE(sums_in_turn(k).size() == 1);
  EXPECT_EQ(overlap_products(k), 1);
  EXPECT_TRUE(sums_in_turn(k).empty());
  int numbers = 0;
  ir::for_each(k.body, [&](const ir::Operation& o) { numbers += o.op == ir::Op::load_index; });
  // The first block's, the next one's, that of the sum that has waited, and that of the last sum.
  EXPECT_EQ(numbers, 4);
}

// What the kernel itself writes may have changed by then.
TEST(OverlapProducts, NumbersThatTheKernelMayChange) {
  EXPECT_NE(why_in_turn(sums_of_pages("inout")).find("made by load_index"), std::string::npos);
}

TEST(OverlapProducts, WhatIsInTheWayIsSaid) {
  std::string dependent = causal_sums();
  replace_once(dependent, "    %36: tile<f32, 128x64> = exp2 %35\n",
               "    %70: tile<f32, 128x64> = add %35, %23\n"
               "    %36: tile<f32, 128x64> = exp2 %70\n");
  EXPECT_EQ(why_in_turn(dependent), "what it multiplies depends on the sum");
  std::string shared = causal_sums();
  replace_once(shared, "dot %37, %38, %23", "dot %37, %25, %23");
  EXPECT_EQ(why_in_turn(shared), "what it multiplies with is loaded once for several readers");
  std::string wide = causal_sums();
  replace_once(wide, "for_loop %10, %20, %13,", "for_loop %10, %20, %12,");
  EXPECT_EQ(why_in_turn(wide), "the loop does not step by 1");
}

// %21 is the sum, and %60 one more value that the loop carries, as %62.
std::string with_another_value(const std::string& type, const std::string& initial,
                               const std::string& yielded) {
  std::string text = causal_sums();
  replace_once(text,
               "  %21: tile<f32, 128x64> = for_loop %10, %20, %13, %19 (%22: i32, %23: tile<f32, "
               "128x64>) {",
               "  %21: tile<f32, 128x64>, %60: " + type + " = for_loop %10, %20, %13, %19, " +
                   initial + " (%22: i32, %23: tile<f32, 128x64>, %62: " + type + ") {");
  replace_once(text, "    yield %39", "    yield %39, " + yielded);
  return text;
}

// A list: each block of V says which is the next.
TEST(OverlapProducts, ABlockThatTheLoopCarries) {
  std::string list = with_another_value("i32", "%10", "%70");
  replace_once(list, "load %3, %24,", "load %3, %62,");
  replace_once(list, "    yield", "    %70: i32 = add %62, %12\n    yield");
  EXPECT_EQ(why_in_turn(list), "what it multiplies with depends on what the loop carries");
}

TEST(OverlapProducts, ASumThatTheIterationItselfReads) {
  std::string read = with_another_value("tile<f32, 128x64>", "%19", "%70");
  replace_once(read, "    yield", "    %70: tile<f32, 128x64> = exp2 %39\n    yield");
  EXPECT_EQ(loops_rotated(read), 0);
}

// Scaled twice: the second factor's product reads the first one's, and both come behind the sum.
TEST(OverlapProducts, WhatReadsTheSumComesBehindIt) {
  std::string scaled = causal_sums();
  replace_once(scaled, "    %39: tile<f32, 128x64> = dot %37, %38, %23\n",
               "    %70: tile<f32, 128x64> = mul %23, %15\n"
               "    %71: tile<f32, 128x64> = mul %70, %15\n"
               "    %72: tile<f32, 128x64> = exp2 %27\n"
               "    %39: tile<f32, 128x64> = dot %37, %38, %71\n");
  ir::Kernel k = test::parsed(scaled);
  EXPECT_EQ(overlap_products(k), 1);
  ir::canonicalise(k);
  ir::verify(k);
}

TEST(OverlapProducts, NotWhereTheRegistersDoNotReach) {
  EXPECT_EQ(loops_rotated(causal_sums()), 1);
  // Another sum that is carried, of 512 columns.
  std::string more = causal_sums();
  replace_once(
      more,
      "  %21: tile<f32, 128x64> = for_loop %10, %20, %13, %19 (%22: i32, %23: tile<f32, 128x64>) {",
      "  %60: tile<f32, 128x512> = splat %16\n  %21: tile<f32, 128x64>, %61: tile<f32, 128x512> "
      "= for_loop %10, %20, %13, %19, %60 (%22: i32, %23: tile<f32, 128x64>, "
      "%62: tile<f32, 128x512>) {");
  replace_once(more, "    yield %39", "    yield %39, %62");
  EXPECT_NE(why_in_turn(more).find("registers of a thread would be live, and there are"),
            std::string::npos);
}

// x is row %2 of X, doubled; `sums` makes %30 of x as a column (%22) and as a row (%23).
const char* const kVector =
    "  %20: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n"
    "  %21: tile<f32, 64> = add %20, %20\n";
const char* const kOuter =
    "  %24: tile<f32, 64x64> = mul %22, %23\n"
    "  store %1, %24, %2, %10, %11, %12 {sizes = [64, 64]}\n";

TEST(SeparateColumns, WhatIsAColumnAndARowIsMadeTwice) {
  expect_pass(separate_columns,
              kernel(std::string(kVector) +
                     "  %22: tile<f32, 64x1> = reshape %21\n"
                     "  %23: tile<f32, 1x64> = reshape %21\n" +
                     kOuter),
              kernel("  %20: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                     "  %25: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                     "  %21: tile<f32, 64> = add %20, %20\n"
                     "  %26: tile<f32, 64> = add %25, %25\n"
                     "  %22: tile<f32, 64x1> = reshape %26\n"
                     "  %23: tile<f32, 1x64> = reshape %21\n" +
                     std::string(kOuter)));
}

// What the kernel itself writes may have changed by the second load; one use needs no second.
TEST(SeparateColumns, OutputsAndSingleUsesAreLeftAlone) {
  expect_unchanged(separate_columns,
                   kernel("  %20: tile<f32, 64> = load %1, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                          "  %22: tile<f32, 64x1> = reshape %20\n"
                          "  %23: tile<f32, 1x64> = reshape %20\n" +
                          std::string(kOuter)));
  expect_unchanged(separate_columns, kernel(std::string(kVector) +
                                            "  %22: tile<f32, 64x1> = reshape %21\n"
                                            "  %23: tile<f32, 1x64> = splat %15\n" +
                                            kOuter));
}

// The column is made of the doubled vector, the row of the vector itself.
TEST(SeparateColumns, WhatIsMadeOfTheColumnReadsTheColumn) {
  const auto both = [](const std::string& loads, const std::string& doubled) {
    return kernel(loads + "  %21: tile<f32, 64> = add " + doubled + ", " + doubled +
                  "\n  %22: tile<f32, 64x1> = reshape %21\n"
                  "  %23: tile<f32, 1x64> = reshape %20\n" +
                  kOuter);
  };
  const std::string row = "  %20: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n";
  const std::string column =
      "  %25: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n";
  expect_pass(separate_columns, both(row, "%20"), both(row + column, "%25"));
}

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
