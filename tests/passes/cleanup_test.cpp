#include "passes/begin_sums.h"
#include "passes/contract_fma.h"
#include "passes/drop_branches.h"
#include "passes/eliminate_common.h"
#include "passes/eliminate_dead.h"
#include "passes/fold_accumulators.h"
#include "passes/hoist.h"
#include "passes/pass_case.h"

namespace tilewright::passes {
namespace {

using test::expect_pass;
using test::expect_unchanged;
using test::tile_kernel;

// Row %2 of X is %14; `result` is stored to row %2 of Y.
std::string row(const std::string& operations, const std::string& result) {
  return tile_kernel(
      "  %10: i32 = constant {value = 0}\n  %11: i32 = dim {dim = dim(n)}\n"
      "  %12: i32 = constant {value = 64}\n  %13: i32 = constant {value = 1}\n"
      "  %14: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n" +
      operations + "  store %1, " + result + ", %2, %10, %11, %12 {sizes = [0, 64]}\n");
}

TEST(EliminateCommonTest, EqualOperationsBecomeOne) {
  expect_pass(eliminate_common,
              row("  %20: tile<f32, 64> = exp %14\n  %21: tile<f32, 64> = exp %14\n"
                  "  %22: tile<f32, 64> = add %20, %21\n",
                  "%22"),
              row("  %20: tile<f32, 64> = exp %14\n  %22: tile<f32, 64> = add %20, %20\n", "%22"));
}

TEST(EliminateCommonTest, AttributesAndTypesCount) {
  expect_unchanged(eliminate_common,
                   row("  %20: f32 = constant {value = 0.0}\n  %21: f32 = constant {value = -0.0}\n"
                       "  %22: tile<f32, 64> = add %14, %20\n  %23: tile<f32, 64> = add %22, %21\n"
                       "  %24: tile<f16, 64> = cast %23\n  %25: tile<bf16, 64> = cast %23\n"
                       "  %26: tile<f32, 64> = cast %24\n  %27: tile<f32, 64> = cast %25\n"
                       "  %28: tile<f32, 64> = mul %26, %27\n",
                       "%28"));
}

TEST(EliminateCommonTest, LoopsSeeWhatIsBeforeThem) {
  const std::string head =
      "  %20: tile<f32, 64> = exp %14\n"
      "  %21: tile<f32, 64> = for_loop %10, %12, %13, %20 "
      "(%22: i32, %23: tile<f32, 64>) {\n";
  expect_pass(eliminate_common,
              row(head + "    %24: tile<f32, 64> = exp %14\n    %25: tile<f32, 64> = add %23, %24\n"
                         "    yield %25\n  }\n",
                  "%21"),
              row(head + "    %25: tile<f32, 64> = add %23, %20\n    yield %25\n  }\n", "%21"));
}

TEST(EliminateCommonTest, BranchesDoNotSeeEachOther) {
  expect_unchanged(eliminate_common,
                   row("  %20: bool = lt %2, %12\n"
                       "  %21: tile<f32, 64> = if_then %20 () {\n"
                       "    %22: tile<f32, 64> = exp %14\n    yield %22\n  } () {\n"
                       "    %23: tile<f32, 64> = exp %14\n    %24: tile<f32, 64> = neg %23\n"
                       "    yield %24\n  }\n",
                       "%21"));
}

TEST(EliminateCommonTest, InputsAreReadOnce) {
  expect_pass(eliminate_common,
              row("  %20: tile<f32, 64> = load %0, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                  "  %21: tile<f32, 64> = add %14, %20\n",
                  "%21"),
              row("  %21: tile<f32, 64> = add %14, %14\n", "%21"));
}

TEST(EliminateCommonTest, MemoryThatIsWrittenIsReadAgain) {
  expect_unchanged(eliminate_common,
                   row("  %20: tile<f32, 64> = load %1, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                       "  store %1, %14, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                       "  %21: tile<f32, 64> = load %1, %2, %10, %11, %12 {sizes = [0, 64]}\n"
                       "  %22: tile<f32, 64> = add %20, %21\n",
                       "%22"));
}

// Of a step there is always one: no tail is cut. Whether there is a next one is asked, and inside
// of that it is known.
TEST(DropBranchesTest, WhatIsProvenIsTaken) {
  const auto looped = [](const std::string& body) {
    return row(
        "  %20: i32 = for_loop %10, %11, %13, %10 (%21: i32, %22: i32) {\n"
        "    %23: i32 = add %21, %13\n    %24: bool = lt %11, %23\n"
        "    %25: bool = lt %23, %11\n" +
            body + "  }\n  %50: f32 = cast %20\n  %51: tile<f32, 64> = add %14, %50\n",
        "%51");
  };
  const auto choice = [](const std::string& result, const std::string& condition,
                         const std::string& first, const std::string& second) {
    return "    " + result + ": i32 = if_then " + condition + " () {\n" + first + "    } () {\n" +
           second + "    }\n";
  };
  const std::string cut = "    %26: i32 = mul %23, %12\n    yield %26\n";
  const std::string inner = "    %27: i32 = add %23, %13\n    %28: bool = lt %11, %27\n";
  expect_pass(drop_branches,
              looped(choice("%30", "%24", cut, "    yield %22\n") +
                     choice("%31", "%25",
                            inner + choice("%32", "%28", "    yield %10\n", "    yield %30\n") +
                                "    yield %32\n",
                            "    yield %13\n") +
                     "    yield %31\n"),
              looped(choice("%31", "%25", inner + "    yield %22\n", "    yield %13\n") +
                     "    yield %31\n"));
  // One of two is enough, or both have to be known.
  const auto both = [&](const std::string& condition, const std::string& rest) {
    return looped("    %33: bool = " + condition + " %24, %25\n" + rest);
  };
  const std::string asked = choice("%30", "%33", cut, "    yield %22\n") + "    yield %30\n";
  expect_pass(drop_branches, both("logical_and", asked), both("logical_and", "    yield %22\n"));
  expect_unchanged(drop_branches, both("logical_or", asked));
}

TEST(HoistTest, InvariantsAndLoadsOfInputsMoveOut) {
  const std::string loop =
      "  %21: tile<f32, 64> = for_loop %10, %12, %13, %14 "
      "(%22: i32, %23: tile<f32, 64>) {\n";
  const std::string moved =
      "    %24: tile<f32, 64> = exp %14\n"
      "    %25: tile<f32, 64> = load %0, %10, %10, %11, %12 {sizes = [0, 64]}\n"
      "    %26: tile<f32, 64> = mul %24, %25\n";
  const std::string stays = "    %27: tile<f32, 64> = add %23, %26\n    yield %27\n  }\n";
  expect_pass(hoist, row(loop + moved + stays, "%21"), row(moved + loop + stays, "%21"));
}

TEST(HoistTest, OutOfTwoLoops) {
  const std::string outer =
      "  %21: tile<f32, 64> = for_loop %10, %12, %13, %14 "
      "(%22: i32, %23: tile<f32, 64>) {\n";
  const std::string inner =
      "    %31: tile<f32, 64> = for_loop %10, %12, %13, %23 "
      "(%32: i32, %33: tile<f32, 64>) {\n";
  const std::string both = "      %34: tile<f32, 64> = exp %14\n";
  const std::string one =
      "      %35: i32 = add %22, %13\n"
      "      %36: tile<f32, 64> = load %0, %35, %10, %11, %12 {sizes = [0, 64]}\n";
  const std::string rest =
      "      %37: tile<f32, 64> = mul %34, %36\n"
      "      %38: tile<f32, 64> = add %33, %37\n      yield %38\n    }\n"
      "    yield %31\n  }\n";
  expect_pass(hoist, row(outer + inner + both + one + rest, "%21"),
              row(both + outer + one + "      %37: tile<f32, 64> = mul %34, %36\n" + inner +
                      "      %38: tile<f32, 64> = add %33, %37\n      yield %38\n    }\n"
                      "    yield %31\n  }\n",
                  "%21"));
}

TEST(HoistTest, WhatTheLoopChangesStays) {
  expect_unchanged(hoist,
                   row("  for_loop %10, %12, %13 (%22: i32) {\n"
                       "    %23: tile<f32, 64> = load %1, %10, %10, %11, %12 {sizes = [0, 64]}\n"
                       "    %24: tile<f32, 64> = neg %23\n"
                       "    store %1, %24, %10, %10, %11, %12 {sizes = [0, 64]}\n"
                       "    yield\n  }\n",
                       "%14"));
}

TEST(HoistTest, ADivisionMayOnlyRunWithTheLoop) {
  const auto loop = [](const std::string& before, const std::string& inside) {
    return row(before + "  for_loop %10, %12, %13 (%22: i32) {\n" + inside +
                   "    %24: i32 = add %22, %30\n"
                   "    store %1, %14, %24, %10, %11, %12 {sizes = [0, 64]}\n    yield\n  }\n",
               "%14");
  };
  for (const char* function : {"div", "mod", "ceildiv"}) {
    expect_unchanged(hoist, loop("", std::string("    %30: i32 = ") + function + " %12, %2\n"));
  }
  expect_pass(hoist, loop("", "    %30: i32 = div %2, %12\n"),
              loop("  %30: i32 = div %2, %12\n", ""));
}

// Registers are short at the explicit level: tiles stay where they are written.
TEST(HoistTest, OnlyScalarsOnceTilesAreRegisters) {
  const auto role = [](const std::string& before, const std::string& inside) {
    return test::role_kernel(
        "    %10: i32 = constant {value = 0}\n    %11: i32 = constant {value = 64}\n" + before +
        "    for_loop %10, %11, %11 (%20: i32) {\n" + inside +
        "      mbarrier_wait %4, %10, %21\n"
        "      %22: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 0}\n"
        "      %23: f32 = constant {value = 0.0}\n"
        "      %24: tile<f32, 64x64> = splat %23\n"
        "      %25: pending<f32, 64x64> = wgmma %22, %22, %24\n"
        "      %26: tile<f32, 64x64> = wait %25\n"
        "      store %1, %26, %10, %10, %11, %11 {sizes = [64, 64]}\n      yield\n    }\n");
  };
  ir::Kernel kernel = test::parsed(role("", "      %21: i32 = mul %2, %11\n"));
  hoist(kernel);
  ir::canonicalise(kernel);
  ir::verify(kernel);
  const std::string text = ir::to_text(kernel, {.locations = false});
  EXPECT_LT(text.find("mul"), text.find("for_loop")) << text;
  EXPECT_GT(text.find("splat"), text.find("for_loop")) << text;
}

TEST(EliminateDeadTest, WhatNothingUsesGoes) {
  expect_pass(eliminate_dead,
              row("  %20: tile<f32, 64> = exp %14\n  %21: tile<f32, 64> = neg %20\n", "%14"),
              row("", "%14").replace(row("", "%14").find("  %13"), 35, ""));
}

TEST(EliminateDeadTest, CarriedValuesThatOnlyFeedThemselvesGo) {
  expect_pass(eliminate_dead,
              row("  %20: tile<f32, 64>, %21: tile<f32, 64> = for_loop %10, %12, %13, %14, %14 "
                  "(%22: i32, %23: tile<f32, 64>, %24: tile<f32, 64>) {\n"
                  "    %25: tile<f32, 64> = exp %23\n    %26: tile<f32, 64> = add %24, %23\n"
                  "    yield %25, %26\n  }\n",
                  "%20"),
              row("  %20: tile<f32, 64> = for_loop %10, %12, %13, %14 "
                  "(%22: i32, %23: tile<f32, 64>) {\n"
                  "    %25: tile<f32, 64> = exp %23\n    yield %25\n  }\n",
                  "%20"));
}

TEST(EliminateDeadTest, ACarriedValueThatAnotherNeedsStays) {
  expect_unchanged(
      eliminate_dead,
      row("  %20: tile<f32, 64>, %21: tile<f32, 64> = for_loop %10, %12, %13, %14, %14 "
          "(%22: i32, %23: tile<f32, 64>, %24: tile<f32, 64>) {\n"
          "    %25: tile<f32, 64> = exp %24\n    %26: tile<f32, 64> = add %24, %23\n"
          "    yield %25, %26\n  }\n",
          "%20"));
}

TEST(EliminateDeadTest, BranchesLoseUnusedResults) {
  expect_pass(eliminate_dead,
              row("  %20: bool = lt %2, %13\n"
                  "  %21: tile<f32, 64>, %22: tile<f32, 64> = if_then %20 () {\n"
                  "    %23: tile<f32, 64> = exp %14\n    yield %23, %14\n  } () {\n"
                  "    %24: tile<f32, 64> = neg %14\n    yield %14, %24\n  }\n",
                  "%21"),
              row("  %20: bool = lt %2, %13\n"
                  "  %21: tile<f32, 64> = if_then %20 () {\n"
                  "    %23: tile<f32, 64> = exp %14\n    yield %23\n  } () {\n"
                  "    yield %14\n  }\n",
                  "%21"));
}

TEST(EliminateDeadTest, EffectsStay) {
  expect_unchanged(eliminate_dead,
                   row("  for_loop %10, %12, %13 (%22: i32) {\n"
                       "    store %1, %14, %22, %10, %11, %12 {sizes = [0, 64]}\n    yield\n  }\n",
                       "%14"));
}

std::string contracted(const std::string& operations, const std::string& result) {
  return row("  %20: tile<f32, 64> = exp %14\n  %21: tile<f32, 64> = neg %14\n" + operations,
             result);
}

TEST(ContractFmaTest, SumsOfProducts) {
  const std::string product = "  %22: tile<f32, 64> = mul %20, %21\n";
  const std::string fma = "  %23: tile<f32, 64> = fma %20, %21, %14\n";
  expect_pass(contract_fma, contracted(product + "  %23: tile<f32, 64> = add %22, %14\n", "%23"),
              contracted(product + fma, "%23"));
  expect_pass(contract_fma, contracted(product + "  %23: tile<f32, 64> = add %14, %22\n", "%23"),
              contracted(product + fma, "%23"));
  expect_pass(contract_fma, contracted(product + "  %23: tile<f32, 64> = sub %22, %14\n", "%23"),
              contracted(product + "  %24: tile<f32, 64> = neg %14\n"
                                   "  %23: tile<f32, 64> = fma %20, %21, %24\n",
                         "%23"));
}

TEST(ContractFmaTest, OnlyWhereTheProductHasNoOtherUse) {
  expect_unchanged(contract_fma, contracted("  %22: tile<f32, 64> = mul %20, %21\n"
                                            "  %23: tile<f32, 64> = add %22, %14\n"
                                            "  %24: tile<f32, 64> = max %22, %23\n",
                                            "%24"));
  expect_unchanged(contract_fma, contracted("  %22: tile<f32, 64> = mul %20, %21\n"
                                            "  %23: tile<f32, 64> = add %22, %22\n",
                                            "%23"));
  expect_unchanged(contract_fma, contracted("  %22: tile<f32, 64> = mul %20, %21\n"
                                            "  %23: tile<f32, 64> = sub %14, %22\n",
                                            "%23"));
}

TEST(ContractFmaTest, OnlyOfF32) {
  expect_unchanged(
      contract_fma,
      contracted("  %22: tile<f16, 64> = cast %20\n  %23: tile<f16, 64> = mul %22, %22\n"
                 "  %24: tile<f16, 64> = add %23, %22\n"
                 "  %25: tile<f32, 64> = cast %24\n",
                 "%25"));
}

// x + dot(a, b), with what uses it behind.
std::string folded(const std::string& operations, const std::string& stored) {
  return R"(kernel "k" tile
in A: bf16[64, 64] = %0
in X: f32[64, 64] = %1
out Y: f32[64, 64] = %2
grid (1)
body (%3: i32) {
  %4: i32 = constant {value = 0}
  %5: i32 = constant {value = 64}
  %6: tile<bf16, 64x64> = load %0, %4, %4, %5, %5 {sizes = [64, 64]}
  %7: tile<f32, 64x64> = load %1, %4, %4, %5, %5 {sizes = [64, 64]}
  %8: tile<f32, 64x64> = dot %6, %6
)" + operations +
         "  store %2, " + stored + ", %4, %4, %5, %5 {sizes = [64, 64]}\n}\n";
}

TEST(FoldAccumulatorsTest, SumsBeginWithWhatAProductIsAddedTo) {
  const std::string product = "  %9: tile<f32, 64x64> = dot %6, %6, %7\n";
  for (const char* sum : {"add %7, %8", "add %8, %7"}) {
    expect_pass(fold_accumulators,
                folded("  %9: tile<f32, 64x64> = " + std::string(sum) + "\n", "%9"),
                folded(product, "%9"));
  }
}

TEST(FoldAccumulatorsTest, OnlyWhereTheProductHasNoOtherUse) {
  expect_unchanged(fold_accumulators, folded("  %9: tile<f32, 64x64> = add %7, %8\n"
                                             "  %10: tile<f32, 64x64> = max %8, %9\n",
                                             "%10"));
  expect_unchanged(fold_accumulators, folded("  %9: tile<f32, 64x64> = sub %7, %8\n", "%9"));
}

// With a column or a row in place of X.
std::string less(const std::string& shape, const std::string& operations) {
  std::string text = folded(operations, "%9");
  const std::string whole = "  %7: tile<f32, 64x64> = load %1, %4, %4, %5, %5 {sizes = [64, 64]}";
  const std::string sizes = shape == "64x1" ? "[64, 1]" : "[1, 64]";
  return text.replace(
      text.find(whole), whole.size(),
      "  %7: tile<f32, " + shape + "> = load %1, %4, %4, %5, %5 {sizes = " + sizes + "}");
}

TEST(FoldAccumulatorsTest, NoSumBeginsWithWhatStretches) {
  for (const char* shape : {"64x1", "1x64"}) {
    for (const char* sum : {"add %7, %8", "add %8, %7"}) {
      expect_unchanged(fold_accumulators,
                       less(shape, "  %9: tile<f32, 64x64> = " + std::string(sum) + "\n"));
    }
  }
}

TEST(BeginSumsTest, ProductsBeginWithWhatIsTakenFromThem) {
  for (const char* shape : {"64x1", "1x64"}) {
    SCOPED_TRACE(shape);
    ir::Kernel kernel =
        test::parsed(test::planned(less(shape, "  %9: tile<f32, 64x64> = sub %8, %7\n")));
    EXPECT_EQ(begin_sums(kernel), 1);
    ir::canonicalise(kernel);
    ir::verify(kernel);
    const std::string text = ir::to_text(kernel, {.locations = false});
    EXPECT_NE(text.find("dot %6, %6, "), std::string::npos) << text;
    EXPECT_EQ(text.find("dot %6, %6\n"), std::string::npos) << text;
  }
}

TEST(BeginSumsTest, NotWithAWholeTileNorWhereTheProductIsReadAgain) {
  const std::string again =
      "  %10: tile<f32, 64x64> = sub %8, %7\n  %9: tile<f32, 64x64> = max %8, %10\n";
  for (const std::string& text :
       {folded("  %9: tile<f32, 64x64> = sub %8, %7\n", "%9"), less("64x1", again),
        less("64x1", "  %9: tile<f32, 64x64> = sub %7, %8\n")}) {
    ir::Kernel kernel = test::parsed(test::planned(text));
    EXPECT_EQ(begin_sums(kernel), 0);
  }
}

}  // namespace
}  // namespace tilewright::passes
