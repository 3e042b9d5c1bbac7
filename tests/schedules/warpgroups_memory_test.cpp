#include <gtest/gtest.h>

#include "schedules/two_ways_relative.h"

// What lies where, between the products of plain kernels: vectors, coordinates, loads behind
// stores, results that copies and buffers do not divide.
namespace tilewright {
namespace {

using test::check;
using test::poison;
using test::random;
using test::random_f32;

// Each iteration reads what the one before has stored: neither TMA nor another warp may be early.
TEST(HopperScheduleMemory, LoadsComeBehindStoresToTheirTensor) {
  Kernel kernel("in_place");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", bf16, {m, 64}), W = kernel.in("W", bf16, {64, 64});
  const Tensor Y = kernel.inout("Y", bf16, {m, 64}), S = kernel.inout("S", f32, {64});
  kernel.grid(1);
  const Tile w = load(W(all, all));
  for (Block rows : blocks(m, 128)) {
    const Tile product = dot(load(X(rows, all)), w);
    for ([[maybe_unused]] Index i : range(3)) {
      const Tile sums = load(S(all));
      const Tile y = load(Y(rows, all)).cast(f32) * 0.5 + product + sums.reshape({1, 64});
      store(Y(rows, all), y.cast(bf16));
      store(S(all), sums * 0.5 + 1);
    }
  }
  check(kernel, {random({300, 64}, 1), random({64, 64}, 2)},
        {random({300, 64}, 3), random_f32({64}, 4)});
}

TEST(HopperScheduleMemory, LoadsBehindStoresOfOtherWarps) {
  Kernel kernel("reversed");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", bf16, {m, 64}), W = kernel.in("W", bf16, {64, 64});
  const Tensor Y = kernel.inout("Y", bf16, {m, 64}), Z = kernel.inout("Z", f32, {m, 64});
  kernel.grid(1);
  const Tile w = load(W(all, all));
  for (Index i : range(4)) {
    const Block rows = m.block(i, 64);
    store(Y(rows, all), dot(load(X(rows, all)), w).cast(bf16));
    // Another block's, and this one's shifted by a warp's rows.
    const Block shifted(64 * i + 16, 64, m), last = m.block(3 - i, 64);
    store(Z(rows, all), load(Y(shifted, all)).cast(f32) + load(Y(last, all)).cast(f32));
  }
  check(kernel, {random({256, 64}, 1), random({64, 64}, 2)},
        {random({256, 64}, 3), random_f32({256, 64}, 4)});
}

// One vector as a column and as a row, which lie differently in registers.
TEST(HopperScheduleMemory, AVectorAsColumnAndRow) {
  for (const int size : {64, 128}) {
    Kernel kernel("distances");
    const Dim m = kernel.dim("m");
    const Tensor X = kernel.in("X", bf16, {m, 64}), norms = kernel.in("norms", f32, {m});
    const Tensor Y = kernel.out("Y", f32, {m, m}), twice = kernel.out("twice", f32, {m});
    const auto [i] = kernel.grid(ceil_div(m, size));
    const Block rows = m.block(i, size);
    const Tile x = load(X(rows, all)), norm = load(norms(rows)) * 2;
    store(Y(rows, rows),
          norm.reshape({size, 1}) + norm.reshape({1, size}) * 0.5 - 2 * dot(x, x.T()));
    store(twice(rows), norm);
    check(kernel, {random({50, 64}, 1), random_f32({50}, 2)},
          {poison({50, 50}, f32), poison({50}, f32)});
  }
}

// A column of one axis that loops and conditions carry: each warpgroup has its rows.
TEST(HopperScheduleMemory, AVectorThatIsCarried) {
  Kernel kernel("row_sums");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {m, 64}), W = kernel.in("W", bf16, {n, 64});
  const Tensor Y = kernel.out("Y", f32, {m});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  const Tile x = load(X(rows, all));
  Var sums{zeros({128})};
  for (Index j : range(ceil_div(n, 32))) {
    const Tile s = dot(x, load(W(n.block(j, 32), all)).T());
    when(j % 2 == 0, [&] { sums = sums + reduce_sum(s, 1).reshape({128}); });
  }
  store(Y(rows), sums);
  check(kernel, {random({150, 64}, 1), random({100, 64}, 2)}, {poison({150}, f32)});
}

// A tile of 64 rows beside products of 128 is whole in each warpgroup.
TEST(HopperScheduleMemory, CoordinatesOfATileThatIsNotSpread) {
  Kernel kernel("coordinates");
  const Tensor X = kernel.in("X", bf16, {128, 64}), Y = kernel.out("Y", f32, {128, 128});
  const Tensor column = kernel.out("column", f32, {64, 1});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(Y(all, all), dot(x, x.T()));
  store(column(all, all), iota({64, 1}, 0).cast(f32));
  check(kernel, {random({128, 64}, 1)}, {poison({128, 128}, f32), poison({64, 1}, f32)});
}

// What one element decides, all warps do; elements that do not exist decide nothing.
TEST(HopperScheduleMemory, AnyAsksTheWholeTile) {
  Kernel kernel("conditional");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {m, 64}), W = kernel.in("W", bf16, {n, 64});
  const Tensor Y = kernel.out("Y", bf16, {m, 64}), counts = kernel.out("counts", f32, {m, 1});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block rows = m.block(i, 128);
  const Tile x = load(X(rows, all));
  Var sum{zeros({rows, 64})}, count{zeros({rows, 1})};
  for (Block cols : blocks(n, 64)) {
    const Tile w = load(W(cols, all)), s = dot(x, w.T());
    when(any(s > 25), [&] {
      sum = sum + dot((s * 0.1).cast(bf16), w);
      count = count + 1;
    });
    when(any(s == 0), [&] { count = count + 100; });  // as behind the last column
  }
  store(Y(rows, all), sum);
  store(counts(rows, all), count);
  check(kernel, {random({200, 64}, 1), random({230, 64}, 2)},
        {poison({200, 64}), poison({200, 1}, f32)});
}

