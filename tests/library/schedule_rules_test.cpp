#include "library/schedule_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "library/schedule_choice.h"
#include "runtime/fake_driver.h"

namespace tilewright::library {
namespace {

using test::usage_error_of;
using testing::AllOf;
using testing::HasSubstr;

// Sizes a, b and c, an option `wide` and a dtype; one family of schedules.
LibraryKernel entry(const std::string& rules = "") {
  using Kind = KernelOption::Kind;
  LibraryKernel kernel;
  kernel.name = "sum";
  for (const char* name : {"a", "b", "c"}) {
    kernel.options.push_back({name, "", Kind::integer, "100", 0, INT32_MAX, {}, true});
  }
  kernel.options.push_back({"wide", "", Kind::boolean, "false", 0, 0, {}});
  kernel.options.push_back({"dtype", "", Kind::dtype, "bf16", 0, 0, {"bf16", "f16"}});
  kernel.check = [](const OptionValues&) {};
  const auto build = [](const OptionValues&) { return Kernel("sum"); };
  kernel.build = build;
  kernel.schedules = {
      {"fast", "sm_90a", "", build, {{"block", "", 128, {64, 128}}, {"stages", "", 4, {2, 3, 4}}}},
      {"128x64_other", "sm_90a", "", build},
      {"next", "sm_100a", "", build}};
  if (!rules.empty()) kernel.rules = {{"sm_90a", "sum.sm_90a.txt", "sum sm_90a v1\n" + rules}};
  return kernel;
}

std::string chosen(const std::string& rules, const std::vector<std::string>& settings) {
  const LibraryKernel kernel = entry(rules);
  return name_of(kernel, choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a"));
}

// What a condition says of a = 100, b = 7, c = 0, wide, and bf16 on 132 multiprocessors.
bool holds(const std::string& condition) {
  return chosen("when " + condition + ": block=64\nelse: block=128\n",
                {"a=100", "b=7", "c=0", "wide=true"}) == "fast block=64 stages=4";
}

std::string error_of(const std::string& rules) {
  return usage_error_of([&] { chosen(rules, {}); });
}

TEST(ScheduleRulesTest, ConditionsComputeWithSizesAndFacts) {
  EXPECT_TRUE(holds("a > 99 and b < 8"));
  EXPECT_FALSE(holds("a > 100"));
  EXPECT_TRUE(holds("a >= 100 and a <= 100"));
  EXPECT_TRUE(holds("64 < a <= 100"));
  EXPECT_FALSE(holds("64 < a <= 99"));
  EXPECT_FALSE(holds("100 < a <= 128"));
  EXPECT_TRUE(holds("1 < 2 < 3 < 4"));
  EXPECT_FALSE(holds("1 < 2 < 3 < 3"));
  EXPECT_TRUE(holds("a > 1000 or b % 4 == 3"));
  EXPECT_TRUE(holds("not (a > 1000 or b % 4 == 2)"));
  EXPECT_TRUE(holds("wide"));
  EXPECT_FALSE(holds("not wide"));
  EXPECT_TRUE(holds("dtype == bf16"));
  EXPECT_TRUE(holds("dtype != f16 and wide"));
  EXPECT_TRUE(holds("ceil_div(a, 64) * b == 14"));
  EXPECT_TRUE(holds("max(a, 128) - min(b, 3) == 125"));
  EXPECT_TRUE(holds("a + 2 * b - -1 == 115"));
  EXPECT_TRUE(holds("(0 - b) / 2 == -4"));
  EXPECT_TRUE(holds("a / c == 0 and a % c == 0"));
  EXPECT_TRUE(holds("multiprocessors == 132"));
  EXPECT_TRUE(holds("9000000000000000000 * a > 0 and 9000000000000000000 * -a < 0"));
}

TEST(ScheduleRulesTest, TheFirstRuleThatHoldsSetsWhatItNames) {
  const std::string rules =
      "# what was measured\n"
      "let tiles = ceil_div(a, 128) * ceil_div(b, 128)\n"
      "let waves = ceil_div(tiles, multiprocessors)\n"
      "when waves > 4: block=128 stages=3  # many\n"
      "\n"
      "when a <= 64: block=64\n"
      "when not wide: schedule=128x64_other\n"
      "else: schedule=tile\n";
  EXPECT_EQ(chosen(rules, {"a=10000", "b=10000"}), "fast block=128 stages=3");
  EXPECT_EQ(chosen(rules, {"a=64"}), "fast block=64 stages=4");
  EXPECT_EQ(chosen(rules, {"a=65"}), "128x64_other");
  EXPECT_EQ(chosen(rules, {"a=65", "wide=true"}), "tile");
}

TEST(ScheduleRulesTest, WhatIsSetComesBeforeTheRules) {
  const std::string rules = "when a <= 64: block=64 stages=2\nelse: schedule=128x64_other\n";
  EXPECT_EQ(chosen(rules, {"a=1", "stages=3"}), "fast block=64 stages=3");
  EXPECT_EQ(chosen(rules, {"a=65", "schedule=fast"}), "fast block=128 stages=4");
  EXPECT_EQ(chosen(rules, {"a=64", "schedule=fast"}), "fast block=64 stages=2");
  EXPECT_EQ(chosen(rules, {"a=1", "schedule=128x64_other"}), "128x64_other");
  EXPECT_THAT(usage_error_of([&] {
                chosen(rules, {"a=65", "block=64"});
              }),
              AllOf(HasSubstr("block = 64 is set, and schedule 128x64_other has no such parameter"),
                    HasSubstr("leave block out")));
  EXPECT_THAT(usage_error_of([&] { chosen(rules, {"block=96"}); }),
              AllOf(HasSubstr("block = '96' is not known"), HasSubstr("64, 128")));
  EXPECT_THAT(usage_error_of([&] { chosen(rules, {"blok=64"}); }),
              AllOf(HasSubstr("has no option 'blok'"), HasSubstr("schedule, block, stages")));
  EXPECT_THAT(usage_error_of([&] { chosen(rules, {"schedule=next"}); }),
              HasSubstr("schedule next is for sm_100a, and the target is sm_90a"));
}

TEST(ScheduleRulesTest, TheChoiceSaysWhy) {
  const auto why = [](const std::string& rules, const std::vector<std::string>& settings) {
    const LibraryKernel kernel = entry(rules);
    return choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a").why;
  };
  const std::string rules = "when a <= 64: block=64\nelse: schedule=128x64_other\n";
  EXPECT_EQ(why(rules, {"a=3"}), "sum.sm_90a.txt:2: when a <= 64: block=64");
  EXPECT_EQ(why(rules, {"a=3", "stages=2"}),
            "sum.sm_90a.txt:2: when a <= 64: block=64; stages=2 is set");
  EXPECT_EQ(why(rules, {"schedule=tile"}), "schedule=tile is set");
  EXPECT_EQ(why("", {}), "the first schedule for sm_90a");
}

TEST(ScheduleRulesTest, AVariantThatDoesNotExistIsRefusedWhenItIsChosen) {
  LibraryKernel kernel = entry("when wide: block=64\nelse: block=128\n");
  kernel.schedules[0].refuse = [](const OptionValues& options) {
    return options.integer("block") == 64 ? std::string("its rows are too short") : "";
  };
  const auto build = [&](const std::vector<std::string>& settings) {
    build_choice(kernel, choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a"));
  };
  EXPECT_NO_THROW(build({}));
  EXPECT_THAT(
      usage_error_of([&] { build({"wide=true"}); }),
      AllOf(HasSubstr("sum: there is no variant fast block=64 stages=4: its rows are too short"),
            HasSubstr("it is chosen by sum.sm_90a.txt:2: when wide: block=64")));
}

TEST(ScheduleRulesTest, MistakesNameTheirPlace) {
  EXPECT_THAT(error_of("when d < 3: block=64\nelse: block=64\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:2: error: there is no 'd'"),
                    HasSubstr("    when d < 3: block=64\n         ^"),
                    HasSubstr("a, b, c, wide, dtype, multiprocessors")));
  EXPECT_THAT(error_of("else: blocks=64\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:2: error: schedule fast has no parameter 'blocks'"),
                    HasSubstr("    else: blocks=64\n          ^"), HasSubstr("block, stages")));
  EXPECT_THAT(error_of("else: schedule=128x64_other block=64\n"),
              HasSubstr("schedule 128x64_other has no"));
  EXPECT_THAT(error_of("else: block=96\n"),
              AllOf(HasSubstr("block is never 96"), HasSubstr("64, 128")));
  EXPECT_THAT(error_of("else: block=64 block=64\n"), HasSubstr("block is set twice"));
  EXPECT_THAT(error_of("else: block=64 schedule=fast\n"), HasSubstr("schedule stands first"));
  EXPECT_THAT(error_of("else: schedule=slow\n"),
              AllOf(HasSubstr("no schedule 'slow'"), HasSubstr("tile, fast, 128x64_other")));
  EXPECT_THAT(error_of("when a < 3: block=64\n"), HasSubstr("some sizes have no schedule"));
  EXPECT_THAT(error_of("else: block=64\nwhen a < 3: block=64\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:3: error"), HasSubstr("never reached")));
  EXPECT_THAT(error_of("if a < 3: block=64\n"), HasSubstr("expected let, when or else"));
  EXPECT_THAT(error_of("when a < : block=64\n"), HasSubstr("expected a name or a number"));
  EXPECT_THAT(error_of("when (a < 3: block=64\n"), HasSubstr("expected ')'"));
  EXPECT_THAT(error_of("when a < 99999999999999999999: block=64\n"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("when dtype == f32: block=64\n"),
              AllOf(HasSubstr("dtype is never 'f32'"), HasSubstr("bf16, f16")));
  EXPECT_THAT(error_of("when dtype + 1 == 2: block=64\n"), HasSubstr("expected '!='"));
  EXPECT_THAT(error_of("let a = 3\nelse: block=64\n"), HasSubstr("'a' is defined already"));
  EXPECT_THAT(error_of("let d = 3 4\nelse: block=64\n"), HasSubstr("expected the end"));
  const std::string deep(100, '(');
  EXPECT_THAT(error_of("when " + deep + "a: block=64\n"), HasSubstr("nested too deep"));
  std::string wide = "1";
  for (int i = 0; i < 40; ++i) wide = "max(1, " + wide + ")";
  EXPECT_THAT(error_of("when " + wide + ": block=64\n"), HasSubstr("nested too deep"));
}

TEST(ScheduleRulesTest, ASingleSizeIsNoRange) {
  EXPECT_THAT(error_of("when a == 4096: block=64\nelse: block=128\n"),
              AllOf(HasSubstr("compared with the single size 4096"), HasSubstr("% 4096 == 0")));
  EXPECT_THAT(error_of("when 4096 != b: block=64\nelse: block=128\n"), HasSubstr("single size"));
  EXPECT_FALSE(holds("a % 64 == 0"));
  EXPECT_TRUE(holds("c == 0"));
  EXPECT_TRUE(holds("b != 1"));
}

// Every launch pays for the choice: 20 rules, of which the last one holds.
TEST(ScheduleRulesTest, AChoiceCostsLittle) {
  std::string text = "let tiles = ceil_div(a, 128) * ceil_div(b, 256)\n";
  for (int i = 0; i < 20; ++i) {
    text += "when dtype == f16 and a <= " + std::to_string(64 * i + 64) +
            " and tiles < multiprocessors: block=64\n";
  }
  const LibraryKernel kernel = entry(text + "else: block=128\n");
  const CompiledRules rules = load_rules(kernel, "sm_90a", "");
  std::vector<std::int64_t> values = rules.values_of(resolve_options(kernel, {}), 132);
  double best = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) EXPECT_EQ(rules.match(values.data()), 20u);
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count() / 1000);
  }
  RecordProperty("nanoseconds", std::to_string(best * 1e9));
  EXPECT_LT(best, 2e-6);
}

