#include <gtest/gtest.h>

#include <cmath>

#include "common/error_text.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "schedules/two_ways.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels of the tile level whose tiles are needed elsewhere than where they were made: in other
// lanes, other warps or other warpgroups.
namespace tilewright {
namespace {

void check(const Kernel& kernel, const std::vector<HostTensor>& tensors, std::size_t inputs,
           double bound = 1e-5) {
  test::expect_two_ways(kernel, tensors, inputs, bound);
}

HostTensor random(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(dtype, std::move(shape), seed);
}
HostTensor output(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor::poisoned(dtype, std::move(shape));
}

std::size_t conversions(const Kernel& kernel) {
  return compiler::conversions_in(
             compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel)
      .size();
}

// Blocks of rows x 128 of C = A B^T, and what `end` makes of them.
template <typename End>
Kernel product(int rows, const End& end) {
  Kernel kernel("product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {n, 64});
  const Tensor C = kernel.inout("C", f32, {m, n}), D = kernel.inout("D", f32, {n, m});
  const auto [x, y] = kernel.grid(ceil_div(n, 128), ceil_div(m, rows));
  const Block own = m.block(y, rows), cols = n.block(x, 128);
  end(dot(load(A(own, all)), load(B(cols, all)).T()), own, cols, C, D);
  return kernel;
}
void check_product(const Kernel& kernel) {
  check(kernel,
        {random(bf16, {150, 64}, 1), random(bf16, {140, 64}, 2), HostTensor::zeros(f32, {150, 140}),
         HostTensor::zeros(f32, {140, 150})},
        2, 1e-3);
}

// What is added to a transposed tile lies in warps by columns, as that does: no warp has the rows
// that a copy of its own would send, or those that it loads again.
TEST(Conversions, StoresAndLoadsBesideATransposedTile) {
  Kernel kernel("beside");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor Y = kernel.inout("Y", bf16, {64, m});
  const Tensor W = kernel.out("W", bf16, {64, m}), Z = kernel.out("Z", f32, {64, m});
  const auto [x] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(x, 64);
  const Tile product = dot(load(A(own, all)), load(B(all, all)));
  const Tile sum = load(Y(all, own)).cast(f32) * 0.5 + product.T();
  store(Y(all, own), sum.cast(bf16));
  store(W(all, own), (sum * 2).cast(bf16));
  store(Z(all, own), load(Y(all, own)).cast(f32));
  check(kernel,
        {random(bf16, {136, 64}, 1), random(bf16, {64, 64}, 2), random(bf16, {64, 136}, 3),
         HostTensor::zeros(bf16, {64, 136}), HostTensor::zeros(f32, {64, 136})},
        2, 2e-2);
}

TEST(Conversions, AProductIsStoredTransposedWithoutOne) {
  for (const int rows : {64, 128}) {
    const Kernel kernel = product(rows, [](const Tile& c, const Block& own, const Block& cols,
                                           const Tensor& C, const Tensor& D) {
      store(C(own, cols), c);
      store(D(cols, own), c.T());
    });
    EXPECT_EQ(conversions(kernel), 0u);
    check_product(kernel);
  }
}

TEST(Conversions, ATransposedProductIsReadWhereverItsRowsAre) {
  for (const int rows : {64, 128}) {
    check_product(product(rows, [](const Tile& c, const Block& own, const Block& cols,
                                   const Tensor&, const Tensor& D) {
      const Tile turned = c.T();
      store(D(cols, own), turned * 2 + reduce_max(turned, 0));
    }));
  }
}

TEST(Conversions, ReductionsAlongRowsCrossWarpgroups) {
  for (const int rows : {64, 128, 192}) {
    check_product(product(rows, [](const Tile& c, const Block& own, const Block& cols,
                                   const Tensor& C, const Tensor&) {
      store(C(own, cols), (c - reduce_min(c, 0)) / (1 + reduce_sum(abs(c), 0)));
    }));
  }
}

// 512 columns are divided among warpgroups, and come by two copies.
TEST(Conversions, ReductionsAlongColumnsOfWideProducts) {
  Kernel kernel("wide");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {512, k});
  const Tensor C = kernel.out("C", f32, {m, 512});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(i, 64);
  Var sum{zeros({own, 512})};
  for (Block depth : blocks(k, 64)) sum = dot(load(A(own, depth)), load(B(all, depth)).T(), sum);
  const Tile c = sum;
  store(C(own, all), (c - reduce_max(c, 1)) / (1 + reduce_sum(abs(c), 1)));
  check(kernel, {random(bf16, {70, 72}, 1), random(bf16, {512, 72}, 2), output(f32, {70, 512})}, 2,
        1e-3);
}

TEST(Conversions, AColumnBecomesARowAndBack) {
  for (const int rows : {64, 128}) {
    check_product(product(rows, [rows](const Tile& c, const Block& own, const Block& cols,
                                       const Tensor& C, const Tensor& D) {
      const Tile sums = reduce_sum(c, 1), top = reduce_max(c, 0);
      store(D(cols, own), top.reshape({128, 1}) * sums.reshape({1, rows}));
      store(C(own, cols), c + sums * top);
    }));
  }
}

TEST(Conversions, PartsOfRowsOfAProduct) {
  check_product(product(
      128, [](const Tile& c, const Block& own, const Block& cols, const Tensor& C, const Tensor&) {
        const Tile top = c.slice({0, 0}, {8, 128}), low = c.slice({120, 0}, {8, 128});
        store(C(own, cols), c + reduce_sum(top * low, 0));
      }));
}

TEST(Conversions, APartOfATransposedProduct) {
  check_product(product(
      64, [](const Tile& c, const Block& own, const Block& cols, const Tensor& C, const Tensor&) {
        store(C(own, cols), c + reduce_sum(c.T().slice({3, 0}, {16, 64}), 0).reshape({64, 1}));
      }));
}

// The axis that is cut is neither the first nor the last.
TEST(Conversions, APartInTheMiddleOfThreeAxes) {
  Kernel kernel("middle");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 8, 32}), Y = kernel.out("Y", f32, {n, 4, 32});
  const auto [x] = kernel.grid(ceil_div(n, 16));
  const Block own = n.block(x, 16);
  store(Y(own, all, all), load(X(own, all, all)).slice({0, 3, 0}, {16, 4, 32}) * 2);
  EXPECT_EQ(conversions(kernel), 1U);
  check(kernel, {random(f32, {40, 8, 32}, 1), output(f32, {40, 4, 32})}, 1);
}

