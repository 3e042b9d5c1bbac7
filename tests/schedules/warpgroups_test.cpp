#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "codegen/nvrtc_build.h"
#include "common/error_text.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "compiler/compiled.h"
#include "compiler/simulation.h"
#include "passes/pipeline.h"
#include "schedules/two_ways_relative.h"
#include "schedules/warpgroups.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernels/attention.h"
#include "tilewright/kernels/gemm.h"
#include "tilewright/kernels/softmax.h"

// Plain kernels through the automatic schedule, on the simulated GPU, beside the interpreter.
namespace tilewright {
namespace {

using test::check;
using test::poison;
using test::random;
using test::random_f32;

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

// Each row has the keys of a band around it, of a loop over all keys. The rows of some warpgroups
// see none of the loop's first ones, or of its last ones, or lie behind all of them.
Kernel banded_sums(int before, int behind) {
  Kernel kernel("banded_sums");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor Q = kernel.in("Q", bf16, {m, 64}), K = kernel.in("K", bf16, {n, 64});
  const Tensor V = kernel.in("V", bf16, {n, 64}), Y = kernel.out("Y", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  const Tile q = load(Q(rows, all));
  Var sum{zeros({rows, 64})};
  for (Block keys : blocks(n, 64)) {
    const Tile row = rows.as_column(), key = keys.as_row();
    const Tile seen = (key + before >= row) && (key <= row + behind);
    const Tile s =
        where(seen, dot(q, load(K(keys, all)).T()) * 0.1, -std::numeric_limits<double>::infinity());
    sum = dot(exp2(s).cast(bf16), load(V(keys, all)), sum);
  }
  store(Y(rows, all), sum);
  return kernel;
}

TEST(HopperSchedule, WarpgroupsBehindAllKeysOfALoop) {
  for (const auto& [before, behind] : {std::pair<int, int>{50, 1000}, {50, 20}, {1000, 20}}) {
    for (const Lengths& l : {Lengths{400, 70}, {129, 300}, {300, 1}, {128, 0}}) {
      SCOPED_TRACE(testing::Message()
                   << before << " " << behind << " " << l.queries << " x " << l.keys);
      check(banded_sums(before, behind),
            {random({l.queries, 64}, 1), random({l.keys, 64}, 2), random({l.keys, 64}, 3)},
            {poison({l.queries, 64}, f32)});
    }
  }
}

// Tiles of 192 rows: 64 for each of three warpgroups, of which some see fewer keys than others, and
// some have no rows at all.
kernels::Attention wide_attention(bool causal, int window) {
  kernels::Attention a;
  a.heads = a.kv_heads = 2;
  a.causal = causal;
  a.window = window;
  a.block_q = 192;
  a.block_k = 64;
  return a;
}

TEST(HopperSchedule, WarpgroupsWithRowsOfTheirOwn) {
  for (const auto& [causal, window] : {std::pair<bool, int>{false, 0}, {true, 0}, {true, 70}}) {
    for (const Lengths& l : {Lengths{1, 1}, {64, 200}, {129, 30}, {200, 129}, {300, 520}}) {
      SCOPED_TRACE(testing::Message()
                   << causal << " " << window << " " << l.queries << " x " << l.keys);
      check(kernels::attention_forward(wide_attention(causal, window)),
            {random({1, l.queries, 2, 64}, 1), random({1, l.keys, 2, 64}, 2),
             random({1, l.keys, 2, 64}, 3)},
            {poison({1, l.queries, 2, 64}), poison({1, 2, l.queries}, f32)});
    }
  }
}

// Four warpgroups have 112 registers a thread: enough for 256 x 128.
TEST(HopperSchedule, FourWarpgroups) {
  kernels::Gemm g;
  g.block_m = 256;
  g.block_n = 128;
  const Kernel kernel = kernels::gemm(g);
  check(kernel, {random({300, 72}, 1), random({136, 72}, 2)}, {poison({300, 136})});
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  codegen::expect_builds(compiler::translate(kernel.finish(), ir::default_target()).source);
}

// Of 192 rows and keys, blocks of 64: the warpgroups see 1, 2 and 3 of them, with two products
// each.
TEST(HopperSchedule, WarpgroupsLeaveOutWhatTheirRowsDoNotSee) {
  const Kernel kernel = kernels::attention_forward(wide_attention(true, 0));
  std::vector<HostTensor> tensors{random({1, 192, 2, 64}, 1), random({1, 192, 2, 64}, 2),
                                  random({1, 192, 2, 64}, 3), poison({1, 192, 2, 64}),
                                  poison({1, 2, 192}, f32)};
  std::vector<TensorRef> given;
  for (HostTensor& tensor : tensors) given.push_back(ref(tensor));
  const auto products = [&](const Numerics& numerics) {
    const ir::Kernel machine =
        compiler::compile_to_machine(kernel.finish(), ir::default_target(), {numerics}).kernel;
    const simulator::MachineReport report =
        compiler::simulate(machine, compiler::make_arguments(machine, given, {}), {.seed = 1});
    EXPECT_TRUE(report.ok());
    return report.instructions.at("wgmma_commit");
  };
  constexpr int kWarps = 4, kHeads = 2, kProducts = 2;
  EXPECT_EQ(products({}), (1 + 2 + 3) * kWarps * kHeads * kProducts);
  Numerics whole;
  whole.skip_hidden = false;
  EXPECT_EQ(products(whole), (3 + 3 + 3) * kWarps * kHeads * kProducts);
}

// Lanes keep their parts of the sums over rotated loops too, although sum and shift begin alike.
TEST(HopperSchedule, LanesMeetBehindTheLoop) {
  kernels::Attention a;
  a.causal = true;
  const compiler::MachineForm form =
      compiler::compile_to_machine(kernels::attention_forward(a).finish(), ir::default_target());
  const ir::Kernel& machine = form.kernel;
  EXPECT_GT(form.applied.at("overlap_products"), 0);
  int within = 0;
  const auto sums = [](const ir::Block& block) {
    int count = 0;
    ir::for_each(block, [&](const ir::Operation& o) {
      count += o.op == ir::Op::reduce_lanes && o.attributes.function() == ir::Op::add;
    });
    return count;
  };
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::for_loop) within += sums(o.blocks[0]);
  });
  EXPECT_EQ(within, 0);
  EXPECT_GT(sums(machine.body), 0);
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

// A vector of as many elements as a block has rows, once as a column and once as a row; and a
// number of the launch.
TEST(HopperSchedule, VectorsBesideAProduct) {
  Kernel kernel("scaled_gemm");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor scale = kernel.in("scale", f32, {m}), bias = kernel.in("bias", f32, {n});
  const Tensor C = kernel.out("C", bf16, {m, n}), top = kernel.out("top", f32, {m});
  const Scalar alpha = kernel.scalar("alpha", f32);
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, 128));
  const Block rows = m.block(y, 128), cols = n.block(x, 128);
  Var acc{zeros({rows, cols})};
  for (Block depth : blocks(k, 64)) {
    acc = dot(load(A(rows, depth)), load(B(cols, depth)).T(), acc);
  }
  const Tile row_scale = (load(scale(rows)) * alpha).reshape({128, 1});
  const Tile c = acc * row_scale + load(bias(cols)).reshape({1, 128});
  store(C(rows, cols), c);
  store(top(rows), reduce_max(c, 1).reshape({128}));
  check(kernel,
        {random({200, 72}, 1), random({104, 72}, 2), HostTensor::random_normal(f32, {200}, 3),
         HostTensor::random_normal(f32, {104}, 4)},
        {poison({200, 104}), poison({200}, f32)}, {-1.5});
}

