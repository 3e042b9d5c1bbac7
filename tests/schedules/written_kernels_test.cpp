#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "codegen/nvrtc_build.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels as users write them, of functions, bits and bytes: on the interpreter and through the
// automatic schedule on the simulated GPU, against plain loops in float64, and through NVRTC.
namespace tilewright {
namespace {

using Numbers = std::vector<double>;

struct WantedOutput {
  HostTensor tensor;
  Numbers wanted;
  double bound;  // relative to 1 + |wanted|
};

void expect_close(const Kernel& kernel, std::vector<HostTensor> inputs,
                  std::vector<WantedOutput> outputs, const std::vector<double>& scalars = {}) {
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    std::vector<TensorRef> tensors;
    for (HostTensor& tensor : inputs) tensors.push_back(ref(tensor));
    for (WantedOutput& output : outputs) {
      output.tensor = HostTensor::poisoned(output.tensor.dtype(), output.tensor.shape());
      tensors.push_back(ref(output.tensor));
    }
    compile(kernel, target).run(tensors, scalars);
    for (const WantedOutput& output : outputs) {
      for (std::int64_t i = 0; i < output.tensor.elements(); ++i) {
        const double want = output.wanted.at(static_cast<std::size_t>(i));
        ASSERT_NEAR(output.tensor.flat(i), want, output.bound * (1 + std::abs(want)))
            << target << ", " << kernel.name() << ", element " << i;
      }
    }
  }
  if (codegen::why_no_nvrtc().empty()) {
    codegen::expect_builds(compiler::translate(kernel.finish(), ir::default_target()).source);
  }
}

WantedOutput wanted_output(DType dtype, std::vector<std::int64_t> shape, Numbers wanted,
                           double bound) {
  return {HostTensor::zeros(dtype, std::move(shape)), std::move(wanted), bound};
}

Numbers values_of(const HostTensor& tensor) {
  Numbers all;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) all.push_back(tensor.flat(i));
  return all;
}

HostTensor scaled_normal(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed,
                         double scale = 1) {
  HostTensor tensor = HostTensor::random_normal(f32, shape, seed);
  Numbers scaled = values_of(tensor);
  for (double& value : scaled) value *= scale;
  return HostTensor::from_values(dtype, std::move(shape), scaled);
}

// a {m, k} times the transpose of b {n, k}; column j by scales[j].
Numbers scaled_product(const Numbers& a, const Numbers& b, std::size_t m, std::size_t n,
                       const Numbers& scales) {
  const std::size_t k = a.size() / m;
  Numbers c(m * n);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      for (std::size_t l = 0; l < k; ++l) c[i * n + j] += a[i * k + l] * b[j * k + l] * scales[j];
    }
  }
  return c;
}

TEST(WrittenKernels, FunctionsOfOneTile) {
  using Function = std::function<double(double)>;
  const std::vector<std::pair<Tile (*)(const Tile&), Function>> functions = {
      {[](const Tile& x) { return erf(x); }, [](double x) { return std::erf(x); }},
      {[](const Tile& x) { return sin(x * 128); }, [](double x) { return std::sin(x * 128); }},
      {[](const Tile& x) { return cos(x * 128); }, [](double x) { return std::cos(x * 128); }},
      {[](const Tile& x) { return floor(x); }, [](double x) { return std::floor(x); }},
      {[](const Tile& x) { return ceil(x); }, [](double x) { return std::ceil(x); }},
      {[](const Tile& x) { return rint(x * 2); }, [](double x) { return std::nearbyint(x * 2); }},
      {[](const Tile& x) { return expm1(x); }, [](double x) { return std::expm1(x); }},
      {[](const Tile& x) { return x * sigmoid(x); },  // silu
       [](double x) { return x / (1 + std::exp(-x)); }},
      {[](const Tile& x) { return max(x, 0) + log1p(exp(-abs(x))); },  // softplus
       [](double x) { return std::log(1 + std::exp(x)); }},
      {[](const Tile& x) { return clamp(x, -1, 0.5); },
       [](double x) { return std::min(std::max(x, -1.0), 0.5); }},
      {[](const Tile& x) {
         return where(x > 0, full({1, 1}, 1), -1);
       },
       [](double x) { return x > 0 ? 1 : -1; }},
  };
  const HostTensor x = scaled_normal(f32, {20, 130}, 1, 3);
  for (std::size_t f = 0; f < functions.size(); ++f) {
    SCOPED_TRACE(f);
    Kernel kernel("function");
    const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
    const Tensor X = kernel.in("X", f32, {rows, columns});
    const Tensor Y = kernel.out("Y", f32, {rows, columns});
    const auto [i, j] = kernel.grid(ceil_div(columns, 128), ceil_div(rows, 16));
    const Block own = rows.block(j, 16), cols = columns.block(i, 128);
    store(Y(own, cols), functions[f].first(load(X(own, cols))));
    Numbers wanted = values_of(x);
    for (double& value : wanted) value = functions[f].second(value);
    expect_close(kernel, {x}, {wanted_output(f32, {20, 130}, wanted, 1e-6)});
  }
}

