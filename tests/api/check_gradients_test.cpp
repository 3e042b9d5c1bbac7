#include "tilewright/check_gradients.h"
#include "common/error_text.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tilewright/asynchronous.h"
#include "tilewright/error.h"

// A layer of a user's, Y = X W^T and its gradients, and what may be wrong with it.
namespace tilewright {
namespace {

using testing::HasSubstr;

constexpr int kIn = 24, kOut = 16, kBlock = 16;

Kernel linear_forward(DType dtype = bf16) {
  Kernel kernel("linear_forward");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", dtype, {rows, kIn}), W = kernel.in("W", dtype, {kOut, kIn});
  const Tensor Y = kernel.out("Y", dtype, {rows, kOut});
  const auto [x] = kernel.grid(ceil_div(rows, kBlock));
  const Block block = rows.block(x, kBlock);
  store(Y(block, all), dot(load(X(block, all)), load(W(all, all)).T()).cast(dtype));
  return kernel;
}

// What of the backward pass is to be wrong, and how it names its tensors.
struct Backward {
  double factor_x = 1, factor_w = 1;
  bool without_w = false;
  bool rounds_sums = false;  // of dW, after each block of rows
  const char* grad_y = "dY";
  const char* grad_w = "dW";
};

// One CTA sums dW over all rows.
Kernel linear_backward(const Backward& b = {}) {
  Kernel kernel("linear_backward");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", bf16, {rows, kIn}), W = kernel.in("W", bf16, {kOut, kIn});
  const Tensor dY = kernel.in(b.grad_y, bf16, {rows, kOut});
  const Tensor dX = kernel.out("dX", bf16, {rows, kIn});
  std::optional<Tensor> dW;
  if (!b.without_w) dW = kernel.out(b.grad_w, bf16, {kOut, kIn});
  kernel.grid(1);
  const Tile w = load(W(all, all));
  Var sum{zeros({kOut, kIn})};
  for (Block block : blocks(rows, kBlock)) {
    const Tile grad = load(dY(block, all));
    store(dX(block, all), (dot(grad, w) * b.factor_x).cast(bf16));
    const Tile next = dot(grad.T(), load(X(block, all)), sum);
    sum = b.rounds_sums ? next.cast(f8e4m3).cast(f32) : next;
  }
  if (dW) store((*dW)(all, all), (Tile(sum) * b.factor_w).cast(bf16));
  return kernel;
}

GradientOptions rows(std::int64_t count) {
  GradientOptions options;
  options.sizes = {{"rows", count}};
  return options;
}

std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return test::without_source_lines(error.what());
  }
  ADD_FAILURE() << "nothing was raised";
  return {};
}

TEST(CheckGradients, OfAUsersPair) {
  const GradientReport report = check_gradients(linear_forward(), linear_backward(), rows(37));
  ASSERT_EQ(report.gradients.size(), 2u);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.gradients[0].gradient, "dX");
  EXPECT_EQ(report.gradients[0].of, "X");
  EXPECT_EQ(report.gradients[1].of, "W");
  for (const GradientCheck& each : report.gradients) {
    EXPECT_LT(each.error, 1e-9);
    EXPECT_NE(each.by_differences, 0);
    // bf16's, and no more than a few of them.
    EXPECT_GT(each.own_error, 1e-4);
    EXPECT_LT(each.own_allowed, 2e-2);
    EXPECT_THAT(report.text(),
                HasSubstr(fmt::format("by differences {:.9g}, by {} {:.9g}\n", each.by_differences,
                                      each.gradient, each.by_gradient)));
  }
  EXPECT_THAT(report.text(), HasSubstr("dX, the gradient of X: ok"));
}

TEST(CheckGradients, NamesTheGradientThatIsWrong) {
  Backward wrong;
  wrong.factor_w = 1 + 1e-5;
  const GradientReport report = check_gradients(linear_forward(), linear_backward(wrong), rows(37));
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(report.gradients[0].ok());
  EXPECT_FALSE(report.gradients[1].ok());
  EXPECT_THAT(report.text(), HasSubstr("dX, the gradient of X: ok"));
  EXPECT_THAT(report.text(), HasSubstr("dW, the gradient of W: WRONG"));
}

// In float64 nothing is rounded; in its own types the sums of dW are, after each block of rows.
TEST(CheckGradients, ShowsWhatItsOwnTypesCost) {
  Backward rounds;
  rounds.rounds_sums = true;
  const GradientReport report =
      check_gradients(linear_forward(), linear_backward(rounds), rows(9 * kBlock));
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_LT(report.gradients[0].own_error, 5e-3);
  EXPECT_GT(report.gradients[1].own_error, 4e-2);
  EXPECT_LT(report.gradients[1].own_allowed, 3 * report.gradients[1].own_error);
}