// A tile that is an operand of one product and in arithmetic as well, and a loop in a loop.
TEST(HopperSchedule, ALoadedTileInArithmetic) {
  Kernel kernel("gated");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {m, 64}), W = kernel.in("W", bf16, {n, 64});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 256));
  for (Block rows : blocks(m, 128, 2 * i, min(2 * i + 2, ceil_div(m, 128)))) {
    const Tile x = load(X(rows, all));
    Var acc{x.cast(f32) * 0.5};
    for (Block units : blocks(n, 64)) {
      const Tile w = load(W(units, all));
      acc = acc + dot((dot(x, w.T()) * 0.1).cast(bf16), w);
    }
    store(Y(rows, all), acc * rsqrt(reduce_sum(x.cast(f32) * x.cast(f32), 1) + 1));
  }
  check(kernel, {random({300, 64}, 1), random({100, 64}, 2)}, {poison({300, 64})});
}

// Arithmetic reads the stage last, and the product before it still reads it.
TEST(HopperSchedule, AStageGoesBackBehindItsProduct) {
  constexpr int kTiles = 132 * 8;  // of a multiprocessor 8: more than stages
  Kernel kernel("both");
  const Tensor X = kernel.in("X", bf16, {kTiles, 64, 16}), W = kernel.in("W", bf16, {16, 16});
  const Tensor Y = kernel.out("Y", f32, {kTiles, 64, 16});
  const Tensor Z = kernel.out("Z", f32, {kTiles, 64, 16});
  const auto [i] = kernel.grid(kTiles);
  const Tile x = load(X(i, all, all));
  const Tile product = dot(x, load(W(all, all)).T());
  const Tile magnitude = abs(x);
  store(Y(i, all, all), product);
  store(Z(i, all, all), magnitude.cast(f32));
  check(kernel, {random({kTiles, 64, 16}, 1), random({16, 16}, 2)},
        {poison({kTiles, 64, 16}, f32), poison({kTiles, 64, 16}, f32)});
}

