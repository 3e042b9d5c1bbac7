#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu_tensors.h"
#include "runtime/runtime_test.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Where the target cpu spares itself a copy, and tiles that exist in part: bit by bit what the
// interpreter gives of small whole numbers, which every order of sums keeps.
namespace tilewright {
namespace {

using test::counted;
using test::expect_alike;
using test::run_on;
using test::untouched;

// A product is computed as far as a mask asks, but whole where somebody else needs the rest.
TEST(TilesOnCpu, ProductsUnderAMask) {
  Kernel kernel("masked");
  const Tensor X = kernel.in("X", f32, {7, 64, 8}), Y = kernel.in("Y", f32, {8, 96});
  const Tensor M = kernel.in("M", f32, {64, 96}), C = kernel.in("C", f32, {64, 1});
  const Tensor Z = kernel.out("Z", f32, {7, 64, 96});
  kernel.grid(1);
  const Tile y = load(Y(all, all)), seen = load(M(all, all)) > 0, rows = load(C(all, all)) > 0;
  const Tile alike = (zeros({64, 96}) + load(C(all, all))) > 0;
  const auto product = [&](int i) { return dot(load(X(i, all, all)), y); };
  const Tile both = product(2);
  const std::vector<Tile> chosen = {
      where(seen, product(0) * 2 + 1, 5),  // as far as the mask asks
      where(seen, 5, product(1)),          // where it does not
      where(seen, both, both * -1),
      where(rows, product(3), 5),  // by whole rows
      where(seen, where(rows, product(4), 3) + 1, 7),
      where(seen, max(product(5), 0), load(M(all, all))),
      where(alike, product(6), 5),  // of which a row has one number
  };
  for (int i = 0; i < 7; ++i) store(Z(i, all, all), chosen[i]);
  HostTensor mask = HostTensor::zeros(f32, {64, 96});
  for (std::int64_t i = 0; i < 64; ++i) mask.set_flat(i * 96 + i, i % 9 == 4 ? 0 : 1);
  expect_alike(kernel, {counted({7, 64, 8}), counted({8, 96}), mask, counted({64, 1}),
                        untouched({7, 64, 96})});
}

// What is stored is computed where it goes, but not what others read after the next store, and not
// what another store takes.
TEST(TilesOnCpu, ResultsAreComputedInTheirPlace) {
  Kernel kernel("places");
  const Tensor X = kernel.in("X", f32, {8, 16}), Y = kernel.out("Y", f32, {8, 16});
  const Tensor Z = kernel.out("Z", f32, {8, 16}), W = kernel.out("W", f32, {8, 16});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  const Tile first = x + 1, second = x * 3;
  store(Y(all, all), first);
  store(Z(all, all), second);
  const Tile third = x - 2;
  store(Y(all, all), third);
  store(Y(all, all), third * 2);
  store(W(all, all), third);
  expect_alike(kernel,
               {counted({8, 16}), untouched({8, 16}), untouched({8, 16}), untouched({8, 16})});
}

// Of a tensor that the kernel stores to as well, the tile is what it was when it was loaded.
TEST(TilesOnCpu, WhatIsStoredToIsNotReadInItsPlace) {
  Kernel kernel("doubled");
  const Tensor Y = kernel.inout("Y", f32, {8, 16}), S = kernel.out("S", f32, {8});
  kernel.grid(1);
  const Tile y = load(Y(all, all));
  store(Y(all, all), y * 2);
  store(S(all), reduce_sum(y, 1).reshape({8}));
  expect_alike(kernel, {counted({8, 16}), untouched({8})});
}

// A tile that exists in part is stored in that part, also where the tensor goes on; one that does
// not exist leaves nothing of what it is added to.
TEST(TilesOnCpu, PartsOfTiles) {
  Kernel kernel("parts");
  const Dim n = kernel.dim("n"), more = kernel.dim("more");
  const Tensor X = kernel.in("X", f32, {n, 16}), Y = kernel.inout("Y", f32, {more, 16});
  const Tensor Z = kernel.inout("Z", f32, {more, 16}), V = kernel.inout("V", f32, {16});
  kernel.grid(1);
  const Tile x = load(X(n.block(0, 8), all));
  store(Y(more.block(0, 8), all), x * 2);
  const Tile beyond = load(X(Block(Index(7), 1, Index(n)), all));
  store(Z(more.block(0, 8), all), x + beyond);
  store(V(all), beyond.reshape({16}) + 1);
  expect_alike(kernel,
               {counted({5, 16}), counted({20, 16}, 2), counted({20, 16}, 3), counted({16}, 5)});
}

// Of a sum of products there are as many terms as both have: what lies behind the shorter one is
// none of it, whatever was there before.
TEST(TilesOnCpu, SumsOfProductsOfPartsThatEndElsewhere) {
  Kernel kernel("terms");
  const Dim n = kernel.dim("n"), more = kernel.dim("more");
  const Tensor X = kernel.in("X", f32, {8, n}), Y = kernel.in("Y", f32, {8, more});
  const Tensor Z = kernel.in("Z", f32, {8, 16}), W = kernel.out("W", f32, {8, 16});
  const Tensor S = kernel.out("S", f32, {8});
  kernel.grid(1);
  store(W(all, all), load(Z(all, all)) * 2 + 1);
  const Tile x = load(X(all, n.block(0, 16))) + 0, y = load(Y(all, more.block(0, 16))) + 0;
  store(S(all), reduce_sum(x * y, 1).reshape({8}));
  for (const auto& [columns, others] : {std::pair<int, int>{5, 12}, {12, 5}, {16, 3}, {3, 16}}) {
    expect_alike(kernel, {counted({8, columns}), counted({8, others}, 2), untouched({8, 16}),
                          untouched({8, 16}), untouched({8})});
  }
}

TEST(TilesOnCpu, BlocksThatBeginBeforeTheirTensor) {
  Kernel kernel("before");
  const Tensor X = kernel.in("X", f32, {16, 16}), Y = kernel.inout("Y", f32, {16, 16});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  store(Y(Block(Index(-2), 16, Index(16)), all), x + 1);
  expect_alike(kernel, {counted({16, 16}), counted({16, 16}, 2)});
}

// The same of rows that take turns: the first strip has less to store, and the next ones have all.
TEST(TilesOnCpu, StripsThatBeginBeforeTheirTensor) {
  Kernel kernel("strips_before");
  const Tensor X = kernel.in("X", f32, {64, 256}), Y = kernel.inout("Y", f32, {64, 256});
  kernel.grid(1);
  const Tile x = load(X(all, all)) + 1;
  store(Y(Block(Index(-5), 64, Index(64)), all), x * 2 - reduce_max(x, 1));
  expect_alike(kernel, {counted({64, 256}), counted({64, 256}, 2)});
}

// More functions than a chain has steps.
TEST(TilesOnCpu, LongChains) {
  Kernel kernel("long");
  const Tensor X = kernel.in("X", f32, {64, 256}), W = kernel.in("W", f32, {64, 256});
  const Tensor Y = kernel.out("Y", f32, {64, 256});
  kernel.grid(1);
  const Tile w = load(W(all, all));
  Tile x = load(X(all, all));
  for (int i = 0; i < 15; ++i) x = min(max(x + w, i - 40), 40 - i);
  store(Y(all, all), x);
  expect_alike(kernel, {counted({64, 256}), counted({64, 256}, 3), untouched({64, 256})});
}

// What takes the value before on both sides is a square only where it multiplies.
TEST(TilesOnCpu, AValueBesideItself) {
  Kernel kernel("itself");
  const Tensor X = kernel.in("X", f32, {64, 256}), Y = kernel.out("Y", f32, {3, 64, 256});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  const auto store_at = [&](int place, const Tile& tile) {
    store(Y(place, all, all), max(tile, -900));
  };
  const Tile sum = max(x, 1), difference = max(x, 2), product = max(x, 3);
  store_at(0, sum + sum);
  store_at(1, difference - difference);
  store_at(2, product * product);
  expect_alike(kernel, {counted({64, 256}), untouched({3, 64, 256})});
}

// The later store holds where both store, whatever rows take turns.
TEST(TilesOnCpu, StoresOfRowsThatOverlap) {
  Kernel kernel("overlap");
  const Tensor X = kernel.in("X", f32, {64, 256}), Y = kernel.out("Y", f32, {72, 256});
  kernel.grid(1);
  const Tile x = load(X(all, all)) + 1;
  const Tile centred = x - reduce_max(x, 1);
  store(Y(Block(Index(0), 64, Index(64)), all), centred * 2);
  store(Y(Block(Index(8), 64, Index(72)), all), centred * 3);
  expect_alike(kernel, {counted({64, 256}), untouched({72, 256})});
}

// Of nothing there is a sum, and a lowest and a greatest number.
TEST(TilesOnCpu, ReductionsOfNothing) {
  Kernel kernel("nothing");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {8, n}), Z = kernel.in("Z", f32, {n, 16});
  const Tensor Y = kernel.out("Y", f32, {3, 8}), V = kernel.out("V", f32, {3, 16});
  kernel.grid(1);
  const Tile x = load(X(all, n.block(0, 16))), z = load(Z(n.block(0, 8), all));
  store(Y(0, all), reduce_sum(x, 1).reshape({8}));
  store(Y(1, all), reduce_max(x, 1).reshape({8}));
  store(Y(2, all), reduce_min(x * 2, 1).reshape({8}));
  store(V(0, all), reduce_sum(z, 0).reshape({16}));
  store(V(1, all), reduce_max(z, 0).reshape({16}));
  store(V(2, all), reduce_min(z * 2, 0).reshape({16}));
  for (const std::int64_t count : {0, 3}) {
    expect_alike(kernel, {counted({8, count}), counted({count, 16}, 3), untouched({3, 8}),
                          untouched({3, 16})});
  }
}

// Sums of products over blocks of the depth, which are joined where what they read lies side by
// side.
struct Products {
  int row = 0, column = 0;  // where the blocks of A's rows and B's columns begin
  bool same_b = false;      // each multiplies with the first block of B
  bool last_alone = false;  // nothing is added up
  DType dtype = f32;
};
Kernel products(const Products& how) {
  Kernel kernel("products");
  const Dim k = kernel.dim("k");
  const Tensor A = kernel.in("A", how.dtype, {24, k}), B = kernel.in("B", how.dtype, {k, 24});
  const Tensor C = kernel.out("C", f32, {16, 16});
  kernel.grid(1);
  const Block rows(Index(how.row), 16, Index(24)), columns(Index(how.column), 16, Index(24));
  Var sum{zeros({16, 16})};
  for (const Index i : range(k / 16)) {
    const Tile a = load(A(rows, k.block(i, 16)));
    const Tile b = load(B(k.block(how.same_b ? Index(0) : i, 16), columns));
    sum = how.last_alone ? dot(a, b) : dot(a, b, sum);
  }
  store(C(all, all), sum);
  return kernel;
}

TEST(TilesOnCpu, ProductsThatAreJoined) {
  for (const Products& how :
       {Products{}, Products{.row = -2}, Products{.column = -2}, Products{.same_b = true},
        Products{.last_alone = true}, Products{.dtype = f16}}) {
    SCOPED_TRACE(
        fmt::format("row {}, column {}, {}, {}", how.row, how.column, how.same_b, how.last_alone));
    for (const std::int64_t k : {64, 1600}) {
      expect_alike(products(how), {counted({24, k}, 7, how.dtype), counted({k, 24}, 3, how.dtype),
                                   untouched({16, 16})});
    }
  }
}

// Products read parts of what is loaded where these lie in the tensor, unless the tile begins
// before it or ends behind it.
TEST(TilesOnCpu, PartsThatProductsMultiply) {
  Kernel kernel("parts_multiplied");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {16, 48}), B = kernel.in("B", bf16, {n, 48});
  const Tensor C = kernel.out("C", f32, {16, 32});
  kernel.grid(1);
  Var sum{zeros({16, 32})};
  for (Block rows : blocks(n, 16)) {
    const Tile b = load(B(Block(rows.start() - 3, 16, rows.limit()), all));
    const Tile all_scores = dot(load(A(all, all)), b.T());
    const Tile scores =
        dot(load(A(all, all)).slice({0, 24}, {16, 16}), b.slice({0, 8}, {16, 16}).T());
    const Tile turned = load(B(Block(rows.start() - 3, 16, rows.limit()), all)).T();
    const Tile values = b.slice({0, 16}, {16, 32}), more = turned.slice({5, 0}, {32, 16});
    sum = sum + dot((all_scores - scores).cast(bf16), values) + dot(scores.cast(bf16), more.T());
  }
  store(C(all, all), sum);
  for (const std::int64_t n_now : {16, 41, 5}) {
    expect_alike(kernel,
                 {counted({16, 48}, 7, bf16), counted({n_now, 48}, 3, bf16), untouched({16, 32})});
  }
}