TEST(CheckGradients, ProgramsAreTaken) {
  Program forward("forward");
  const Dim count = forward.dim("rows");
  const Buffer X = forward.in("X", bf16, {count, kIn}), W = forward.in("W", bf16, {kOut, kIn});
  const Buffer Y = forward.out("Y", bf16, {count, kOut});
  forward.rank(0).stream().launch(linear_forward(), {X, W, Y});
  // By way of scratch, a copy and zeros, none of which rounds in float64.
  Program backward("backward");
  const Dim n = backward.dim("rows");
  const Buffer x = backward.in("X", bf16, {n, kIn}), w = backward.in("W", bf16, {kOut, kIn});
  const Buffer dy = backward.in("dY", bf16, {n, kOut});
  const Buffer dx = backward.out("dX", bf16, {n, kIn}), dw = backward.out("dW", bf16, {kOut, kIn});
  const Buffer kept = backward.scratch("kept", bf16, {kOut, kIn});
  const Stream stream = backward.rank(0).stream();
  stream.zero(kept);
  stream.launch(linear_backward(), {x, w, dy, dx, kept});
  stream.copy(dw, kept);

  const GradientReport both = check_gradients(forward, backward, rows(37));
  EXPECT_TRUE(both.ok()) << both.text();
  EXPECT_TRUE(check_gradients(linear_forward(), backward, rows(37)).ok());
  EXPECT_TRUE(check_gradients(forward, linear_backward(), rows(37)).ok());
  stream.zero(dw);
  const GradientReport wrong = check_gradients(forward, backward, rows(37));
  EXPECT_TRUE(wrong.gradients[0].ok());
  EXPECT_FALSE(wrong.gradients[1].ok());
  EXPECT_EQ(wrong.gradients[1].by_gradient, 0);
  EXPECT_GT(wrong.gradients[1].error, 1e-3);
}

TEST(CheckGradients, InputsMayBeGiven) {
  GradientOptions options;
  options.inputs = {{"X", HostTensor::zeros(bf16, {20, kIn})}};
  const GradientReport report = check_gradients(linear_forward(), linear_backward(), options);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.gradients[1].by_gradient, 0) << "dW = dY^T X";
  EXPECT_NE(report.gradients[0].by_gradient, 0);
}

TEST(CheckGradients, RunsTheBackwardPassOnATarget) {
  GradientOptions options = rows(16);
  options.target = "sim:sm_90a";
  const auto compiles = [&] { check_gradients(linear_forward(), linear_backward(), options); };
  // 24 columns are none that sm_90a's products take: so it was compiled.
  EXPECT_THAT(error_of(compiles), HasSubstr("check_gradients_test.cpp"));
}

TEST(CheckGradients, TensorsMayHaveOtherNames) {
  Backward named;
  named.grad_y = "grad_output";
  named.grad_w = "grad_weight";
  GradientOptions options = rows(20);
  options.gradients = {{"grad_output", "Y"}, {"grad_weight", "W"}};
  const GradientReport report = check_gradients(linear_forward(), linear_backward(named), options);
  EXPECT_TRUE(report.ok()) << report.text();
  EXPECT_EQ(report.gradients[1].gradient, "grad_weight");
  const std::string error =
      error_of([&] { check_gradients(linear_forward(), linear_backward(named), rows(20)); });
  EXPECT_THAT(error, HasSubstr("input grad_output is neither a tensor nor the gradient of an "
                               "output of linear_forward"));
  EXPECT_THAT(error, HasSubstr("name it after one of X, W, Y"));
}

TEST(CheckGradients, AMissingGradientIsNamed) {
  Backward missing;
  missing.without_w = true;
  const auto check = [&](const GradientOptions& options) {
    return check_gradients(linear_forward(), linear_backward(missing), options);
  };
  const std::string error = error_of([&] { check(rows(20)); });
  EXPECT_THAT(error, HasSubstr("linear_backward has no output for the gradient of W, an input of "
                               "linear_forward"));
  EXPECT_THAT(error, HasSubstr("declare an output dW"));
  GradientOptions constant = rows(20);
  constant.constants = {"W"};
  EXPECT_TRUE(check(constant).ok());
}