// Registers that a product reads are read again while it would still run.
TEST(HopperSchedule, AnOperandInRegistersIsReadBehindItsProduct) {
  Kernel kernel("sparse");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {k, 64});
  const Tensor Y = kernel.out("Y", bf16, {m, 64}), Sum = kernel.out("Sum", f32, {m, 1});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  Var y{zeros({rows, 64})}, sum{zeros({rows, 1})};
  for (Block depth : blocks(k, 64)) {
    const Tile x = max(load(X(rows, depth)), 0);
    y = dot(x, load(W(depth, all)), y);
    sum = sum + reduce_sum(x.cast(f32), 1);
  }
  store(Y(rows, all), y);
  store(Sum(rows, all), sum);
  check(kernel, {random({150, 136}, 1), random({136, 64}, 2)},
        {poison({150, 64}), poison({150, 1}, f32)});
}

// The next operand takes the registers of this one, whose product is waited for first: no copy.
TEST(HopperSchedule, AnOperandIsMadeWhereTheLastOneLay) {
  Kernel kernel("delayed");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor Q = kernel.in("Q", bf16, {m, 64}), K = kernel.in("K", bf16, {n, 64});
  const Tensor V = kernel.in("V", bf16, {n, 64}), Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  const Tile q = load(Q(rows, all));
  Var y{zeros({rows, 64})}, weights{zeros({rows, 64}).cast(bf16)};
  for (Block keys : blocks(n, 64)) {
    y = dot(weights, load(V(keys, all)), y);
    weights = tanh(dot(q, load(K(keys, all)).T())).cast(bf16);
  }
  store(Y(rows, all), y);
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  int copies = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    copies += o.op == ir::Op::copy && machine.type(o.operands[0]).dtype == bf16;
  });
  EXPECT_EQ(copies, 0);
  check(kernel, {random({150, 64}, 1), random({256, 64}, 2), random({256, 64}, 3)},
        {poison({150, 64})});
}

