#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cpu_tensors.h"
#include "runtime/runtime_test.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Functions of rows and sums that the target cpu computes beside others: bit by bit what the
// interpreter gives of small whole numbers, which every order of sums keeps.
namespace tilewright {
namespace {

using test::counted;
using test::expect_alike;
using test::run_on;
using test::untouched;

// What goes over rows is there for a branch as well, whichever it is.
TEST(TilesOnCpu, RowsThatABranchReads) {
  for (const bool otherwise : {false, true}) {
    Kernel kernel("branches");
    const Tensor X = kernel.in("X", f32, {64, 96}), Choice = kernel.in("Choice", i32, {1});
    const Tensor Y = kernel.out("Y", f32, {64, 96}), Z = kernel.inout("Z", f32, {64, 96});
    kernel.grid(1);
    const Tile x = load(X(all, all)) * 2;
    store(Y(all, all), x + 1);
    const auto store_other = [&] { store(Z(all, all), x * 3); };
    const Condition chosen = load_index(Choice(0)) > 0;
    if (otherwise) {
      when(
          chosen, [] {}, store_other);
    } else {
      when(chosen, store_other);
    }
    for (const double choice : {0, 1}) {
      expect_alike(kernel, {counted({64, 96}), HostTensor::from_values(i32, {1}, {choice}),
                            untouched({64, 96}), counted({64, 96}, 5)});
    }
  }
}

// A loop within a loop has sums of its own, which begin with zeros too. Blocks that a thread
// computes one after the other find what the one before left.
TEST(TilesOnCpu, SumsOfALoopWithinALoop) {
  Kernel kernel("nested");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor A = kernel.in("A", f32, {m, 64}), B = kernel.in("B", f32, {n, 64});
  const Tensor V = kernel.in("V", f32, {n, 48}), C = kernel.out("C", f32, {m, 48});
  const auto [number] = kernel.grid(ceil_div(m, 32));
  const Block rows = m.block(number, 32);
  Var sum{zeros({32, 48})};
  for (Block keys : blocks(n, 32)) {
    Var scores{zeros({32, 32})};
    for (Block depth : blocks(Dim(64), 32)) {
      scores = scores + dot(load(A(rows, depth)), load(B(keys, depth)).T());
    }
    sum = sum + dot(scores, load(V(keys, all)));
  }
  store(C(rows, all), sum);
  for (const std::int64_t count : {0, 20, 70}) {
    SCOPED_TRACE(fmt::format("{} keys", count));
    expect_alike(kernel, {counted({200, 64}), counted({count, 64}, 3), counted({count, 48}, 5),
                          untouched({200, 48})});
  }
}

// Functions of rows go over those of a product that are whole. Its factors, which nobody needs
// behind it, stay until the last row. Terms and columns come in one part or in several.
TEST(TilesOnCpu, RowsBehindAProduct) {
  struct Sizes {
    int columns, terms;
    bool transposed = false;
  };
  for (const auto& [columns, terms, transposed] :
       {Sizes{96, 96, true}, Sizes{96, 20}, Sizes{16, 300}, Sizes{300, 20}}) {
    Kernel kernel("behind");
    const Dim rows = kernel.dim("rows");
    const std::vector<Dim> of_a = {transposed ? terms : rows, transposed ? rows : Dim(terms)};
    const Tensor A = kernel.in("A", f32, of_a), B = kernel.in("B", f32, {terms, columns});
    const Tensor W = kernel.in("W", f32, {columns, 16}), Z = kernel.out("Z", f32, {rows, columns});
    const Tensor Y = kernel.out("Y", f32, {rows, 16}), M = kernel.out("M", f32, {rows});
    const auto [number] = kernel.grid(ceil_div(rows, 96));
    const Block block = rows.block(number, 96);
    const Tile a = load(transposed ? A(all, block) : A(block, all)) + 1;
    const Tile product = dot(transposed ? a.T() : a, load(B(all, all)) * -1);
    const Tile greatest = reduce_max(product, 1);
    const Tile less = product * 2 - greatest;
    store(Y(block, all), dot(less, load(W(all, all))));
    store(Z(block, all), product);
    store(M(block), greatest.reshape({96}));
    for (const std::int64_t count : {96, 33, 100, 0}) {
      SCOPED_TRACE(fmt::format("{} rows, {} columns, {} terms", count, columns, terms));
      expect_alike(kernel,
                   {counted(transposed ? std::vector<std::int64_t>{terms, count}
                                       : std::vector<std::int64_t>{count, terms}),
                    counted({terms, columns}, 3), counted({columns, 16}, 2),
                    untouched({count, columns}), untouched({count, 16}), untouched({count})});
    }
  }
}

// Of rows less a number of each, what is no sum of them.
TEST(TilesOnCpu, RowsLessANumberThatAreNotSummed) {
  Kernel kernel("less");
  const Tensor X = kernel.in("X", f32, {64, 160}), W = kernel.in("W", f32, {64, 160});
  const Tensor Y = kernel.out("Y", f32, {2, 64});
  kernel.grid(1);
  const Tile x = load(X(all, all));
  const Tile least = reduce_min(x, 1);
  store(Y(0, all), reduce_max(x - least, 1).reshape({64}));
  store(Y(1, all), reduce_sum((x - least * 2) * load(W(all, all)), 1).reshape({64}));
  expect_alike(kernel, {counted({64, 160}), counted({64, 160}, 3), untouched({2, 64})});
}

// Products that are summed are computed meanwhile, but not where others need them.
TEST(TilesOnCpu, ProductsOfElementsThatAreSummedAndStored) {
  Kernel kernel("summed");
  const Tensor X = kernel.in("X", f32, {16, 48}), W = kernel.in("W", f32, {16, 48});
  const Tensor S = kernel.out("S", f32, {16}), P = kernel.out("P", f32, {16, 48});
  kernel.grid(1);
  const Tile product = load(X(all, all)) * load(W(all, all));
  store(S(all), reduce_sum(product, 1).reshape({16}));
  store(P(all, all), product);
  expect_alike(kernel,
               {counted({16, 48}), counted({16, 48}, 3), untouched({16}), untouched({16, 48})});
}

// Exponentials are summed while they are stored, but not their products with others.
TEST(TilesOnCpu, ExponentialsThatAreSummedAndStored) {
  HostTensor x = untouched({48, 160});
  for (std::int64_t i = 0; i < x.elements(); ++i) x.set_flat(i, static_cast<double>(i * 7 % 5 - 2));
  for (int kind = 0; kind < 4; ++kind) {
    Kernel kernel("exponentials");
    const Tensor X = kernel.in("X", f32, {48, 160}), W = kernel.in("W", f32, {48, 160});
    const Tensor S = kernel.out("S", f32, {48}), E = kernel.out("E", f32, {48, 160});
    kernel.grid(1);
    const Tile given = load(X(all, all)), weights = load(W(all, all));
    const Tile each = kind == 1 ? (given - reduce_max(given, 1)) * 2 : given - reduce_max(given, 1);
    const Tile powers = exp2(each);
    const Tile summed = kind == 2 ? powers * weights : kind == 3 ? powers * powers : powers;
    const Tile sum = reduce_sum(summed, 1);
    store(S(all), sum.reshape({48}));
    store(E(all, all), powers + sum);
    expect_alike(kernel, {x, counted({48, 160}, 3), untouched({48}), untouched({48, 160})});
  }
}

// Rows that are scaled, and stored as what they are loaded as, are one loop. These are not.
TEST(TilesOnCpu, ScaledRowsOfAnotherType) {
  for (const auto& [from, to] : {std::pair(f32, bf16), std::pair(bf16, f32), std::pair(f32, f16)}) {
    Kernel kernel("scaled");
    const Tensor X = kernel.in("X", from, {64, 256}), Y = kernel.out("Y", to, {64, 256});
    kernel.grid(1);
    store(Y(all, all), (load(X(all, all)).cast(f32) * 2).cast(to));
    expect_alike(kernel, {counted({64, 256}, 7, from), HostTensor::poisoned(to, {64, 256})});
  }
}

// What is loaded and added to is no factor, and where it ends the sum ends too.
TEST(TilesOnCpu, ALoadedAccumulator) {
  Kernel kernel("accumulator");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", f32, {16, 32}), B = kernel.in("B", f32, {32, 16});
  const Tensor C = kernel.in("C", f32, {n, 16}), D = kernel.inout("D", f32, {16, 16});
  kernel.grid(1);
  const Tile c = load(C(n.block(0, 16), all));
  store(D(all, all), dot(load(A(all, all)), load(B(all, all)), c));
  for (const std::int64_t rows : {16, 9}) {
    expect_alike(kernel, {counted({16, 32}), counted({32, 16}, 3), counted({rows, 16}, 5),
                          counted({16, 16}, 2)});
  }
}

// Sums that are loaded and stored again lie in the tensor meanwhile: not where rows end within a
// vector, where a factor is infinite, and not where somebody reads the tensor in between.
TEST(TilesOnCpu, SumsInTheirTensor) {
  for (const bool is_read_between : {false, true}) {
    Kernel kernel("sums");
    const Dim n = kernel.dim("n"), width = kernel.dim("width");
    const Tensor A = kernel.in("A", f32, {40, 24}), B = kernel.in("B", f32, {24, n});
    const Tensor D = kernel.inout("D", f32, {40, width}), E = kernel.out("E", f32, {40, 32});
    kernel.grid(1);
    const TensorView sums = D(all, width.block(0, 32));
    const Tile before = load(sums);
    const Tile product = dot(load(A(all, all)), load(B(all, n.block(0, 32))), before);
    if (is_read_between) store(E(all, all), load(sums) * 2);
    store(sums, product);
    if (!is_read_between) store(E(all, all), load(sums) * 2);
    HostTensor infinite = counted({40, 24});
    infinite.set_flat(30 * 24 + 3, std::numeric_limits<double>::infinity());
    for (const std::int64_t columns : {32, 9, 0}) {
      expect_alike(
          kernel, {infinite, counted({24, columns}, 3), counted({40, 33}, 2), untouched({40, 32})});
    }
  }
}

}  // namespace
}  // namespace tilewright
