#include "tilewright/kernels/rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "kernels/library_case.h"
#include "tilewright/check_gradients.h"
#include "tilewright/kernels/rotary.h"

// Functions of rows and rotary embeddings, on every target without a GPU, against float64.
namespace tilewright {
namespace {

using test::expect_right_everywhere;
using testing::AllOf;
using testing::HasSubstr;

// Rows that end in the middle of a vector, that fill a block, that have several, and none; each
// schedule of sm_90a, and rows beyond all of them.
TEST(RowsTest, AgreeWithFloat64) {
  const std::vector<std::vector<std::string>> sizes = {
      {"rows=7", "columns=37", "dtype=f32"},
      {"rows=5", "columns=1024"},
      {"rows=2", "columns=1500", "dtype=f16"},
      {"rows=1", "columns=8200"},
      {"rows=0", "columns=64"},
  };
  for (const char* kernel :
       {"rms_norm", "rms_norm_backward", "layer_norm", "layer_norm_backward", "softmax",
        "softmax_backward", "cross_entropy", "cross_entropy_backward"}) {
    for (const std::vector<std::string>& size : sizes) expect_right_everywhere({kernel, size});
  }
}

TEST(RowsTest, OptionsAgreeWithFloat64) {
  const std::string rows = "rows=70", columns = "columns=100";
  expect_right_everywhere({"rms_norm", {rows, columns, "weight=false", "epsilon=0.1"}});
  expect_right_everywhere({"rms_norm_backward", {"rows=4200", "columns=20", "bias=true"}});
  for (const char* kernel :
       {"rms_norm", "rms_norm_backward", "layer_norm", "layer_norm_backward"}) {
    for (const char* weight : {"weight=false", "weight=true"}) {
      for (const char* bias : {"bias=false", "bias=true"}) {
        expect_right_everywhere({kernel, {rows, columns, weight, bias}});
      }
    }
  }
  for (const char* kernel : {"cross_entropy", "cross_entropy_backward"}) {
    expect_right_everywhere({kernel, {rows, columns, "smoothing=0.1", "ignore_index=2"}});
  }
}

TEST(RowsTest, GradientsAreTheForwardPasses) {
  const auto check = [](const GradientReport& report, std::size_t count) {
    EXPECT_TRUE(report.ok()) << report.text();
    EXPECT_EQ(report.gradients.size(), count);
  };
  GradientOptions options;
  options.sizes = {{"rows", 20}, {"columns", 37}};
  for (const bool centred : {false, true}) {
    kernels::Norm n;
    n.centred = n.bias = centred;
    check(check_gradients(kernels::norm(n), kernels::norm_backward(n), options), centred ? 3 : 2);
  }
  check(check_gradients(kernels::softmax({}), kernels::softmax_backward({}), options), 1);
  kernels::CrossEntropy loss;
  loss.smoothing = 0.2;
  std::vector<double> targets;
  for (int row = 0; row < 20; ++row) targets.push_back(row == 3 ? -100 : row);
  options.inputs = {{"targets", HostTensor::from_values(i64, {20}, targets)}};
  check(
      check_gradients(kernels::cross_entropy(loss), kernels::cross_entropy_backward(loss), options),
      1);
}

// A row that begins with a block of -inf alone, one that ends so, and one of nothing else.
TEST(RowsTest, MinusInfinityIsNoScore) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<double> values(3 * 2000, kNone);
  values[1500] = 1;
  values[2000] = values[2001] = 3;
  const HostTensor x = HostTensor::from_values(f32, {3, 2000}, values);
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    HostTensor X = x, Y = HostTensor::poisoned(f32, {3, 2000});
    kernels::Softmax s;
    s.dtype = f32;
    compile(kernels::softmax(s), target).run({ref(X), ref(Y)});
    EXPECT_EQ(Y.flat(1500), 1) << target;
    EXPECT_EQ(Y.flat(1499), 0) << target;
    EXPECT_EQ(Y.flat(2001), 0.5) << target;
    EXPECT_EQ(Y.flat(3999), 0) << target;
    EXPECT_TRUE(std::isnan(Y.flat(4000))) << target;
  }
}

