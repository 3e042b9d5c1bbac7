#include "library/schedule_rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
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

// Sizes a, b and c, an option `wide` and a dtype, which is the tensor's.
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
  kernel.tensors = {{"A", {"a"}, false, {}}};
  kernel.schedules = {{"large", "sm_90a", "", build},
                      {"small", "sm_90a", "", build},
                      {"128x64_other", "sm_90a", "", build},
                      {"next", "sm_100a", "", build}};
  if (!rules.empty()) kernel.rules = {{"sm_90a", "sum.sm_90a.txt", "sum sm_90a v1\n" + rules}};
  return kernel;
}

std::string chosen(const std::string& rules, const std::vector<std::string>& settings) {
  const LibraryKernel kernel = entry(rules);
  return name_of(choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a"));
}

// What a condition says of a = 100, b = 7, c = 0, wide, and bf16 on 132 multiprocessors.
bool holds(const std::string& condition) {
  return chosen("when " + condition + ": schedule=small\nelse: schedule=large\n",
                {"a=100", "b=7", "c=0", "wide=true"}) == "small";
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
  EXPECT_TRUE(holds("ceil_div(a, 50) == 2"));
  EXPECT_TRUE(holds("max(a, 128) - min(b, 3) == 125"));
  EXPECT_TRUE(holds("a + 2 * b - -1 == 115"));
  EXPECT_TRUE(holds("(0 - b) / 2 == -4"));
  EXPECT_TRUE(holds("a / c == 0 and a % c == 0"));
  EXPECT_TRUE(holds("multiprocessors == 132"));
  EXPECT_TRUE(holds("element_bytes == 2"));
  EXPECT_TRUE(holds("9000000000000000000 * a > 0 and 9000000000000000000 * -a < 0"));
  EXPECT_TRUE(holds("-(-9000000000000000000 - 9000000000000000000) > 0"));
}

TEST(ScheduleRulesTest, TheFirstRuleThatHoldsNamesTheSchedule) {
  const std::string rules =
      "# what was measured\n"
      "let tiles = ceil_div(a, 128) * ceil_div(b, 128)\n"
      "let waves = ceil_div(tiles, multiprocessors)\n"
      "when waves > 4: schedule=large  # many\n"
      "\n"
      "when a <= 64: schedule=small\n"
      "when not wide: schedule=128x64_other\n"
      "else: schedule=tile\n";
  EXPECT_EQ(chosen(rules, {"a=10000", "b=10000"}), "large");
  EXPECT_EQ(chosen(rules, {"a=64"}), "small");
  EXPECT_EQ(chosen(rules, {"a=65"}), "128x64_other");
  EXPECT_EQ(chosen(rules, {"a=65", "wide=true"}), "tile");
}

std::vector<std::string> variants(const std::string& rules,
                                  const std::vector<std::string>& settings) {
  const LibraryKernel kernel = entry(rules);
  return variant_names(kernel, resolve_options(kernel, settings), "sm_90a");
}

// Lengths and multiprocessors may be anything, other options are as they are set.
TEST(ScheduleRulesTest, VariantsAreThoseThatSomeLengthsHave) {
  const auto reached_if = [](const std::string& condition) {
    const auto names = variants("when " + condition + ": schedule=small\nelse: schedule=large\n",
                                {"a=100", "wide=true"});
    return fmt::format("{}", fmt::join(names, " "));
  };
  for (const char* open :
       {"a > 100", "multiprocessors > 10", "a > 1 and wide", "a > 1 or not wide",
        "not wide or a > 1", "not (wide and a > 1)", "a * element_bytes > 4", "a > 1 or wide",
        "a > 1 and b > 1 or not wide", "(a > 1 and wide) + 1 == 2", "-a < min(b, 3)"}) {
    EXPECT_EQ(reached_if(open), "small large") << open;
  }
  for (const char* never :
       {"not wide", "dtype == f16", "not wide and a > 1", "a > 1 and not wide",
        "a > 1 and (b > 1 and not wide)", "(a > 1 and not wide) + 1 == 2", "not (wide or a > 1)",
        "element_bytes * 8 < 16", "a > 1 and -element_bytes > 0"}) {
    EXPECT_EQ(reached_if(never), "large") << never;
  }
  for (const char* always : {"wide", "not not wide", "wide or a > 1", "element_bytes == 2"}) {
    EXPECT_EQ(reached_if(always), "small") << always;
  }
  EXPECT_THAT(variants("let narrow = not wide\nlet most = a + 1\n"
                       "when narrow and most > 4: schedule=small\n"
                       "when most > 9: schedule=128x64_other\n"
                       "when not narrow: schedule=large\n"
                       "else: schedule=tile\n",
                       {"wide=true"}),
              testing::ElementsAre("128x64_other", "large"));
}

TEST(ScheduleRulesTest, WhatIsSetComesBeforeTheRules) {
  const std::string rules = "when a <= 64: schedule=small\nelse: schedule=128x64_other\n";
  EXPECT_EQ(chosen(rules, {"a=65", "schedule=small"}), "small");
  EXPECT_EQ(chosen(rules, {"a=1", "schedule=large"}), "large");
  EXPECT_EQ(chosen(rules, {"a=1", "schedule=tile"}), "tile");
  EXPECT_THAT(usage_error_of([&] { chosen(rules, {"blok=64"}); }),
              AllOf(HasSubstr("has no option 'blok'"), HasSubstr("wide, dtype, schedule")));
  EXPECT_THAT(usage_error_of([&] { chosen(rules, {"schedule=next"}); }),
              HasSubstr("schedule next is for sm_100a, and the target is sm_90a"));
}

TEST(ScheduleRulesTest, TheChoiceSaysWhy) {
  const auto why = [](const std::string& rules, const std::vector<std::string>& settings) {
    const LibraryKernel kernel = entry(rules);
    return choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a").why;
  };
  const std::string rules = "when a <= 64: schedule=small\nelse: schedule=128x64_other\n";
  EXPECT_EQ(why(rules, {"a=3"}), "sum.sm_90a.txt:2: when a <= 64: schedule=small");
  EXPECT_EQ(why(rules, {"a=3", "schedule=small"}), "schedule=small is set");
  EXPECT_EQ(why(rules, {"schedule=tile"}), "schedule=tile is set");
  EXPECT_EQ(why("", {}), "the first schedule for sm_90a");
}

TEST(ScheduleRulesTest, MistakesNameTheirPlace) {
  const auto whole_error_of = [](const std::string& rules) {
    return test::whole_usage_error_of([&] { chosen(rules, {}); });
  };
  EXPECT_THAT(whole_error_of("when d < 3: schedule=small\nelse: schedule=small\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:2: error: there is no 'd'"),
                    HasSubstr("    when d < 3: schedule=small\n         ^"),
                    HasSubstr("a, b, c, wide, dtype, multiprocessors, element_bytes")));
  EXPECT_THAT(whole_error_of("else: small\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:2: error: expected 'sch"),
                    HasSubstr("    else: small\n          ^")));
  EXPECT_THAT(error_of("else: schedule=small block=64\n"), HasSubstr("expected the end"));
  EXPECT_THAT(error_of("else: schedule=smal\n"),
              HasSubstr("there is no schedule 'smal'; the nearest name is small"));
  EXPECT_THAT(
      error_of("else: schedule=slow\n"),
      AllOf(HasSubstr("no schedule 'slow'"), HasSubstr("tile, large, small, 128x64_other")));
  EXPECT_THAT(error_of("when a < 3: schedule=small\n"), HasSubstr("some sizes have no schedule"));
  EXPECT_THAT(error_of("else: schedule=small\nwhen a < 3: schedule=small\n"),
              AllOf(HasSubstr("sum.sm_90a.txt:3: error"), HasSubstr("never reached")));
  EXPECT_THAT(error_of("if a < 3: schedule=small\n"), HasSubstr("expected let, when or else"));
  EXPECT_THAT(error_of("when a < : schedule=small\n"), HasSubstr("expected a name or a number"));
  EXPECT_THAT(error_of("when (a < 3: schedule=small\n"), HasSubstr("expected ')'"));
  EXPECT_THAT(error_of("when a < 99999999999999999999: schedule=small\n"), HasSubstr("64 bits"));
  EXPECT_THAT(error_of("when dtype == f32: schedule=small\n"),
              AllOf(HasSubstr("dtype is never 'f32'"), HasSubstr("bf16, f16")));
  EXPECT_THAT(error_of("when dtype + 1 == 2: schedule=small\n"), HasSubstr("expected '!='"));
  EXPECT_THAT(error_of("let a = 3\nelse: schedule=small\n"), HasSubstr("'a' is defined already"));
  EXPECT_THAT(error_of("let d = 3 4\nelse: schedule=small\n"), HasSubstr("expected the end"));
  const std::string deep(100, '(');
  EXPECT_THAT(error_of("when " + deep + "a: schedule=small\n"), HasSubstr("nested too deep"));
  std::string wide = "1";
  for (int i = 0; i < 40; ++i) wide = "max(1, " + wide + ")";
  EXPECT_THAT(error_of("when " + wide + ": schedule=small\n"), HasSubstr("nested too deep"));
}