TEST(CheckGradients, AGradientOfAnotherShapeIsNamed) {
  const std::string error = error_of([&] {
    Kernel kernel("linear_backward");
    const Dim count = kernel.dim("rows");
    kernel.in("X", bf16, {count, kIn});
    kernel.in("dY", bf16, {count, kOut});
    kernel.out("dX", bf16, {count, kIn});
    kernel.out("dW", bf16, {kIn, kOut});
    kernel.grid(1);
    check_gradients(linear_forward(), kernel, rows(20));
  });
  EXPECT_THAT(error, HasSubstr("dW, the gradient of W"));
  EXPECT_THAT(error, HasSubstr("24"));
  EXPECT_THAT(error, HasSubstr("16"));
}

TEST(CheckGradients, AnIntegerHasNoGradient) {
  const auto declared = [](const char* name, const char* of_number, bool is_forward) {
    Kernel kernel(name);
    const Dim count = kernel.dim("rows");
    kernel.in("X", bf16, {count, kIn});
    if (is_forward) kernel.in("N", i32, {count});
    if (is_forward) kernel.out("Y", bf16, {count, kIn});
    if (!is_forward) kernel.in("dY", bf16, {count, kIn});
    if (!is_forward) kernel.out("dX", bf16, {count, kIn});
    if (!is_forward) kernel.out(of_number, i32, {count});
    kernel.grid(1);
    return kernel;
  };
  EXPECT_THAT(error_of([&] {
                check_gradients(declared("moved", "N", true),
                                declared("moved_backward", "dN", false), rows(20));
              }),
              HasSubstr("output dN is no gradient of an input of moved"));
}

TEST(CheckGradients, ABackwardPassWithoutALossIsNone) {
  const std::string error = error_of([&] {
    Kernel kernel("no_backward");
    const Dim count = kernel.dim("rows");
    kernel.in("X", bf16, {count, kIn});
    kernel.out("dX", bf16, {count, kIn});
    kernel.out("dW", bf16, {kOut, kIn});
    kernel.grid(1);
    check_gradients(linear_forward(), kernel, rows(20));
  });
  EXPECT_THAT(error, HasSubstr("no_backward has no input that is the gradient of an output"));
}

TEST(CheckGradients, AnElementThatNobodyStoresIsWrong) {
  Kernel kernel("half");
  const Dim count = kernel.dim("rows");
  const Tensor X = kernel.in("X", bf16, {count, kIn});
  kernel.in("dY", bf16, {count, kOut});
  const Tensor dX = kernel.out("dX", bf16, {count, kIn});
  kernel.grid(1);
  const Block first = count.block(0, kBlock);
  store(dX(first, all), load(X(first, all)));
  GradientOptions options = rows(20);
  options.constants = {"W"};
  options.target = "interpreter";
  EXPECT_THAT(error_of([&] { check_gradients(linear_forward(), kernel, options); }),
              HasSubstr("dX"));
  // Where nobody notices the stores, what was there before stands in the gradient.
  options.target = "cpu";
  EXPECT_FALSE(check_gradients(linear_forward(), kernel, options).ok());
}

TEST(CheckGradients, OptionsThatNameNothingAreErrors) {
  const auto error = [&](const std::function<void(GradientOptions&)>& change) {
    GradientOptions options = rows(20);
    change(options);
    return error_of([&] { check_gradients(linear_forward(), linear_backward(), options); });
  };
  EXPECT_THAT(error([](auto& o) { o.constants = {"Y"}; }),
              HasSubstr("the constant Y is no tensor that it could be"));
  EXPECT_THAT(error([](auto& o) { o.constants = {"Z"}; }), HasSubstr("name one of: X, W"));
  EXPECT_THAT(error([](auto& o) { o.inputs = {{"Z", HostTensor()}}; }), HasSubstr("the input Z"));
  EXPECT_THAT(error([](auto& o) { o.gradients = {{"dZ", "X"}}; }), HasSubstr("the gradient dZ"));
  EXPECT_THAT(error([](auto& o) { o.gradients = {{"dX", "Z"}}; }), HasSubstr("of a gradient Z"));
  EXPECT_THAT(error([](auto& o) { o.directions = 0; }), HasSubstr("0 directions"));
  EXPECT_THAT(error([](auto& o) { o.sizes = {}; }), HasSubstr("rows has no value"));
  EXPECT_THAT(error([](auto& o) { o.sizes = {{"columns", 3}}; }), HasSubstr("no dim columns"));
  EXPECT_THAT(error([](auto& o) { o.target = "nowhere"; }), HasSubstr("nowhere"));
  EXPECT_THAT(error([](auto& o) {
                o.inputs = {{"W", HostTensor::zeros(bf16, {3, kIn})}};
              }),
              HasSubstr("W"));
}

