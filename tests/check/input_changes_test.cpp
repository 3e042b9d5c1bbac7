#include "check/input_changes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace tilewright::checks {
namespace {

using Kind = InputChange::Kind;

struct Inputs {
  HostTensor q = HostTensor::random_normal(bf16, {1, 4, 2, 16}, 1);
  HostTensor k = HostTensor::random_normal(bf16, {1, 6, 2, 16}, 2);
  std::vector<InputChange> changes = changes_of_inputs({{0, &q}, {1, &k}});

  // Of the first change that is so described.
  Inputs& changed(const std::string& description) {
    const auto found = std::find_if(changes.begin(), changes.end(), [&](const InputChange& change) {
      return describe(change, {"Q", "K"}) == description;
    });
    EXPECT_NE(found, changes.end()) << description;
    for (const std::size_t input : found->inputs) apply(*found, input, input == 0 ? q : k);
    return *this;
  }
};

TEST(InputChanges, OneIsZero) {
  Inputs inputs;
  const HostTensor k = inputs.k;
  inputs.changed("Q is zero");
  for (std::int64_t i = 0; i < inputs.q.elements(); ++i) EXPECT_EQ(inputs.q.flat(i), 0);
  EXPECT_EQ(inputs.k, k);
}

TEST(InputChanges, SumsOfOneSignAreFarFromZero) {
  Inputs inputs;
  inputs.changed("Q and K are as large as sums of about 3072 want, K negative");
  double sum = 0;
  for (std::int64_t i = 0; i < 16; ++i) sum += inputs.q.flat(i) * inputs.k.flat(i);
  EXPECT_NEAR(sum, -3072, 400);
}

// Along which axis something grows, and where its ends are.
TEST(InputChanges, GrowAlongTheirAxis) {
  const std::vector<std::int64_t> shape = {2, 5, 3};
  const HostTensor before = HostTensor::random_normal(f32, shape, 1);
  const auto changed = [&](Kind kind, std::size_t axis) {
    HostTensor tensor = before;
    apply({kind, {0}, 2, axis}, 0, tensor);
    return tensor;
  };
  const HostTensor grown = changed(Kind::growth, 1), ends = changed(Kind::end, 1);
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t j = 0; j < 5; ++j) {
      for (std::int64_t k = 0; k < 3; ++k) {
        const double value = before.at({i, j, k}), part = static_cast<double>(j) / 4;
        EXPECT_NEAR(grown.at({i, j, k}), value * (1 + 2 * part), 1e-5) << i << j << k;
        EXPECT_NEAR(ends.at({i, j, k}), j == 4 ? value + 2 : value, 1e-5) << i << j << k;
      }
    }
  }
  // Ends of the longest axis but the last, and of the last.
  std::vector<std::size_t> axes;
  for (const InputChange& change : changes_of_inputs({{0, &before}})) {
    if (change.kind == Kind::end) axes.push_back(change.axis);
  }
  EXPECT_EQ(axes, (std::vector<std::size_t>{1, 2}));
  const HostTensor wide = HostTensor::zeros(f32, {3, 2, 9});
  axes.clear();
  for (const InputChange& change : changes_of_inputs({{0, &wide}})) {
    if (change.kind == Kind::end) axes.push_back(change.axis);
  }
  EXPECT_EQ(axes, (std::vector<std::size_t>{0, 2}));
  // A matrix has both as well.
  const HostTensor matrix = HostTensor::zeros(f32, {3, 2});
  axes.clear();
  for (const InputChange& change : changes_of_inputs({{0, &matrix}})) {
    if (change.kind == Kind::end || change.kind == Kind::growth) axes.push_back(change.axis);
  }
  EXPECT_EQ(axes, (std::vector<std::size_t>{0, 1, 0, 1}));
}

// Where blocks begin, and where they end.
TEST(InputChanges, SomeLieApartInEveryBlock) {
  const HostTensor before = HostTensor::random_normal(f32, {2, 70}, 1);
  HostTensor starts = before, ends = before;
  apply({Kind::starts, {0}, 8, 1}, 0, starts);
  apply({Kind::ends, {0}, 8, 1}, 0, ends);
  for (std::int64_t i = 0; i < 140; ++i) {
    const std::int64_t at = i % 70;
    EXPECT_NEAR(starts.flat(i), before.flat(i) + (at % 32 == 0 ? 8 : 0), 1e-5) << i;
    EXPECT_NEAR(ends.flat(i), before.flat(i) + (at % 32 == 31 || at == 69 ? 8 : 0), 1e-5) << i;
  }
}

// Rows alternate along each axis, and those of the other input grow.
TEST(InputChanges, SmallRowsBesideLargeOnes) {
  Inputs inputs;
  const HostTensor q = inputs.q, k = inputs.k;
  inputs.changed("K grows from row to row, and every other row of Q is small");
  for (std::int64_t query = 0; query < 4; ++query) {
    for (std::int64_t head = 0; head < 2; ++head) {
      const double factor = (query + head) % 2 == 0 ? 1 : 1.0 / 16;
      EXPECT_EQ(inputs.q.at({0, query, head, 3}), q.at({0, query, head, 3}) * factor);
    }
  }
  EXPECT_EQ(inputs.k.flat(0), k.flat(0));
  const std::int64_t last = k.elements() - 1;
  EXPECT_NEAR(inputs.k.flat(last), 9 * k.flat(last), std::abs(k.flat(last)) / 16);
}

}  // namespace
}  // namespace tilewright::checks