TEST(ScheduleRulesTest, ASingleSizeIsNoRange) {
  EXPECT_THAT(error_of("when a == 4096: schedule=small\nelse: schedule=large\n"),
              AllOf(HasSubstr("compared with the single size 4096"), HasSubstr("% 4096 == 0")));
  EXPECT_THAT(error_of("when 4096 != b: schedule=small\nelse: schedule=large\n"),
              HasSubstr("single size"));
  EXPECT_FALSE(holds("a % 64 == 0"));
  EXPECT_TRUE(holds("c == 0"));
  EXPECT_TRUE(holds("b != 1"));
}

// Every launch pays for the choice: 20 rules, of which the last one holds.
TEST(ScheduleRulesTest, AChoiceCostsLittle) {
  std::string text = "let tiles = ceil_div(a, 128) * ceil_div(b, 256)\n";
  for (int i = 0; i < 20; ++i) {
    text += "when dtype == f16 and a <= " + std::to_string(64 * i + 64) +
            " and tiles < multiprocessors: schedule=small\n";
  }
  const LibraryKernel kernel = entry(text + "else: schedule=large\n");
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
  LibraryKernel kernel = entry("else: schedule=small\n");
  kernel.rules[0].text = "sum sm_90a v2\nelse: schedule=small\n";
  EXPECT_THAT(usage_error_of([&] { load_rules(kernel, "sm_90a", ""); }),
              AllOf(HasSubstr("sum.sm_90a.txt:1"), HasSubstr("sum sm_90a v1")));
  kernel.rules[0].text = "";
  EXPECT_THAT(usage_error_of([&] { load_rules(kernel, "sm_90a", ""); }),
              HasSubstr("some sizes have no schedule"));
}

