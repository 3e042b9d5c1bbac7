#include "simulator/interpreter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ctime>
#include <functional>
#include <limits>

#include "simulator/kernel_builder.h"
#include "tilewright/error.h"
#include "tilewright/host_tensor.h"

namespace tilewright::simulator {
namespace {

using ir::Op;
using Id = ir::ValueId;
using Shape = std::vector<std::int64_t>;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TensorArgument argument(HostTensor& tensor) {
  return {"tensor", tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()};
}

void run(const ir::Kernel& kernel, const std::vector<HostTensor*>& tensors,
         const InterpreterOptions& options = {}, std::vector<double> scalars = {}) {
  Arguments arguments;
  for (HostTensor* tensor : tensors) arguments.tensors.push_back(argument(*tensor));
  arguments.scalars = std::move(scalars);
  interpret(kernel, arguments, options);
}

// The rows of a larger tensor whose other elements are NaN.
struct Padded {
  HostTensor memory;
  TensorArgument argument;
};
Padded padded(const HostTensor& tensor) {
  const Shape& shape = tensor.shape();
  Padded result{HostTensor::poisoned(tensor.dtype(), {shape[0] + 3, shape[1] + 5}), {}};
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    for (std::int64_t j = 0; j < shape[1]; ++j) result.memory.set({i, j}, tensor.at({i, j}));
  }
  result.argument = {"padded", tensor.dtype(), shape, result.memory.strides(),
                     result.memory.data()};
  return result;
}

// Runs one block that computes a tile from the kernel's tensors and stores it to the last of them.
HostTensor evaluate(std::vector<HostTensor> inputs, DType dtype, Shape shape,
                    const std::function<Id(KernelBuilder&, const std::vector<Id>&)>& body,
                    const InterpreterOptions& options = {}) {
  KernelBuilder b;
  std::vector<Id> tiles, tensors;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Shape& size = inputs[i].shape();
    tensors.push_back(b.tensor("in" + std::to_string(i), inputs[i].dtype(),
                               std::vector<Dim>(size.begin(), size.end())));
  }
  const Id out = b.tensor("out", dtype, std::vector<Dim>(shape.begin(), shape.end()));
  const Id zero = b.integer(0), far = b.integer(1 << 20);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const std::size_t rank = inputs[i].shape().size();
    tiles.push_back(b.load(tensors[i], std::vector<Id>(rank, zero), std::vector<Id>(rank, far),
                           inputs[i].shape()));
  }
  const Id result = body(b, tiles);
  b.store(out, result, std::vector<Id>(shape.size(), zero), std::vector<Id>(shape.size(), far),
          shape);
  HostTensor output = HostTensor::poisoned(dtype, shape);
  std::vector<HostTensor*> all;
  for (HostTensor& input : inputs) all.push_back(&input);
  all.push_back(&output);
  run(b.finish(), all, options);
  return output;
}

HostTensor column(DType dtype, const std::vector<double>& values) {
  return HostTensor::from_values(dtype, {static_cast<std::int64_t>(values.size())}, values);
}

// The text of the error that `action` raises, and its line.
std::pair<std::string, int> error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::internal) << error.what();
    return {error.message(), error.location().line};
  }
  ADD_FAILURE() << "no error";
  return {};
}

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
    const Id zero = b.integer(0), far = b.integer(100), end = b.integer(limit);
    const Id tile = b.load(in, {zero, zero}, {far, end}, {4, 4});
    b.store(sum, b.reduce(Op::add, tile, 1), {zero, zero}, {far, far}, {4, 1});
    const Id flat = b.load(in, {zero, zero}, {end, far}, {4, 4});
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

ir::Kernel gemm_kernel(DType dtype, std::int64_t m, std::int64_t n, std::int64_t k) {
  KernelBuilder b({1, 1});
  const Dim rows = b.dim("m"), columns = b.dim("n"), inner = b.dim("k");
  b.set_grid({ceil_div(rows, m), ceil_div(columns, n)});
  const Id a = b.tensor("A", dtype, {rows, inner}), w = b.tensor("B", dtype, {inner, columns}),
           c = b.tensor("C", dtype, {rows, columns});
  const Id zero = b.integer(0), one = b.integer(1), far = b.integer(INT32_MAX);
  const Id row = b.fn(Op::mul, {b.grid(0), b.integer(m)});
  const Id column = b.fn(Op::mul, {b.grid(1), b.integer(n)});
  const Id initial = b.splat({m, n}, b.number(0)), blocks = b.dim_value(ceil_div(inner, k));
  const Id step = b.integer(k);
  b.open();
  const Id i = b.argument(ir::Type::scalar(i32)), sum = b.argument(ir::Type::tile(f32, {m, n}));
  const Id at = b.fn(Op::mul, {i, step});
  const Id left = b.load(a, {row, at}, {far, far}, {m, k});
  const Id right = b.load(w, {at, column}, {far, far}, {k, n});
  ir::Block body = b.close({b.dot_add(left, right, sum)});
  const Id result = b.control(Op::for_loop, {zero, blocks, one, initial}, 0, {body})[0];
  b.store(c, b.cast(result, dtype), {row, column}, {far, far}, {m, n});
  return b.finish();
}

