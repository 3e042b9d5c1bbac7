#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "codegen/nvrtc_build.h"
#include "common/error_text.h"
#include "compiler/build.h"
#include "schedules/two_ways.h"
#include "simulator/machine/machine.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels without products through the automatic schedule: on the simulated GPU beside the
// interpreter, and through NVRTC.
namespace tilewright {
namespace {

struct Launch {
  std::vector<HostTensor> inputs, outputs;
  std::vector<double> scalars = {};
};

// Of f32 sums in another order, and of results that round to `dtype`.
double tolerance(DType dtype) { return dtype == f32 ? 2e-5 : 1e-2; }

void check(const Kernel& kernel, const Launch& launch) {
  std::vector<HostTensor> tensors = launch.inputs;
  tensors.insert(tensors.end(), launch.outputs.begin(), launch.outputs.end());
  const test::TwoWays results = test::run_two_ways(kernel, tensors, launch.scalars);
  for (std::size_t i = launch.inputs.size(); i < tensors.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "tensor " << i);
    test::expect_near(results.got[i], results.wanted[i], tolerance(tensors[i].dtype()));
  }
}

void expect_builds(const Kernel& kernel) {
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  codegen::expect_builds(compiler::translate(kernel.finish(), ir::default_target()).source);
}

HostTensor drawn(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(dtype, std::move(shape), seed);
}
HostTensor poison(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor::poisoned(dtype, std::move(shape));
}

// Softmax of rows that lie in registers whole; with `causal` row i sees columns up to i.
Kernel softmax(DType dtype, int block_rows, int width, bool causal = false) {
  Kernel kernel("softmax");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", at_most(width));
  const Tensor X = kernel.in("X", dtype, {rows, columns});
  const Tensor Y = kernel.out("Y", dtype, {rows, columns});
  const auto [i] = kernel.grid(ceil_div(rows, block_rows));
  const Block own = rows.block(i, block_rows), cols = columns.block(0, width);
  Tile x = load(X(own, cols)).cast(f32);
  if (causal) x = where(cols.as_row() <= own.as_column(), x, -1e30);
  const Tile weights = exp(x - reduce_max(x, 1));
  store(Y(own, cols), (weights * (1 / reduce_sum(weights, 1))).cast(dtype));
  return kernel;
}

TEST(RowwiseSchedule, Softmax) {
  for (const bool causal : {false, true}) {
    for (const auto& [rows, columns] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {1, 1}, {5, 77}, {9, 256}, {7, 200}, {0, 8}}) {
      SCOPED_TRACE(testing::Message() << causal << " " << rows << " x " << columns);
      check(softmax(bf16, 4, 256, causal),
            {{drawn(bf16, {rows, columns}, 1)}, {poison(bf16, {rows, columns})}});
    }
  }
}

// One row for all warps, then rows of many blocks of 32.
TEST(RowwiseSchedule, SoftmaxOfRowsThatWarpsShare) {
  for (const std::int64_t columns : {1, 1000, 4096, 8191}) {
    check(softmax(f32, 1, 8192), {{drawn(f32, {3, columns}, 1)}, {poison(f32, {3, columns})}});
  }
}

TEST(RowwiseSchedule, SoftmaxBuilds) {
  for (const int width : {32, 1024, 4096, 8192, 24576}) {
    for (const DType dtype : {bf16, f32}) {
      SCOPED_TRACE(testing::Message() << width << " " << name_of(dtype));
      expect_builds(softmax(dtype, 1, width));
    }
  }
  expect_builds(softmax(bf16, 16, 1024, true));
}

// Rows longer than any tile: three passes, carried maximum and sum, a column of parameters.
Kernel long_softmax() {
  Kernel kernel("long_softmax");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor temperature = kernel.in("temperature", f32, {rows});
  const Tensor Y = kernel.out("Y", f32, {rows, columns});
  const auto [x] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(x, 16);
  const Tile scale = 1 / load(temperature(own)).reshape({16, 1});
  Var maximum{full({own, 1}, -1e30)};
  for (Block cols : blocks(columns, 32)) {
    maximum = max(maximum, reduce_max(load(X(own, cols)) * scale, 1));
  }
  Var sum{zeros({own, 1})};
  for (Block cols : blocks(columns, 32)) {
    sum = sum + reduce_sum(exp(load(X(own, cols)) * scale - maximum), 1);
  }
  for (Block cols : blocks(columns, 32)) {
    store(Y(own, cols), exp(load(X(own, cols)) * scale - maximum) / sum);
  }
  return kernel;
}

