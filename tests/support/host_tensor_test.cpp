#include "tilewright/host_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>

#include "common/error_text.h"
#include "support/random.h"
#include "tilewright/error.h"

namespace tilewright {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST(HostTensorTest, ElementsAreRowMajorAndRoundedToTheDtype) {
  HostTensor tensor = HostTensor::zeros(bf16, {2, 3});
  EXPECT_EQ(tensor.size_bytes(), 12u);
  EXPECT_EQ(tensor.strides(), (std::vector<std::int64_t>{3, 1}));
  tensor.set({1, 2}, 1.001);
  EXPECT_EQ(tensor.at({1, 2}), 1.0);
  EXPECT_EQ(tensor.flat(5), 1.0);
  EXPECT_EQ(tensor.at({0, 2}), 0.0);
}

TEST(HostTensorTest, IntegersSaturate) {
  HostTensor tensor = HostTensor::from_values(i32, {4}, {-7, 1e12, -1e12, NAN});
  EXPECT_EQ(tensor.flat(0), -7);
  EXPECT_EQ(tensor.flat(1), INT32_MAX);
  EXPECT_EQ(tensor.flat(2), INT32_MIN);
  EXPECT_EQ(tensor.flat(3), 0);
  tensor = HostTensor::from_values(i8, {4}, {-7.5, 200, -200, NAN});
  EXPECT_EQ(tensor, HostTensor::from_values(i8, {4}, {-8, 127, -128, 0}));
  EXPECT_EQ(tensor.size_bytes(), 4u);
  tensor = HostTensor::from_values(u8, {3}, {-7, 200, 300});
  EXPECT_EQ(tensor, HostTensor::from_values(u8, {3}, {0, 200, 255}));
}

TEST(HostTensorTest, PoisonIsNanInEveryFloatingDtype) {
  for (const DType dtype : {f32, f16, bf16, f8e4m3}) {
    EXPECT_TRUE(std::isnan(HostTensor::poisoned(dtype, {3}).flat(2))) << name_of(dtype);
  }
  EXPECT_EQ(HostTensor::poisoned(i32, {3}).flat(2), -1);
}

TEST(HostTensorTest, RandomNormalDependsOnTheSeedAloneAndHasUnitVariance) {
  const HostTensor a = HostTensor::random_normal(f32, {101, 99}, 7);
  EXPECT_EQ(a, HostTensor::random_normal(f32, {101, 99}, 7));
  EXPECT_NE(a, HostTensor::random_normal(f32, {101, 99}, 8));
  double sum = 0, squares = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    sum += a.flat(i);
    squares += a.flat(i) * a.flat(i);
  }
  EXPECT_NEAR(sum / 9999, 0, 0.05);
  EXPECT_NEAR(squares / 9999, 1, 0.05);
}

// What was drawn before is taken again, and what is missing goes on behind it.
TEST(HostTensorTest, TensorsOfASeedBeginWithTheSameNumbers) {
  constexpr std::uint64_t kSeed = 20'261'129;
  const HostTensor first = HostTensor::random_normal(f16, {3}, kSeed);
  const HostTensor more = HostTensor::random_normal(f16, {2, 4}, kSeed);
  const HostTensor some = HostTensor::random_normal(f16, {5}, kSeed);
  Random random(kSeed);
  for (std::int64_t i = 0; i < more.elements(); i += 2) {
    const double radius = std::sqrt(-2 * std::log(random.uniform()));
    const double angle = 6.283185307179586 * random.uniform();
    EXPECT_NEAR(more.flat(i), radius * std::cos(angle), 2e-3);
    EXPECT_NEAR(more.flat(i + 1), radius * std::sin(angle), 2e-3);
  }
  for (const HostTensor* each : {&first, &some}) {
    for (std::int64_t i = 0; i < each->elements(); ++i) EXPECT_EQ(each->flat(i), more.flat(i));
  }
  // Another type and another seed have numbers of their own.
  EXPECT_NE(HostTensor::random_normal(f16, {3}, kSeed + 1).flat(0), first.flat(0));
  EXPECT_NEAR(HostTensor::random_normal(f32, {3}, kSeed).flat(2), more.flat(2), 2e-3);
}