TEST(KernelsTest, GemmWithTailsInMemoryFullOfNan) {
  const std::int64_t m = 37, n = 29, k = 41;
  const HostTensor a = HostTensor::random_normal(f32, {m, k}, 1);
  const HostTensor w = HostTensor::random_normal(f32, {k, n}, 2);
  const Padded left = padded(a), right = padded(w);
  const ir::Kernel kernel = gemm_kernel(f32, 16, 8, 16);
  for (const bool float64 : {false, true}) {
    Padded out = padded(HostTensor::zeros(f32, {m, n}));
    InterpreterOptions options;
    options.float64 = float64;
    options.threads = 2;
    interpret(kernel, {{left.argument, right.argument, out.argument}, {}}, options);
    for (std::int64_t i = 0; i < m + 3; ++i) {
      for (std::int64_t j = 0; j < n + 5; ++j) {
        const double got = out.memory.at({i, j});
        if (i >= m || j >= n) {
          ASSERT_TRUE(std::isnan(got)) << i << " " << j;  // written outside the tensor
          continue;
        }
        double sum = 0, size = 0;
        for (std::int64_t x = 0; x < k; ++x) {
          sum += a.at({i, x}) * w.at({x, j});
          size += std::abs(a.at({i, x}) * w.at({x, j}));
        }
        if (float64) {
          ASSERT_EQ(got, static_cast<float>(sum));
        } else {
          ASSERT_NEAR(got, sum, 1e-6 * size);
        }
      }
    }
  }
}

struct AttentionShape {
  std::int64_t heads, queries, keys, dim, block_q, block_k;
};

// Q {heads, queries, dim}, K and V {heads, keys, dim}, O {heads, queries, dim}; causal.
ir::Kernel attention_kernel(const AttentionShape& s, DType dtype) {
  KernelBuilder b({1, 1});
  b.set_grid({Dim((s.queries + s.block_q - 1) / s.block_q), s.heads});
  const Id q = b.tensor("Q", dtype, {s.heads, s.queries, s.dim}),
           k = b.tensor("K", dtype, {s.heads, s.keys, s.dim}),
           v = b.tensor("V", dtype, {s.heads, s.keys, s.dim}),
           o = b.tensor("O", dtype, {s.heads, s.queries, s.dim});
  const Shape rows_by_keys = {s.block_q, s.block_k}, rows_by_one = {s.block_q, 1};
  const Id zero = b.integer(0), one = b.integer(1), far = b.integer(INT32_MAX);
  const Id lowest = b.number(-kInfinity);
  const Id head = b.grid(1), row = b.fn(Op::mul, {b.grid(0), b.integer(s.block_q)});
  const Id queries = b.load(q, {head, row, zero}, {far, far, far}, {0, s.block_q, s.dim});
  const Id scale = b.number(1 / std::sqrt(static_cast<double>(s.dim)));
  const Id acc0 = b.splat({s.block_q, s.dim}, b.number(0)), max0 = b.splat(rows_by_one, lowest),
           sum0 = b.splat(rows_by_one, b.number(0));
  const Id diagonal =
      b.fn(Op::add, {b.iota(rows_by_one, 0), b.fn(Op::add, {row, b.integer(s.keys - s.queries)})});
  const Id count = b.integer((s.keys + s.block_k - 1) / s.block_k), step = b.integer(s.block_k);
  b.open();
  const Id i = b.argument(ir::Type::scalar(i32));
  const Id acc = b.argument(ir::Type::tile(f32, {s.block_q, s.dim}));
  const Id max = b.argument(ir::Type::tile(f32, rows_by_one));
  const Id sum = b.argument(ir::Type::tile(f32, rows_by_one));
  const Id at = b.fn(Op::mul, {i, step});
  const Id keys = b.load(k, {head, at, zero}, {far, far, far}, {0, s.block_k, s.dim});
  const Id scores = b.fn(Op::mul, {b.dot(queries, b.transpose(keys)), scale});
  const Id column = b.fn(Op::add, {b.iota({1, s.block_k}, 1), at});
  const Id seen = b.fn(Op::le, {column, diagonal}, DType::boolean);
  const Id masked = b.fn(Op::select, {seen, scores, lowest});
  const Id new_max = b.fn(Op::max, {max, b.reduce(Op::max, masked, 1)});
  // A row with nothing visible yet subtracts 0 rather than -inf.
  const Id none = b.fn(Op::eq, {new_max, lowest}, DType::boolean);
  const Id safe = b.fn(Op::select, {none, b.number(0), new_max});
  const Id p = b.fn(Op::exp, {b.fn(Op::sub, {masked, safe})});
  const Id rescale = b.fn(Op::exp, {b.fn(Op::sub, {max, safe})});
  const Id new_sum = b.fn(Op::fma, {sum, rescale, b.reduce(Op::add, p, 1)});
  const Id values = b.load(v, {head, at, zero}, {far, far, far}, {0, s.block_k, s.dim});
  const Id new_acc = b.dot_add(b.cast(p, dtype), values, b.fn(Op::mul, {acc, rescale}));
  ir::Block body = b.close({new_acc, new_max, new_sum});
  const auto results = b.control(Op::for_loop, {zero, count, one, acc0, max0, sum0}, 0, {body});
  const Id empty = b.fn(Op::eq, {results[2], b.number(0)}, DType::boolean);
  const Id inverse = b.fn(Op::select, {empty, b.number(0), b.fn(Op::rcp, {results[2]})});
  b.store(o, b.cast(b.fn(Op::mul, {results[0], inverse}), dtype), {head, row, zero},
          {far, far, far}, {0, s.block_q, s.dim});
  return b.finish();
}