TEST(RowwiseSchedule, RowsLongerThanATile) {
  for (const std::int64_t columns : {1, 31, 64, 100}) {
    HostTensor temperature = drawn(f32, {19}, 2);
    for (std::int64_t i = 0; i < 19; ++i)
      temperature.set_flat(i, 1 + std::abs(temperature.flat(i)));
    check(long_softmax(),
          {{drawn(f32, {19, columns}, 1), temperature}, {poison(f32, {19, columns})}});
  }
  expect_builds(long_softmax());
}

// A maximum that four warps share, again and again: none may write before all have read.
TEST(RowwiseSchedule, WarpsShareAMaximumInALoop) {
  Kernel kernel("row_maximum");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor Y = kernel.out("Y", f32, {rows, columns});
  const auto [i] = kernel.grid(rows);
  const Block own = rows.block(i, 1);
  Var maximum{full({own, 1}, 0)};
  for (Block cols : blocks(columns, 512)) {
    const Tile x = load(X(own, cols));
    maximum = reduce_max(x + maximum, 1);
    store(Y(own, cols), x * maximum);
  }
  HostTensor x = drawn(f32, {2, 3000}, 1), want = poison(f32, {2, 3000});
  compile(kernel, "interpreter").run({ref(x), ref(want)});
  const ir::Kernel machine = compiler::translate(kernel.finish(), ir::default_target()).machine;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    HostTensor got = poison(f32, {2, 3000});
    const auto argument = [](const char* name, HostTensor& t) {
      return TensorArgument{name, t.dtype(), t.shape(), t.strides(), t.data()};
    };
    Arguments arguments;
    arguments.tensors = {argument("X", x), argument("Y", got)};
    simulator::MachineOptions options;
    options.seed = seed;
    const simulator::MachineReport report = simulator::run_machine(machine, arguments, options);
    ASSERT_TRUE(report.ok()) << report.faults[0].message;
    for (std::int64_t e = 0; e < got.elements(); ++e) {
      ASSERT_NEAR(got.flat(e), want.flat(e), 1e-4 * (1 + std::abs(want.flat(e)))) << seed;
    }
  }
}

// With weights and biases of a column each; the statistics leave as columns.
Kernel layer_norm(int block_rows, int width, DType dtype = bf16) {
  Kernel kernel("layer_norm");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", at_most(width));
  const Tensor X = kernel.in("X", dtype, {rows, columns});
  const Tensor weight = kernel.in("weight", dtype, {columns});
  const Tensor bias = kernel.in("bias", dtype, {columns});
  const Tensor Y = kernel.out("Y", dtype, {rows, columns});
  const Tensor mean = kernel.out("mean", f32, {rows});
  const Scalar epsilon = kernel.scalar("epsilon", f32);
  const Scalar scale = kernel.scalar("scale", f32);  // 1 / columns
  const auto [i] = kernel.grid(ceil_div(rows, block_rows));
  const Block own = rows.block(i, block_rows), cols = columns.block(0, width);
  const auto row = [&](const Tensor& of) { return load(of(cols)).cast(f32).reshape({1, width}); };
  const Tile x = load(X(own, cols)).cast(f32);
  const Tile mu = reduce_sum(x, 1) * scale;
  const Tile centred = x - mu;
  const Tile variance = reduce_sum(centred * centred, 1) * scale;
  store(Y(own, cols), (centred * rsqrt(variance + epsilon) * row(weight) + row(bias)).cast(dtype));
  store(mean(own), mu.reshape({block_rows}));
  return kernel;
}

TEST(RowwiseSchedule, LayerNorm) {
  for (const auto& [block_rows, width] : std::vector<std::pair<int, int>>{{1, 2048}, {4, 512}}) {
    for (const std::int64_t columns : {1, 300, 512}) {
      SCOPED_TRACE(testing::Message() << block_rows << " " << columns);
      check(layer_norm(block_rows, width),
            {{drawn(bf16, {6, columns}, 1), drawn(bf16, {columns}, 2), drawn(bf16, {columns}, 3)},
             {poison(bf16, {6, columns}), poison(f32, {6})},
             {1e-5, 1.0 / static_cast<double>(columns)}});
    }
  }
  for (const int width : {1024, 8192, 16384}) expect_builds(layer_norm(1, width));
  expect_builds(layer_norm(8, 1024));
  expect_builds(layer_norm(4, 1024, f32));
}

Kernel add(DType dtype, int size) {
  Kernel kernel("add");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", dtype, {n}), B = kernel.in("B", dtype, {n});
  const Tensor C = kernel.out("C", dtype, {n});
  const auto [i] = kernel.grid(ceil_div(n, size));
  const Block own = n.block(i, size);
  store(C(own), load(A(own)) + load(B(own)));
  return kernel;
}

