#include "ir/builder.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verifier.h"

namespace tilewright::ir {
namespace {

TEST(Builder, BuildsWhatTheTextSays) {
  Kernel kernel;
  kernel.name = "built";
  kernel.dims = {Dim::symbol("n")};
  kernel.grid = {ceil_div(kernel.dims[0], 64)};
  kernel.body.arguments = {kernel.add_value(Type::scalar(DType::i32))};
  Builder b(kernel, kernel.body);
  const ValueId zero = b.constant(0), limit = b.dim(kernel.dims[0]), step = b.dim(Dim(64));
  const ValueId start = b.value(Op::splat, {b.constant(1.0)}, Type::tile(DType::f32, {64, 1}));
  const auto sums = b.for_loop(zero, limit, step, {start},
                               [](Builder& in, ValueId index, const std::vector<ValueId>& carried) {
                                 const ValueId scale = in.cast(index, DType::f32);
                                 return std::vector{in.binary(Op::mul, carried[0], scale)};
                               });
  b.if_then(
      b.binary(Op::lt, limit, step), [&](Builder&) { return sums; },
      [&](Builder& in) { return std::vector{in.elementwise(Op::neg, sums)}; });
  EXPECT_NO_THROW(verify(kernel));
  canonicalise(kernel);
  EXPECT_EQ(to_text(kernel), R"(kernel "built" tile
dim n
grid (ceil_div(n, 64))
body (%0: i32) {
  %1: i32 = constant {value = 0}
  %2: i32 = dim {dim = dim(n)}
  %3: i32 = constant {value = 64}
  %4: f32 = constant {value = 1.0}
  %5: tile<f32, 64x1> = splat %4
  %6: tile<f32, 64x1> = for_loop %1, %2, %3, %5 (%7: i32, %8: tile<f32, 64x1>) {
    %9: f32 = cast %7
    %10: tile<f32, 64x1> = mul %8, %9
    yield %10
  }
  %11: bool = lt %2, %3
  %12: tile<f32, 64x1> = if_then %11 () {
    yield %6
  } () {
    %13: tile<f32, 64x1> = neg %6
    yield %13
  }
}
)");
}

TEST(Builder, RolesAndElection) {
  Kernel kernel;
  kernel.name = "roles";
  kernel.form = Form::machine;
  kernel.target = default_target();
  kernel.grid = {1};
  kernel.threads = 128;
  Builder b(kernel, kernel.body, {"roles.cpp", 5});
  b.role({{Key::name, std::string("math")},
          {Key::first_warp, std::int64_t{0}},
          {Key::warps, std::int64_t{4}},
          {Key::registers, std::int64_t{0}}},
         [](Builder& in, ValueId) {
           in.elect([](Builder& one) { one.append(Op::bulk_commit, {}, {}); });
         });
  EXPECT_NO_THROW(verify(kernel));
  EXPECT_EQ(kernel.body.body[0].blocks[0].body[0].where.line, 5);
}

TEST(Builder, RefusesOperandsThatDoNotFit) {
  Kernel kernel;
  Builder b(kernel, kernel.body, {"bad.cpp", 3});
  try {
    b.binary(Op::add, b.constant(1), b.constant(1.0));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.message(), "add: operand 0 is i32 but operand 1 is f32");
    EXPECT_EQ(error.location().line, 3);
  }
}

}  // namespace
}  // namespace tilewright::ir