TEST(ScheduleRulesTest, TheHeaderMustFit) {
  LibraryKernel kernel = entry("else: block=64\n");
  kernel.rules[0].text = "sum sm_90a v2\nelse: block=64\n";
  EXPECT_THAT(usage_error_of([&] { load_rules(kernel, "sm_90a", ""); }),
              AllOf(HasSubstr("sum.sm_90a.txt:1"), HasSubstr("sum sm_90a v1")));
  kernel.rules[0].text = "";
  EXPECT_THAT(usage_error_of([&] { load_rules(kernel, "sm_90a", ""); }),
              HasSubstr("some sizes have no schedule"));
}

TEST(ScheduleRulesTest, AFolderOfRulesReplacesTheBuiltInOnes) {
  const test::TemporaryFolder folder;
  const LibraryKernel kernel = entry("else: block=64\n");
  const OptionValues options = resolve_options(kernel, {});
  ScheduleOptions how;
  how.rules_folder = folder.path().string();
  const auto chosen_name = [&](const ScheduleOptions& from) {
    return name_of(kernel, choose_schedule(kernel, options, "sm_90a", from));
  };
  EXPECT_EQ(chosen_name(how), "fast block=64 stages=4") << "no file there: the built-in ones";
  std::ofstream(folder.path() / "sum.sm_90a.txt") << "sum sm_90a v1\nelse: stages=2\n";
  EXPECT_EQ(chosen_name(how), "fast block=128 stages=2");
  {
    const runtime::ScopedVariable variable("TILEWRIGHT_SCHEDULES", folder.path().string());
    EXPECT_EQ(chosen_name({}), "fast block=128 stages=2");
  }
  EXPECT_EQ(chosen_name({}), "fast block=64 stages=4");
  how.rules_folder = (folder.path() / "none").string();
  EXPECT_THAT(usage_error_of([&] { chosen_name(how); }), HasSubstr("is no folder"));
}

}  // namespace
}  // namespace tilewright::library