// dV = P^T dO, as in the backward pass of attention: P is computed, and read turned.
TEST(Conversions, AComputedFirstOperandTransposed) {
  for (const int rows : {64, 128}) {
    Kernel kernel("turned");
    const Dim q = kernel.dim("q"), n = kernel.dim("n");
    const Tensor Q = kernel.in("Q", bf16, {q, 64}), K = kernel.in("K", bf16, {n, 64});
    const Tensor G = kernel.in("G", bf16, {q, 64}), V = kernel.out("V", f32, {n, 64});
    const auto [x] = kernel.grid(ceil_div(n, rows));
    const Block cols = n.block(x, rows);
    const Tile k = load(K(cols, all));
    Var sum{zeros({cols, 64})};
    for (Block own : blocks(q, rows)) {
      const Tile p = tanh(dot(load(Q(own, all)), k.T()) * 0.1).cast(bf16);
      sum = dot(p.T(), load(G(own, all)), sum);
    }
    store(V(cols, all), sum);
    check(kernel,
          {random(bf16, {150, 64}, 1), random(bf16, {140, 64}, 2), random(bf16, {150, 64}, 3),
           output(f32, {140, 64})},
          3, 1e-2);
  }
}

// A tile that both a product and the registers read, of other rows than products have.
// Both lie in shared memory until the last product has read them.
TEST(Conversions, TwoComputedSecondOperands) {
  Kernel kernel("two");
  const Dim m = kernel.dim("m", multiple_of(128));
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor W = kernel.in("W", bf16, {m, 128}), C = kernel.out("C", f32, {m, 64});
  const auto [x] = kernel.grid(m / 128);
  const Block own = m.block(x, 128);
  const Tile a = load(A(own, all)), b = load(B(all, all)), w = load(W(own, all));
  const Tile first = (dot(a, b) * 0.1).cast(bf16), second = (dot(a, b.T()) * 0.1).cast(bf16);
  store(C(own, all), dot(w, first) + 2 * dot(w, second));
  check(kernel,
        {random(bf16, {256, 64}, 1), random(bf16, {64, 64}, 2), random(bf16, {256, 128}, 3),
         output(f32, {256, 64})},
        3, 2e-2);
}