TEST(HostTensorTest, MistakesSayWhatToWrite) {
  HostTensor tensor = HostTensor::zeros(f32, {2, 3});
  const auto refused = [](const std::function<void()>& action) {
    return test::usage_error_of(action);
  };
  EXPECT_THAT(refused([&] {
                tensor.at({1, 3});
              }),
              AllOf(HasSubstr("element {1, 3} is outside a tensor of shape {2, 3}"),
                    HasSubstr("fix: along axis 1: count from 0 to 2")));
  EXPECT_THAT(refused([&] { tensor.set({1}, 0); }), HasSubstr("of which there are 2"));
  EXPECT_THAT(refused([&] { tensor.flat(6); }), HasSubstr("fix: count from 0 to 5"));
  EXPECT_THAT(refused([&] { HostTensor().set_flat(0, 1); }), HasSubstr("fix: there is no element"));
  EXPECT_THAT(refused([] {
                HostTensor::zeros(f32, {2, -3});
              }),
              AllOf(HasSubstr("{2, -3} is negative"), HasSubstr("fix: ")));
  EXPECT_THAT(refused([] { HostTensor::zeros(f32, {1L << 40, 1L << 40}); }), HasSubstr("fix: "));
  EXPECT_THAT(
      refused([] { HostTensor::from_values(f32, {2}, {1}); }),
      AllOf(HasSubstr("has 2 elements, but 1 values"), HasSubstr("fix: give one for each")));
  EXPECT_THAT(refused([] { HostTensor::from_bytes(f32, {2}, {}); }),
              AllOf(HasSubstr("has 8 bytes, but 0"), HasSubstr("fix: give 4 for each element")));
  EXPECT_THAT(refused([] { HostTensor::zeros(DType::boolean, {2}); }),
              AllOf(HasSubstr("a tensor of bool"), HasSubstr("fix: use u8 or i32")));
}

TEST(HostTensorTest, EqualityNeedsDtypeShapeAndBytes) {
  EXPECT_NE(HostTensor::zeros(f16, {4}), HostTensor::zeros(bf16, {4}));
  EXPECT_NE(HostTensor::zeros(f16, {4}), HostTensor::zeros(f16, {2, 2}));
  EXPECT_NE(HostTensor::zeros(f16, {4}), HostTensor::poisoned(f16, {4}));
}

TEST(HostTensorTest, WrongSizesAndIndicesAreUsageErrors) {
  EXPECT_THROW(HostTensor::from_bytes(f32, {2}, std::vector<std::byte>(7)), Error);
  EXPECT_THROW(HostTensor::from_values(f32, {2}, {1}), Error);
  EXPECT_THROW(HostTensor::zeros(f32, {2, -1}), Error);
  EXPECT_THROW(HostTensor::zeros(f32, {INT64_MAX, 4}), Error);
  EXPECT_THROW(HostTensor::zeros(f32, {2, 2}).at({1}), Error);
  EXPECT_THROW(HostTensor::zeros(f32, {2, 2}).at({1, 2}), Error);
  EXPECT_THROW(HostTensor::zeros(f32, {2}).flat(-1), Error);
  EXPECT_EQ(test::usage_error_of([] { HostTensor::zeros(static_cast<DType>(77), {2}); }),
            "error: there is no dtype of number 77\n"
            "  fix: take one that tilewright/dtype.h names, such as bf16");
}

TEST(HostTensorTest, MoreThanThereIsMemoryIsAnError) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer ends the program";
#endif
  try {
    HostTensor::zeros(f32, {std::int64_t{1} << 50});
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unavailable);
    EXPECT_NE(error.message().find("no memory for a tensor of shape {1125899906842624}"),
              std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace tilewright
