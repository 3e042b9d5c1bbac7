#include "simulator/tile_evaluator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "simulator/interpreter_runs.h"

// Single operations of tiles, as the interpreter evaluates them.
namespace tilewright::simulator {
namespace {

using ir::Op;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ElementwiseTest, FunctionsOfOneFloatAreThoseOfTheStandardLibrary) {
  const std::vector<double> values = {0.25, 1, 2.5, 7, 0.001, 30, -1.5, -0.0, kInfinity};
  const auto check = [&](Op op, const std::function<double(double)>& expected) {
    const HostTensor y = evaluate({column(f32, values)}, f32, {9},
                                  [op](KernelBuilder& b, auto& x) { return b.fn(op, {x[0]}); });
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double right = expected(static_cast<float>(values[i]));
      const double got = y.flat(static_cast<std::int64_t>(i));
      if (std::isnan(right) || std::isinf(right)) {
        EXPECT_EQ(std::isnan(got), std::isnan(right)) << ir::info(op).name << values[i];
        if (std::isinf(right)) {
          EXPECT_EQ(got, right) << ir::info(op).name << values[i];
        }
      } else {
        EXPECT_NEAR(got, right, 3e-7 * std::abs(right)) << ir::info(op).name << " " << values[i];
        EXPECT_EQ(std::signbit(got), std::signbit(right)) << ir::info(op).name << " " << values[i];
      }
    }
  };
  check(Op::neg, [](double x) { return -x; });
  check(Op::abs, [](double x) { return std::abs(x); });
  check(Op::exp, [](double x) { return std::exp(x); });
  check(Op::exp2, [](double x) { return std::exp2(x); });
  check(Op::log, [](double x) { return std::log(x); });
  check(Op::log2, [](double x) { return std::log2(x); });
  check(Op::sqrt, [](double x) { return std::sqrt(x); });
  check(Op::rsqrt, [](double x) { return 1 / std::sqrt(x); });
  check(Op::rcp, [](double x) { return 1 / x; });
  check(Op::tanh, [](double x) { return std::tanh(x); });
  check(Op::log1p, [](double x) { return std::log1p(x); });
  check(Op::expm1, [](double x) { return std::expm1(x); });
  check(Op::erf, [](double x) { return std::erf(x); });
  check(Op::sin, [](double x) { return std::sin(x); });
  check(Op::cos, [](double x) { return std::cos(x); });
  check(Op::floor, [](double x) { return std::floor(x); });
  check(Op::ceil, [](double x) { return std::ceil(x); });
  check(Op::rint, [](double x) { return std::nearbyint(x); });
}

TEST(ElementwiseTest, APowerOfTwoByAPolynomial) {
  std::vector<double> values = {kInfinity, -kInfinity, kNan, -126.5, 200, -0.0};
  const std::size_t special = values.size();
  for (int i = -1250; i < 1270; ++i) values.push_back(i / 10.0 + 1e-3 * (i % 7));
  const auto count = static_cast<std::int64_t>(values.size());
  const HostTensor y = evaluate({column(f32, values)}, f32, {count}, [](KernelBuilder& b, auto& x) {
    return b.fn(Op::exp2_polynomial, {x[0]});
  });
  EXPECT_EQ(y.flat(0), kInfinity);
  EXPECT_EQ(y.flat(1), 0);
  EXPECT_TRUE(std::isnan(y.flat(2)));
  EXPECT_EQ(y.flat(3), 0);
  EXPECT_EQ(y.flat(4), kInfinity);
  EXPECT_EQ(y.flat(5), 1);
  for (std::size_t i = special; i < values.size(); ++i) {
    const double right = std::exp2(static_cast<double>(static_cast<float>(values[i])));
    EXPECT_NEAR(y.flat(static_cast<std::int64_t>(i)), right, 3e-6 * right) << values[i];
  }
}