TEST(RowsTest, ATargetThatIsNoClassHasAnInfiniteLoss) {
  HostTensor X = HostTensor::random_normal(bf16, {3, 8}, 1);
  HostTensor targets = HostTensor::from_values(i64, {3}, {8, -1, -100});
  HostTensor loss = HostTensor::poisoned(f32, {3}), LSE = HostTensor::poisoned(f32, {3});
  compile(kernels::cross_entropy({}), "cpu").run({ref(X), ref(targets), ref(loss), ref(LSE)});
  EXPECT_TRUE(std::isinf(loss.flat(0)) && std::isinf(loss.flat(1)));
  EXPECT_EQ(loss.flat(2), 0);
}

TEST(RowsTest, WhatTheyRefuse) {
  EXPECT_THAT(test::usage_error_of([] { kernels::norm({.epsilon = -1}); }),
              AllOf(HasSubstr("rows_test.cpp"), HasSubstr("rms_norm: epsilon is -1")));
  EXPECT_THAT(test::usage_error_of([] {
                kernels::softmax({.blocks = {0, 8}});
              }),
              HasSubstr("blocks.rows is 0"));
  EXPECT_THAT(test::usage_error_of([] { kernels::cross_entropy({.smoothing = 2}); }),
              HasSubstr("smoothing is 2"));
  EXPECT_THAT(test::usage_error_of([] { kernels::rotary({.dim = 64, .half = 33}); }),
              HasSubstr("half is 33, and dim is 64"));
  EXPECT_THAT(test::usage_error_of([] {
                library::make_workload(find_kernel("rotary"), {"table=0", "positions=true"}, {}, 0);
              }),
              HasSubstr("table is 0, and positions are drawn below it"));
  const auto in_table = [](const char* table) {
    library::make_workload(find_kernel("rotary"), {"length=8", "batch=1", table}, {}, 0);
  };
  in_table("table=8");
  EXPECT_THAT(test::usage_error_of([&] { in_table("table=7"); }),
              HasSubstr("table is 7, and length is 8"));
  // A row that is longer than what is read at once.
  HostTensor X = HostTensor::zeros(bf16, {1, 9}), Y = X;
  kernels::Softmax whole;
  whole.blocks = {1, 8, true};
  EXPECT_THAT(test::usage_error_of([&] {
                compile(kernels::softmax(whole), "cpu").run({ref(X), ref(Y)});
              }),
              HasSubstr("columns"));
}

// Heads that fill no block, and several; all of a head turned, and a part; positions that are
// given.
TEST(RotaryTest, AgreesWithFloat64) {
  const std::string batch = "batch=2", length = "length=5";
  for (const char* pairs : {"interleaved=false", "interleaved=true"}) {
    expect_right_everywhere({"rotary", {batch, length, pairs, "heads=3", "dim=96", "half=48"}});
    expect_right_everywhere(
        {"rotary", {batch, length, pairs, "heads=40", "positions=true", "table=9", "dtype=f16"}});
    expect_right_everywhere({"rotary", {length, pairs, "dtype=f32", "dim=10", "half=3"}});
  }
}

TEST(RotaryTest, ItsInverseTurnsBack) {
  kernels::Rotary r;
  r.heads = 2, r.dim = 16, r.half = 8;
  r.dtype = f32;
  library::Workload work = library::make_workload(
      find_kernel("rotary"), {"length=6", "heads=2", "dim=16", "half=8", "dtype=f32"}, {}, 1);
  HostTensor turned = HostTensor::poisoned(f32, work.tensors[0].shape()), back = turned;
  const auto turn = [&](HostTensor& from, HostTensor& to) {
    compile(kernels::rotary(r), "cpu")
        .run({ref(from), ref(work.tensors[1]), ref(work.tensors[2]), ref(to)});
  };
  turn(work.tensors[0], turned);
  r.inverse = true;
  turn(turned, back);
  for (std::int64_t i = 0; i < back.elements(); ++i) {
    EXPECT_NEAR(back.flat(i), work.tensors[0].flat(i), 1e-5);
  }
}

}  // namespace
}  // namespace tilewright