TEST(ScheduleRulesTest, AFileMayServeSeveralKernels) {
  LibraryKernel kernel = entry();
  const std::string rules = "when element_bytes == 1: schedule=small\nelse: schedule=large\n";
  kernel.rules = {{"sm_90a", "folder/mean.sm_90a.txt", "# both\nmean sum sm_90a v1\n" + rules}};
  const auto chosen_name = [&](const std::string& folder) {
    return name_of(choose_schedule(kernel, resolve_options(kernel, {}), "sm_90a", {132, folder}));
  };
  EXPECT_EQ(chosen_name(""), "large");
  kernel.tensors[0].dtype = f8e4m3;
  EXPECT_EQ(chosen_name(""), "small");
  EXPECT_THAT(kernels_of(kernel.rules[0]), testing::ElementsAre("mean", "sum"));
  EXPECT_THAT(kernels_of({"sm_100a", "", kernel.rules[0].text}), testing::IsEmpty());

  const test::TemporaryFolder folder;
  const auto write = [&](const std::string& file, const std::string& text) {
    std::ofstream(folder.path() / file) << text;
  };
  write("mean.sm_90a.txt", "mean sum sm_90a v1\nelse: schedule=tile\n");
  EXPECT_EQ(chosen_name(folder.path().string()), "tile");
  write("mean.sm_90a.txt", "mean sm_90a v1\nelse: schedule=tile\n");
  EXPECT_EQ(chosen_name(folder.path().string()), "small") << "those are of mean alone";
  write("sum.sm_90a.txt", "sum sm_90a v1\nelse: schedule=128x64_other\n");
  EXPECT_EQ(chosen_name(folder.path().string()), "128x64_other");
  kernel.rules[0].text = "mean mode sm_90a v1\nelse: schedule=tile\n";
  EXPECT_THAT(usage_error_of([&] { chosen_name(""); }),
              AllOf(HasSubstr("the first line is not `sum sm_90a v1`"),
                    HasSubstr("other kernels may stand beside it")));
}

TEST(ScheduleRulesTest, WithoutAGpuTheTargetsFirstOneCounts) {
  LibraryKernel kernel = entry();
  kernel.rules = {{"sm_90a", "sum.sm_90a.txt",
                   "sum sm_90a v1\nwhen multiprocessors == 132: schedule=tile\n"
                   "else: schedule=small\n"},
                  {"sm_100a", "sum.sm_100a.txt",
                   "sum sm_100a v1\nwhen multiprocessors == 148: schedule=tile\n"
                   "else: schedule=small\n"}};
  const auto chosen_name = [&](const std::string& target, int multiprocessors) {
    return name_of(
        choose_schedule(kernel, resolve_options(kernel, {}), target, {multiprocessors, ""}));
  };
  EXPECT_EQ(chosen_name("sm_90a", 0), "tile");
  EXPECT_EQ(chosen_name("sm_100a", 0), "tile");
  EXPECT_EQ(chosen_name("sm_100a", 132), "small");
}

TEST(ScheduleRulesTest, AFolderOfRulesReplacesTheBuiltInOnes) {
  const test::TemporaryFolder folder;
  const LibraryKernel kernel = entry("else: schedule=small\n");
  const OptionValues options = resolve_options(kernel, {});
  ScheduleOptions how;
  how.rules_folder = folder.path().string();
  const auto chosen_name = [&](const ScheduleOptions& from) {
    return name_of(choose_schedule(kernel, options, "sm_90a", from));
  };
  EXPECT_EQ(chosen_name(how), "small") << "no file there: the built-in ones";
  std::ofstream(folder.path() / "sum.sm_90a.txt") << "sum sm_90a v1\nelse: schedule=large\n";
  EXPECT_EQ(chosen_name(how), "large");
  {
    const runtime::ScopedVariable variable("TILEWRIGHT_SCHEDULES", folder.path().string());
    EXPECT_EQ(chosen_name({}), "large");
  }
  EXPECT_EQ(chosen_name({}), "small");
  how.rules_folder = (folder.path() / "none").string();
  EXPECT_THAT(usage_error_of([&] { chosen_name(how); }), HasSubstr("is no folder"));
}

}  // namespace
}  // namespace tilewright::library
