#include "simulator/interpreter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <limits>

#include "simulator/interpreter_runs.h"
#include "tilewright/kernel.h"

namespace tilewright::simulator {
namespace {

using ir::Op;

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

TEST(TilesTest, ThreeAxesInEachOrder) {
  HostTensor x = HostTensor::random_normal(f32, {2, 4, 8}, 3);
  std::vector<int> axes = {0, 1, 2};
  do {
    SCOPED_TRACE(testing::Message() << axes[0] << axes[1] << axes[2]);
    Kernel kernel("permuted");
    const std::vector<std::int64_t> shape = {x.shape()[axes[0]], x.shape()[axes[1]],
                                             x.shape()[axes[2]]};
    const Tensor X = kernel.in("X", f32, {2, 4, 8}),
                 Y = kernel.out("Y", f32, {shape[0], shape[1], shape[2]});
    kernel.grid(1);
    store(Y(all, all, all), load(X(all, all, all)).permute(axes));
    HostTensor y = HostTensor::poisoned(f32, shape);
    run(kernel.finish(), {&x, &y});
    std::int64_t at[3];
    for (at[0] = 0; at[0] < 2; ++at[0]) {
      for (at[1] = 0; at[1] < 4; ++at[1]) {
        for (at[2] = 0; at[2] < 8; ++at[2]) {
          ASSERT_EQ(y.at({at[axes[0]], at[axes[1]], at[axes[2]]}), x.at({at[0], at[1], at[2]}));
        }
      }
    }
  } while (std::next_permutation(axes.begin(), axes.end()));
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

TEST(ErrorsTest, ANegativeIndexAndALoopWithoutEnd) {
  HostTensor x = HostTensor::zeros(f32, {4, 4});
  {
    KernelBuilder b;
    const Id in = b.tensor("X", f32, {4, 4}), four = b.integer(4);
    b.load(in, {b.integer(-2), b.integer(0)}, {four, four}, {0, 4});
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
  const Id in = b.tensor("X", f32, {3, 4}), zero = b.integer(0);
  const Id tile = b.load(in, {zero, zero}, {b.integer(3), b.integer(4)}, {4, 4});
  b.add(Op::reshape, {tile}, ir::Type::tile(f32, {2, 8}));
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
  EXPECT_NE(error({&a, &a}, {}).find("C is missing"), std::string::npos);
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