// The simulated GPU does not model the proxies: that the fence is there is asked of the text.
TEST(HopperSchedule, FencesReadsBeforeAStageIsReleased) {
  Kernel kernel("scaled_product");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor X = kernel.in("X", bf16, {m, k}), W = kernel.in("W", bf16, {k, 64});
  const Tensor Y = kernel.out("Y", bf16, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  Var acc{zeros({rows, 64})};
  for (Block depth : blocks(k, 64)) {
    const Tile x = load(X(rows, depth)).cast(f32) * 2;
    acc = acc + dot(x.cast(bf16), load(W(depth, all)));
  }
  store(Y(rows, all), acc);
  ir::Kernel tile = kernel.finish();
  passes::Rewrites rewrites;
  passes::prepare_for_schedule(tile, ir::default_target(), {}, rewrites);
  const ir::Kernel scheduled = schedules::schedule_warpgroups(tile).kernel;
  int reads = 0, releases = 0;
  bool unfenced = false;
  ir::ValueId empty = ir::kNoValue;  // the barriers of X's ring
  ir::for_each(scheduled.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::mbarriers && o.attributes.text(ir::Key::name) == "X_empty") {
      empty = o.results[0];
    }
    if (o.op == ir::Op::load_tile) {
      ++reads;
      unfenced = true;
    }
    if (o.op == ir::Op::fence_proxy_async) unfenced = false;
    if (o.op == ir::Op::mbarrier_arrive && o.operands[0] == empty) {
      ++releases;
      EXPECT_FALSE(unfenced);
    }
  });
  EXPECT_GT(reads, 0);
  EXPECT_EQ(releases, reads);
}

// What the fuzzer found, as the smallest kernels that show it.
TEST(HopperSchedule, AProductExistsAsFarAsItsAccumulator) {
  Kernel kernel("cut_by_its_accumulator");
  const Dim n = kernel.dim("n", at_most(64));
  const Tensor X = kernel.in("X", bf16, {64, 64}), C = kernel.in("C", f32, {64, n});
  const Tensor Y = kernel.inout("Y", f32, {64, 64});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(Y(all, all), dot(x, x.T(), load(C(all, n.block(0, 64)))));
  check(kernel, {random({64, 64}, 1), random_f32({64, 5}, 2)}, {random_f32({64, 64}, 3)});
}

TEST(HopperSchedule, TermsThatOneOperandLacksAreNone) {
  Kernel kernel("infinite_beside_nothing");
  const Dim m = kernel.dim("m", at_most(64)), n = kernel.dim("n", at_most(64));
  const Tensor X = kernel.in("X", f32, {m, n}), Y = kernel.out("Y", f32, {m, n});
  kernel.grid(1);
  const Block rows = m.block(0, 64), cols = n.block(0, 64);
  const Tile x = load(X(rows, cols));
  // Row 2 of the second operand is infinite, and the first has one column.
  const Tile infinite = where(rows.as_column() < 2, x, -INFINITY);
  store(Y(rows, cols), dot(x.cast(f16), infinite.cast(f16)));
  check(kernel, {random_f32({3, 1}, 1)}, {poison({3, 1}, f32)});
}
TEST(HopperSchedule, TermsThatTheSecondOperandLacksAreNone) {
  Kernel kernel("infinite_before_nothing");
  const Dim m = kernel.dim("m", at_most(64)), n = kernel.dim("n", at_most(64));
  const Tensor X = kernel.in("X", f32, {m, n}), Y = kernel.out("Y", f32, {m, n});
  kernel.grid(1);
  const Block rows = m.block(0, 64), cols = n.block(0, 64);
  const Tile x = load(X(rows, cols));
  // Column 2 of the first operand is infinite, and the second has one row.
  const Tile infinite = where(cols.as_row() < 2, x, -INFINITY);
  store(Y(rows, cols), dot(infinite.cast(f16), (x + 1).cast(f16)));
  check(kernel, {random_f32({1, 3}, 1)}, {poison({1, 3}, f32)});
}

TEST(HopperSchedule, RowsBesideAProductLieInWarpsAsItsDo) {
  Kernel kernel("beside_a_product");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 16}), W = kernel.in("W", bf16, {16, 16});
  const Tensor Y = kernel.out("Y", bf16, {m, 16}), Z = kernel.out("Z", f32, {m, 16});
  const Tensor U = kernel.inout("U", bf16, {m, 16}), V = kernel.inout("V", f32, {m, 1});
  const Tensor T = kernel.out("T", f32, {m, 16}), S = kernel.out("S", f32, {m, 1});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block rows = m.block(i, 64);
  const Tile x = load(X(rows, all));
  store(Y(rows, all), x.cast(bf16));
  const Tile product = dot(x.cast(bf16), load(W(all, all)));
  store(Z(rows, all), product);
  // In place, by whoever has the rows.
  store(U(rows, all), (load(U(rows, all)).cast(f32) * 0.5 + product).cast(bf16));
  store(T(rows, all), load(U(rows, all)).cast(f32));
  store(V(rows, all), load(V(rows, all)) * 0.5 + reduce_min(x, 1));
  store(S(rows, all), load(V(rows, all)));
  check(kernel, {random_f32({40, 16}, 1), random({16, 16}, 2)},
        {poison({40, 16}), poison({40, 16}, f32), random({40, 16}, 3), random_f32({40, 1}, 4),
         poison({40, 16}, f32), poison({40, 1}, f32)});
}

// Two blocks of X are held while a condition loads two more: its ring has four stages.
TEST(HopperSchedule, HoldsStagesAroundACondition) {
  Kernel kernel("held");
  const Dim m = kernel.dim("m", multiple_of(256));
  const Tensor X = kernel.in("X", bf16, {m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor C = kernel.out("C", bf16, {m / 4, 64});
  const auto [y] = kernel.grid(m / 256);
  const auto block = [&, y = y](int i) { return load(X(m.block(y * 4 + i, 64), all)); };
  const Tile b = load(B(all, all)), first = block(0), second = block(1);
  Var sum{zeros({64, 64})};
  when(y < 1, [&] {
    const Tile third = block(2), fourth = block(3);
    sum = dot(fourth, b, dot(third, b, sum));
  });
  store(C((m / 4).block(y, 64), all), dot(second, b, dot(first, b, sum)).cast(bf16));
  check(kernel, {random({512, 64}, 1), random({64, 64}, 2)}, {poison({128, 64})});
}

// A stage goes back to the ring once the last of the products that read it has ended.
TEST(HopperSchedule, AStageServesTwoProducts) {
  Kernel kernel("two_sums");
  const Dim k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {64, k}), B = kernel.in("B", bf16, {64, k});
  const Tensor W = kernel.in("W", bf16, {64, k});
  const Tensor C = kernel.out("C", bf16, {64, 64}), D = kernel.out("D", bf16, {64, 64});
  kernel.grid(1);
  Var first{zeros({64, 64})}, second{zeros({64, 64})};
  for (Block block : blocks(k, 64)) {
    const Tile w = load(W(all, block)).T();
    first = dot(load(A(all, block)), w, first);
    second = dot(load(B(all, block)), w, second);
  }
  store(C(all, all), Tile(first).cast(bf16));
  store(D(all, all), Tile(second).cast(bf16));
  check(kernel, {random({64, 640}, 1), random({64, 640}, 2), random({64, 640}, 3)},
        {poison({64, 64}), poison({64, 64})});
}

// A block that is held over a loop has a ring of its own: the loop goes round the one of its
// blocks.
TEST(HopperSchedule, HoldsABlockOfTheTensorThatALoopReads) {
  Kernel kernel("own_tensor");
  const Dim m = kernel.dim("m", multiple_of(64));
  const Tensor X = kernel.in("X", bf16, {m, 64}), C = kernel.out("C", bf16, {m, 64});
  const auto [y] = kernel.grid(ceil_div(m, 64));
  const Tile own = load(X(m.block(y, 64), all));
  Var sum{zeros({64, 64})};
  for (Block block : blocks(m, 64)) sum = dot(own, load(X(block, all)).T(), sum);
  store(C(m.block(y, 64), all), (Tile(sum) * 0.1).cast(bf16));
  check(kernel, {random({640, 64}, 1)}, {poison({640, 64})});
}

// A block that a loop inside reads goes back behind that loop, and the next one takes its stage.
TEST(HopperSchedule, HoldsABlockUntilTheLoopThatReadsItEnds) {
  Kernel kernel("nested");
  const Dim m = kernel.dim("m", multiple_of(64)), n = kernel.dim("n", multiple_of(64));
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {n, 64});
  const Tensor C = kernel.out("C", bf16, {64, 64});
  kernel.grid(1);
  Var sum{zeros({64, 64})};
  for (Block i : blocks(m, 64)) {
    const Tile a = load(A(i, all));
    for (Block j : blocks(n, 64)) sum = dot(a, load(B(j, all)).T(), sum);
  }
  store(C(all, all), (Tile(sum) * 0.1).cast(bf16));
  check(kernel, {random({640, 64}, 1), random({192, 64}, 2)}, {poison({64, 64})});
}