// Of what is narrower than f32 a sigmoid is rounded once.
TEST(WrittenKernels, ASigmoidOfHalves) {
  Kernel kernel("sigmoid");
  const Tensor X = kernel.in("X", bf16, {4, 64}), Y = kernel.out("Y", bf16, {4, 64});
  kernel.grid(1);
  store(Y(all, all), sigmoid(load(X(all, all))));
  const HostTensor x = scaled_normal(bf16, {4, 64}, 1, 3);
  Numbers wanted = values_of(x);
  for (double& value : wanted) value = 1 / (1 + std::exp(-value));
  expect_close(kernel, {x}, {wanted_output(bf16, {4, 64}, wanted, 0x1p-9)});
}

// The first half of a network: GELU(X W^T + bias), with the error function itself.
TEST(WrittenKernels, AnExactGeluBehindAProduct) {
  Kernel kernel("gelu_mlp");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {n, k});
  const Tensor bias = kernel.in("bias", f32, {n}), H = kernel.out("H", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) sum = dot(load(X(rows, depth)), load(W(cols, depth)).T(), sum);
  const Tile h = sum + load(bias(cols)).reshape({1, 128});
  store(H(rows, cols), 0.5 * h * (1 + erf(h * std::sqrt(0.5))));

  const HostTensor a = scaled_normal(bf16, {70, 72}, 1), w = scaled_normal(bf16, {136, 72}, 2, 0.2);
  const HostTensor b = scaled_normal(f32, {136}, 3);
  Numbers wanted = scaled_product(values_of(a), values_of(w), 70, 136, Numbers(136, 1));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const double sum_of = wanted[i] + b.flat(static_cast<std::int64_t>(i % 136));
    wanted[i] = 0.5 * sum_of * (1 + std::erf(sum_of * std::sqrt(0.5)));
  }
  expect_close(kernel, {a, w, b}, {wanted_output(bf16, {70, 136}, wanted, 4e-3)});
}

// Rotary embedding of the two halves of a row, with angles that the kernel computes.
TEST(WrittenKernels, RotaryEmbedding) {
  Kernel kernel("rope");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 128}),
               positions = kernel.in("positions", i32, {rows});
  const Tensor Y = kernel.out("Y", f32, {rows, 128});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16), first(0, 64, 128), second(64, 64, 128);
  const Tile turns = exp2(iota({1, 64}, 1).cast(f32) * (-std::log2(10000.0) / 64));
  const Tile angle = load(positions(own)).reshape({16, 1}).cast(f32) * turns;
  const Tile a = load(X(own, first)), b = load(X(own, second));
  store(Y(own, first), a * cos(angle) - b * sin(angle));
  store(Y(own, second), b * cos(angle) + a * sin(angle));

  const HostTensor x = scaled_normal(f32, {37, 128}, 1);
  HostTensor at = HostTensor::zeros(i32, {37});
  Numbers wanted(37 * 128);
  for (int row = 0; row < 37; ++row) {
    at.set_flat(row, row * 11);
    for (int j = 0; j < 64; ++j) {
      const double turn = row * 11 * std::pow(10000, -j / 64.0);
      const double u = x.flat(row * 128 + j), v = x.flat(row * 128 + 64 + j);
      const std::size_t to = static_cast<std::size_t>(row * 128 + j);
      wanted[to] = u * std::cos(turn) - v * std::sin(turn);
      wanted[to + 64] = v * std::cos(turn) + u * std::sin(turn);
    }
  }
  expect_close(kernel, {x, at}, {wanted_output(f32, {37, 128}, wanted, 2e-4)});  // of angles in f32
}

