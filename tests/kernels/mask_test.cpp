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

TEST(Mask, WithoutAWindowTheFirstKeysAreSeen) {
  Kernel kernel("first_keys");
  const Dim rows = kernel.dim("rows"), keys = kernel.dim("keys");
  const Tensor S = kernel.in("S", f32, {rows, keys}), O = kernel.out("O", f32, {rows, keys});
  kernel.grid(1);
  const Block own = rows.block(Index(0), kRows), cols = keys.block(Index(0), kColumns);
  store(O(own, cols), causal(rows, keys).apply(load(S(own, cols)), own, cols, Hides::first_keys));
  HostTensor s = HostTensor::random_normal(f32, {kRows, kColumns}, 5);
  EXPECT_EQ(run(kernel, s), s);
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

// What stands in packed axes: nothing, the queries of all sequences, which see the same keys, both,
// or both in blocks of the axes.
enum class Packs { none, queries, both, by_axis };
Sequence sequence_of(const Dim& axis, const Tensor& first_rows, const Index& number, Packs packs) {
  const BlocksFrom blocks = packs == Packs::by_axis ? BlocksFrom::axis : BlocksFrom::sequence;
  return Ragged(axis, first_rows, blocks).of(number);
}

// What the mask says of each block of keys: visible_rows, then full_rows. One sequence of the whole
// axes, or several packed ones; blocks past a sequence's end are asked about too.
Kernel rows_of_columns(Packs packs, bool diagonal, int window) {
  Kernel kernel("rows_of_columns");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Dim sequences = kernel.dim("sequences"), blocks = kernel.dim("blocks");
  kernel.in("Q", f32, {queries});
  kernel.in("K", f32, {keys});
  const Tensor first_queries = kernel.in("first_queries", i32, {sequences + 1}),
               first_keys = kernel.in("first_keys", i32, {sequences + 1});
  const Tensor R = kernel.out("R", i32, {sequences, blocks, 4});
  const auto [x, y] = kernel.grid(blocks, sequences);
  const bool packed = packs != Packs::none;
  const Sequence own_queries =
      packed ? sequence_of(queries, first_queries, y, packs) : Sequence(queries);
  const Sequence own_keys = packed ? sequence_of(keys, first_keys, y, packs) : Sequence(keys);
  const Mask mask = diagonal ? causal(own_queries, own_keys, window) : everything();
  const Block cols = own_keys.block(x, kColumns);
  const auto [first, last] = mask.visible_rows(cols, own_queries, kRows);
  const auto [whole_first, whole_last] = mask.full_rows(cols, own_queries, kRows);
  const Index found[] = {first, last, whole_first, whole_last};
  for (int i = 0; i < 4; ++i) store(R(y, x, Dim(4).block(i, 1)), Tile({1}, found[i]));
  return kernel;
}

struct RowsCase {
  bool diagonal;
  int window, queries, keys;
  int query_place = 0, key_place = 0;  // in a block, of the first one of each
  int row_blocks() const { return queries == 0 ? 0 : (query_place + queries + kRows - 1) / kRows; }
  int column_blocks() const { return keys == 0 ? 0 : (key_place + keys + kColumns - 1) / kColumns; }
  int first_row(int rows) const { return rows * kRows - query_place; }
  int first_column(int cols) const { return cols * kColumns - key_place; }
  bool sees(int row, int column) const {
    const int last = row + keys - queries;
    return !diagonal || (column <= last && (window == 0 || column > last - window));
  }
  // Whether any of the rows that exist sees any of the block of columns.
  bool visible(int rows, int cols) const {
    for (int i = std::max(first_row(rows), 0); i < std::min(queries, first_row(rows + 1)); ++i) {
      for (int j = std::max(first_column(cols), 0); j < std::min(keys, first_column(cols + 1));
           ++j) {
        if (sees(i, j)) return true;
      }
    }
    return false;
  }
  // Whether all of the block of rows, as if they existed from `begin` on, see a whole block of
  // columns.
  bool full(int rows, int cols) const { return full_from(first_row(rows), cols); }
  bool full_from(int begin, int cols) const {
    if (first_column(cols) < 0 || first_column(cols + 1) > keys) return false;
    for (int i = begin; i < begin + kRows; ++i) {
      for (int j = first_column(cols); j < first_column(cols + 1); ++j) {
        if (!sees(i, j)) return false;
      }
    }
    return true;
  }
};

void expect_rows(const RowsCase& each, const HostTensor& R, std::int64_t sequence) {
  SCOPED_TRACE(testing::Message() << (each.diagonal ? "causal" : "everything") << ", window "
                                  << each.window << ", " << each.queries << " x " << each.keys);
  for (std::int64_t cols = 0; cols < R.shape()[1]; ++cols) {
    const auto found = [&](int i) { return static_cast<int>(R.at({sequence, cols, i})); };
    const auto inside = [&](int rows, int i) { return rows >= found(i) && rows < found(i + 1); };
    const int block = static_cast<int>(cols), count = each.row_blocks();
    for (int rows = 0; rows < count; ++rows) {
      ASSERT_EQ(inside(rows, 0), each.visible(rows, block)) << rows << ", " << cols;
      ASSERT_EQ(inside(rows, 2), each.full(rows, block)) << rows << ", " << cols;
    }
    // Loops run over [first, whole first), [whole first, whole last) and [whole last, last).
    ASSERT_LE(0, found(0)) << cols;
    ASSERT_LE(found(0), found(2)) << cols;
    ASSERT_LE(found(2), found(3)) << cols;
    ASSERT_LE(found(3), found(1)) << cols;
    ASSERT_LE(found(1), count) << cols;
  }
}

constexpr int kUnused = 3;  // rows before the first sequence and behind the last
HostTensor rows_found(const Kernel& kernel, const std::vector<std::pair<int, int>>& lengths) {
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  const bool packed = sequences > 1;
  HostTensor first_queries = HostTensor::zeros(i32, {sequences + 1}),
             first_keys = HostTensor::zeros(i32, {sequences + 1});
  int queries = packed ? kUnused : 0, keys = packed ? kUnused : 0, longest = 0;
  for (std::int64_t i = 0; i <= sequences; ++i) {
    first_queries.set({i}, queries);
    first_keys.set({i}, keys);
    if (i == sequences) break;
    queries += lengths[static_cast<std::size_t>(i)].first;
    keys += lengths[static_cast<std::size_t>(i)].second;
    longest = std::max(longest, lengths[static_cast<std::size_t>(i)].second);
  }
  HostTensor Q = HostTensor::zeros(f32, {queries + (packed ? kUnused : 0)}),
             K = HostTensor::zeros(f32, {keys + (packed ? kUnused : 0)});
  HostTensor R = HostTensor::zeros(i32, {sequences, longest / kColumns + 2, 4});
  compile(kernel, "interpreter").run({ref(Q), ref(K), ref(first_queries), ref(first_keys), ref(R)});
  return R;
}

// Against every pair of elements: lengths that are nothing, one, a block, and one off, and windows
// narrower and wider than a block.
TEST(Mask, BlocksOfRowsThatSeeColumns) {
  std::vector<std::pair<int, int>> lengths;
  for (const int queries : {0, 1, kRows - 1, kRows, kRows + 1, 5 * kRows - 3}) {
    for (const int keys : {0, 1, kColumns - 1, kColumns, kColumns + 1, kRows, 5 * kRows, 71}) {
      lengths.emplace_back(queries, keys);
    }
  }
  std::int64_t some = 0, whole = 0;
  for (const auto& [diagonal, window] :
       {std::pair(false, 0), std::pair(true, 0), std::pair(true, 1), std::pair(true, kColumns),
        std::pair(true, kRows + kColumns - 2), std::pair(true, kRows + kColumns - 1),
        std::pair(true, 40)}) {
    const HostTensor packed = rows_found(rows_of_columns(Packs::both, diagonal, window), lengths);
    const HostTensor by_axis =
        rows_found(rows_of_columns(Packs::by_axis, diagonal, window), lengths);
    const Kernel plain = rows_of_columns(Packs::none, diagonal, window);
    int query = kUnused, key = kUnused;
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      RowsCase each{diagonal, window, lengths[i].first, lengths[i].second};
      expect_rows(each, packed, static_cast<std::int64_t>(i));
      if (HasFatalFailure()) return;
      RowsCase cut = each;
      cut.query_place = query % kRows;
      cut.key_place = key % kColumns;
      query += each.queries;
      key += each.keys;
      expect_rows(cut, by_axis, static_cast<std::int64_t>(i));
      if (HasFatalFailure()) return;
      expect_rows(each, rows_found(plain, {lengths[i]}), 0);
      if (HasFatalFailure()) return;
      some += each.visible(0, 0);
      whole += each.full(1, 1);
    }
  }
  EXPECT_GT(some, 0);
  EXPECT_GT(whole, 0);
}