TEST(RowwiseSchedule, VectorsOfOneAxis) {
  for (const DType dtype : {f32, bf16, f16}) {
    for (const std::int64_t n : {0, 1, 1023, 2048, 5000}) {
      check(add(dtype, 2048), {{drawn(dtype, {n}, 1), drawn(dtype, {n}, 2)}, {poison(dtype, {n})}});
    }
    expect_builds(add(dtype, 2048));
  }
}

// Sums along columns cross warps; a select by an index that the launch gives.
Kernel column_sums() {
  Kernel kernel("column_sums");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor S = kernel.out("S", f32, {columns});
  const Tensor low = kernel.out("low", f32, {columns});
  const Scalar first = kernel.scalar("first", i32);
  const auto [i] = kernel.grid(ceil_div(columns, 64));
  const Block own = columns.block(i, 64);
  Var sum{zeros({1, own})};
  Var least{full({1, own}, 1e30)};
  for (Block some : blocks(rows, 24)) {
    const Tile x = load(X(some, own));
    sum = sum + reduce_sum(where(some.as_column() >= first, x, 0), 0);
    least = min(least, reduce_min(exp(x), 0));
  }
  store(S(own), Tile(sum).reshape({64}));
  store(low(own), Tile(least).reshape({64}));
  return kernel;
}

// No load, index or constant has the shape of the largest tile: all warps share it all the same, so
// that no two of them store one element.
TEST(RowwiseSchedule, OuterProductsOfVectors) {
  Kernel kernel("outer");
  const Dim m = kernel.dim("m");
  const Tensor x = kernel.in("X", f32, {m}), w = kernel.in("W", f32, {128});
  const Tensor y = kernel.out("Y", f32, {m, 128});
  const auto [b] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(b, 128);
  const Tile column = load(x(rows)).reshape({128, 1}), row = load(w(all)).reshape({1, 128});
  store(y(rows, all), column * row);
  for (const std::int64_t size : {1, 130}) {
    check(kernel, {{drawn(f32, {size}, 1), drawn(f32, {128}, 2)}, {poison(f32, {size, 128})}});
  }
}

TEST(RowwiseSchedule, ReductionsAlongColumns) {
  for (const std::int64_t rows : {1, 24, 61}) {
    check(column_sums(),
          {{drawn(f32, {rows, 100}, 1)}, {poison(f32, {100}), poison(f32, {100})}, {5}});
  }
  expect_builds(column_sums());
}

// What is stored ends where the tile does, though the tensor goes on.
TEST(RowwiseSchedule, WritesWhatExistsOfTheTile) {
  Kernel kernel("shorter");
  const Dim n = kernel.dim("n"), used = kernel.dim("used");
  const Tensor X = kernel.in("X", f32, {used}), Y = kernel.inout("Y", f32, {n});
  const auto [i] = kernel.grid(ceil_div(n, 64));
  store(Y(n.block(i, 64)), load(X(used.block(i, 64))));
  check(kernel, {{drawn(f32, {70}, 1)}, {drawn(f32, {200}, 2)}});
}

// Three axes, one of them stretched, and a branch.
TEST(RowwiseSchedule, TilesOfThreeAxes) {
  Kernel kernel("heads");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 4, 32}), Z = kernel.in("Z", f32, {rows, 32});
  const Tensor Y = kernel.out("Y", f32, {rows, 4, 32});
  const auto [i] = kernel.grid(ceil_div(rows, 8));
  const Block own = rows.block(i, 8);
  Var x{load(X(own, all, all))};
  when(i > 0, [&] { x = x * 2; });
  store(Y(own, all, all), x + load(Z(own, all)).reshape({8, 1, 32}));
  check(kernel,
        {{drawn(f32, {13, 4, 32}, 1), drawn(f32, {13, 32}, 2)}, {poison(f32, {13, 4, 32})}});
}

TEST(RowwiseSchedule, SizesThatAreNoPowersOfTwo) {
  for (const int width : {96, 100, 768}) {
    check(softmax(bf16, 3, width),
          {{drawn(bf16, {5, width - 3}, 1)}, {poison(bf16, {5, width - 3})}});
  }
}

void refused(const std::function<Kernel()>& make, const std::string& part) {
  const std::string text = test::usage_error_of([&] { compile(make(), "sim:sm_90a"); });
  EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_NE(text.find("rowwise_test.cpp:"), std::string::npos) << text;
}