TEST(Conversions, KeysAreReadOnceForProductsAndOnceForTheirNorms) {
  Kernel kernel("distances");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {m, 64}), Y = kernel.in("Y", bf16, {n, 64});
  const Tensor D = kernel.out("D", f32, {m});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block own = m.block(i, 128);
  const Tile x = load(X(own, all));
  Var least{full({own, 1}, 1e30)};
  for (Block cols : blocks(n, 64)) {
    const Tile y = load(Y(cols, all)), wide = y.cast(f32);
    const Tile norms = reduce_sum(wide * wide, 1).reshape({1, 64});
    least = min(least, reduce_min(norms - 2 * dot(x, y.T()), 1));
  }
  store(D(own), Tile(least).reshape({128}));
  check(kernel, {random(bf16, {150, 64}, 1), random(bf16, {140, 64}, 2), output(f32, {150})}, 2,
        1e-3);
}

// Bytes lie in other lanes for a product that reads them than in the result of one.
TEST(Conversions, AComputedFirstOperandOfBytes) {
  Kernel kernel("quantised");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", f8e4m3, {m, 64}), B = kernel.in("B", f8e4m3, {64, 64});
  const Tensor C = kernel.out("C", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 128));
  const Block own = m.block(i, 128);
  const Tile b = load(B(all, all)), first = dot(load(A(own, all)), b.T());
  store(C(own, all), dot((first * 0.05).cast(f8e4m3), b.T()));
  EXPECT_EQ(conversions(kernel), 1u);
  check(kernel, {random(f8e4m3, {150, 64}, 1), random(f8e4m3, {64, 64}, 2), output(f32, {150, 64})},
        2, 0.1);
}

TEST(Conversions, WithoutProducts) {
  Kernel kernel("moved");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", bf16, {m, 256}), T = kernel.out("T", bf16, {256, m});
  const Tensor S = kernel.out("S", f32, {m, 128}), H = kernel.out("H", f32, {m, 256});
  const auto [i] = kernel.grid(m / 8);
  const Block own = m.block(i, 8);
  const Tile loaded = load(X(own, all)), x = loaded.cast(f32);
  store(T(all, own), loaded.T());
  store(S(own, all), x.slice({0, 3}, {8, 128}) + x.slice({0, 5}, {8, 128}));
  const Tile heads = x.reshape({8, 4, 64});
  store(H(own, all), (heads - reduce_max(heads, 2)).reshape({8, 256}));
  check(kernel,
        {random(bf16, {24, 256}, 1), output(bf16, {256, 24}), output(f32, {24, 128}),
         output(f32, {24, 256})},
        1);
}

// A thread has one element of it, of which nothing can be cut.
TEST(Conversions, APartThatIsTheWhole) {
  Kernel kernel("whole");
  const Tensor X = kernel.in("X", f32, {4, 32}), Y = kernel.out("Y", f32, {4, 32});
  kernel.grid(1);
  store(Y(all, all), load(X(all, all)).slice({0, 0}, {4, 32}) + 1);
  check(kernel, {random(f32, {4, 32}, 1), output(f32, {4, 32})}, 1);
}