constexpr int kHeads = 2;  // rows of scores of each query

// What the mask says of each block of queries: visible, then full; and how many keys of each block
// it leaves to a query, past the sequence's end too, by apply and by apply_transposed.
Kernel columns_of_rows(Packs packs, bool diagonal, int window) {
  Kernel kernel("columns_of_rows");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Dim sequences = kernel.dim("sequences"), row_blocks = kernel.dim("row_blocks"),
            blocks = kernel.dim("blocks");
  kernel.in("Q", f32, {queries});
  kernel.in("K", f32, {keys});
  const Tensor first_queries = kernel.in("first_queries", i32, {sequences + 1}),
               first_keys = kernel.in("first_keys", i32, {sequences + 1});
  const Tensor C = kernel.out("C", i32, {sequences, row_blocks, 4});
  const Tensor left = kernel.inout("left", f32, {queries, kHeads, blocks}),
               left_transposed = kernel.inout("left_transposed", f32, {queries, blocks});
  const auto [x, y] = kernel.grid(row_blocks, sequences);
  const bool packed = packs != Packs::none;
  const Sequence own_queries =
      packed ? sequence_of(queries, first_queries, y, packs) : Sequence(queries);
  const bool packs_keys = packs == Packs::both || packs == Packs::by_axis;
  const Sequence own_keys = packs_keys ? sequence_of(keys, first_keys, y, packs) : Sequence(keys);
  const Mask mask = diagonal ? causal(own_queries, own_keys, window) : everything();
  const Block rows = own_queries.block(x, kRows);
  const auto [first, last] = mask.visible(rows, own_keys, kColumns);
  const auto [whole_first, whole_last] = mask.full(rows, own_keys, kColumns);
  const Index found[] = {first, last, whole_first, whole_last};
  for (int i = 0; i < 4; ++i) store(C(y, x, Dim(4).block(i, 1)), Tile({1}, found[i]));
  for (Index j : range(blocks)) {
    const Block cols = own_keys.block(j, kColumns);
    const Tile seen = exp2(mask.apply(zeros({kHeads * kRows, kColumns}), rows, cols));
    store(left(rows, all, blocks.block(j, 1)), reduce_sum(seen, 1).reshape({kRows, kHeads, 1}));
    const Tile seen_transposed = exp2(mask.apply_transposed(zeros({kColumns, kRows}), rows, cols));
    store(left_transposed(rows, blocks.block(j, 1)),
          reduce_sum(seen_transposed, 0).reshape({kRows, 1}));
  }
  return kernel;
}