// C = A W^T, whose weights are bytes with a scale a row.
Kernel int8_gemm() {
  Kernel kernel("int8_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), W = kernel.in("W", i8, {n, k});
  const Tensor scales = kernel.in("scales", f32, {n}), C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var sum{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    const Tile weights = load(W(cols, depth)).cast(bf16);
    sum = dot(load(A(rows, depth)), weights.T(), sum);
  }
  store(C(rows, cols), sum * load(scales(cols)).reshape({1, 128}));
  return kernel;
}

// The same of 4 bits each, stored as 0 to 15 for -8 to 7; the lower half of a byte comes first.
Kernel int4_gemm() {
  Kernel kernel("int4_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), bytes = kernel.dim("bytes");
  const Tensor A = kernel.in("A", bf16, {m, 2 * bytes}), W = kernel.in("W", u8, {n, bytes});
  const Tensor scales = kernel.in("scales", f32, {n}), C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var sum{zeros({rows, cols})};
  for (Index step : range(ceil_div(bytes, 32))) {
    const Tile pairs = load(W(cols, bytes.block(step, 32))).cast(i32).reshape({128, 32, 1});
    const Tile weights = ((pairs >> (4 * iota({1, 1, 2}, 2))) & 15) - 8;
    const Tile b = weights.cast(bf16).reshape({128, 64}).T();
    sum = dot(load(A(rows, (2 * bytes).block(step, 64))), b, sum);
  }
  store(C(rows, cols), sum * load(scales(cols)).reshape({1, 128}));
  return kernel;
}

TEST(WrittenKernels, WeightsOfBytesAndOfHalves) {
  constexpr int m = 70, n = 144, k = 160;
  const HostTensor a = scaled_normal(bf16, {m, k}, 1), bytes = scaled_normal(i8, {n, k}, 2, 40);
  Numbers scales;
  for (int j = 0; j < n; ++j) scales.push_back((1 + j % 7) * 0.001);
  const HostTensor s = HostTensor::from_values(f32, {n}, scales);
  Numbers wanted = scaled_product(values_of(a), values_of(bytes), m, n, scales);
  expect_close(int8_gemm(), {a, bytes, s}, {wanted_output(bf16, {m, n}, wanted, 4e-3)});

  Numbers weights = values_of(scaled_normal(i32, {n, k}, 3, 3)), packed(n * k / 2);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = std::clamp(weights[i], -8.0, 7.0);
    packed[i / 2] += (weights[i] + 8) * (i % 2 ? 16 : 1);
  }
  wanted = scaled_product(values_of(a), weights, m, n, scales);
  expect_close(int4_gemm(), {a, HostTensor::from_values(u8, {n, k / 2}, packed), s},
               {wanted_output(bf16, {m, n}, wanted, 4e-3)});
}

// Bytes reach registers 16 at a time, and what is made of them shared memory by 16 bytes, without a
// change of layout between.
TEST(WrittenKernels, BytesMoveSixteenAtOnce) {
  for (const Kernel& kernel : {int8_gemm(), int4_gemm()}) {
    const ir::Kernel machine =
        compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
    EXPECT_TRUE(compiler::conversions_in(machine).empty()) << kernel.name();
    int loads = 0, stores = 0;
    ir::for_each(machine.body, [&](const ir::Operation& o) {
      const std::int64_t vector = o.attributes.integer_or(ir::Key::vector, 1);
      if (o.op == ir::Op::load_elements) {
        ++loads;
        EXPECT_EQ(vector, 16) << kernel.name();
      } else if (o.op == ir::Op::store_elements) {
        ++stores;
        EXPECT_EQ(vector, 8) << kernel.name();
      }
    });
    EXPECT_TRUE(loads > 0 && stores > 0) << kernel.name();
  }
}

TEST(WrittenKernels, RowsQuantisedToBytes) {
  Kernel kernel("quantise_rows");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns", at_most(256));
  const Tensor X = kernel.in("X", bf16, {rows, columns}), Q = kernel.out("Q", i8, {rows, columns});
  const Tensor scales = kernel.out("scales", f32, {rows});
  const auto [i] = kernel.grid(ceil_div(rows, 4));
  const Block own = rows.block(i, 4), cols = columns.block(0, 256);
  const Tile x = load(X(own, cols)).cast(f32);
  const Tile scale = max(reduce_max(abs(x), 1), 1e-20) / 127;
  store(Q(own, cols), (x / scale).cast(i8));
  store(scales(own), scale.reshape({4}));

  const HostTensor x_of = scaled_normal(bf16, {9, 200}, 5);
  Numbers bytes = values_of(x_of), wanted;
  for (std::size_t row = 0; row < 9; ++row) {
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(row * 200);
    double most = 0;
    for (auto at = begin; at != begin + 200; ++at) most = std::max(most, std::abs(*at));
    wanted.push_back(most / 127);
    for (auto at = begin; at != begin + 200; ++at) *at = *at / wanted.back();
  }
  // Within rounding to a whole number.
  expect_close(kernel, {x_of},
               {wanted_output(i8, {9, 200}, bytes, 0.5001), wanted_output(f32, {9}, wanted, 1e-6)});
}

// Bytes that products are rounded to, beside bytes that are added, and turned on their way.
TEST(WrittenKernels, BytesBesideProducts) {
  Kernel kernel("bytes");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor R = kernel.in("R", u8, {m, 64});
  const Tensor Y = kernel.out("Y", i8, {m, 64}), T = kernel.out("T", i8, {64, m});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(i, 64);
  const Tile sum = dot(load(A(own, all)), load(B(all, all)).T()) + load(R(own, all)).cast(f32);
  store(Y(own, all), sum.cast(i8));
  store(T(all, own), sum.cast(i8).T());

  const HostTensor a = scaled_normal(bf16, {75, 64}, 1), b = scaled_normal(bf16, {64, 64}, 2);
  const HostTensor r = scaled_normal(u8, {75, 64}, 3, 80);
  Numbers wanted = scaled_product(values_of(a), values_of(b), 75, 64, Numbers(64, 1)),
          turned(wanted.size());
  for (std::size_t e = 0; e < wanted.size(); ++e) {
    wanted[e] = std::clamp(wanted[e] + r.flat(static_cast<std::int64_t>(e)), -128.0, 127.0);
    turned[e % 64 * 75 + e / 64] = wanted[e];
  }
  expect_close(
      kernel, {a, b, r},
      {wanted_output(i8, {75, 64}, wanted, 0.5001), wanted_output(i8, {64, 75}, turned, 0.5001)});
}

// The rows past the last one divide zero by zero, and nobody looks.
TEST(WrittenKernels, IntegersWithATail) {
  Kernel kernel("integers");
  const Dim rows = kernel.dim("rows");
  const Tensor A = kernel.in("A", i32, {rows, 64}), B = kernel.in("B", i32, {rows, 64});
  const Tensor Y = kernel.out("Y", i32, {4, rows, 64});
  const auto [i] = kernel.grid(ceil_div(rows, 16));
  const Block own = rows.block(i, 16);
  const Tile a = load(A(own, all)), b = load(B(own, all));
  store(Y(0, own, all), a / b);
  store(Y(1, own, all), a % b);
  store(Y(2, own, all), (((a << 2) ^ b) & ~b) | (a >> (b & 7)));
  store(Y(3, own, all), where(((a > 0) & (b > 0)) ^ (a < b), a, -1));

  const HostTensor x = scaled_normal(i32, {21, 64}, 1, 50);
  HostTensor y = scaled_normal(i32, {21, 64}, 2, 5);
  constexpr int count = 21 * 64;
  Numbers wanted(4 * count);
  for (int e = 0; e < count; ++e) {
    if (y.flat(e) == 0) y.set_flat(e, -3);
    const int u = static_cast<int>(x.flat(e)), v = static_cast<int>(y.flat(e));
    const int quotient = static_cast<int>(std::floor(x.flat(e) / y.flat(e)));
    const bool chosen = ((u > 0) & (v > 0)) != (u < v);
    const int results[] = {quotient, u - quotient * v, (((u * 4) ^ v) & ~v) | (u >> (v & 7)),
                           chosen ? u : -1};
    for (int f = 0; f < 4; ++f) wanted[static_cast<std::size_t>(f * count + e)] = results[f];
  }
  expect_close(kernel, {x, y}, {wanted_output(i32, {4, 21, 64}, wanted, 0)});
}

// Sums of rows of a table that words of memory name; a negative one names none.
TEST(WrittenKernels, RowsByAnIndex) {
  Kernel kernel("embedding_bag");
  const Dim bags = kernel.dim("bags"), words = kernel.dim("words");
  const Tensor ids = kernel.in("ids", i32, {bags, 8}), T = kernel.in("T", bf16, {words, 256});
  const Tensor Y = kernel.out("Y", f32, {bags, 256});
  const auto [i] = kernel.grid(bags);
  Var sum{zeros({256})};
  for (Index j : range(8)) {
    const Index word = load_index(ids(i, j));
    when(word >= 0, [&] { sum = sum + load(T(word, all)).cast(f32); });
  }
  store(Y(i, all), sum);

  const HostTensor table = scaled_normal(bf16, {50, 256}, 1);
  HostTensor chosen = HostTensor::zeros(i32, {4, 8});
  Numbers wanted(4 * 256);
  for (int e = 0; e < 32; ++e) {
    const int word = e % 5 == 4 ? -1 : e * 7 % 50;
    chosen.set_flat(e, word);
    for (int c = 0; word >= 0 && c < 256; ++c) {
      wanted[static_cast<std::size_t>(e / 8 * 256 + c)] += table.flat(word * 256 + c);
    }
  }
  expect_close(kernel, {chosen, table}, {wanted_output(f32, {4, 256}, wanted, 1e-6)});
}

// The gradients of a layer norm's gain and bias, of 16 rows each. The last rows are few: of most
// turns nothing exists, and the sums over rows are 0 in every column.
TEST(WrittenKernels, ColumnSumsOfRowsThatEndBeforeTheirLoop) {
  Kernel kernel("layernorm_backward");
  const Dim rows = kernel.dim("rows"), n = kernel.dim("n"), parts = ceil_div(rows, 16);
  const Tensor X = kernel.in("X", f32, {rows, n}), D = kernel.in("dY", f32, {rows, n});
  const Tensor Rstd = kernel.in("rstd", f32, {rows});
  const Tensor Gain = kernel.out("dgain", f32, {parts, n}),
               Bias = kernel.out("dbias", f32, {parts, n});
  const auto [part] = kernel.grid(parts);
  const Block cols = n.block(0, 64);
  Var gain{zeros({1, cols})}, bias{zeros({1, cols})};
  for (Index i : range(4)) {
    const Block own = rows.block(4 * part + i, 4);
    const Tile d = load(D(own, cols)), x = load(X(own, cols)) * load(Rstd(own)).reshape({4, 1});
    gain = gain + reduce_sum(d * x, 0);
    bias = bias + reduce_sum(d, 0);
  }
  const Block one(part, 1, Index(parts));
  store(Gain(one, cols), gain);
  store(Bias(one, cols), bias);

  const HostTensor x = scaled_normal(f32, {33, 40}, 1), d = scaled_normal(f32, {33, 40}, 2);
  const HostTensor rstd = scaled_normal(f32, {33}, 3);
  Numbers of_gain(3 * 40), of_bias(3 * 40);
  for (std::int64_t i = 0; i < 33 * 40; ++i) {
    const auto to = static_cast<std::size_t>(i / 40 / 16 * 40 + i % 40);
    of_gain[to] += d.flat(i) * x.flat(i) * rstd.flat(i / 40);
    of_bias[to] += d.flat(i);
  }
  expect_close(
      kernel, {x, d, rstd},
      {wanted_output(f32, {3, 40}, of_gain, 1e-5), wanted_output(f32, {3, 40}, of_bias, 1e-5)});
}

// Scalars beside numbers, as tiles and as indices.
TEST(WrittenKernels, AStepWithMomentum) {
  Kernel kernel("momentum");
  const Dim n = kernel.dim("n");
  const Tensor G = kernel.in("G", f32, {n}), M = kernel.in("M", f32, {n});
  const Tensor Y = kernel.out("Y", f32, {n});
  const Scalar beta = kernel.scalar("beta", f32), step = kernel.scalar("step", i32);
  const auto [i] = kernel.grid(ceil_div(n, 128));
  const Block own = n.block(i, 128);
  const Tile mean = beta * load(M(own)) + (1 - full({1}, beta)) * load(G(own));
  const Tile corrected = mean / (1 - exp(Tile({1}, step).cast(f32) * log(full({1}, beta))));
  when(
      Index(step) > 1, [&] { store(Y(own), where(mean < 0, beta, corrected)); },
      [&] { store(Y(own), where(mean < 0, beta, 2)); });

  const HostTensor g = scaled_normal(f32, {200}, 1), m = scaled_normal(f32, {200}, 2);
  for (const int steps : {1, 3}) {
    Numbers wanted = values_of(m);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      const double now = 0.9 * wanted[j] + 0.1 * g.flat(static_cast<std::int64_t>(j));
      const double corrected_by = steps > 1 ? now / (1 - std::pow(0.9, steps)) : 2;
      wanted[j] = now < 0 ? 0.9 : corrected_by;
    }
    expect_close(kernel, {g, m}, {wanted_output(f32, {200}, wanted, 1e-5)}, {0.9, 1.0 * steps});
  }
}

}  // namespace
}  // namespace tilewright