TEST(ElementwiseTest, FunctionsOfTwoAndThreeFloats) {
  const std::vector<double> a = {1.5, -2, kNan, 4, 3}, c = {0.5, 8, 2, kNan, -3};
  const auto apply = [&](Op op) {
    return evaluate({column(f32, a), column(f32, c)}, f32, {5}, [op](KernelBuilder& b, auto& x) {
      return b.fn(op, {x[0], x[1]});
    });
  };
  const auto values = [](const HostTensor& y, std::int64_t count) {
    std::vector<double> all;
    for (std::int64_t i = 0; i < count; ++i) all.push_back(y.flat(i));
    return all;
  };
  using List = std::vector<double>;
  EXPECT_EQ(values(apply(Op::add), 2), (List{2, 6}));
  EXPECT_EQ(values(apply(Op::sub), 2), (List{1, -10}));
  EXPECT_EQ(values(apply(Op::mul), 2), (List{0.75, -16}));
  EXPECT_EQ(values(apply(Op::div), 2), (List{3, -0.25}));
  EXPECT_EQ(values(apply(Op::min), 5), (List{0.5, -2, 2, 4, -3}));
  EXPECT_EQ(values(apply(Op::max), 5), (List{1.5, 8, 2, 4, 3}));
  EXPECT_TRUE(std::isnan(apply(Op::add).flat(2)));
  // (1 + 2^-12)^2 - 1: the square's last bit is lost unless rounded once.
  const double e = 1 + std::ldexp(1, -12);
  const HostTensor y =
      evaluate({column(f32, {e}), column(f32, {-1})}, f32, {1}, [](KernelBuilder& b, auto& x) {
        return b.fn(Op::fma, {x[0], x[0], x[1]});
      });
  EXPECT_EQ(y.flat(0), std::ldexp(1, -11) + std::ldexp(1, -24));
}

TEST(ElementwiseTest, IntegersDivideTowardMinusInfinity) {
  const HostTensor a = column(i32, {7, -7, 7, -7, 6}), c = column(i32, {2, 2, -2, -2, 3});
  const auto apply = [&](Op op) {
    const HostTensor y = evaluate({a, c}, i32, {5}, [op](KernelBuilder& b, auto& x) {
      return b.fn(op, {x[0], x[1]});
    });
    return y;
  };
  EXPECT_EQ(apply(Op::div), column(i32, {3, -4, -4, 3, 2}));
  EXPECT_EQ(apply(Op::mod), column(i32, {1, 1, -1, -1, 0}));
  EXPECT_EQ(apply(Op::ceildiv), column(i32, {4, -3, -3, 4, 2}));
  EXPECT_EQ(apply(Op::min), column(i32, {2, -7, -2, -7, 3}));
  EXPECT_EQ(apply(Op::max), column(i32, {7, 2, 7, -2, 6}));
  EXPECT_EQ(apply(Op::mul), column(i32, {14, -14, -14, 14, 18}));
}

TEST(ElementwiseTest, BitsOfIntegers) {
  const HostTensor a = column(i32, {12, -7, INT32_MIN, 1, -1}),
                   c = column(i32, {10, 3, 31, 32, -1});
  const auto apply = [&](Op op) {
    return evaluate({a, c}, i32, {5}, [op](KernelBuilder& b, auto& x) {
      return ir::info(op).arity == 1 ? b.fn(op, {x[0]}) : b.fn(op, {x[0], x[1]});
    });
  };
  EXPECT_EQ(apply(Op::bit_and), column(i32, {8, 1, 0, 0, -1}));
  EXPECT_EQ(apply(Op::bit_or), column(i32, {14, -5, INT32_MIN + 31, 33, -1}));
  EXPECT_EQ(apply(Op::bit_xor), column(i32, {6, -6, INT32_MIN + 31, 33, 0}));
  EXPECT_EQ(apply(Op::bit_not), column(i32, {-13, 6, INT32_MAX, -2, 0}));
  EXPECT_EQ(apply(Op::shift_left), column(i32, {12288, -56, 0, 0, 0}));
  EXPECT_EQ(apply(Op::shift_right), column(i32, {0, -1, -1, 0, -1}));
}

