#include <gtest/gtest.h>

#include <algorithm>

#include "analysis/product_operands.h"
#include "common/error_text.h"
#include "ir/text.h"
#include "passes/allocate_shared.h"
#include "passes/assign_layouts.h"
#include "passes/check_divergence.h"
#include "passes/count_waits.h"
#include "passes/explicit_kernel.h"
#include "passes/pass_case.h"
#include "passes/sink_partial_maxima.h"
#include "passes/sink_partial_sums.h"

// The passes of the scheduled form, each alone: what it leaves of a role, as text.
namespace tilewright::passes {
namespace {

using test::expect_pass;
using test::expect_unchanged;
using test::role_kernel;

// %12 and %13 are views; %20 a finished product.
const std::string kViews =
    "    %10: i32 = constant {value = 0}\n    %11: i32 = constant {value = 64}\n"
    "    %15: i32 = constant {value = 1}\n"
    "    %12: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 0}\n"
    "    %13: view<bf16, 64x64> = view %3, %15, %10 {column = 0, transposed = 1}\n";

std::string stored(const std::string& tile) {
  return "    store %1, " + tile + ", %10, %10, %11, %11 {sizes = [64, 64]}\n";
}

TEST(CountWaitsTest, LaterProductsMayStillRun) {
  const auto role = [](const std::string& one, const std::string& two) {
    return role_kernel(kViews +
                       "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %21: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %22: tile<f32, 64x64> = wait %20" +
                       one + "\n" + stored("%22") + "    %23: tile<f32, 64x64> = wait %21" + two +
                       "\n" + stored("%23"));
  };
  expect_pass(count_waits, role("", ""), role(" {count = 1}", " {count = 0}"));
}

// What one lane does between them changes nothing.
TEST(CountWaitsTest, OneLaneIssuesNoProducts) {
  const auto role = [](const std::string& one) {
    return role_kernel(kViews +
                       "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    elect () {\n      yield\n    }\n"
                       "    %22: tile<f32, 64x64> = wait %20" +
                       one + "\n" + stored("%22"));
  };
  expect_pass(count_waits, role(""), role(" {count = 0}"));
}

TEST(CountWaitsTest, AWaitFinishesWhatWasIssuedBefore) {
  const auto role = [](const std::string& one, const std::string& two) {
    return role_kernel(kViews +
                       "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %21: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %22: tile<f32, 64x64> = wait %21" +
                       one + "\n" + stored("%22") + "    %23: tile<f32, 64x64> = wait %20" + two +
                       "\n" + stored("%23"));
  };
  // The second wait has nothing to wait for, and nothing else is under way.
  expect_pass(count_waits, role("", ""), role(" {count = 0}", " {count = 0}"));
}

// A larger count would be no wait to ptxas either, which then serialises the products.
TEST(CountWaitsTest, AWaitForWhatIsCompleteLeavesOthersRunning) {
  const auto role = [](const std::string& one, const std::string& two, const std::string& three) {
    return role_kernel(kViews +
                       "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %21: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %22: tile<f32, 64x64> = wait %21" +
                       one + "\n" + stored("%22") +
                       "    %23: pending<f32, 64x64> = wgmma %12, %13\n"
                       "    %24: tile<f32, 64x64> = wait %20" +
                       two + "\n" + stored("%24") + "    %25: tile<f32, 64x64> = wait %23" + three +
                       "\n" + stored("%25"));
  };
  expect_pass(count_waits, role("", "", ""), role(" {count = 0}", " {count = 1}", " {count = 0}"));
}

// Each turn hands a product on by one place, so that what it reads comes to the last one only when
// the loop is looked at again.
TEST(ProductOperandsTest, ComeThroughSeveralTurnsOfALoop) {
  const ir::Kernel kernel =
      test::parsed(role_kernel(kViews +
                               "    %20: f32 = constant {value = 0.0}\n"
                               "    %21: tile<f32, 64x64> = splat %20\n"
                               "    %22: tile<bf16, 64x64> = cast %21\n"
                               "    %23: pending<f32, 64x64> = as_pending %21\n"
                               "    %24: pending<f32, 64x64>, %25: pending<f32, 64x64> = "
                               "for_loop %10, %11, %15, %23, %23 "
                               "(%26: i32, %27: pending<f32, 64x64>, %28: pending<f32, 64x64>) {\n"
                               "      %29: pending<f32, 64x64> = wgmma %22, %13\n"
                               "      retire %27\n      yield %28, %29\n    }\n"
                               "    %30: tile<f32, 64x64> = wait %24\n" +
                               stored("%30") + "    retire %25\n"));
  const ir::Operation& role = kernel.body.body.back();
  const auto& operations = role.blocks[0].body;
  const auto loop = std::find_if(operations.begin(), operations.end(),
                                 [](const auto& o) { return o.op == ir::Op::for_loop; });
  const ir::ValueId product_reads = loop->blocks[0].body.front().operands[0];
  const analysis::ProductOperands reads(kernel, role.blocks[0]);
  for (const ir::ValueId value : loop->results) EXPECT_EQ(reads.of(value).count(product_reads), 1u);
}

TEST(CountWaitsTest, AcrossTheBackEdge) {
  const auto role = [](const std::string& retired, const std::string& last) {
    return role_kernel(kViews +
                       "    %20: f32 = constant {value = 0.0}\n"
                       "    %21: tile<f32, 64x64> = splat %20\n"
                       "    %22: pending<f32, 64x64> = as_pending %21\n"
                       "    %23: pending<f32, 64x64> = for_loop %10, %11, %15, %22 "
                       "(%24: i32, %25: pending<f32, 64x64>) {\n"
                       "      %26: pending<f32, 64x64> = wgmma %12, %13, %25\n"
                       "      retire %25" +
                       retired +
                       "\n      yield %26\n    }\n"
                       "    %27: tile<f32, 64x64> = wait %23" +
                       last + "\n" + stored("%27"));
  };
  expect_pass(count_waits, role("", ""), role(" {count = 1}", " {count = 0}"));
}

// Each would take twice the time of the one around it, were it visited twice whenever that is.
TEST(CountWaitsTest, LoopsInLoops) {
  constexpr int kDepth = 90;
  const auto role = [](const std::string& retired, const std::string& last) {
    std::string text = kViews +
                       "    %20: f32 = constant {value = 0.0}\n"
                       "    %21: tile<f32, 64x64> = splat %20\n"
                       "    %22: pending<f32, 64x64> = as_pending %21\n";
    std::string in = "%22", ends;
    for (int i = 0; i < kDepth; ++i) {
      const std::string number = std::to_string(100 + 3 * i);
      const std::string index = std::to_string(101 + 3 * i), own = std::to_string(102 + 3 * i);
      text += "    %" + number + ": pending<f32, 64x64> = for_loop %10, %11, %15, " + in + " (%" +
              index + ": i32, %" + own + ": pending<f32, 64x64>) {\n";
      in = "%" + own;
      ends += "    yield %" +
              (i == 0 ? std::string("26") : std::to_string(100 + 3 * (kDepth - i))) + "\n    }\n";
    }
    return role_kernel(text + "    %26: pending<f32, 64x64> = wgmma %12, %13, " + in +
                       "\n    retire " + in + retired + "\n" + ends +
                       "    %27: tile<f32, 64x64> = wait %100" + last + "\n" + stored("%27"));
  };
  expect_pass(count_waits, role("", ""), role(" {count = 1}", " {count = 0}"));
}

TEST(CountWaitsTest, PathsThatAgree) {
  const auto role = [](const std::string& count) {
    return role_kernel(
        kViews +
        "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
        "    %21: bool = lt %2, %10\n"
        "    %22: pending<f32, 64x64> = if_then %21 () {\n"
        "      %23: pending<f32, 64x64> = wgmma %12, %13\n      yield %23\n    } () {\n"
        "      %24: pending<f32, 64x64> = wgmma %13, %12\n      yield %24\n    }\n"
        "    %25: tile<f32, 64x64> = wait %20" +
        count + "\n" + stored("%25") + "    retire %22" + (count.empty() ? "" : " {count = 0}") +
        "\n");
  };
  expect_pass(count_waits, role(""), role(" {count = 1}"));
}

TEST(CountWaitsTest, CountsStayWithinTheInstruction) {
  std::string products;
  for (int i = 0; i < 12; ++i) {
    products += "    %" + std::to_string(20 + i) + ": pending<f32, 64x64> = wgmma %12, %13\n";
  }
  ir::Kernel kernel = test::parsed(
      role_kernel(kViews + products + "    %40: tile<f32, 64x64> = wait %20\n" + stored("%40")));
  count_waits(kernel);
  EXPECT_NE(ir::to_text(kernel).find("count = 7"), std::string::npos);
}

const std::string kLoop =
    "    %20: f32 = constant {value = 0.0}\n"
    "    %21: tile<f32, 64x1> = splat %20\n"
    "    %22: tile<f32, 64x1> = for_loop %10, %11, %15, %21 (%23: i32, %24: tile<f32, 64x1>) {\n"
    "      %25: pending<f32, 64x64> = wgmma %12, %13\n"
    "      %26: tile<f32, 64x64> = wait %25\n";

std::string row_sums(const std::string& reduce, const std::string& rest) {
  return role_kernel(kViews + kLoop + "      %27: tile<f32, 64x1> = reduce %26 " + reduce + "\n" +
                     rest);
}
std::string kept(const std::string& tile) {
  return "    store %1, " + tile + ", %10, %10, %11, %15 {sizes = [64, 1]}\n";
}

TEST(SinkPartialSumsTest, ARunningSumIsCompletedBehindItsLoop) {
  const std::string sum = "      %28: tile<f32, 64x1> = add %24, %27\n      yield %28\n    }\n";
  expect_pass(
      sink_partial_sums, row_sums("{function = add, axis = 1}", sum + kept("%22")),
      row_sums("{function = add, axis = 1, partial = 1}",
               sum + "    %30: tile<f32, 64x1> = complete %22 {function = add}\n" + kept("%30")));
}

TEST(SinkPartialSumsTest, ScaledSumsToo) {
  const auto sum = [](const std::string& factor, const std::string& which) {
    return factor + "      %28: tile<f32, 64x1> = fma %24, %29, %27" + which +
           "\n      yield %28\n    }\n";
  };
  const std::string factor =
      "      %31: tile<f32, 64x1> = reduce %26 {function = max, axis = 1}\n"
      "      %29: tile<f32, 64x1> = exp2 %31\n";
  expect_pass(
      sink_partial_sums, row_sums("{function = add, axis = 1}", sum(factor, "") + kept("%22")),
      row_sums("{function = add, axis = 1, partial = 1}",
               sum(factor, " {partial = 0}") +
                   "    %30: tile<f32, 64x1> = complete %22 {function = add}\n" + kept("%30")));
}

TEST(SinkPartialSumsTest, ASumThatItsLoopReadsIsCompleteThere) {
  const auto rest = [](const std::string& complete, const std::string& sum) {
    return complete + "      %28: tile<f32, 64x1> = add %24, " + sum +
           "\n      %29: tile<f32, 64x1> = exp2 %28\n      yield %29\n    }\n" + kept("%22");
  };
  expect_pass(
      sink_partial_sums, row_sums("{function = add, axis = 1}", rest("", "%27")),
      row_sums("{function = add, axis = 1, partial = 1}",
               rest("      %30: tile<f32, 64x1> = complete %27 {function = add}\n", "%30")));
}

TEST(SinkPartialSumsTest, MaximaAreNotSums) {
  expect_unchanged(sink_partial_sums,
                   row_sums("{function = max, axis = 1}",
                            "      %28: tile<f32, 64x1> = max %24, %27\n      yield %28\n    }\n" +
                                kept("%22")));
}

// A maximum of a product's rows, compared with a bound; `question` is what any() asks.
std::string asked(const std::string& reduce, const std::string& question, const std::string& rest) {
  return role_kernel(kViews +
                     "    %20: pending<f32, 64x64> = wgmma %12, %13\n"
                     "    %21: tile<f32, 64x64> = wait %20\n"
                     "    %22: f32 = constant {value = 8.0}\n"
                     "    %23: tile<f32, 64x1> = splat %22\n"
                     "    %24: tile<f32, 64x1> = reduce %21 " +
                     reduce + "\n    %25: tile<bool, 64x1> = " + question +
                     "\n    %26: bool = any %25\n" + rest);
}
const std::string kMaximum = "{function = max, axis = 1}";
const std::string kPartialMaximum = "{function = max, axis = 1, partial = 1}";
// A condition in which the maximum is stored.
std::string raised(const std::string& complete, const std::string& stored) {
  return "    if_then %26 () {\n" + complete + "      store %1, " + stored +
         ", %10, %10, %11, %15 {sizes = [64, 1]}\n      yield\n    } () {\n      yield\n    }\n";
}

// any_nearby() may ask the parts of a sum that should not exceed a bound; any() asks the whole, and
// so does who wants it to stay above one.
TEST(SinkPartialSumsTest, ASumThatIsAskedNearbyIsAskedInParts) {
  const auto sum = [](const std::string& attributes, const std::string& question,
                      const std::string& complete, const std::string& any) {
    std::string text = asked("{function = add, axis = 1" + attributes + "}", question, "");
    text.replace(text.find("any %25"), 7, "any %25" + any);
    text.insert(text.find("    %25:"), complete);
    return text;
  };
  const std::string complete = "    %30: tile<f32, 64x1> = complete %24 {function = add}\n";
  const std::string nearby = " {partial = 1}";
  expect_pass(sink_partial_sums, sum("", "lt %23, %24", "", nearby),
              sum(", partial = 1", "lt %23, %24 {partial = 1}", "", nearby));
  expect_pass(sink_partial_sums, sum("", "lt %23, %24", "", ""),
              sum(", partial = 1", "lt %23, %30", complete, ""));
  expect_pass(sink_partial_sums, sum("", "lt %24, %23", "", nearby),
              sum(", partial = 1", "lt %30, %23", complete, nearby));
}

TEST(SinkPartialMaximaTest, AMaximumThatIsOnlyAskedIsNeverCompleted) {
  expect_pass(sink_partial_maxima, asked(kMaximum, "lt %23, %24", ""),
              asked(kPartialMaximum, "lt %23, %24 {partial = 1}", ""));
  expect_pass(sink_partial_maxima, asked(kMaximum, "le %23, %24", ""),
              asked(kPartialMaximum, "le %23, %24 {partial = 1}", ""));
}

TEST(SinkPartialMaximaTest, OtherUsesCompleteItWhereTheyStand) {
  expect_pass(sink_partial_maxima, asked(kMaximum, "lt %23, %24", raised("", "%24")),
              asked(kPartialMaximum, "lt %23, %24 {partial = 1}",
                    raised("      %30: tile<f32, 64x1> = complete %24 {function = max}\n", "%30")));
}

TEST(SinkPartialMaximaTest, WhatABranchPassesOnIsWhole) {
  const auto passed_on = [](const std::string& complete, const std::string& maximum) {
    return "    %27: tile<f32, 64x1> = if_then %26 () {\n" + complete + "      yield " + maximum +
           "\n    } () {\n      yield %23\n    }\n"
           "    store %1, %27, %10, %10, %11, %15 {sizes = [64, 1]}\n";
  };
  expect_pass(
      sink_partial_maxima, asked(kMaximum, "lt %23, %24", passed_on("", "%24")),
      asked(kPartialMaximum, "lt %23, %24 {partial = 1}",
            passed_on("      %30: tile<f32, 64x1> = complete %24 {function = max}\n", "%30")));
}

TEST(SinkPartialMaximaTest, MinimaFromBelow) {
  expect_pass(sink_partial_maxima, asked("{function = min, axis = 1}", "lt %24, %23", ""),
              asked("{function = min, axis = 1, partial = 1}", "lt %24, %23 {partial = 0}", ""));
}

// any(maximum < bound) asks of the whole; so does whoever reads the answer row by row.
TEST(SinkPartialMaximaTest, QuestionsThatPartsDoNotAnswerStay) {
  expect_unchanged(sink_partial_maxima, asked(kMaximum, "lt %24, %23", ""));
  expect_unchanged(sink_partial_maxima, asked("{function = min, axis = 1}", "lt %23, %24", ""));
  expect_unchanged(sink_partial_maxima, asked("{function = add, axis = 1}", "lt %23, %24", ""));
  expect_unchanged(sink_partial_maxima,
                   asked(kMaximum, "lt %23, %24",
                         "    %27: tile<f32, 64x1> = select %25, %23, %24\n"
                         "    store %1, %27, %10, %10, %11, %15 {sizes = [64, 1]}\n"));
}

// A product under `condition`, which `%22` to `%29` make.
std::string conditional(const std::string& condition, const std::string& name) {
  return role_kernel(kViews + condition + "    if_then " + name +
                     " () {\n"
                     "      %30: pending<f32, 64x64> = wgmma %12, %13\n"
                     "      retire %30\n      yield\n    } () {\n      yield\n    }\n");
}

TEST(CheckDivergenceTest, WhatAllWarpsShareIsNoDivergence) {
  expect_unchanged(check_divergence, conditional("    %22: bool = lt %2, %11\n", "%22"));
  expect_unchanged(check_divergence,
                   role_kernel(kViews + "    for_loop %10, %11, %15 (%22: i32) {\n"
                                        "      %30: pending<f32, 64x64> = wgmma %12, %13\n"
                                        "      retire %30\n      yield\n    }\n"));
  // The warps part, and no product is under it.
  expect_unchanged(check_divergence,
                   role_kernel(kViews + "    %22: i32 = warp_index\n    %23: bool = lt %22, %15\n"
                                        "    if_then %23 () {\n      warp_sync\n      yield\n"
                                        "    } () {\n      yield\n    }\n"
                                        "    %30: pending<f32, 64x64> = wgmma %12, %13\n"
                                        "    retire %30\n"));
}

void expect_divergence(const std::string& text, const std::string& source) {
  ir::Kernel kernel = test::parsed(text);
  const std::string error = test::usage_error_of([&] { check_divergence(kernel); });
  EXPECT_NE(error.find("wgmma: inside a loop or condition"), std::string::npos) << error;
  EXPECT_NE(error.find("its warps may differ in " + source), std::string::npos) << error;
}

TEST(CheckDivergenceTest, WhatWarpsSeeDifferentlyIsAnError) {
  expect_divergence(conditional("    %22: i32 = warp_index\n    %23: bool = lt %22, %15\n", "%23"),
                    "warp_index");
  // Through a variable that a loop carries, and the count of another loop.
  expect_divergence(
      role_kernel(kViews + "    %22: i32 = warp_index\n"
                           "    %23: i32 = for_loop %10, %11, %15, %10 (%24: i32, %25: i32) {\n"
                           "      %26: i32 = add %25, %22\n      yield %26\n    }\n"
                           "    for_loop %10, %23, %15 (%27: i32) {\n"
                           "      %30: pending<f32, 64x64> = wgmma %12, %13\n"
                           "      retire %30\n      yield\n    }\n"),
      "warp_index");
}

// What a turn leaves to the next decides in that one.
TEST(CheckDivergenceTest, WhatWarpsCarryAroundALoopIsAnError) {
  expect_divergence(
      role_kernel(kViews +
                  "    %22: i32 = warp_index\n"
                  "    %23: i32 = for_loop %10, %11, %15, %10 (%24: i32, %25: i32) {\n"
                  "      %26: bool = lt %25, %15\n"
                  "      if_then %26 () {\n"
                  "        %30: pending<f32, 64x64> = wgmma %12, %13\n"
                  "        retire %30\n        yield\n      } () {\n        yield\n      }\n"
                  "      yield %22\n    }\n"),
      "warp_index");
}

// Others may write it while a warp reads it and the next one does not yet.
TEST(CheckDivergenceTest, SoIsAnIndexThatOthersWrite) {
  const auto text = [](const std::string& attributes) {
    std::string kernel = conditional(
        "    %22: i32 = load_index %5, %10" + attributes + "\n    %23: bool = lt %22, %15\n",
        "%23");
    return kernel.insert(kernel.find("grid"), "in flags: i32[n] = %5\n");
  };
  expect_unchanged(check_divergence, text(""));
  expect_divergence(text(" {semantics = \"acquire\", scope = \"gpu\"}"), "load_index");
}

TEST(CheckDivergenceTest, SoIsAnAnswerOfAny) {
  const std::string text = asked(kMaximum, "lt %23, %24",
                                 "    if_then %26 () {\n"
                                 "      %30: pending<f32, 64x64> = wgmma %12, %13\n"
                                 "      retire %30\n      yield\n    } () {\n      yield\n    }\n");
  expect_divergence(text, "any");
}

// The layouts are those that PTX draws for wgmma: lane l of warp w holds rows 16 w + l / 4 and + 8.
TEST(AssignLayoutsTest, ProductsDetermineWhatIsComputedFromThem) {
  const auto role = [](const std::string& wide, const std::string& row) {
    return role_kernel(kViews + "    %20: pending<f32, 64x64" + wide +
                       "> = wgmma %12, %13\n"
                       "    %21: tile<f32, 64x64" +
                       wide +
                       "> = wait %20\n"
                       "    %22: tile<f32, 64x1" +
                       row +
                       "> = reduce %21 {function = max, axis = 1}\n"
                       "    %23: tile<f32, 64x64" +
                       wide +
                       "> = sub %21, %22\n"
                       "    %24: tile<f32, 64x64" +
                       wide + "> = exp2 %23\n" + stored("%24"));
  };
  expect_pass(assign_layouts, role("", ""),
              role(", [64x64|r:2@1:1,2@0:8,8@1:8|l:4@1:2,8@0:1|w:4@0:16]",
                   ", [64x1|r:2@0:8|l:4*,8@0:1|w:4@0:16]"));
}

TEST(AssignLayoutsTest, LoopsCarryTheLayoutOfTheirProducts) {
  ir::Kernel kernel =
      test::parsed(row_sums("{function = add, axis = 1, partial = 1}",
                            "      %28: tile<f32, 64x1> = add %24, %27\n      yield %28\n    }\n"
                            "    %30: tile<f32, 64x1> = complete %22 {function = add}\n" +
                                kept("%30")));
  assign_layouts(kernel);
  ir::verify(kernel);
  int partial = 0, whole = 0;
  for (const ir::Type& type : kernel.types) {
    if (!type.is_tile() || type.shape != std::vector<std::int64_t>{64, 1}) continue;
    (type.layout.is_partial() ? partial : whole) += 1;
  }
  EXPECT_EQ(partial, 5) << "the splat, the argument, the reduction, the sum and the loop's result";
  EXPECT_EQ(whole, 1) << "what is completed";
}

TEST(AllocateSharedTest, PlacesAreAlignedAndApart) {
  test::ExplicitKernel t(1);
  SharedIntegers numbers(t.kernel, "numbers", 3);
  SharedTile narrow(t.kernel, "narrow", bf16, 8, 16);
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    t.save(wait(t.product(slot)));
    t.ring.release(slot);
  });
  struct Place {
    std::int64_t begin, end;
  };
  std::vector<Place> places;
  for (const ir::Operation& o : machine.body.body) {
    if (o.op != ir::Op::shared && o.op != ir::Op::mbarriers) continue;
    const std::int64_t begin = o.attributes.integer(ir::Key::offset);
    std::int64_t bytes = 8 * machine.type(o.results[0]).shape[0], alignment = 8;
    if (o.op == ir::Op::shared) {
      bytes = o.attributes.shared_layout().size_bytes() * o.attributes.integer(ir::Key::stages);
      alignment = o.attributes.shared_layout().alignment();
    }
    EXPECT_EQ(begin % alignment, 0) << o.attributes.text(ir::Key::name);
    for (const Place& other : places)
      EXPECT_TRUE(begin >= other.end || begin + bytes <= other.begin);
    places.push_back({begin, begin + bytes});
    EXPECT_LE(begin + bytes, machine.shared_bytes);
  }
  EXPECT_EQ(places.size(), 6u);
  // Two stages of two 8 KiB tiles, the two small ones and the barriers.
  EXPECT_LT(machine.shared_bytes, 4 * 8192 + 1024);
}

// What TMA copies begins at a multiple of 128 bytes, also behind what is smaller.
TEST(AllocateSharedTest, TilesBeginAtMultiplesOfWhatTmaNeeds) {
  ir::Kernel kernel = test::parsed(
      "kernel \"case\" scheduled\ndim n\nout Y: f32[n, 64] = %0\ngrid (n)\nthreads 128\nbody () {\n"
      "  %1: shared<f32, 1x1x8> = shared {name = \"few\", "
      "layout = shared_layout[1x8*4|8@1:4|x1.2.2], stages = 1}\n"
      "  %2: shared<f32, 1x1x8> = shared {name = \"more\", "
      "layout = shared_layout[1x8*4|8@1:4|x1.2.2], stages = 1}\n"
      "}\n");
  allocate_shared(kernel);
  EXPECT_EQ(kernel.body.body[0].attributes.integer(ir::Key::offset), 0);
  EXPECT_EQ(kernel.body.body[1].attributes.integer(ir::Key::offset), 128);
}

}  // namespace
}  // namespace tilewright::passes