// Ten rows of tiles: a band of eight passes over the columns, then one of two.
TEST(HopperSchedule, TilesOfTheLastBandToo) {
  Kernel kernel("bands");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {m, 128}), B = kernel.in("B", bf16, {n, 128});
  const Tensor C = kernel.out("C", bf16, {m, n});
  const auto [x, y] = kernel.grid(ceil_div(n, 64), ceil_div(m, 64));
  const Block rows = m.block(y, 64), columns = n.block(x, 64);
  Var sum{zeros({64, 64})};
  for (Block k : blocks(128, 64)) {
    sum = dot(load(A(rows, k)), load(B(columns, k)).T(), sum);
  }
  store(C(rows, columns), Tile(sum).cast(bf16));
  check(kernel, {random({600, 128}, 1), random({136, 128}, 2)}, {poison({600, 136})});
}

// Warpgroups leave the part without a mask after different turns, and take no turns at products.
TEST(HopperSchedule, ALowerTriangleThatIsComputed) {
  Kernel kernel("triangle");
  const Dim m = kernel.dim("m", multiple_of(128));
  const Tensor W = kernel.in("W", bf16, {m, m}), V = kernel.in("V", bf16, {m, 64});
  const Tensor C = kernel.out("C", bf16, {m, 64});
  const auto [y] = kernel.grid(m / 128);
  const Block rows = m.block(y, 128);
  Var sum{zeros({128, 64})};
  for (Block j : blocks(m, 64)) {
    const Tile w = load(W(rows, j)).cast(f32) * 0.5;
    sum = dot(where(j.as_row() <= rows.as_column(), w, 0).cast(bf16), load(V(j, all)), sum);
  }
  store(C(rows, all), (Tile(sum) * 0.1).cast(bf16));
  check(kernel, {random({256, 256}, 1), random({256, 64}, 2)}, {poison({256, 64})});
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
  EXPECT_NE(text.find("warpgroups_test.cpp:"), std::string::npos) << text;
}

TEST(HopperSchedule, RefusesProductsOfWhatWasStored) {
  Kernel kernel("powers");
  const Tensor W = kernel.in("W", bf16, {64, 64}), Y = kernel.inout("Y", bf16, {64, 64});
  kernel.grid(1);
  const Tile w = load(W(all, all));
  for ([[maybe_unused]] Index i : range(3)) {
    store(Y(all, all), dot(load(Y(all, all)), w).cast(bf16));
  }
  const std::string text = refusal(kernel);
  EXPECT_NE(text.find("stores to its tensor before"), std::string::npos) << text;
  EXPECT_NE(text.find("fix: keep what was stored in a Var"), std::string::npos) << text;
}

TEST(HopperSchedule, RefusesBytesThatDoNotLieAlongK) {
  Kernel kernel("columns");
  const Tensor A = kernel.in("A", f8e4m3, {64, 64}), B = kernel.in("B", f8e4m3, {64, 64});
  const Tensor C = kernel.out("C", f32, {64, 64});
  kernel.grid(1);
  store(C(all, all), dot(load(A(all, all)), load(B(all, all))));
  const std::string text = refusal(kernel);
  EXPECT_NE(text.find("does not lie along k in memory"), std::string::npos) << text;
  EXPECT_NE(text.find("fix: let k be the last axis"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright
