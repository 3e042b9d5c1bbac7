#include "check/data_weakness.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace tilewright::checks {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> found(const HostTensor& values,
                               std::optional<std::vector<bool>> read = std::nullopt) {
  return weaknesses_of({"X", &values, std::move(read)});
}

HostTensor table(const std::vector<double>& values) {
  return HostTensor::from_values(i32, {static_cast<std::int64_t>(values.size())}, values);
}

TEST(DataWeaknessTest, OrdinaryDataHasNone) {
  EXPECT_THAT(found(HostTensor::random_normal(bf16, {8, 8}, 1)), IsEmpty());
  EXPECT_THAT(found(table({3, 1, 0, 2})), IsEmpty());
  EXPECT_THAT(found(HostTensor::zeros(f32, {1})), IsEmpty());  // a scale
  EXPECT_THAT(found(HostTensor::zeros(f32, {0, 4})), IsEmpty());
  EXPECT_THAT(found(HostTensor::random_normal(f32, {1, 8}, 1)), IsEmpty());  // of one batch
}

// Row 20 of the faults that reviewers found: a test with a shuffled table, whose table silently
// became zeros.
TEST(DataWeaknessTest, ReviewedFault20ATableOfZeros) {
  EXPECT_THAT(found(table({0, 0, 0})),
              ElementsAre("X: every number is 0: as a table it names one place alone"));
}

// Row 16: pages that are neighbours hide who takes neighbours for granted.
TEST(DataWeaknessTest, ReviewedFault16ATableInOrder) {
  EXPECT_THAT(found(table({0, 1, 2, 3})), ElementsAre(HasSubstr("the numbers count up from 0")));
  const HostTensor starts = table({0, 1, 2, 3});
  InputData input{"X", &starts};
  input.may_be_in_order = true;
  EXPECT_THAT(weaknesses_of(input), IsEmpty());
}

TEST(DataWeaknessTest, NumbersThatAreAllTheSame) {
  EXPECT_THAT(found(HostTensor::from_values(f32, {3}, {2, 2, 2})),
              ElementsAre("X: every number is 2"));
  const HostTensor rows = HostTensor::from_values(f32, {2, 3}, {1, 2, 3, 1, 2, 3});
  EXPECT_THAT(found(rows), ElementsAre(HasSubstr("the same at each place of axis 0")));
  const HostTensor columns = HostTensor::from_values(f32, {2, 3}, {1, 1, 1, 2, 2, 2});
  EXPECT_THAT(found(columns), ElementsAre(HasSubstr("the same at each place of axis 1")));
}

TEST(DataWeaknessTest, RowsThatNobodyReads) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const HostTensor whole = HostTensor::from_values(f32, {3, 2}, {1, 2, 3, 4, 5, 6});
  const std::vector<bool> two_rows = {true, true, true, true, false, false};
  EXPECT_THAT(found(whole, two_rows), ElementsAre(HasSubstr("nobody reads 1 of 3 rows, which are "
                                                            "not NaN")));
  const HostTensor poisoned = HostTensor::from_values(f32, {3, 2}, {1, 2, 3, 4, nan, nan});
  EXPECT_THAT(found(poisoned, two_rows), IsEmpty());
  EXPECT_THAT(found(poisoned, std::vector<bool>{true, true, false, false, false, false}),
              ElementsAre("X: nobody reads 2 of 3 rows, more than half"));
  InputData kept{"X", &whole, two_rows};
  kept.keeps_unread = true;
  EXPECT_THAT(weaknesses_of(kept), IsEmpty());
}

TEST(DataWeaknessTest, Results) {
  EXPECT_THAT(weaknesses_of_result("Y", {0, 0}), ElementsAre("Y: every expected number is 0"));
  EXPECT_THAT(weaknesses_of_result("Y", {1, -std::numeric_limits<double>::infinity()}), IsEmpty());
  EXPECT_THAT(weaknesses_of_result("Y", {1, std::nan("")}),
              ElementsAre(HasSubstr("1 of 2 expected numbers are NaN")));
}

}  // namespace
}  // namespace tilewright::checks
