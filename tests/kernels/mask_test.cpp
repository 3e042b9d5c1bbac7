#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

namespace tilewright {
namespace {

constexpr int kRows = 16, kColumns = 8;

// S with what the mask hides at -inf, by what can hide an element of each block, or by asking for
// everything.
Kernel masked(int window, bool by_block) {
  Kernel kernel("masked");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  // What no block sees keeps what it held.
  const Tensor S = kernel.in("S", f32, {queries, keys}),
               O = kernel.inout("O", f32, {queries, keys});
  const auto [x] = kernel.grid(ceil_div(queries, kRows));
  const Block rows = queries.block(x, kRows);
  const Mask mask = causal(queries, keys, window);
  const auto [first, last] = mask.visible(rows, keys, kColumns);
  const auto [whole_first, whole_last] = mask.full(rows, keys, kColumns);
  const auto store_blocks = [&](const Index& from, const Index& to, const auto& hidden) {
    for (Index j : range(from, to)) {
      const Block cols = keys.block(j, kColumns);
      const Tile scores = load(S(rows, cols));
      store(O(rows, cols), by_block ? hidden(scores, cols) : mask.apply(scores, rows, cols));
    }
  };
  const auto hides = [&](Hides what) {
    return [&, what](const Tile& scores, const Block& cols) {
      return mask.apply(scores, rows, cols, what);
    };
  };
  const Index end = max(whole_first, whole_last);
  store_blocks(first, whole_first, hides(Hides::first_keys));
  store_blocks(whole_first, end, [](const Tile& scores, const Block&) { return scores; });
  store_blocks(end, last, hides(Hides::last_keys));
  return kernel;
}

HostTensor run(const Kernel& kernel, HostTensor& S) {
  HostTensor O = HostTensor::poisoned(f32, S.shape());
  compile(kernel, "interpreter").run({ref(S), ref(O)});
  return O;
}

// Windows that no block has both ends of, without one, and lengths that cut rows and blocks.
TEST(Mask, OneEndOfABlockIsAskedFor) {
  std::vector<std::pair<int, int>> sizes = {{1, 1}, {16, 24}, {37, 83}, {83, 37}};
  // The diagonal meets blocks at each of their columns.
  for (int shift = 1; shift < kColumns; ++shift) sizes.push_back({24, 24 + shift});
  for (const int window : {0, kRows + kColumns - 1, 40}) {
    for (const auto& [queries, keys] : sizes) {
      HostTensor S = HostTensor::random_normal(f32, {queries, keys}, 5);
      const HostTensor by_block = run(masked(window, true), S),
                       asked = run(masked(window, false), S);
      std::int64_t hidden = 0;
      for (std::int64_t i = 0; i < S.elements(); ++i) {
        const double x = by_block.flat(i), y = asked.flat(i);
        ASSERT_TRUE(x == y || (std::isnan(x) && std::isnan(y)))
            << "window " << window << ", element " << i << " of " << queries << " x " << keys
            << " is " << x << ", and " << y << " where everything is asked for";
        hidden += std::isinf(x);
      }
      EXPECT_TRUE(hidden > 0 || queries == 1);
    }
  }
}

// The same by columns: blocks of rows that see something of one block of columns, of S transposed.
Kernel masked_by_columns(int window) {
  Kernel kernel("masked_by_columns");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor S = kernel.in("S", f32, {keys, queries}),
               O = kernel.inout("O", f32, {keys, queries});
  const auto [x] = kernel.grid(ceil_div(keys, kColumns));
  const Block cols = keys.block(x, kColumns);
  const Mask mask = causal(queries, keys, window);
  for (Block rows : mask.row_blocks(cols, queries, kRows)) {
    store(O(cols, rows), mask.apply_transposed(load(S(cols, rows)), rows, cols));
  }
  return kernel;
}

TEST(Mask, ColumnsFindTheRowsThatSeeThem) {
  for (const int window : {0, 1, 5, 40}) {
    for (const auto& [queries, keys] :
         {std::pair{1, 1}, std::pair{16, 24}, std::pair{37, 83}, std::pair{83, 37}}) {
      SCOPED_TRACE(testing::Message() << window << " " << queries << " x " << keys);
      HostTensor S = HostTensor::random_normal(f32, {keys, queries}, 5);
      const HostTensor O = run(masked_by_columns(window), S);
      const auto sees = [&](int row, int column) {
        const int diagonal = row + keys - queries;
        return column <= diagonal && (window == 0 || column > diagonal - window);
      };
      for (int column = 0; column < keys; ++column) {
        for (int row = 0; row < queries; ++row) {
          const double x = O.at({column, row});
          if (sees(row, column)) {
            ASSERT_EQ(x, S.at({column, row}));
            continue;
          }
          // Hidden, or in a block that nobody visits: such a block has nothing to see.
          bool any = false;
          for (int i = row / kRows * kRows; i < std::min(queries, (row / kRows + 1) * kRows); ++i) {
            for (int j = column / kColumns * kColumns;
                 j < std::min(keys, (column / kColumns + 1) * kColumns); ++j) {
              any = any || sees(i, j);
            }
          }
          ASSERT_TRUE(any ? std::isinf(x) && x < 0 : std::isnan(x)) << row << ", " << column;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
