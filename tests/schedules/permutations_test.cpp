#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "language/misuse.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// `permute` of tiles that exist in part, on all axes: what moves with an axis is also how much of
// it exists.
namespace tilewright {
namespace {

using Axes = std::array<int, 3>;
constexpr Axes kExtents{21, 10, 13};  // none a whole number of blocks
constexpr Axes kBlocks{16, 4, 8};

std::vector<Axes> all_orders() {
  std::vector<Axes> orders;
  Axes axes{0, 1, 2};
  do orders.push_back(axes);
  while (std::next_permutation(axes.begin(), axes.end()));
  return orders;
}

std::string named(const Axes& axes) {
  return std::to_string(axes[0]) + std::to_string(axes[1]) + std::to_string(axes[2]);
}

// A launch on poisoned results.
HostTensor run(const Kernel& kernel, const char* target, HostTensor& x, HostTensor y) {
  compile(kernel, target).run({ref(x), ref(y)});
  return y;
}

// The element of x whose coordinates in the result are those, in order.
double moved(const HostTensor& x, const Axes& axes, const std::array<std::int64_t, 3>& to) {
  std::vector<std::int64_t> from(3);
  for (std::size_t i = 0; i < 3; ++i) from[axes[i]] = to[i];
  return x.at(from);
}

Kernel moves(const Axes& axes) {
  Kernel kernel("moves");
  const std::vector<Dim> d{kernel.dim("a"), kernel.dim("b"), kernel.dim("c")};
  const Tensor X = kernel.in("X", f32, d);
  const Tensor Y = kernel.out("Y", f32, {d[axes[0]], d[axes[1]], d[axes[2]]});
  const auto at = kernel.grid(ceil_div(d[0], kBlocks[0]), ceil_div(d[1], kBlocks[1]),
                              ceil_div(d[2], kBlocks[2]));
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < 3; ++i) blocks.push_back(d[i].block(at[i], kBlocks[i]));
  const Tile x = load(X(blocks[0], blocks[1], blocks[2]));
  store(Y(blocks[axes[0]], blocks[axes[1]], blocks[axes[2]]),
        x.permute({axes[0], axes[1], axes[2]}));
  return kernel;
}

TEST(Permutations, EveryElementThatExistsMoves) {
  HostTensor x = HostTensor::random_normal(f32, {kExtents[0], kExtents[1], kExtents[2]}, 1);
  for (const Axes& axes : all_orders()) {
    const std::int64_t a = kExtents[axes[0]], b = kExtents[axes[1]], c = kExtents[axes[2]];
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      SCOPED_TRACE(named(axes) + " on " + target);
      const HostTensor y = run(moves(axes), target, x, HostTensor::poisoned(f32, {a, b, c}));
      for (std::int64_t i = 0; i < a; ++i) {
        for (std::int64_t j = 0; j < b; ++j) {
          for (std::int64_t k = 0; k < c; ++k) {
            ASSERT_EQ(y.at({i, j, k}), moved(x, axes, {i, j, k})) << i << ", " << j << ", " << k;
          }
        }
      }
    }
  }
}

// exp(x) summed along the last axis of the permuted tile: what does not exist would count as 1.
Kernel sums(const Axes& axes) {
  Kernel kernel("sums");
  const std::vector<Dim> d{kernel.dim("a"), kernel.dim("b"), kernel.dim("c")};
  const Tensor X = kernel.in("X", f32, d);
  const Tensor Y = kernel.out("Y", f32, {d[axes[0]], d[axes[1]]});
  const auto [i, j] =
      kernel.grid(ceil_div(d[axes[0]], kBlocks[axes[0]]), ceil_div(d[axes[1]], kBlocks[axes[1]]));
  std::vector<Block> blocks(3, d[axes[2]].block(0, 32));
  blocks[axes[0]] = d[axes[0]].block(i, kBlocks[axes[0]]);
  blocks[axes[1]] = d[axes[1]].block(j, kBlocks[axes[1]]);
  const Tile x = load(X(blocks[0], blocks[1], blocks[2])).permute({axes[0], axes[1], axes[2]});
  store(Y(blocks[axes[0]], blocks[axes[1]]),
        reduce_sum(exp(x), 2).reshape({kBlocks[axes[0]], kBlocks[axes[1]]}));
  return kernel;
}