struct ColumnsFound {
  HostTensor ranges, left, left_transposed;
  std::vector<int> first_queries, first_keys;
};

// Sequences of these numbers of queries and keys, with rows before the first and behind the last.
ColumnsFound columns_found(const Kernel& kernel, const std::vector<std::pair<int, int>>& lengths,
                           Packs packs) {
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  const int unused = packs == Packs::none ? 0 : kUnused;
  std::vector<int> query_ends{unused}, key_ends{unused};
  int longest_queries = 0, longest_keys = 0;
  for (const auto& [queries, keys] : lengths) {
    query_ends.push_back(query_ends.back() + queries);
    key_ends.push_back(key_ends.back() + keys);
    longest_queries = std::max(longest_queries, queries);
    longest_keys = std::max(longest_keys, keys);
  }
  HostTensor first_queries = HostTensor::zeros(i32, {sequences + 1}),
             first_keys = HostTensor::zeros(i32, {sequences + 1});
  for (std::int64_t i = 0; i <= sequences; ++i) {
    first_queries.set({i}, query_ends[static_cast<std::size_t>(i)]);
    first_keys.set({i}, key_ends[static_cast<std::size_t>(i)]);
  }
  const int queries = query_ends.back() + unused,
            keys = packs == Packs::both || packs == Packs::by_axis ? key_ends.back() + unused
                                                                   : longest_keys;
  const std::int64_t blocks = longest_keys / kColumns + 2;
  HostTensor Q = HostTensor::zeros(f32, {queries}), K = HostTensor::zeros(f32, {keys});
  // Of one sequence that is the whole axis no block begins past the end.
  const int row_blocks = (longest_queries + kRows - 1) / kRows + (packs == Packs::none ? 0 : 1);
  ColumnsFound found{HostTensor::zeros(i32, {sequences, row_blocks, 4}),
                     HostTensor::poisoned(f32, {queries, kHeads, blocks}),
                     HostTensor::poisoned(f32, {queries, blocks}), query_ends, key_ends};
  compile(kernel, "interpreter")
      .run({ref(Q), ref(K), ref(first_queries), ref(first_keys), ref(found.ranges), ref(found.left),
            ref(found.left_transposed)});
  return found;
}