TEST(RowwiseSchedule, IndicesBesideTiles) {
  Kernel kernel("indices");
  const Dim rows = kernel.dim("rows");
  const Tensor Y = kernel.out("Y", i32, {rows, 64}), Z = kernel.out("Z", i32, {rows, 64});
  const auto [i] = kernel.grid(ceil_div(rows, 8));
  const Block own = rows.block(i, 8);
  const Tile columns = iota({8, 64}, 1);
  Var sum{columns};
  for (Index turn : range(3)) sum = turn - sum * 2 + rows;
  store(Y(own, all), sum);
  store(Z(own, all), where(columns < i, max(columns * 0 + i, 2), min(columns, rows - i)));
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    HostTensor y = poison(i32, {20, 64}), z = y;
    compile(kernel, target).run({ref(y), ref(z)});
    for (std::int64_t row = 0; row < 20; ++row) {
      for (std::int64_t column = 0; column < 64; ++column) {
        std::int64_t want = column, block = row / 8;
        for (int turn = 0; turn < 3; ++turn) want = turn - want * 2 + 20;
        ASSERT_EQ(y.at({row, column}), want) << target;
        want = column < block ? std::max<std::int64_t>(block, 2) : std::min(column, 20 - block);
        ASSERT_EQ(z.at({row, column}), want) << target;
      }
    }
  }
}

TEST(RowwiseSchedule, SaysWhatDoesNotFit) {
  refused([] { return softmax(bf16, 16, 8192); },
          "a tile of 131072 elements, 256 for each of 512 threads, whose registers hold 48");
}

// Elements that several lanes hold: the first that stores must not be read by the others.
TEST(RowwiseSchedule, LoadsInPlaceOfSizesThatAreNoPowersOfTwo) {
  Kernel kernel("in_place");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 100}), Y = kernel.inout("Y", f32, {rows, 100});
  const auto [i] = kernel.grid(ceil_div(rows, 2));
  const Block own = rows.block(i, 2);
  store(Y(own, all), load(Y(own, all)) * 0.5 + load(X(own, all)));
  check(kernel, {{drawn(f32, {3, 100}, 1)}, {drawn(f32, {3, 100}, 2)}});
}

// Warps read what others have stored, and nobody overwrites what is still to be read.
TEST(RowwiseSchedule, LoadsAndStoresOfOneTensorKeepTheirOrder) {
  Kernel kernel("reversed");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 256}), Y = kernel.inout("Y", f32, {rows, 256});
  const Tensor S = kernel.inout("S", f32, {256}), Z = kernel.out("Z", f32, {rows, 256});
  kernel.grid(1);
  for (Index i : range(4)) {
    const Block own = rows.block(i, 16), last = rows.block(3 - i, 16);
    const Tile sums = load(S(all));
    store(Y(own, all), load(X(own, all)) + sums.reshape({1, 256}));
    const Tile y = load(Y(last, all));
    store(Z(last, all), y);
    store(Y(last, all), y * 2);
    store(S(all), sums + 1);
  }
  check(kernel, {{drawn(f32, {64, 256}, 1)},
                 {drawn(f32, {64, 256}, 2), drawn(f32, {256}, 3), poison(f32, {64, 256})}});
}

// A lane whose part of the sum is 0 must not make NaN of what is infinite as a whole.
// What a thread stores elsewhere, another may have to load first.
TEST(RowwiseSchedule, StoresElsewhereComeBehindAllLoads) {
  Kernel kernel("shifted");
  const Dim m = kernel.dim("m");
  const Tensor Y = kernel.inout("Y", f32, {m, 64});
  kernel.grid(1);
  store(Y(m.block(1, 8), all), load(Y(Block(4, 8, m), all)) * 2);
  const test::TwoWays results =
      test::run_two_ways(kernel, {HostTensor::random_normal(f32, {16, 64}, 1)});
  test::expect_near(results.got[0], results.wanted[0], 1e-6);
}

TEST(RowwiseSchedule, ScalesWholeSumsByInfinities) {
  Kernel kernel("scaled");
  const Tensor X = kernel.in("X", f32, {16, 64}), F = kernel.in("F", f32, {16, 1});
  const Tensor Y = kernel.out("Y", f32, {16, 1});
  kernel.grid(1);
  const Tile sum = reduce_sum(load(X(all, all)), 1) * load(F(all, all));
  store(Y(all, all), sum);
  HostTensor x = HostTensor::zeros(f32, {16, 64}), factor = HostTensor::zeros(f32, {16, 1});
  for (int row = 0; row < 16; ++row) {
    x.set_flat(row * 64, 1);
    factor.set_flat(row, INFINITY);
  }
  HostTensor y = HostTensor::poisoned(f32, {16, 1});
  compile(kernel, "sim:sm_90a").run({ref(x), ref(factor), ref(y)});
  for (int row = 0; row < 16; ++row) EXPECT_EQ(y.flat(row), INFINITY);
}

}  // namespace
}  // namespace tilewright