TEST(ElementwiseTest, ComparisonsLogicAndSelect) {
  const HostTensor a = column(f32, {1, 2, 3, kNan}), c = column(f32, {2, 2, 2, 2});
  const auto count = [&](const std::function<Id(KernelBuilder&, Id, Id)>& condition) {
    const HostTensor y = evaluate({a, c}, i32, {4}, [&](KernelBuilder& b, auto& x) {
      const Id yes = b.splat({4}, b.integer(1)), no = b.splat({4}, b.integer(0));
      return b.fn(Op::select, {condition(b, x[0], x[1]), yes, no});
    });
    return std::vector<double>{y.flat(0), y.flat(1), y.flat(2), y.flat(3)};
  };
  const auto compare = [](KernelBuilder& b, Op op, Id x, Id y) {
    return b.fn(op, {x, y}, DType::boolean);
  };
  using List = std::vector<double>;
  EXPECT_EQ(count([&](auto& b, Id x, Id y) { return compare(b, Op::lt, x, y); }),
            (List{1, 0, 0, 0}));
  EXPECT_EQ(count([&](auto& b, Id x, Id y) { return compare(b, Op::le, x, y); }),
            (List{1, 1, 0, 0}));
  EXPECT_EQ(count([&](auto& b, Id x, Id y) { return compare(b, Op::eq, x, y); }),
            (List{0, 1, 0, 0}));
  EXPECT_EQ(count([&](auto& b, Id x, Id y) { return compare(b, Op::ne, x, y); }),
            (List{1, 0, 1, 1}));
  EXPECT_EQ(count([&](auto& b, Id x, Id y) {
              return b.fn(Op::logical_and, {compare(b, Op::le, x, y), compare(b, Op::ne, x, y)});
            }),
            (List{1, 0, 0, 0}));
  EXPECT_EQ(count([&](auto& b, Id x, Id y) {
              return b.fn(Op::logical_or, {compare(b, Op::lt, x, y), compare(b, Op::eq, x, y)});
            }),
            (List{1, 1, 0, 0}));
  EXPECT_EQ(
      count([&](auto& b, Id x, Id y) { return b.fn(Op::logical_not, {compare(b, Op::le, x, y)}); }),
      (List{0, 0, 1, 1}));
}

TEST(ElementwiseTest, CastsRoundToTheNearest) {
  const HostTensor x = column(f32, {0.5, 1.5, -2.5, 1e10, kNan, 1.001});
  const auto cast = [&](DType through, DType to) {
    return evaluate({x}, to, {6},
                    [&](KernelBuilder& b, auto& in) { return b.cast(b.cast(in[0], through), to); });
  };
  EXPECT_EQ(cast(i32, i32), column(i32, {0, 2, -2, INT32_MAX, 0, 1}));
  EXPECT_EQ(cast(bf16, f32).flat(5), 1.0);
  EXPECT_EQ(cast(f8e4m3, f32).flat(3), 448);
  EXPECT_TRUE(std::isnan(cast(f8e4m3, f32).flat(4)));
  EXPECT_EQ(cast(f16, f32).flat(3), kInfinity);
}

TEST(ElementwiseTest, CastsToBytesSaturate) {
  const HostTensor reals = column(f32, {0.5, 1.5, -2.5, 1e10, kNan, -200, 255.5});
  const HostTensor whole = column(i32, {0, 2, -2, INT32_MAX, 127, -200, 256});
  const auto cast = [](const HostTensor& x, DType through) {
    return evaluate({x}, i32, {7}, [&](KernelBuilder& b, auto& in) {
      return b.cast(b.cast(in[0], through), i32);
    });
  };
  EXPECT_EQ(cast(reals, i8), column(i32, {0, 2, -2, 127, 0, -128, 127}));
  EXPECT_EQ(cast(reals, u8), column(i32, {0, 2, 0, 255, 0, 0, 255}));
  EXPECT_EQ(cast(whole, i8), column(i32, {0, 2, -2, 127, 127, -128, 127}));
  EXPECT_EQ(cast(whole, u8), column(i32, {0, 2, 0, 255, 127, 0, 255}));
}

TEST(ElementwiseTest, ANarrowResultIsRounded) {
  const HostTensor x = column(bf16, {256}), y = column(bf16, {1});
  const auto sum = [&](const InterpreterOptions& options) {
    return evaluate(
               {x, y}, f32, {1},
               [](KernelBuilder& b, auto& in) {
                 return b.cast(b.fn(Op::add, {in[0], in[1]}), f32);
               },
               options)
        .flat(0);
  };
  EXPECT_EQ(sum({}), 256);
  InterpreterOptions oracle;
  oracle.float64 = true;
  EXPECT_EQ(sum(oracle), 257);
}

TEST(ElementwiseTest, AnAxisOfSize1AndAScalarStretch) {
  const HostTensor rows = HostTensor::from_values(f32, {3, 1}, {10, 20, 30});
  const HostTensor columns = HostTensor::from_values(f32, {1, 2}, {1, 2});
  const HostTensor y = evaluate({rows, columns}, f32, {3, 2}, [](KernelBuilder& b, auto& x) {
    return b.fn(Op::mul, {b.fn(Op::add, {x[0], x[1]}), b.number(2)});
  });
  EXPECT_EQ(y, HostTensor::from_values(f32, {3, 2}, {22, 24, 42, 44, 62, 64}));
}

TEST(TilesTest, TransposeSliceReshapeAndIota) {
  std::vector<double> values(12);
  for (std::size_t i = 0; i < 12; ++i) values[i] = static_cast<double>(i);
  const HostTensor x = HostTensor::from_values(f32, {3, 4}, values);
  EXPECT_EQ(evaluate({x}, f32, {4, 3}, [](auto& b, auto& in) { return b.transpose(in[0]); }),
            HostTensor::from_values(f32, {4, 3}, {0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  EXPECT_EQ(evaluate({x}, f32, {2, 6},
                     [](KernelBuilder& b, auto& in) {
                       return b.add(Op::reshape, {in[0]}, ir::Type::tile(f32, {2, 6}));
                     }),
            HostTensor::from_values(f32, {2, 6}, values));
  EXPECT_EQ(evaluate({x}, f32, {2, 2},
                     [](KernelBuilder& b, auto& in) {
                       return b.add(Op::slice, {in[0]}, ir::Type::tile(f32, {2, 2}),
                                    {{ir::Key::offsets, Shape{1, 2}}});
                     }),
            HostTensor::from_values(f32, {2, 2}, {6, 7, 10, 11}));
  EXPECT_EQ(evaluate({}, i32, {2, 3},
                     [](KernelBuilder& b, auto&) {
                       return b.iota({2, 3}, 0);
                     }),
            HostTensor::from_values(i32, {2, 3}, {0, 0, 0, 1, 1, 1}));
}

// A tile of {4, 4} of which `extents` exist in a {3, 2} tensor that lies in NaN.
TEST(TilesTest, WhatDoesNotExistReachesNoResult) {
  const HostTensor x = HostTensor::from_values(f32, {3, 2}, {1, 5, 3, 4, 2, 6});
  const Padded source = padded(x);
  for (const std::int64_t limit : {0, 2, 100}) {
    KernelBuilder b;
    const Id in = b.tensor("in", f32, {3, 2}), sum = b.tensor("sum", f32, {4, 1}),
             most = b.tensor("most", f32, {1, 4}), product = b.tensor("product", f32, {4, 4});
    const Id zero = b.integer(0), far = b.integer(100), rows = b.integer(3), columns = b.integer(2);
    const Id end = b.integer(limit);
    const Id tile = b.load(in, {zero, zero}, {rows, b.fn(Op::min, {end, columns})}, {4, 4});
    b.store(sum, b.reduce(Op::add, tile, 1), {zero, zero}, {far, far}, {4, 1});
    const Id flat = b.load(in, {zero, zero}, {b.fn(Op::min, {end, rows}), columns}, {4, 4});
    b.store(most, b.reduce(Op::max, flat, 0), {zero, zero}, {far, far}, {1, 4});
    b.store(product, b.dot(tile, b.transpose(tile)), {zero, zero}, {far, far}, {4, 4});
    HostTensor sums = HostTensor::poisoned(f32, {4, 1}), mosts = HostTensor::poisoned(f32, {1, 4}),
               products = HostTensor::poisoned(f32, {4, 4});
    interpret(b.finish(),
              {{source.argument, argument(sums), argument(mosts), argument(products)}, {}});
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(sums.flat(i), limit == 0 ? 0 : x.at({i, 0}) + x.at({i, 1})) << limit;
      for (std::int64_t j = 0; j < 3; ++j) {
        const double right = x.at({i, 0}) * x.at({j, 0}) + x.at({i, 1}) * x.at({j, 1});
        EXPECT_EQ(products.at({i, j}), limit == 0 ? 0 : right) << limit;
      }
    }
    EXPECT_EQ(mosts.flat(0), limit == 0 ? -kInfinity : 3) << limit;
    EXPECT_EQ(mosts.flat(1), limit == 0 ? -kInfinity : limit == 2 ? 5 : 6) << limit;
    for (const double outside :
         {sums.flat(3), mosts.flat(2), mosts.flat(3), products.at({3, 0}), products.at({0, 3})}) {
      EXPECT_TRUE(std::isnan(outside)) << limit;  // not written
    }
  }
}

// A tile that reaches out of a {3, 2} tensor on all sides, as far as its limits say.
TEST(TilesTest, WhatLiesOutsideOfItsTensorIsZeroAndIsNotWritten) {
  const HostTensor x = HostTensor::from_values(f32, {3, 2}, {1, 5, 3, 4, 2, 6});
  const Padded source = padded(x);
  KernelBuilder b;
  const Id in = b.tensor("in", f32, {3, 2}), out = b.tensor("out", f32, {4, 3}),
           least = b.tensor("least", f32, {1, 4});
  const Id zero = b.integer(0), before = b.integer(-1), far = b.integer(100);
  const Id tile = b.load(in, {before, before}, {b.integer(4), b.integer(3)}, {8, 4});
  b.store(out, tile, {zero, before}, {far, far}, {8, 4});
  b.store(least, b.reduce(Op::min, tile, 0), {zero, zero}, {far, far}, {1, 4});
  HostTensor stored = HostTensor::poisoned(f32, {4, 3}), leasts = HostTensor::poisoned(f32, {1, 4});
  interpret(b.finish(), {{source.argument, argument(stored), argument(leasts)}, {}});
  EXPECT_EQ(stored, HostTensor::from_values(f32, {4, 3}, {0, 0, 0, 1, 5, 0, 3, 4, 0, 2, 6, 0}));
  EXPECT_EQ(leasts, HostTensor::from_values(f32, {1, 4}, {0, 0, 0, 0}));
}

TEST(TilesTest, ReductionsIgnoreNanOperandsOfMinAndMax) {
  const HostTensor x = HostTensor::from_values(f32, {2, 3}, {kNan, 2, 1, kNan, kNan, kNan});
  const HostTensor least =
      evaluate({x}, f32, {2, 1}, [](auto& b, auto& in) { return b.reduce(Op::min, in[0], 1); });
  EXPECT_EQ(least.flat(0), 1);
  EXPECT_TRUE(std::isnan(least.flat(1)));
}

TEST(TilesTest, IntegerProductsAreExact) {
  const HostTensor a = HostTensor::from_values(i32, {1, 2}, {1 << 24, 3});
  const HostTensor c = HostTensor::from_values(i32, {2, 1}, {100, 1});
  EXPECT_EQ(evaluate({a, c}, i32, {1, 1}, [](auto& b, auto& x) { return b.dot(x[0], x[1], i32); })
                .flat(0),
            (1 << 24) * 100 + 3);
}

}  // namespace
}  // namespace tilewright::simulator