// `packs_keys`: of a block of rows past a sequence's end there is nothing to visit either.
void expect_columns(const RowsCase& each, const ColumnsFound& all, std::int64_t sequence,
                    bool packs_keys) {
  SCOPED_TRACE(testing::Message() << (each.diagonal ? "causal" : "everything") << ", window "
                                  << each.window << ", " << each.queries << " x " << each.keys);
  const int count = each.column_blocks();
  for (std::int64_t rows = 0; rows < all.ranges.shape()[1]; ++rows) {
    const auto found = [&](int i) { return static_cast<int>(all.ranges.at({sequence, rows, i})); };
    const auto inside = [&](int cols, int i) { return cols >= found(i) && cols < found(i + 1); };
    const int block = static_cast<int>(rows);
    const bool exists = block < each.row_blocks();
    const int begin = std::max(each.first_row(block), 0);
    for (int cols = 0; cols < count; ++cols) {
      if (exists || packs_keys) {
        ASSERT_EQ(inside(cols, 0), each.visible(block, cols)) << rows << ", " << cols;
      }
      if (!exists) continue;  // what no rows see in full says nothing
      ASSERT_EQ(inside(cols, 2), each.full_from(begin, cols)) << rows << ", " << cols;
    }
    ASSERT_LE(0, found(0)) << rows;
    ASSERT_LE(found(0), found(1)) << rows;
    ASSERT_LE(found(1), count) << rows;
  }
  const int first = all.first_queries[static_cast<std::size_t>(sequence)];
  for (int row = 0; row < each.queries; ++row) {
    for (std::int64_t cols = 0; cols < all.left_transposed.shape()[1]; ++cols) {
      int seen = 0;
      for (int i = 0; i < kColumns; ++i) {
        const int column = each.first_column(static_cast<int>(cols)) + i;
        seen += column >= 0 && column < each.keys && each.sees(row, column);
      }
      for (int head = 0; head < kHeads; ++head) {
        ASSERT_EQ(all.left.at({first + row, head, cols}), seen) << row << ", " << cols;
      }
      ASSERT_EQ(all.left_transposed.at({first + row, cols}), seen) << row << ", " << cols;
    }
  }
}

TEST(Mask, BlocksOfColumnsThatRowsSee) {
  std::vector<std::pair<int, int>> lengths, with_many_keys;
  for (const int queries : {0, 1, kRows - 1, kRows, kRows + 1, 5 * kRows - 3}) {
    for (const int keys : {0, 1, kColumns - 1, kColumns, kColumns + 1, kRows, 71}) {
      lengths.emplace_back(queries, keys);
    }
    with_many_keys.emplace_back(queries, 71);
  }
  for (const auto& [diagonal, window] :
       {std::pair(false, 0), std::pair(true, 0), std::pair(true, 1), std::pair(true, kColumns),
        std::pair(true, kRows + kColumns - 1), std::pair(true, 40)}) {
    bool by_axis = false;
    const auto expect = [&](const ColumnsFound& found, const std::pair<int, int>& length,
                            std::size_t sequence, bool packs_keys) {
      RowsCase each{diagonal, window, length.first, length.second};
      if (packs_keys && by_axis) {
        each.query_place = found.first_queries[sequence] % kRows;
        each.key_place = found.first_keys[sequence] % kColumns;
      }
      expect_columns(each, found, static_cast<std::int64_t>(sequence), packs_keys);
    };
    for (const Packs packs : {Packs::both, Packs::by_axis, Packs::queries}) {
      const auto& those = packs == Packs::queries ? with_many_keys : lengths;
      by_axis = packs == Packs::by_axis;
      const ColumnsFound found =
          columns_found(columns_of_rows(packs, diagonal, window), those, packs);
      for (std::size_t i = 0; i < those.size() && !HasFatalFailure(); ++i) {
        expect(found, those[i], i, packs != Packs::queries);
      }
    }
    const Kernel plain = columns_of_rows(Packs::none, diagonal, window);
    for (const auto& length : lengths) {
      if (HasFatalFailure()) return;
      expect(columns_found(plain, {length}, Packs::none), length, 0, false);
    }
  }
}

// Rows of scores are shared out among queries evenly, or not at all.
TEST(Mask, ScoresOfAPartOfAQueryAreRefused) {
  Kernel kernel("uneven");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  kernel.in("Q", f32, {queries});
  kernel.in("K", f32, {keys});
  const auto [x] = kernel.grid(1);
  const Block rows = queries.block(x, kRows), cols = keys.block(0, kColumns);
  try {
    causal(queries, keys).apply(zeros({kRows + kRows / 2, kColumns}), rows, cols);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.message().find("scores of 24 rows for 16 queries"), std::string::npos)
        << error.message();
  }
}

}  // namespace
}  // namespace tilewright