// What is computed may leave out zeros. Those of a tensor meet what the other one holds.
TEST(TilesOnCpu, ZerosOfATensorHideNothing) {
  Kernel kernel("zeros");
  const Tensor A = kernel.in("A", f32, {32, 64}), B = kernel.in("B", f32, {64, 32});
  const Tensor C = kernel.out("C", f32, {32, 32});
  kernel.grid(1);
  store(C(all, all), dot(load(A(all, all)), load(B(all, all))));
  const HostTensor a = HostTensor::zeros(f32, {32, 64}), b = HostTensor::poisoned(f32, {64, 32});
  const HostTensor c = run_on("cpu", kernel, {a, b, untouched({32, 32})})[2];
  const HostTensor of_numbers =
      run_on("cpu", kernel, {a, counted({64, 32}), untouched({32, 32})})[2];
  for (std::int64_t i = 0; i < c.elements(); ++i) {
    ASSERT_TRUE(std::isnan(c.flat(i))) << i;
    ASSERT_EQ(of_numbers.flat(i), 0) << i;
  }
}

// Rows of which the tile has more columns than there are lie apart: zeros are looked for in all of
// them.
TEST(TilesOnCpu, ZerosAboveOtherNumbers) {
  Kernel kernel("zeros_above");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {16, 32}), B = kernel.in("B", bf16, {32, n});
  const Tensor C = kernel.out("C", f32, {16, n});
  kernel.grid(1);
  const Block columns = n.block(0, 32);
  const Tile b = (load(B(all, columns)).cast(f32) * 2).cast(bf16);
  store(C(all, columns), dot(load(A(all, all)), b));
  for (const std::int64_t n_now : {32, 8}) {  // the first run leaves zeros between such rows
    HostTensor values = HostTensor::zeros(bf16, {32, n_now});
    for (std::int64_t i = 16 * n_now; n_now < 32 && i < values.elements(); ++i) {
      values.set_flat(i, static_cast<double>(i % 5 + 1));
    }
    expect_alike(kernel, {counted({16, 32}, 7, bf16), values, untouched({16, n_now})});
  }
}