// The scale is a scalar of both: y = s x.
TEST(CheckGradients, ScalarsAreGiven) {
  const auto scaled = [](const char* name, const char* from, const char* to) {
    Kernel kernel(name);
    const Dim count = kernel.dim("rows");
    const Tensor in = kernel.in(from, f32, {count, 8}), out = kernel.out(to, f32, {count, 8});
    const Scalar factor = kernel.scalar("factor", f32);
    const auto [x] = kernel.grid(ceil_div(count, 8));
    const Block block = count.block(x, 8);
    store(out(block, all), load(in(block, all)) * factor);
    return kernel;
  };
  const Kernel forward = scaled("forward", "x", "y"), backward = scaled("backward", "dy", "dx");
  GradientOptions options = rows(20);
  EXPECT_THAT(error_of([&] { check_gradients(forward, backward, options); }),
              HasSubstr("the scalar factor of forward has no value"));
  options.scalars = {{"factor", 0.3}};
  const GradientReport report = check_gradients(forward, backward, options);
  EXPECT_TRUE(report.ok()) << report.text();
}

// Groups of rows, of which the rows do not follow: the forward pass has them by the options.
TEST(CheckGradients, SizesThatNoTensorSaysAreTheOptions) {
  const auto scaled = [](const char* name, const char* from, const char* to, bool counts_rows) {
    Kernel kernel(name);
    const Dim groups = counts_rows ? ceil_div(kernel.dim("rows"), 4) : kernel.dim("groups");
    const Tensor in = kernel.in(from, f32, {groups, 8}), out = kernel.out(to, f32, {groups, 8});
    const auto [x] = kernel.grid(ceil_div(groups, 8));
    const Block block = groups.block(x, 8);
    store(out(block, all), load(in(block, all)) * 3);
    return kernel;
  };
  const GradientReport report = check_gradients(scaled("forward", "x", "y", true),
                                                scaled("backward", "dy", "dx", false), rows(37));
  EXPECT_TRUE(report.ok()) << report.text();
}

// Elementwise passes over {rows, 8} in f32: each is given the tiles of its inputs.
using Elementwise = std::function<Tile(const std::vector<Tile>& inputs)>;
struct Result {
  std::string name;
  Elementwise of;
};
Kernel elementwise(const char* name, const std::vector<std::string>& inputs,
                   const std::vector<Result>& results) {
  Kernel kernel(name);
  const Dim count = kernel.dim("rows");
  std::vector<Tensor> in, out;
  for (const std::string& each : inputs) in.push_back(kernel.in(each, f32, {count, 8}));
  for (const Result& each : results) out.push_back(kernel.out(each.name, f32, {count, 8}));
  const auto [x] = kernel.grid(ceil_div(count, 8));
  const Block block = count.block(x, 8);
  std::vector<Tile> tiles;
  for (const Tensor& each : in) tiles.push_back(load(each(block, all)));
  for (std::size_t i = 0; i < out.size(); ++i) {
    store(out[i](block, all), results[i].of(tiles));
  }
  return kernel;
}

Elementwise product(std::size_t a, std::size_t b) {
  return [a, b](const std::vector<Tile>& in) { return in[a] * in[b]; };
}

// Inputs that were alike would hide which of them a gradient is made of.
TEST(CheckGradients, InputsDifferFromEachOther) {
  const Kernel forward = elementwise("forward", {"A", "B"}, {{"Y", product(0, 1)}});
  const Kernel right =
      elementwise("right", {"A", "B", "dY"}, {{"dA", product(2, 1)}, {"dB", product(2, 0)}});
  const Kernel swapped =
      elementwise("swapped", {"A", "B", "dY"}, {{"dA", product(2, 0)}, {"dB", product(2, 1)}});
  EXPECT_TRUE(check_gradients(forward, right, rows(20)).ok());
  const GradientReport report = check_gradients(forward, swapped, rows(20));
  EXPECT_FALSE(report.gradients[0].ok());
  EXPECT_FALSE(report.gradients[1].ok());
}

// A direction may lie across what is wrong: the worst of several counts.
TEST(CheckGradients, TheWorstOfItsDirectionsCounts) {
  Backward wrong;
  wrong.factor_x = 1.001;
  double last = 0;
  std::vector<double> errors;
  for (const int directions : {1, 2, 4, 16}) {
    GradientOptions options = rows(20);
    options.directions = directions;
    errors.push_back(
        check_gradients(linear_forward(), linear_backward(wrong), options).gradients[0].error);
    EXPECT_GE(errors.back(), last);
    last = errors.back();
  }
  EXPECT_GT(errors.back(), errors.front());
}

