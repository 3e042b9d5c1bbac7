#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error_text.h"
#include "common/temporary_folder.h"
#include "library/schedule_choice.h"
#include "library/tuning/estimate_fit.h"
#include "library/tuning/schedule_report.h"
#include "library/tuning/tuner.h"
#include "runtime/fake_driver.h"
#include "runtime/nvrtc_available.h"
#include "tilewright/compile.h"
#include "tilewright/kernels/gemm.h"

namespace tilewright::library {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

LibrarySchedule tiles(int block_m, int block_n) {
  return {std::to_string(block_m) + "x" + std::to_string(block_n), "sm_90a", "",
          [block_m, block_n](const OptionValues&) {
            kernels::Gemm how;
            how.block_m = block_m;
            how.block_n = block_n;
            how.warpgroups = block_m / 64;
            return kernels::gemm_sm90(how);
          }};
}

// Without rules the first serves all sizes.
LibraryKernel family() {
  LibraryKernel gemm = find_kernel("gemm");
  gemm.rules.clear();
  const auto none = [](const OptionValues&) -> Kernel {
    raise_usage({}, "", "it was never any good", "take another");
  };
  gemm.schedules = {tiles(128, 256), tiles(64, 64), tiles(64, 256), {"128x64", "sm_90a", "", none}};
  return gemm;
}

std::vector<std::string> names_of(const std::vector<FamilyMember>& members) {
  std::vector<std::string> names;
  for (const FamilyMember& member : members) names.push_back(member.name);
  return names;
}

TEST(FamilyTest, HasAllSchedulesOrTheOneThatIsSet) {
  const LibraryKernel kernel = family();
  EXPECT_THAT(names_of(family_of(kernel, resolve_options(kernel, {}), "sm_90a")),
              ElementsAre("128x256", "64x64", "64x256", "128x64", "tile"));
  for (const std::string name : {"64x64", "tile"}) {
    const OptionValues options = resolve_options(kernel, {"schedule=" + name});
    EXPECT_THAT(names_of(family_of(kernel, options, "sm_90a")), ElementsAre(name));
  }
  EXPECT_THAT(names_of(family_of(kernel, resolve_options(kernel, {}), "sm_100a")),
              ElementsAre("tile"));
}

// Of the kernel's tensors those that its options do not ask for are not there.
TEST(TunerTest, RanksKernelsWithOptionalTensors) {
  for (const char* name : {"attention_forward", "attention_varlen_forward"}) {
    for (const char* sinks : {"sinks=false", "sinks=true"}) {
      const Tuner tuner(find_kernel(name), {sinks}, compiler::parse_target("sm_90a"), {});
      const TuneResult result = tuner.rank({"queries=512"});
      EXPECT_EQ(result.refused, 0u) << name << ", " << sinks;
      for (const TuneEntry& entry : result.entries) EXPECT_GT(entry.predicted, 0) << entry.name;
    }
  }
}

// The kernels of a program come one after the other: it takes at least what each takes.
TEST(TunerTest, RanksAProgramByTheSumOfItsKernels) {
  LibraryKernel kernel = find_kernel("attention_decode");
  kernel.schedules.push_back({"one", "sm_90a", "", {}, kernel.build_program});
  const Tuner tuner(kernel, {"kv_heads=2"}, compiler::parse_target("sm_90a"), {});
  const TuneResult few = tuner.rank({"keys=256"}), many = tuner.rank({"keys=65536"});
  ASSERT_EQ(few.entries.size(), 2u);
  EXPECT_EQ(few.refused, 0u);
  EXPECT_EQ(few.entries[0].predicted, few.entries[1].predicted);
  EXPECT_GT(many.entries[0].predicted, few.entries[0].predicted);
  // Two launches, of which each has its own cost.
  const double launch = target::device_of("sm_90a").reached.launch_seconds;
  EXPECT_GT(few.entries[0].predicted, 2 * launch);
}

TEST(TunerTest, RanksByTheModelAndCountsWhatItSkips) {
  const LibraryKernel kernel = family();
  TuneOptions how;
  how.keep = 1;
  const Tuner tuner(kernel, {"n=8192", "k=8192"}, compiler::parse_target("sm_90a"), how);
  const TuneResult large = tuner.rank({"m=8192"});
  EXPECT_EQ(large.standard, "128x256");
  EXPECT_EQ(large.refused, 1u);
  EXPECT_EQ(large.slow, 2u) << "all but the first, and what the rules choose";
  EXPECT_THAT(large.entries.back().skipped, HasSubstr("it was never any good"));
  const auto slow = [](const TuneResult& result, const std::string& name) {
    for (const TuneEntry& entry : result.entries) {
      if (entry.name == name) return entry.skipped;
    }
    return std::string("no such variant");
  };
  EXPECT_THAT(slow(large, "64x64"), HasSubstr("times the fastest"));
  EXPECT_EQ(slow(large, "128x256"), "");
  EXPECT_EQ(slow(tuner.rank({"m=16"}), "64x64"), "");
}

TEST(TunerTest, SizesThatAKernelDoesNotTakeAreToldForEachVariant) {
  const LibraryKernel kernel = family();
  const Tuner tuner(kernel, {}, compiler::parse_target("sm_90a"), {});
  const TuneResult result = tuner.rank({"k=7"});
  for (const TuneEntry& entry : result.entries) {
    if (entry.name == "tile") continue;
    EXPECT_FALSE(entry.skipped.empty()) << entry.name;
  }
}

std::vector<TunedPoint> points(const std::vector<std::map<std::string, double>>& seconds) {
  std::vector<TunedPoint> points;
  for (std::size_t i = 0; i < seconds.size(); ++i) points.push_back({{i}, seconds[i]});
  return points;
}

TEST(RuleWriterTest, EqualNeighboursShareARange) {
  const std::vector<TunedAxis> axes = {{{"m"}, {16, 64, 256, 1024}}};
  const TunedRules rules = make_rules(axes,
                                      points({{{"64x64", 1.0}, {"128x256", 3.0}},
                                              {{"64x64", 1.01}, {"tile", 1.0}},
                                              {{"128x256", 5.0}},
                                              {{"128x256", 6.0}}}),
                                      "", 0.02);
  EXPECT_THAT(rules.lines, ElementsAre("when m <= 64: schedule=64x64", "else: schedule=128x256"));
  EXPECT_EQ(rules.variants, 2u);
  EXPECT_DOUBLE_EQ(rules.worst, 1.01);
}

TEST(RuleWriterTest, WhatOneAxisDoesNotDecideTheNextDoes) {
  const std::vector<TunedAxis> axes = {{{"m", "k"}, {16, 64, 256}}, {{"n"}, {512, 4096}}};
  std::vector<TunedPoint> grid;
  for (std::size_t m = 0; m < 3; ++m) {
    for (std::size_t n = 0; n < 2; ++n) {
      const bool first = m == 0 || (m == 1 && n == 0);
      grid.push_back(
          {{m, n}, {{first ? "64x64" : "128x256", 1.0}, {first ? "128x256" : "64x64", 2.0}}});
    }
  }
  const TunedRules rules = make_rules(axes, grid, "dtype == f16", 0.02);
  EXPECT_THAT(rules.lines,
              ElementsAre("when dtype == f16 and max(m, k) <= 16: schedule=64x64",
                          "when dtype == f16 and max(m, k) <= 64 and n <= 512: schedule=64x64",
                          "when dtype == f16: schedule=128x256"));
  EXPECT_DOUBLE_EQ(rules.worst, 1);
}

// The text must also be what the rules' parser takes.
std::string chosen_by(const std::string& text, const std::vector<std::string>& settings) {
  LibraryKernel kernel = family();
  kernel.rules = {{"sm_90a", "gemm.txt", text}};
  return name_of(choose_schedule(kernel, resolve_options(kernel, settings), "sm_90a"));
}

TEST(RuleWriterTest, AFileIsUpdatedFactByFact) {
  const LibraryKernel kernel = family();
  const std::vector<TunedAxis> axes = {{{"m"}, {64, 512}}};
  const auto rules = [&](const std::string& small, const std::string& large,
                         const std::string& facts) {
    return make_rules(axes, points({{{small, 1.0}}, {{large, 1.0}}}), facts, 0.02);
  };
  const std::string half = update_rules(
      "", kernel, "sm_90a", rules("64x64", "tile", "dtype == f16"), "dtype == f16", "here");
  EXPECT_EQ(half,
            "gemm sm_90a v1\n"
            "# tuned for dtype == f16: here\n"
            "when dtype == f16 and m <= 64: schedule=64x64\n"
            "when dtype == f16: schedule=tile\n"
            "\n"
            "else: schedule=128x256\n");
  EXPECT_EQ(chosen_by(half, {"dtype=f16", "m=64"}), "64x64");
  EXPECT_EQ(chosen_by(half, {"dtype=f16", "m=65"}), "tile");
  EXPECT_EQ(chosen_by(half, {"m=65"}), "128x256");

  const std::string both =
      update_rules(half, kernel, "sm_90a", rules("64x64", "128x256", ""), "", "there");
  EXPECT_EQ(both,
            "gemm sm_90a v1\n"
            "# tuned for dtype == f16: here\n"
            "when dtype == f16 and m <= 64: schedule=64x64\n"
            "when dtype == f16: schedule=tile\n"
            "\n"
            "# tuned for all: there\n"
            "when m <= 64: schedule=64x64\n"
            "else: schedule=128x256\n");
  EXPECT_EQ(chosen_by(both, {"m=64"}), "64x64");

  const std::string again = update_rules(
      both, kernel, "sm_90a", rules("tile", "tile", "dtype == f16"), "dtype == f16", "now");
  EXPECT_EQ(again,
            "gemm sm_90a v1\n"
            "# tuned for dtype == f16: now\n"
            "when dtype == f16: schedule=tile\n"
            "\n"
            "# tuned for all: there\n"
            "when m <= 64: schedule=64x64\n"
            "else: schedule=128x256\n");
  EXPECT_EQ(update_rules(again, kernel, "sm_90a", rules("tile", "tile", ""), "", "last"),
            "gemm sm_90a v1\n"
            "# tuned for dtype == f16: now\n"
            "when dtype == f16: schedule=tile\n"
            "\n"
            "# tuned for all: last\n"
            "else: schedule=tile\n");
}

TEST(RuleWriterTest, WhatWasWrittenByHandServesTheRest) {
  const LibraryKernel kernel = family();
  const std::vector<TunedAxis> axes = {{{"m"}, {64}}};
  const auto rules = [&](const std::string& facts) {
    return make_rules(axes, points({{{"tile", 1.0}}}), facts, 0.02);
  };
  const std::string hand =
      "gemm sm_90a v1\n"
      "# by hand\n"
      "let tiles = ceil_div(m, 128)\n"
      "when tiles > 4: schedule=64x64\n"
      "else: schedule=128x256\n";
  std::string tuned = hand;
  for (int i = 0; i < 2; ++i) {
    tuned = update_rules(tuned, kernel, "sm_90a", rules("dtype == f16"), "dtype == f16", "here");
    EXPECT_EQ(tuned,
              "gemm sm_90a v1\n"
              "# tuned for dtype == f16: here\n"
              "when dtype == f16: schedule=tile\n"
              "\n" +
                  hand.substr(hand.find('\n') + 1));
  }
  EXPECT_EQ(chosen_by(tuned, {"dtype=f16"}), "tile");
  EXPECT_EQ(chosen_by(tuned, {"m=1000"}), "64x64");
  EXPECT_EQ(update_rules(hand, kernel, "sm_90a", rules(""), "", "there"),
            "gemm sm_90a v1\n"
            "# tuned for all: there\n"
            "else: schedule=tile\n");
}

// By the estimates `tile` serves all; it was measured to take four times as long as `128x256`. The
// other kernel that the rules served was not measured.
TEST(EstimateFitTest, FactorsFollowTheTimesAndTheRestStays) {
  const LibraryKernel kernel = family();
  const std::string text =
      "gemm gemm_fp8 sm_90a v1\n"
      "# by hand\n"
      "let time_tile = 1000 * (m)\n"
      "let time_128x256 = 1000 * (m + m)\n"
      "let least = min(time_tile, time_128x256)\n"
      "when time_tile == least: schedule=tile\n"
      "else: schedule=128x256\n";
  EXPECT_EQ(chosen_by(text, {"m=300"}), "tile");
  std::vector<MeasuredLaunch> launches;
  for (const std::string m : {"m=100", "m=200", "m=300", "m=400"}) {
    launches.push_back({resolve_options(kernel, {m}), {{"tile", 4e-6}, {"128x256", 1e-6}}});
  }
  const auto fitted =
      fit_estimates(kernel, {"sm_90a", "gemm.txt", text}, launches, 132, "here; m=100,200");
  ASSERT_TRUE(fitted.has_value());
  EXPECT_EQ(fitted->variants, 2u);
  EXPECT_DOUBLE_EQ(fitted->worst, 1);
  EXPECT_EQ(chosen_by(fitted->text, {"m=300"}), "128x256");
  EXPECT_THAT(fitted->text,
              AllOf(testing::StartsWith("gemm sm_90a v1\n# factors by tilewright tune: here; "
                                        "m=100,200\n# by hand\n"),
                    HasSubstr(" * (m)\n"), HasSubstr("when time_tile == least")));
  // Times that the estimates meet but for their unit move nothing more than rounding.
  for (MeasuredLaunch& launch : launches) launch.seconds = {{"tile", 1e-6}, {"128x256", 2e-6}};
  EXPECT_EQ(fit_estimates(kernel, {"sm_90a", "gemm.txt", text}, launches, 132, "")->text,
            "gemm sm_90a v1\n# factors by tilewright tune: \n" + text.substr(text.find('\n') + 1));
}

// One launch, measured once. `quick`: how long 128x256 took of it.
std::string fitted_once(const std::string& lines, double quick) {
  const LibraryKernel kernel = family();
  const std::vector<MeasuredLaunch> launch = {
      {resolve_options(kernel, {"m=100"}), {{"tile", 4e-6}, {"128x256", quick}}}};
  return fit_estimates(kernel, {"sm_90a", "gemm.txt", lines}, launch, 132, "here")->text;
}

TEST(EstimateFitTest, ASingleMeasurementGoesHalfTheWay) {
  const auto lines = [](const std::string& factor) {
    return "gemm sm_90a v1\nlet time_tile = " + factor + " * (m)\nlet time_128x256 = " + factor +
           " * (m + m)\nwhen time_tile < time_128x256: schedule=tile\nelse: schedule=128x256\n";
  };
  // The estimates are off by 8 beside each other: by the square root of 8 each way.
  const std::string text = fitted_once(lines("1000"), 1e-6);
  EXPECT_THAT(text, AllOf(HasSubstr("let time_tile = 1682 * (m)\n"),
                          HasSubstr("let time_128x256 = 595 * (m + m)\n")));
  // A factor of 0 would choose the variant whatever the sizes.
  EXPECT_THAT(fitted_once(lines("1"), 1e-9), HasSubstr("let time_128x256 = 1 * (m + m)\n"));
  // The remark is that of the last fit alone.
  const std::string again = fitted_once(text, 1e-6), remark = "# factors by tilewright tune: here";
  EXPECT_EQ(again.find(remark), again.rfind(remark));
}

TEST(EstimateFitTest, RulesOverRangesHaveNothingToFit) {
  const LibraryKernel kernel = family();
  const std::vector<MeasuredLaunch> launches = {
      {resolve_options(kernel, {"m=100"}), {{"tile", 4e-6}}}};
  EXPECT_FALSE(
      fit_estimates(kernel,
                    {"sm_90a", "gemm.txt",
                     "gemm sm_90a v1\nwhen m < 64: schedule=tile\nelse: schedule=128x256\n"},
                    launches, 132, ""));
}

TEST(ScheduleReportTest, SaysWhyAndWhatTheOthersCost) {
  LibraryKernel kernel = family();
  kernel.rules = {{"sm_90a", "gemm.txt",
                   "gemm sm_90a v1\nwhen m <= 64: schedule=64x64\nelse: schedule=128x256\n"}};
  const OptionValues options = resolve_options(kernel, {"m=4096", "n=4096", "k=4096"});
  const ScheduleReport report = report_schedule(kernel, options, compiler::parse_target("sm_90a"));
  EXPECT_EQ(report.chosen, "128x256");
  EXPECT_EQ(report.why, "gemm.txt:3: else: schedule=128x256");
  EXPECT_EQ(report.variants, 2u);
  EXPECT_EQ(report.refused, 1u);
  ASSERT_EQ(report.alternatives.size(), 3u);
  EXPECT_LE(report.alternatives[0].estimate.seconds, report.alternatives[1].estimate.seconds);
  EXPECT_THAT(to_text(report), AllOf(HasSubstr("because    gemm.txt:3: else: schedule=128x256"),
                                     HasSubstr("2 for all lengths"), HasSubstr("tensor cores"),
                                     HasSubstr("not for these options: 1 variant")));
  EXPECT_DOUBLE_EQ(report.product_flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_THAT(to_text(report), HasSubstr("137.4 GFLOP in products"));
}

// Sums that leave no CTA cost two products more than five; all ways are listed with what they take.
TEST(ScheduleReportTest, WhatTheSameBitsInEveryLaunchCost) {
  const LibraryKernel& kernel = find_kernel("attention_backward");
  const OptionValues options =
      resolve_options(kernel, {"batch=1", "queries=4096", "keys=4096", "dim=128"});
  const ScheduleReport report = report_schedule(kernel, options, compiler::parse_target("sm_90a"));
  EXPECT_EQ(report.chosen, "ordered");
  const double work = kernel.floating_operations(options, {});
  EXPECT_NEAR(report.product_flops / work, 1, 1e-6);
  std::map<std::string, double> others;
  for (const auto& each : report.alternatives) others[each.name] = each.product_flops / work;
  ASSERT_EQ(others.size(), 3u);
  EXPECT_NEAR(others.at("atomic"), 1, 1e-6);
  EXPECT_NEAR(others.at("split"), 1, 1e-6);
  EXPECT_NEAR(others.at("tile"), 7.0 / 5, 1e-6);
}

class TunerOnFakeGpuTest : public runtime::FakeDriverTest {
 protected:
  void SetUp() override {
    state_->max_threads = 1024;
    if (const std::string why = runtime::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  }
  test::TemporaryFolder folder_;
  runtime::ScopedVariable cache_{"TILEWRIGHT_CACHE", folder_.path().string()};
};

// The fake driver's launches write nothing.
TEST_F(TunerOnFakeGpuTest, AResultThatIsNotWrittenIsFoundBeforeAnythingIsTimed) {
  const LibraryKernel kernel = family();
  Tuner tuner(kernel, {"m=64", "n=64", "k=64", "schedule=64x256"}, compiler::parse_target("cuda"),
              {});
  std::vector<TuneResult> results = {tuner.rank({})};
  const auto build = [&](const ScheduleChoice& choice) -> Launch {
    const auto executable =
        std::make_shared<Executable>(compile(build_choice(kernel, choice), "cuda"));
    return [executable](const std::vector<TensorRef>& tensors) { executable->run(tensors); };
  };
  tuner.build(results, build, [] {});
  EXPECT_EQ(results[0].failed, 0u);
  EXPECT_EQ(state_->launches, 0);
  try {
    tuner.measure(results[0]);
    FAIL() << "no error was raised";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::result);
    EXPECT_THAT(error.what(), HasSubstr("leaves elements that are no numbers"));
  }
}

}  // namespace
}  // namespace tilewright::library
