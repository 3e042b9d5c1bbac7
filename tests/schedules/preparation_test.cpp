#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "kernels/execution.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"

// What an automatic schedule begins with, pass by pass: each keeps what a kernel computes.
namespace tilewright {
namespace {

struct Case {
  std::string name;
  ir::Kernel kernel;
  std::vector<test::Padded> inputs;
  std::vector<test::Padded> outputs;
};

void run(const ir::Kernel& kernel, Case& c) {
  Arguments arguments;
  std::size_t next = 0;
  for (auto* tensors : {&c.inputs, &c.outputs}) {
    for (test::Padded& tensor : *tensors) {
      arguments.tensors.push_back(tensor.argument(kernel.parameters[next++].name.c_str()));
    }
  }
  simulator::InterpreterOptions options;
  options.float64 = true;
  simulator::interpret(kernel, arguments, options);
}

std::vector<std::vector<double>> values_of(const Case& c) {
  std::vector<std::vector<double>> values;
  for (const test::Padded& output : c.outputs) {
    values.emplace_back();
    output.each([&](const auto& index) { values.back().push_back(output.at(index)); });
  }
  return values;
}

// Sums are in the same order before and after: in float64 only the last bits may move, and the
// outputs are rounded to bf16 or f32.
void expect_kept(Case c, const std::set<std::string>& passes_that_apply = {}) {
  SCOPED_TRACE(c.name);
  ir::Kernel kernel = c.kernel;
  run(kernel, c);
  const auto wanted = values_of(c);
  std::set<std::string> changed;
  passes::Rewrites rewrites;
  passes::prepare_for_schedule(
      kernel, ir::default_target(),
      [&](std::string_view pass, const ir::Kernel& now, double, bool differs) {
        if (differs) changed.insert(std::string(pass));
        Case again = c;
        for (test::Padded& output : again.outputs) {
          output.each([&](const auto& index) { output.set(index, NAN); });
        }
        run(now, again);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          EXPECT_LT(test::relative_error(again.outputs[i], wanted[i]), 1e-4) << "after " << pass;
        }
      },
      rewrites);
  EXPECT_FALSE(changed.empty());
  for (const std::string& pass : passes_that_apply) {
    EXPECT_EQ(changed.count(pass), 1u) << pass << " found nothing to do";
  }
}

Case attention(const kernels::Attention& a, std::int64_t queries, std::int64_t keys) {
  const std::vector<std::int64_t> q{1, queries, a.heads, a.dim}, k{1, keys, a.kv_heads, a.dim};
  return {"attention " + std::to_string(queries) + " x " + std::to_string(keys),
          kernels::attention_forward(a).finish(),
          {test::Padded::normal(bf16, q, 1), test::Padded::normal(bf16, k, 2),
           test::Padded::normal(bf16, k, 3)},
          {test::Padded(bf16, q), test::Padded(f32, {1, a.heads, queries})}};
}

TEST(Preparation, KeepsAttention) {
  kernels::Attention full, causal, windowed;
  for (kernels::Attention* a : {&full, &causal, &windowed}) {
    a->heads = 2;
    a->kv_heads = 1;
    a->block_q = a->block_k = 64;
  }
  causal.causal = windowed.causal = true;
  windowed.window = 70;
  for (const kernels::Attention& a : {full, causal, windowed}) {
    for (const auto& [queries, keys] :
         {std::pair<int, int>{1, 1}, {5, 0}, {130, 300}, {300, 130}, {256, 256}}) {
      expect_kept(attention(a, queries, keys),
                  {"materialise_extents", "fold_accumulators", "skip_identities",
                   "overlap_products", "peel_masks"});
    }
  }
}

// Blocks of more rows than a warpgroup has.
TEST(Preparation, KeepsAttentionOfSeveralWarpgroups) {
  kernels::Attention full, causal, windowed;
  for (kernels::Attention* a : {&full, &causal, &windowed}) {
    a->heads = a->kv_heads = 1;
    a->block_q = 128;
    a->block_k = 64;
  }
  causal.causal = windowed.causal = true;
  windowed.window = 70;
  for (const kernels::Attention& a : {full, causal, windowed}) {
    for (const auto& [queries, keys] : {std::pair<int, int>{1, 1}, {130, 200}, {200, 130}}) {
      expect_kept(attention(a, queries, keys),
                  {"drop_selects", "skip_hidden", "overlap_products", "peel_masks"});
    }
  }
}

TEST(Preparation, KeepsProducts) {
  for (const std::int64_t k : {0, 1, 100}) {
    expect_kept({"gemm",
                 kernels::gemm({}).finish(),
                 {test::Padded::normal(bf16, {70, k}, 1), test::Padded::normal(bf16, {90, k}, 2)},
                 {test::Padded(bf16, {70, 90})}});
  }
}

// Two sums that wait, of different operands, and one that cannot since it is read at once.
Kernel several_sums() {
  Kernel kernel("several_sums");
  const Dim rows = kernel.dim("rows"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {rows, 64}), K = kernel.in("K", bf16, {keys, 64});
  const Tensor V = kernel.in("V", bf16, {keys, 32}), Y = kernel.out("Y", f32, {rows, 32});
  const Tensor Z = kernel.out("Z", f32, {rows, 64}), S = kernel.out("S", f32, {rows, 1});
  const auto [x] = kernel.grid(ceil_div(rows, 64));
  const Block block = rows.block(x, 64);
  const Tile q = load(Q(block, all));
  Var y{zeros({block, 32})}, z{zeros({block, 64})}, w{zeros({block, 64})}, s{zeros({block, 1})};
  for (Block cols : blocks(keys, 32)) {
    const Tile k = load(K(cols, all)), v = load(V(cols, all));
    const Tile p = tanh(dot(q, k.T()) * 0.1);
    y = y * 0.5 + dot(p.cast(bf16), v);
    z = dot((p * p).cast(bf16), k, z);
    w = dot(p.cast(bf16), k, w);
    s = s + reduce_max(w, 1) + reduce_sum(p, 1);
  }
  store(Y(block, all), y);
  store(Z(block, all), z);
  store(S(block, all), s);
  return kernel;
}

TEST(Preparation, KeepsSeveralSums) {
  for (const std::int64_t n : {0, 1, 32, 100}) {
    expect_kept(
        {"several sums over " + std::to_string(n),
         several_sums().finish(),
         {test::Padded::normal(bf16, {70, 64}, 1), test::Padded::normal(bf16, {n, 64}, 2),
          test::Padded::normal(bf16, {n, 32}, 3)},
         {test::Padded(f32, {70, 32}), test::Padded(f32, {70, 64}), test::Padded(f32, {70, 1})}});
  }
}

}  // namespace
}  // namespace tilewright