TEST(KernelsTest, CausalAttentionWithTailsAndRowsThatSeeNothing) {
  const AttentionShape s{2, 21, 13, 8, 8, 4};  // the first 8 queries see nothing
  HostTensor q = HostTensor::random_normal(f32, {s.heads, s.queries, s.dim}, 1);
  HostTensor k = HostTensor::random_normal(f32, {s.heads, s.keys, s.dim}, 2);
  HostTensor v = HostTensor::random_normal(f32, {s.heads, s.keys, s.dim}, 3);
  HostTensor o = HostTensor::poisoned(f32, {s.heads, s.queries, s.dim});
  InterpreterOptions options;
  for (const bool float64 : {false, true}) {
    options.float64 = float64;
    run(attention_kernel(s, f32), {&q, &k, &v, &o}, options);
    for (std::int64_t h = 0; h < s.heads; ++h) {
      for (std::int64_t i = 0; i < s.queries; ++i) {
        std::vector<double> out(static_cast<std::size_t>(s.dim));
        double total = 0;
        for (std::int64_t j = 0; j < s.keys && j <= i + s.keys - s.queries; ++j) {
          double score = 0;
          for (std::int64_t x = 0; x < s.dim; ++x) score += q.at({h, i, x}) * k.at({h, j, x});
          const double p = std::exp(score / std::sqrt(8.0));
          total += p;
          for (std::int64_t x = 0; x < s.dim; ++x) {
            out[static_cast<std::size_t>(x)] += p * v.at({h, j, x});
          }
        }
        for (std::int64_t x = 0; x < s.dim; ++x) {
          const double right = total == 0 ? 0 : out[static_cast<std::size_t>(x)] / total;
          ASSERT_NEAR(o.at({h, i, x}), right, float64 ? 1e-7 : 1e-5) << h << " " << i << " " << x;
        }
      }
    }
  }
}