TEST(Permutations, SumsLeaveOutWhatDoesNotExist) {
  HostTensor x = HostTensor::random_normal(f32, {kExtents[0], kExtents[1], kExtents[2]}, 2);
  for (const Axes& axes : all_orders()) {
    const std::int64_t a = kExtents[axes[0]], b = kExtents[axes[1]];
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      SCOPED_TRACE(named(axes) + " on " + target);
      const HostTensor y = run(sums(axes), target, x, HostTensor::poisoned(f32, {a, b}));
      for (std::int64_t i = 0; i < a; ++i) {
        for (std::int64_t j = 0; j < b; ++j) {
          double wanted = 0;
          for (std::int64_t k = 0; k < kExtents[axes[2]]; ++k) {
            wanted += std::exp(moved(x, axes, {i, j, k}));
          }
          ASSERT_NEAR(y.at({i, j}), wanted, 1e-6 * wanted) << i << ", " << j;
        }
      }
    }
  }
}

// X W, of which the 8 x 8 elements of each row change places.
Kernel of_a_product(int block_rows, const std::vector<int>& axes) {
  Kernel kernel("of_a_product");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), Y = kernel.out("Y", f32, {n, 64});
  const auto [i] = kernel.grid(ceil_div(n, block_rows));
  const Block rows = n.block(i, block_rows);
  const Tile identity = where(iota({64, 1}, 0) == iota({1, 64}, 1), 1, zeros({1, 1}, bf16));
  const Tile x = dot(load(X(rows, all)), identity).reshape({block_rows, 8, 8});
  store(Y(rows, all), x.permute(axes).reshape({block_rows, 64}));
  return kernel;
}

TEST(Permutations, RowsOfWarpgroupsStay) {
  HostTensor x = HostTensor::random_normal(bf16, {150, 64}, 3);
  for (const int block_rows : {64, 128}) {
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      SCOPED_TRACE(testing::Message() << block_rows << " rows on " << target);
      const HostTensor y =
          run(of_a_product(block_rows, {0, 2, 1}), target, x, HostTensor::poisoned(f32, {150, 64}));
      for (std::int64_t i = 0; i < 150; ++i) {
        for (std::int64_t j = 0; j < 64; ++j) {
          ASSERT_EQ(y.at({i, j}), x.at({i, 8 * (j % 8) + j / 8})) << i << ", " << j;
        }
      }
    }
  }
}

TEST(Permutations, RowsOfWarpgroupsDoNotMove) {
  test::misuse(
      "permute(",
      {"permute: tile<f32, 128x8x8> to tile<f32, 8x128x8>", "its rows are spread over warpgroups",
       "fix: keep the first axis as it is, or take tiles of 64 rows"},
      [] {
        check(of_a_product(128, {1, 0, 2}), "sm_90a");
      });
}

// The order that changes nothing is no transposition.
TEST(Permutations, TheOrderThatStandsThere) {
  HostTensor x = HostTensor::random_normal(bf16, {70, 64}, 4);
  Kernel kernel("stands");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), Y = kernel.out("Y", f32, {n, 64});
  const auto [i] = kernel.grid(ceil_div(n, 64));
  const Block rows = n.block(i, 64);
  const Tile identity = where(iota({64, 1}, 0) == iota({1, 64}, 1), 1, zeros({1, 1}, bf16));
  store(Y(rows, all), dot(load(X(rows, all)).permute({0, 1}), identity));
  const HostTensor y = run(kernel, "sim:sm_90a", x, HostTensor::poisoned(f32, {70, 64}));
  for (std::int64_t j = 0; j < y.elements(); ++j) ASSERT_EQ(y.flat(j), x.flat(j)) << j;
}

}  // namespace
}  // namespace tilewright