// A row and a column of one vector: both are computed where they are needed, and a mask of indices
// passes nowhere.
TEST(Conversions, IndicesAreComputedAgain) {
  Kernel kernel("masked");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 64}), Y = kernel.out("Y", f32, {64, m});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(i, 64);
  const Tile below = iota({64, 64}, 0) < iota({64, 64}, 1), x = load(X(own, all));
  store(Y(all, own), where(below, x, 0).T() + where(below, 1.0 * x.T(), 0));
  check(kernel, {random(f32, {70, 64}, 1), output(f32, {64, 70})}, 1);
}

TEST(Conversions, BooleansPassAsNumbers) {
  Kernel kernel("chosen");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 64}), Y = kernel.out("Y", f32, {m, 64});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(i, 64);
  const Tile x = load(X(own, all));
  store(Y(own, all), where((x > 0).T(), x, -1.0 * x));
  check(kernel, {random(f32, {128, 64}, 1), output(f32, {128, 64})}, 1);
}

TEST(Conversions, AllWarpsAgreeWithoutProducts) {
  Kernel kernel("agreed");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {m, 256}), Y = kernel.out("Y", f32, {m, 256});
  const auto [i] = kernel.grid(ceil_div(m, 4));
  const Block own = m.block(i, 4);
  Var x{load(X(own, all))};
  Cell<Condition> going(true);
  repeat_while(going, [&] {
    const Tile half = Tile(x) * 0.5;
    x = half;
    going = any(half > 0.7);
  });
  when(any(Tile(x) < -0.6), [&] { x = Tile(x) + reduce_sum(x, 1); });
  store(Y(own, all), x);
  check(kernel, {random(f32, {21, 256}, 1), output(f32, {21, 256})}, 1, 1e-4);
}

// Rings that fill what a CTA has make room for what a conversion needs.
// Its rings leave no room for what is converted until they are shorter.
Kernel full_kernel() {
  Kernel kernel("full");
  const Dim m = kernel.dim("m"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {k, 256});
  const Tensor C = kernel.out("C", f32, {m, 128});
  const auto [i] = kernel.grid(ceil_div(m, 64));
  const Block own = m.block(i, 64);
  Var sum{zeros({own, 256})};
  for (Block depth : blocks(k, 128)) sum = dot(load(A(own, depth)), load(B(depth, all)), sum);
  store(C(own, all), Tile(sum).slice({0, 1}, {64, 128}));
  return kernel;
}

TEST(Conversions, TakeRoomFromRings) {
  const Kernel kernel = full_kernel();
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  ASSERT_EQ(compiler::conversions_in(machine).size(), 1u);
  EXPECT_EQ(compiler::conversions_in(machine)[0].bytes, 64 * 256 * 4);
  check(kernel, {random(bf16, {70, 144}, 1), random(bf16, {144, 256}, 2), output(f32, {70, 128})},
        2, 1e-2);
}

// Every target goes through the same compiler, which shortens the rings for each.
TEST(Conversions, TakeRoomFromRingsForEveryTarget) {
  const Kernel kernel = full_kernel();
  HostTensor A = random(bf16, {70, 144}, 1), B = random(bf16, {144, 256}, 2);
  std::vector<HostTensor> results;
  for (const char* target : {"interpreter", "sim:sm_90a", "passes:sm_90a"}) {
    results.push_back(output(f32, {70, 128}));
    SCOPED_TRACE(target);
    compile(kernel, target).run(std::vector{ref(A), ref(B), ref(results.back())}, {});
    test::expect_near(results.back(), results.front(), 1e-2);
  }
}

TEST(Conversions, AnAuthorMayForbidThem) {
  Kernel kernel("forbidden");
  const Tensor X = kernel.in("X", f32, {64, 64}), Y = kernel.out("Y", f32, {64, 32});
  kernel.grid(1);
  kernel.require({instructions("convert") == 0});
  store(Y(all, all), load(X(all, all)).slice({0, 1}, {64, 32}));
  const std::string text = test::usage_error_of([&] { compile(kernel, "sim:sm_90a"); });
  EXPECT_NE(text.find("instructions(\"convert\") == 0, and it is 1"), std::string::npos) << text;
  EXPECT_NE(text.find("fix: let tiles that meet be made alike"), std::string::npos) << text;
}

}  // namespace
}  // namespace tilewright