// The hardware writes 16 bytes whole: rows that end inside of them leave by the threads.
TEST(HopperScheduleMemory, StoresRowsThatEndInsideOfACopysBytes) {
  Kernel kernel("odd_rows");
  const Dim n = kernel.dim("n", at_most(64));
  const Tensor X = kernel.in("X", bf16, {64, 64}), Y = kernel.out("Y", bf16, {64, n});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(Y(all, n.block(0, 64)), dot(x, x.T()).cast(bf16));
  for (const std::int64_t width : {1, 7, 8, 21, 64}) {
    HostTensor in = random({64, 64}, 1), want = random({64, 64}, 2), got = want;
    const auto run = [&](const char* target, HostTensor& out) {
      // Rows of 64 elements, of which the tensor has the first.
      compile(kernel, target).run({ref(in), {out.data(), bf16, {64, width}, {64, 1}}});
    };
    run("interpreter", want);
    run("sim:sm_90a", got);
    EXPECT_LT(test::output_error(got, want), test::kOutputTolerance) << width;
  }
}

// Three pieces of 64 columns go through two buffers: the next store begins at the one that the last
// piece still leaves from.
TEST(HopperScheduleMemory, StoresOfPiecesThatBuffersDoNotDivide) {
  Kernel kernel("three_pieces");
  const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {192, 64});
  const Tensor C = kernel.out("C", bf16, {64, 192}), D = kernel.out("D", bf16, {64, 192});
  kernel.grid(1);
  const Tile product = dot(load(A(all, all)), load(B(all, all)).T());
  store(C(all, all), product.cast(bf16));
  store(D(all, all), (2 * product).cast(bf16));
  check(kernel, {random({64, 64}, 1), random({192, 64}, 2)},
        {poison({64, 192}), poison({64, 192})});
}

}  // namespace
}  // namespace tilewright