TEST(ControlTest, WhileIfAndLoopsThatRunNoTimes) {
  KernelBuilder b;
  const Id limit = b.scalar("limit", i32), out = b.tensor("out", i32, {3});
  const Id zero = b.integer(0), one = b.integer(1), two = b.integer(2), far = b.integer(100);
  // Doubles `x` while it is below the limit.
  const Id start = b.fn(Op::lt, {one, limit}, DType::boolean);
  b.open();
  const Id x = b.argument(ir::Type::scalar(i32));
  const Id next = b.fn(Op::mul, {x, two});
  ir::Block body = b.close({b.fn(Op::lt, {next, limit}, DType::boolean), next});
  const Id power = b.control(Op::while_loop, {start, one}, 1, {body})[0];
  // 7 if the power is the limit, else 9.
  const Id exact = b.fn(Op::eq, {power, limit}, DType::boolean);
  b.open();
  ir::Block yes = b.close({b.integer(7)});
  b.open();
  ir::Block no = b.close({b.integer(9)});
  const Id chosen = b.control(Op::if_then, {exact}, 0, {yes, no})[0];
  b.open();
  b.argument(ir::Type::scalar(i32));
  b.argument(ir::Type::scalar(i32));
  ir::Block never = b.close({zero});
  const Id kept = b.control(Op::for_loop, {two, one, one, far}, 0, {never})[0];
  b.store(out, b.splat({1}, power), {zero}, {far}, {1});
  b.store(out, b.splat({1}, chosen), {one}, {far}, {1});
  b.store(out, b.splat({1}, kept), {two}, {far}, {1});
  const ir::Kernel kernel = b.finish();
  HostTensor y = HostTensor::zeros(i32, {3});
  run(kernel, {&y}, {}, {16});
  EXPECT_EQ(y, column(i32, {16, 7, 100}));
  run(kernel, {&y}, {}, {17});
  EXPECT_EQ(y, column(i32, {32, 9, 100}));
  run(kernel, {&y}, {}, {-3});
  EXPECT_EQ(y, column(i32, {1, 9, 100}));
}

TEST(ControlTest, CarriedValuesMayChangePlaces) {
  KernelBuilder b;
  const Id out = b.tensor("out", i32, {2});
  const Id zero = b.integer(0), one = b.integer(1), three = b.integer(3), far = b.integer(100);
  b.open();
  b.argument(ir::Type::scalar(i32));
  const Id x = b.argument(ir::Type::scalar(i32)), y = b.argument(ir::Type::scalar(i32));
  ir::Block swap = b.close({y, x});
  const auto ends = b.control(Op::for_loop, {zero, three, one, one, far}, 0, {swap});
  b.store(out, b.splat({1}, ends[0]), {zero}, {far}, {1});
  b.store(out, b.splat({1}, ends[1]), {one}, {far}, {1});
  HostTensor result = HostTensor::zeros(i32, {2});
  run(b.finish(), {&result});
  EXPECT_EQ(result, column(i32, {100, 1}));
}

TEST(ErrorsTest, NameTheLineAndTheValues) {
  const auto scalar_error = [](Op op, std::int64_t x, std::int64_t y, DType dtype) {
    KernelBuilder b;
    const Id a = b.integer(x, dtype), c = b.integer(y, dtype);
    b.fn(op, {a, c});
    const ir::Kernel kernel = b.finish();
    return error_of([&] { run(kernel, {}); });
  };
  EXPECT_EQ(scalar_error(Op::div, 5, 0, i32),
            std::pair(std::string("div: 5 is divided by zero"), 3));
  EXPECT_EQ(scalar_error(Op::mod, -4, 0, i32).first, "mod: -4 is divided by zero");
  EXPECT_EQ(scalar_error(Op::mul, 1 << 20, 1 << 20, i32),
            std::pair(std::string("mul of 1048576 and 1048576 overflows i32"), 3));
  EXPECT_EQ(scalar_error(Op::add, INT64_MAX, 1, i64).first,
            "add of 9223372036854775807 and 1 overflows i64");
  EXPECT_EQ(scalar_error(Op::div, INT64_MIN, -1, i64).first,
            "div of -9223372036854775808 and -1 overflows i64");
}

TEST(ErrorsTest, AnIndexOutsideItsTensor) {
  HostTensor x = HostTensor::from_values(i32, {2, 3}, {0, 1, 2, 3, 4, 5});
  const auto loaded = [&](std::int64_t row, std::int64_t column) {
    KernelBuilder b;
    const Id in = b.tensor("X", i32, {2, 3}), zero = b.integer(0), one = b.integer(1);
    const Id index =
        b.add(Op::load_index, {in, b.integer(row), b.integer(column)}, ir::Type::scalar(i32));
    b.store(in, b.splat({1, 1}, b.fn(Op::mul, {index, b.integer(10)})), {zero, zero}, {one, one},
            {1, 1});
    run(b.finish(), {&x});
  };
  loaded(1, 2);
  EXPECT_EQ(x.flat(0), 50);
  EXPECT_EQ(error_of([&] { loaded(1, 3); }).first,
            "load_index: element {1, 3} is outside tensor, whose shape is {2, 3}");
  EXPECT_EQ(error_of([&] { loaded(-1, 0); }).first,
            "load_index: element {-1, 0} is outside tensor, whose shape is {2, 3}");
}

TEST(ErrorsTest, ANegativeStartAndALoopWithoutEnd) {
  HostTensor x = HostTensor::zeros(f32, {4});
  {
    KernelBuilder b;
    const Id in = b.tensor("X", f32, {4});
    b.load(in, {b.integer(-2)}, {b.integer(4)}, {4});
    const int line = b.line();
    const ir::Kernel kernel = b.finish();
    const auto [message, where] = error_of([&] { run(kernel, {&x}); });
    EXPECT_NE(message.find("-2"), std::string::npos) << message;
    EXPECT_EQ(where, line);
  }
  KernelBuilder b;
  const Id yes = b.fn(Op::lt, {b.integer(0), b.integer(1)}, DType::boolean);
  b.open();
  ir::Block body = b.close({yes});
  b.control(Op::while_loop, {yes}, 1, {body});
  const ir::Kernel kernel = b.finish();
  InterpreterOptions options;
  options.while_limit = 1000;
  EXPECT_NE(error_of([&] { run(kernel, {}, options); }).first.find("1000 rounds"),
            std::string::npos);
}

TEST(ErrorsTest, AReshapeOfATileThatDoesNotWhollyExist) {
  HostTensor x = HostTensor::zeros(f32, {3, 4});
  KernelBuilder b;
  const Id in = b.tensor("X", f32, {3, 4}), zero = b.integer(0), far = b.integer(9);
  b.add(Op::reshape, {b.load(in, {zero, zero}, {far, far}, {4, 4})}, ir::Type::tile(f32, {16}));
  const int line = b.line();
  const ir::Kernel kernel = b.finish();
  const auto [message, where] = error_of([&] { run(kernel, {&x}); });
  EXPECT_NE(message.find("{3, 4}"), std::string::npos) << message;
  EXPECT_EQ(where, line);
}

TEST(ErrorsTest, ArgumentsThatDoNotFit) {
  const ir::Kernel kernel = gemm_kernel(f32, 16, 16, 16);
  HostTensor a = HostTensor::zeros(f32, {4, 4}), half = HostTensor::zeros(f16, {4, 4}),
             flat = HostTensor::zeros(f32, {4});
  const auto error = [&](const std::vector<HostTensor*>& tensors, std::vector<double> scalars) {
    return error_of([&] { run(kernel, tensors, {}, scalars); }).first;
  };
  EXPECT_NE(error({&a, &a}, {}).find("there is also C"), std::string::npos);
  EXPECT_NE(error({&a, &half, &a}, {}).find("declares B as f32"), std::string::npos);
  EXPECT_NE(error({&a, &a, &flat}, {}).find("rank 1"), std::string::npos);
  EXPECT_NE(error({&a, &a, &a}, {1.0}).find("0 scalars"), std::string::npos);
  Arguments arguments{{argument(a), argument(a), argument(a)}, {}};
  arguments.tensors[1].data = nullptr;
  EXPECT_NE(error_of([&] { interpret(kernel, arguments); }).first.find("B has no data"),
            std::string::npos);
}

TEST(ErrorsTest, OfSeveralBlocksTheFirstOneIsReported) {
  KernelBuilder b({8});
  b.fn(Op::div, {b.grid(0), b.fn(Op::sub, {b.grid(0), b.grid(0)})});
  const ir::Kernel kernel = b.finish();
  InterpreterOptions options;
  options.threads = 4;
  EXPECT_EQ(error_of([&] { run(kernel, {}, options); }).first, "div: 0 is divided by zero");
}

TEST(SpeedTest, AttentionOf1024TakesWellUnderTenSeconds) {
  const AttentionShape s{8, 1024, 1024, 64, 128, 64};
  const Shape shape = {s.heads, s.queries, s.dim};
  HostTensor q = HostTensor::random_normal(bf16, shape, 1),
             k = HostTensor::random_normal(bf16, shape, 2),
             v = HostTensor::random_normal(bf16, shape, 3), o = HostTensor::poisoned(bf16, shape);
  const std::clock_t begin = std::clock();
  run(attention_kernel(s, bf16), {&q, &k, &v, &o});
  const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  RecordProperty("milliseconds", static_cast<int>(seconds * 1000));
  EXPECT_LT(seconds, 10);
}

}  // namespace
}  // namespace tilewright::simulator