TEST(CheckGradients, TheToleranceIsTheCallers) {
  Backward wrong;
  wrong.factor_w = 1 + 1e-5;
  GradientOptions options = rows(37);
  for (const double tolerance : {1e-4, 1e-7}) {
    options.tolerance = tolerance;
    const GradientReport report =
        check_gradients(linear_forward(), linear_backward(wrong), options);
    EXPECT_EQ(report.gradients[1].allowed, tolerance);
    EXPECT_EQ(report.gradients[1].ok(), tolerance > 1e-5);
  }
}

// Beside a large constant, whose gradient nobody asks for, a small one is held to its own size.
TEST(CheckGradients, ASmallGradientIsNotForgivenForALargeLoss) {
  constexpr double kSmall = 0.01;
  const auto scaled = [](std::size_t input, double factor) {
    return [input, factor](const std::vector<Tile>& in) { return in[input] * factor; };
  };
  const Kernel forward =
      elementwise("forward", {"X", "C"},
                  {{"Y", [](const std::vector<Tile>& in) { return in[0] * kSmall + in[1]; }}});
  GradientOptions options = rows(20);
  options.constants = {"C"};
  for (const double wrong : {1.0, 1 + 3e-5}) {
    const Kernel backward = elementwise("backward", {"dY"}, {{"dX", scaled(0, kSmall * wrong)}});
    EXPECT_EQ(check_gradients(forward, backward, options).ok(), wrong == 1) << wrong;
  }
}

// Of outputs that stay infinite nothing is asked; what is no number is never right.
TEST(CheckGradients, InfiniteOutputsAreLeftOutAndNoNumbersAreWrong) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const Kernel forward = elementwise(
      "forward", {"X", "C"}, {{"Y", [](const std::vector<Tile>& in) {
                                 return where(in[1] < 0.0, zeros({8, 8}) - kInfinity, in[0] * 2.0);
                               }}});
  const auto backward = [](double hidden) {
    return elementwise("backward", {"C", "dY"},
                       {{"dX", [hidden](const std::vector<Tile>& in) {
                           return where(in[0] < 0.0, sqrt(zeros({8, 8}) + hidden), in[1] * 2.0);
                         }}});
  };
  GradientOptions options = rows(20);
  options.constants = {"C"};
  const GradientReport right = check_gradients(forward, backward(0), options);
  EXPECT_TRUE(right.ok()) << right.text();
  EXPECT_FALSE(check_gradients(forward, backward(-1), options).ok()) << "NaN";
  EXPECT_FALSE(check_gradients(forward, backward(kInfinity), options).ok()) << "infinity";
  const Kernel no_number = elementwise(
      "no_number", {"X"}, {{"Y", [](const std::vector<Tile>& in) { return sqrt(in[0]); }}});
  const Kernel any =
      elementwise("any", {"dY"}, {{"dX", [](const std::vector<Tile>& in) { return in[0] * 1.0; }}});
  EXPECT_THAT(error_of([&] { check_gradients(no_number, any, rows(20)); }),
              HasSubstr("no_number leaves NaN in Y"));
}

// The interpreter, which differentiates, has neither roles nor streams beside each other.
TEST(CheckGradients, ProgramsOfOtherThanTileLevelKernelsInTurnAreRefused) {
  const auto program = [](const Kernel& kernel, bool beside) {
    Program made("forward");
    const Dim count = made.dim("rows");
    const Buffer X = made.in("X", bf16, {count, kIn}), W = made.in("W", bf16, {kOut, kIn});
    const Buffer Y = made.out("Y", bf16, {count, kOut});
    made.rank(0).stream().launch(kernel, {X, W, Y});
    if (beside) made.rank(0).stream("beside").zero(Y);
    return made;
  };
  EXPECT_THAT(error_of([&] {
                check_gradients(program(linear_forward(), true), linear_backward(), rows(20));
              }),
              HasSubstr("1 rank and 2 streams"));
  Kernel explicit_level("explicit_level");
  const Dim count = explicit_level.dim("rows");
  explicit_level.in("X", bf16, {count, kIn});
  explicit_level.in("W", bf16, {kOut, kIn});
  explicit_level.out("Y", bf16, {count, kOut});
  explicit_level.ctas(1);
  explicit_level.roles({role("all", warps(4), registers(128), [] {})});
  EXPECT_THAT(error_of([&] {
                check_gradients(program(explicit_level, false), linear_backward(), rows(20));
              }),
              HasSubstr("explicit_level is written at the explicit level"));
  EXPECT_THAT(error_of([&] { check_gradients(linear_forward(), explicit_level, rows(20)); }),
              HasSubstr("explicit_level is written at the explicit level"));
}

}  // namespace
}  // namespace tilewright