// A product by what is computed and 0 is 0 whatever the other factor holds; under strict numerics
// it is not.
TEST(TilesOnCpu, ProductsByZeros) {
  for (const bool transposed : {false, true}) {
    for (const bool adds : {false, true}) {
      Kernel kernel("by_zeros");
      const Tensor A = kernel.in("A", bf16, {40, 32}), B = kernel.in("B", bf16, {32, 32});
      const Tensor S = kernel.in("S", f32, {1, 1}), C = kernel.out("C", f32, {40, 32});
      kernel.grid(1);
      const Tile a = load(A(all, all)), scaled = load(B(all, all)).cast(f32) * load(S(all, all));
      const Tile b = transposed ? scaled.cast(bf16).T() : scaled.cast(bf16);
      store(C(all, all), adds ? dot(a, b, full({40, 32}, 3)) : dot(a, b));
      HostTensor infinite = counted({40, 32}, 7, bf16);
      infinite.set_flat(37 * 32 + 5, INFINITY);
      HostTensor positive = counted({32, 32}, 3, bf16);  // 0 times these is 0, and no -0
      for (std::int64_t i = 0; i < 32 * 32; ++i) positive.set_flat(i, positive.flat(i) + 6);
      HostTensor factor = HostTensor::zeros(f32, {1, 1});
      const auto run = [&](const Numerics& numerics) {
        std::vector<HostTensor> tensors = {infinite, positive, factor, untouched({40, 32})};
        std::vector<TensorRef> refs;
        for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
        compile(kernel, "cpu", {.numerics = numerics}).run(refs);
        return tensors[3];
      };
      const HostTensor got = run({}), strict = run(Numerics::strict());
      for (std::int64_t i = 0; i < got.elements(); ++i) {
        ASSERT_EQ(got.flat(i), adds ? 3 : 0) << i;
        ASSERT_EQ(std::isnan(strict.flat(i)), i / 32 == 37) << i;
      }
      factor.set_flat(0, 1);
      expect_alike(kernel, {counted({40, 32}, 7, bf16), counted({32, 32}, 3, bf16), factor,
                            untouched({40, 32})});
    }
  }
}

