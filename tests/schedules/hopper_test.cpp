#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "common/error_text.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/kernels/softmax.h"

// Plain kernels through the automatic schedule, on the simulated GPU, beside the interpreter.
namespace tilewright {
namespace {

// Of bf16 results; a wrong tile or a lost row is far above.
constexpr double kTolerance = 6e-3;

double relative_error(const HostTensor& got, const HostTensor& want) {
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double x = got.flat(i), y = want.flat(i);
    if (x == y) {
      norm += std::isinf(y) ? 0 : y * y;
      continue;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    error += (x - y) * (x - y);
    norm += y * y;
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

void check(const Kernel& kernel, std::vector<HostTensor> inputs, std::vector<HostTensor> outputs) {
  std::vector<HostTensor> wanted = outputs;
  const auto run = [&](const char* target, std::vector<HostTensor>& out) {
    std::vector<TensorRef> tensors;
    for (HostTensor& t : inputs) tensors.push_back(ref(t));
    for (HostTensor& t : out) tensors.push_back(ref(t));
    compile(kernel, target).run(tensors);
  };
  run("interpreter", wanted);
  run("sim:sm_90a", outputs);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_LT(relative_error(outputs[i], wanted[i]), kTolerance) << "output " << i;
  }
}

HostTensor random(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(bf16, std::move(shape), seed);
}
HostTensor poison(std::vector<std::int64_t> shape, DType dtype = bf16) {
  return HostTensor::poisoned(dtype, std::move(shape));
}

struct Lengths {
  std::int64_t queries, keys;
};

TEST(HopperSchedule, Attention) {
  for (const bool causal : {false, true}) {
    for (const Lengths& l : {Lengths{1, 1}, {17, 0}, {129, 300}, {300, 200}, {256, 256}}) {
      SCOPED_TRACE(testing::Message() << causal << " " << l.queries << " x " << l.keys);
      kernels::Attention a;
      a.heads = 4;
      a.kv_heads = 2;
      a.causal = causal;
      check(kernels::attention_forward(a),
            {random({2, l.queries, 4, 64}, 1), random({2, l.keys, 2, 64}, 2),
             random({2, l.keys, 2, 64}, 3)},
            {poison({2, l.queries, 4, 64}), poison({2, 4, l.queries}, f32)});
    }
  }
}

TEST(HopperSchedule, Gemm) {
  for (const std::int64_t m : {1, 129, 300}) {
    for (const std::int64_t k : {0, 8, 200}) {
      check(kernels::gemm({}), {random({m, k}, 1), random({264, k}, 2)}, {poison({m, 264})});
    }
  }
}

// No mask: what lies behind the last key must not enter maximum, sum or product by itself.
Kernel unmasked_attention(const std::function<Tile(const Tile&)>& activation) {
  Kernel kernel("unmasked_attention");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 64}), O = kernel.out("O", bf16, {queries, 64});
  const auto [x] = kernel.grid(ceil_div(queries, 64));
  const Block rows = queries.block(x, 64);
  const Tile q = load(Q(rows, all));
  kernels::OnlineSoftmax softmax(rows, 0.125);
  Var acc{zeros({rows, 64})};
  for (Block cols : blocks(keys, 96)) {
    const Tile s = dot(q, load(K(cols, all)).T());
    if (activation) {
      acc = acc + dot(activation(s).cast(bf16), load(V(cols, all)));
      continue;
    }
    const auto [weights, rescale] = softmax.step(s);
    acc = acc * rescale + dot(weights.cast(bf16), load(V(cols, all)));
  }
  if (activation) {
    store(O(rows, all), acc);
  } else {
    store(O(rows, all), acc * softmax.normaliser());
  }
  return kernel;
}

TEST(HopperSchedule, WhatDoesNotExistStaysOut) {
  for (const std::int64_t keys : {1, 95, 100, 192}) {
    check(unmasked_attention({}),
          {random({70, 64}, 1), random({keys, 64}, 2), random({keys, 64}, 3)}, {poison({70, 64})});
  }
}

// exp(0) = 1 and sigmoid(0) = 1/2 of keys that are not there would show, were V's rows not zero.
TEST(HopperSchedule, SigmoidAttention) {
  const auto sigmoid = [](const Tile& s) { return 1 / (1 + exp(-(s * 0.125))); };
  check(unmasked_attention(sigmoid),
        {random({130, 64}, 1), random({100, 64}, 2), random({100, 64}, 3)}, {poison({130, 64})});
}

// Two products with an activation between, the first one's result only in registers.
TEST(HopperSchedule, FusedMlp) {
  Kernel kernel("fused_mlp");
  const Dim rows = kernel.dim("rows"), hidden = kernel.dim("hidden");
  const Tensor X = kernel.in("X", bf16, {rows, 128}), U = kernel.in("U", bf16, {hidden, 128});
  const Tensor D = kernel.in("D", bf16, {hidden, 128}), Y = kernel.out("Y", bf16, {rows, 128});
  const auto [i] = kernel.grid(ceil_div(rows, 128));
  const Block block = rows.block(i, 128);
  const Tile x = load(X(block, all));
  Var acc{zeros({block, 128})};
  for (Block units : blocks(hidden, 64)) {
    const Tile h = max(dot(x, load(U(units, all)).T()), 0);
    acc = dot(h.cast(bf16), load(D(units, all)), acc);
  }
  store(Y(block, all), acc);
  check(kernel, {random({200, 128}, 1), random({300, 128}, 2), random({300, 128}, 3)},
        {poison({200, 128})});
}

std::string refusal(const Kernel& kernel) {
  return test::usage_error_of([&] { compile(kernel, "sm_90a"); });
}

TEST(HopperSchedule, RefusesWhatItCannotPlace) {
  Kernel kernel("rows_of_32");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), Y = kernel.out("Y", f32, {n, n});
  const auto [i] = kernel.grid(ceil_div(n, 32));
  const Block b = n.block(i, 32);
  const Tile x = load(X(b, all));
  store(Y(b, b), dot(x, x.T()));
  const std::string text = refusal(kernel);
  EXPECT_NE(text.find("dot: 32 rows"), std::string::npos) << text;
  EXPECT_NE(text.find("hopper_test.cpp:"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright
