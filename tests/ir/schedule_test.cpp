#include "ir/schedule.h"

#include <gtest/gtest.h>

#include <string>

// Stated schedules as values: how fields are read, which of two counts, when two are the same.
namespace tilewright::ir {
namespace {

Schedule read(const std::string& name, const std::string& value, Schedule schedule = {}) {
  state_field(schedule, name, value, {});
  return schedule;
}

TEST(ScheduleFields, AreReadWhole) {
  EXPECT_EQ(read("stages", "3").stages.value(), 3);
  EXPECT_EQ(read("partition", "columns").partition.value(), Partition::columns);
  for (const char* yes : {"true", "1"}) EXPECT_TRUE(read("overlap", yes).overlap.value()) << yes;
  for (const char* no : {"false", "0"}) EXPECT_FALSE(read("overlap", no).overlap.value()) << no;
  for (const auto& [name, value] : {std::pair("stages", "3x"),
                                    {"stages", ""},
                                    {"ctas", "1.5"},
                                    {"overlap", "yes"},
                                    {"partition", "row"},
                                    {"stage", "3"}}) {
    EXPECT_THROW(read(name, value), Error) << name << " = " << value;
  }
  EXPECT_THROW(read("stages", "3", Schedule{.stages = 2}), Error);
}

TEST(ScheduleFields, OfTheFirstOfTwoCount) {
  const Schedule both = merged({.stages = 2, .overlap = false}, {.stages = 4, .ctas = 3});
  EXPECT_EQ(both.stages.value(), 2);
  EXPECT_EQ(both.ctas.value(), 3);
  EXPECT_FALSE(both.overlap.value());
  EXPECT_FALSE(both.warpgroups.is_set());
}

TEST(ScheduleFields, MakeSchedulesEqual) {
  EXPECT_TRUE(equal(Schedule{}, {}));
  EXPECT_TRUE(equal(Schedule{.stages = 2, .ctas = 1}, {.stages = 2, .ctas = 1}));
  EXPECT_FALSE(equal(Schedule{.stages = 2}, {.stages = 3}));
  EXPECT_FALSE(equal(Schedule{.stages = 2}, {}));
  EXPECT_FALSE(equal(Schedule{}, {.overlap = false}));
}

TEST(ScheduleFields, HaveRanges) {
  for (const int good : {1, 16}) EXPECT_NO_THROW(check_ranges({.stages = good})) << good;
  for (const int bad : {-1, 0, 17}) EXPECT_THROW(check_ranges({.stages = bad}), Error) << bad;
  for (const int good : {1, 8}) EXPECT_NO_THROW(check_ranges({.warpgroups = good})) << good;
  for (const int bad : {0, 9}) EXPECT_THROW(check_ranges({.warpgroups = bad}), Error) << bad;
  for (const int good : {1, 16}) EXPECT_NO_THROW(check_ranges({.ctas = good})) << good;
  for (const int bad : {0, 17}) EXPECT_THROW(check_ranges({.ctas = bad}), Error) << bad;
  EXPECT_NO_THROW(check_ranges({.partition = Partition::columns}));
  EXPECT_THROW(check_ranges({.partition = static_cast<Partition>(2)}), Error);
}

}  // namespace
}  // namespace tilewright::ir