// A loop's last round leaves out the products of which the next one would be the first to know:
// not those that somebody needs behind it, nor those of a round whose own loops have ended.
TEST(TilesOnCpu, ProductsForTheNextRound) {
  Kernel kernel("next_round");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", f32, {n, 32}), B = kernel.in("B", f32, {n, 16});
  const Tensor C = kernel.out("C", f32, {n, 16}), D = kernel.out("D", f32, {32, 16});
  const Tensor E = kernel.out("E", f32, {16, 32});
  kernel.grid(1);
  Var before{zeros({32, 16})}, all_of{zeros({32, 16})}, inner{zeros({16, 32})};
  for (Block rows : blocks(n, 16)) {
    const Tile a = load(A(rows, all)), b = load(B(rows, all));
    store(C(rows, all), dot(a, before));
    for (Block again : blocks(Dim(32), 16)) {
      inner = inner + dot(b.T(), a) + again.as_row().cast(f32).slice({0, 0}, {1, 1});
    }
    all_of = all_of + dot(a.T(), b);
    before = before * 0.5 + dot(a.T(), b - 1) * 2;
  }
  store(D(all, all), all_of);
  store(E(all, all), inner);
  for (const std::int64_t count : {16, 48, 40, 0}) {
    expect_alike(kernel, {counted({count, 32}), counted({count, 16}, 3), untouched({count, 16}),
                          untouched({32, 16}), untouched({16, 32})});
  }
}

