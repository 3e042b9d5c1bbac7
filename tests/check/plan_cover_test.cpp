#include "check/plan_cover.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tilewright/plan_case.h"

// Which settings stand for all that a kernel's options lead to.
namespace tilewright::checks {
namespace {

using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kTarget = "sm_90a";
constexpr std::size_t kDraws = 300;

bool holds_all(const PlanSetting& setting, const std::vector<std::string>& cases) {
  return std::all_of(cases.begin(), cases.end(),
                     [&](const std::string& each) { return setting.cases.count(each) != 0; });
}

// An entry whose kernel does nothing, and branches on `width` and `flag` as the test says.
LibraryKernel branching(const std::function<void(std::int64_t width, bool flag)>& branch,
                        std::vector<std::string> widths) {
  LibraryKernel kernel;
  kernel.name = "branching";
  KernelOption width{"width", "", KernelOption::Kind::integer, "0", 0, 100, {}};
  width.worth_trying = std::move(widths);
  kernel.options = {width, {"flag", "", KernelOption::Kind::boolean, "false", 0, 0, {}}};
  kernel.check = [](const OptionValues&) {};
  kernel.build = [branch](const OptionValues& options) {
    branch(options.integer("width"), options.boolean("flag"));
    return Kernel("branching");
  };
  return kernel;
}

TEST(PlanCaseTest, IsNotedByTheInnermostList) {
  EXPECT_TRUE(plan_case("nobody listens", true));
  const PlanCases outer;
  EXPECT_FALSE(plan_case("outer", false));
  {
    const PlanCases inner;
    EXPECT_TRUE(plan_case("inner", true));
    EXPECT_THAT(inner.names(), ElementsAre("inner"));
  }
  EXPECT_TRUE(plan_case("again", true));
  EXPECT_THAT(outer.names(), ElementsAre("again", "not outer"));
}

TEST(PlanCoverTest, ComesToEachCaseAndEachPair) {
  const std::vector<LibraryKernel> kernels = {branching(
      [](std::int64_t width, bool flag) {
        plan_case("wide", width > 50);
        plan_case("odd", width % 2 == 1);
        if (flag) plan_case("wide and flagged", width > 50);
      },
      {"0", "1", "98", "99"})};
  const std::vector<PlanCover> covers = cover_plans(kernels, kTarget, kDraws, 0);
  ASSERT_EQ(covers.size(), 1u);
  EXPECT_EQ(covers[0].drawn, 8u);
  for (const std::vector<std::string>& together :
       std::vector<std::vector<std::string>>{{"wide", "odd"},
                                             {"wide", "not odd"},
                                             {"not wide", "odd"},
                                             {"not wide", "not odd"},
                                             {"wide and flagged", "odd"},
                                             {"wide and flagged", "not odd"},
                                             {"flag=false", "wide"},
                                             {"flag=false", "odd"},
                                             {"not wide and flagged", "odd"}}) {
    EXPECT_THAT(covers[0].settings, Contains(testing::Truly([&](const PlanSetting& each) {
                  return holds_all(each, together);
                })))
        << together[0] << ", " << together[1];
  }
  EXPECT_LT(covers[0].settings.size(), 8u) << "a cover of pairs is smaller than the product";
  EXPECT_THAT(missing_cases(covers), IsEmpty());
}

TEST(PlanCoverTest, CountsCasesAndPairs) {
  const std::vector<LibraryKernel> kernels = {
      branching([](std::int64_t width, bool) { plan_case("wide", width > 50); }, {"0", "99"})};
  const std::vector<PlanCover> covers = cover_plans(kernels, kTarget, kDraws, 0);
  EXPECT_EQ(covers[0].cases, 4u) << "wide or not, flag=true or false";
  EXPECT_EQ(covers[0].pairs, 4u) << "each width with each flag";
}

// So that what a kernel is by itself is among few that are drawn of many.
TEST(PlanCoverTest, TheFirstDrawIsTheStandard) {
  std::vector<std::string> widths;
  for (int width = 51; width <= 99; ++width) widths.push_back(std::to_string(width));
  const std::vector<LibraryKernel> kernels = {
      branching([](std::int64_t width, bool) { plan_case("wide", width > 50); }, widths)};
  const std::vector<PlanCover> covers = cover_plans(kernels, kTarget, 1, 0);
  ASSERT_EQ(covers[0].settings.size(), 1u);
  EXPECT_THAT(covers[0].settings[0].settings, ElementsAre("schedule=tile"));
  EXPECT_THAT(covers[0].settings[0].cases, Contains("not wide"));
}

// The definition and the explicit schedules each come to all of theirs, and every schedule is
// there.
TEST(PlanCoverTest, SchedulesAreCoveredBesideTheDefinition) {
  std::vector<LibraryKernel> kernels = {
      branching([](std::int64_t width, bool) { plan_case("wide", width > 50); }, {"0", "99"})};
  for (const char* name : {"one", "another"}) {
    kernels[0].schedules.push_back({name, kTarget, "", kernels[0].build});
  }
  const std::vector<PlanCover> covers = cover_plans(kernels, kTarget, kDraws, 0);
  EXPECT_EQ(covers[0].cases, 8u) << "four of each of the two levels";
  const auto has = [&](const std::string& schedule, const std::vector<std::string>& cases) {
    return std::any_of(covers[0].settings.begin(), covers[0].settings.end(),
                       [&](const PlanSetting& each) {
                         const bool is_tile = each.settings.front() == "schedule=tile";
                         return (schedule.empty() ? !is_tile : each.settings.front() == schedule) &&
                                holds_all(each, cases);
                       });
  };
  for (const char* wide : {"wide", "not wide"}) {
    for (const char* flag : {"flag=false", "flag=true"}) {
      EXPECT_TRUE(has("schedule=tile", {wide, flag})) << wide << ", " << flag;
      EXPECT_TRUE(has("", {wide, flag})) << wide << ", " << flag;
    }
  }
  EXPECT_TRUE(has("schedule=one", {}));
  EXPECT_TRUE(has("schedule=another", {}));
}

TEST(PlanCoverTest, NamesTheCaseThatNoSettingComesTo) {
  const std::vector<LibraryKernel> kernels = {
      branching([](std::int64_t width, bool) { plan_case("wide", width > 50); }, {"0", "50"})};
  EXPECT_THAT(missing_cases(cover_plans(kernels, kTarget, kDraws, 0)), ElementsAre("wide"));
}

TEST(PlanCoverTest, LeavesOutWhatIsRefusedAndNothingElse) {
  const auto refuses = [](ErrorKind kind) {
    return std::vector<LibraryKernel>{branching(
        [kind](std::int64_t width, bool) {
          plan_case("wide", width > 50);
          if (width > 50) throw Error(kind, {}, "no such width", "no such width", "");
        },
        {"0", "99"})};
  };
  const std::vector<LibraryKernel> kernels = refuses(ErrorKind::usage);
  const std::vector<PlanCover> covers = cover_plans(kernels, kTarget, kDraws, 0);
  for (const PlanSetting& each : covers[0].settings) {
    EXPECT_THAT(each.settings, Not(Contains("width=99")));
  }
  EXPECT_THAT(missing_cases(covers), ElementsAre("wide"));
  const std::vector<LibraryKernel> broken = refuses(ErrorKind::internal);
  EXPECT_THROW(cover_plans(broken, kTarget, kDraws, 0), Error);
}

// The library. `tilewright list --cases` draws more, so it comes to no fewer cases. Once for all
// questions: it takes seconds.
TEST(LibraryCover, HasEveryCaseAndEverySchedule) {
  const std::vector<PlanCover> covers = cover_plans(kernel_library(), kTarget, 90, /*seed=*/0);
  EXPECT_THAT(missing_cases(covers), IsEmpty());
  for (const PlanCover& cover : covers) {
    const auto has = [&](const std::string& schedule) {
      return std::any_of(
          cover.settings.begin(), cover.settings.end(),
          [&](const PlanSetting& each) { return each.settings.front() == "schedule=" + schedule; });
    };
    EXPECT_TRUE(has("tile")) << cover.kernel->name;
    for (const LibrarySchedule& schedule : cover.kernel->schedules) {
      EXPECT_EQ(has(schedule.name), schedule.target == kTarget)
          << cover.kernel->name << " " << schedule.name;
    }
  }
}

TEST(LibraryCover, HasWindowsThatSlideWithRowsOfOneHeadAndOfSeveral) {
  const std::vector<LibraryKernel> attention = {find_kernel("attention_forward")};
  const std::vector<PlanCover> covers = cover_plans(attention, kTarget, 150, /*seed=*/0);
  for (const char* heads : {"rows of several heads", "not rows of several heads"}) {
    EXPECT_THAT(covers[0].settings, Contains(testing::Truly([&](const PlanSetting& each) {
                  return holds_all(each, {"slides", heads});
                })))
        << heads;
  }
}

TEST(LibraryCover, IsTheSameForTheSameSeed) {
  const std::vector<LibraryKernel> some = {find_kernel("attention_forward")};
  const std::vector<PlanCover> covers = cover_plans(some, kTarget, 100, /*seed=*/3),
                               again = cover_plans(some, kTarget, 100, /*seed=*/3);
  ASSERT_EQ(again[0].settings.size(), covers[0].settings.size());
  for (std::size_t n = 0; n < again[0].settings.size(); ++n) {
    EXPECT_EQ(again[0].settings[n].settings, covers[0].settings[n].settings);
  }
}

}  // namespace
}  // namespace tilewright::checks