// Blocks that follow each other find what the one before packed, as far as there was room: of their
// own batch, and of all columns and terms that exist there.
TEST(TilesOnCpu, ProductsByWhatOtherBlocksRead) {
  for (const DType dtype : {bf16, f32}) {
    Kernel kernel("shared");
    const Dim rows = kernel.dim("rows"), keys = kernel.dim("keys"), batch = kernel.dim("batch");
    const Tensor Q = kernel.in("Q", dtype, {batch, rows, 96});
    const Tensor K = kernel.in("K", dtype, {batch, keys, 96});
    const Tensor W = kernel.in("W", dtype, {96, 40});
    const Tensor C = kernel.out("C", f32, {batch, rows, 64}), D = kernel.out("D", f32, {rows, 40});
    const auto [number, sequence] = kernel.grid(ceil_div(rows, 16), batch);
    const Block block = rows.block(number, 16);
    const Tile q = load(Q(sequence, block, all));
    Var sum{zeros({16, 64})};
    for (Block now : blocks(keys, 80)) {
      const Tile k = load(K(sequence, now, all));
      sum = sum + dot(max(min(dot(q, k.T()), 2), -2).cast(dtype), k.slice({0, 16}, {80, 64}));
    }
    store(C(sequence, block, all), sum);
    when(sequence == 0, [&] { store(D(block, all), dot(q, load(W(all, all)))); });
    for (const auto& [n, count] : {std::pair{40, 3}, std::pair{170, 2}, std::pair{1700, 2}}) {
      SCOPED_TRACE(fmt::format("{} keys", n));
      expect_alike(kernel,
                   {counted({count, 50, 96}, 7, dtype), counted({count, n, 96}, 3, dtype),
                    counted({96, 40}, 5, dtype), untouched({count, 50, 64}), untouched({50, 40})});
    }
  }
}

// Zeros that a loop begins with are not written, unless no round comes, a factor makes something
// else of them, or somebody reads them.
TEST(TilesOnCpu, SumsThatBeginWithZeros) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const std::int64_t by_rows : {0, 1, 2}) {
    for (const bool is_read : {false, true}) {
      Kernel kernel("zeros");
      const Dim n = kernel.dim("n");
      const std::int64_t rows = by_rows == 0 ? 1 : 32, columns = by_rows == 1 ? 1 : 48;
      const Tensor A = kernel.in("A", f32, {n, 32}), B = kernel.in("B", f32, {n, 48});
      const Tensor F = kernel.in("F", f32, {rows, columns});
      const Tensor C = kernel.out("C", f32, {32, 48}), D = kernel.out("D", f32, {n, 48});
      kernel.grid(1);
      const Tile factors = load(F(all, all));
      Var sum{zeros({32, 48})};
      for (Block now : blocks(n, 16)) {
        const Tile before = sum;
        store(D(now, all), is_read ? before.slice({0, 0}, {16, 48}) : load(B(now, all)));
        sum = sum * factors + dot(load(A(now, all)).T(), load(B(now, all)));
      }
      store(C(all, all), sum);
      for (const std::int64_t count : {0, 16, 40}) {
        for (const float special : {3.0f, -1.0f, 0.0f, kInfinity, -kInfinity}) {
          SCOPED_TRACE(fmt::format("{} rows, a factor {}, {}", count, special, by_rows));
          HostTensor factor = HostTensor::zeros(f32, {rows, columns});
          for (std::int64_t i = 0; i < factor.elements(); ++i) {
            factor.set_flat(i, i == factor.elements() - 1 ? special : 2);
          }
          expect_alike(kernel, {counted({count, 32}), counted({count, 48}, 3), factor,
                                untouched({32, 48}), untouched({count, 48})});
        }
      }
    }
  }
}

// Numbers whose first bytes are those of a zero are none, and zeros that a branch adds to are
// needed.
TEST(TilesOnCpu, SumsThatBeginWithOtherNumbers) {
  for (const bool is_added_to : {false, true}) {
    for (const double start : {0.0, 1.0, -2.0}) {
      Kernel kernel("sums");
      const Dim n = kernel.dim("n");
      const Tensor A = kernel.in("A", f32, {n, 32}), B = kernel.in("B", f32, {n, 48});
      const Tensor C = kernel.out("C", f32, {32, 48});
      kernel.grid(1);
      Var sum{full({32, 48}, start)};
      for (Block now : blocks(n, 16)) {
        if (is_added_to)
          when(
              now.start() > 0, [] {}, [&] { sum = sum + 1; });
        sum = sum + dot(load(A(now, all)).T(), load(B(now, all)));
      }
      store(C(all, all), sum);
      for (const std::int64_t count : {16, 40}) {
        SCOPED_TRACE(fmt::format("{} rows, from {} on, {}", count, start, is_added_to));
        expect_alike(kernel, {counted({count, 32}), counted({count, 48}, 3), untouched({32, 48})});
      }
    }
  }
}

// Stores past the caches need rows that begin with a line of memory. A tensor of which one row is
// read makes the launch so large that it has such stores.
TEST(TilesOnCpu, RowsThatDoNotBeginWithALine) {
  constexpr std::int64_t kMany = 1 << 20;
  Kernel kernel("lines");
  const Tensor X = kernel.in("X", f32, {64, 128}), Large = kernel.in("Large", f32, {kMany, 128});
  const Tensor Y = kernel.out("Y", f32, {64, 128});
  kernel.grid(1);
  store(Y(all, all), exp2(load(X(all, all)) * 2) + load(Large(3, all)).reshape({1, 128}));
  HostTensor x = counted({64, 128});
  constexpr std::size_t kBytes = kMany * 128 * sizeof(float);
  void* const zeros =
      mmap(nullptr, kBytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  constexpr std::int64_t kLine = 64, kStride = 136;
  std::vector<float> memory(64 * kStride + kLine / 4);
  void* data = memory.data();
  std::size_t space = memory.size() * sizeof(float);
  auto* const y = static_cast<float*>(std::align(kLine, 64 * kStride * sizeof(float), data, space));
  ASSERT_NE(y, nullptr);
  compile(kernel, "cpu")
      .run({ref(x), TensorRef{zeros, f32, {kMany, 128}, {}},
            TensorRef{y, f32, {64, 128}, {kStride, 1}}});
  for (std::int64_t i = 0; i < 64 * 128; ++i) {
    ASSERT_EQ(y[i / 128 * kStride + i % 128], std::exp2(x.flat(i) * 2)) << i;
  }
  munmap(zeros, kBytes);
}

// Blocks that add to one place do so in their order, whichever threads run them.
TEST(TilesOnCpu, AdditionsComeInTheOrderOfTheirBlocks) {
  constexpr std::int64_t kBlocks = 300, kColumns = 64;
  Kernel kernel("adds");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, kColumns}), Y = kernel.inout("Y", f32, {kColumns});
  const auto [block] = kernel.grid(n);
  // The first one takes longer than all others together.
  const Index turns = select(block == 0, 200'000, 1);
  Var most{load(X(block, all))};
  for ([[maybe_unused]] Index i : range(turns)) most = max(Tile(most), load(X(block, all)));
  add(Y(all), Tile(most), Order::blocks);
  HostTensor x = HostTensor::random_normal(f32, {kBlocks, kColumns}, 1);
  const runtime::ScopedVariable threads("TILEWRIGHT_THREADS", "4");
  const Executable executable = compile(kernel, "cpu");
  // The threads are there from the second launch on.
  for (int launch = 0; launch < 2; ++launch) {
    HostTensor y = HostTensor::zeros(f32, {kColumns});
    executable.run({ref(x), ref(y)});
    for (std::int64_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (std::int64_t row = 0; row < kBlocks; ++row) {
        sum += static_cast<float>(x.at({row, column}));
      }
      ASSERT_EQ(static_cast<float>(y.flat(column)), sum) << column;
    }
  }
}

}  // namespace
}  // namespace tilewright
