#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "ir/program.h"

namespace tilewright::ir {
namespace {

using Shape = std::vector<std::int64_t>;

// Two tensors of bytes, and what was copied between them.
struct Copy {
  Shape shape, to_strides, from_strides;
  std::vector<std::int64_t> pieces = {};  // rows of each

  // Each byte of `from` at its index, the others -1.
  std::vector<int> run() {
    std::vector<std::byte> to(400), from(400);
    const TensorArgument target{"to", DType::f16, shape, to_strides, to.data()};
    const TensorArgument source{"from", DType::f16, shape, from_strides, from.data()};
    std::vector<int> origin(to.size(), -1);
    for_each_rows(target, source, [&](const CopiedRows& copied) {
      pieces.push_back(copied.rows);
      for (std::int64_t row = 0; row < copied.rows; ++row) {
        for (std::int64_t byte = 0; byte < copied.bytes; ++byte) {
          origin[copied.to - to.data() + row * copied.to_pitch + byte] =
              static_cast<int>(copied.from - from.data() + row * copied.from_pitch + byte);
        }
      }
    });
    return origin;
  }
  // The same, element by element.
  std::vector<int> expected() const {
    std::vector<int> origin(400, -1);
    const std::int64_t elements =
        std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
    for (std::int64_t element = 0; element < elements; ++element) {
      std::int64_t rest = element, to = 0, from = 0;
      for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
        to += rest % shape[axis] * to_strides[axis];
        from += rest % shape[axis] * from_strides[axis];
      }
      for (int byte = 0; byte < 2; ++byte) {
        origin[2 * to + byte] = static_cast<int>(2 * from + byte);
      }
    }
    return origin;
  }
};

void expect_pieces(Copy copy, const std::vector<std::int64_t>& pieces) {
  EXPECT_EQ(copy.run(), copy.expected());
  EXPECT_EQ(copy.pieces, pieces);
}

TEST(ProgramCopy, ContiguousPartsAreOneRow) {
  expect_pieces({{4, 5, 6}, {30, 6, 1}, {30, 6, 1}}, {1});
  expect_pieces({{}, {}, {}}, {1});
}

TEST(ProgramCopy, RowsWithGapsAreOnePiece) {
  expect_pieces({{6, 4}, {8, 1}, {5, 1}}, {6});
  expect_pieces({{3, 4, 5}, {40, 10, 1}, {20, 5, 1}}, {12});  // the first two axes are one
  expect_pieces({{5, 1, 4}, {16, 8, 1}, {4, 4, 1}}, {5});
  expect_pieces({{5, 4, 1}, {4, 1, 1}, {32, 8, 2}}, {20});  // a column of elements
}

TEST(ProgramCopy, ThreeStridesArePieces) {
  expect_pieces({{3, 4, 5}, {60, 10, 1}, {20, 5, 1}}, {4, 4, 4});
  expect_pieces({{2, 3, 2, 2}, {90, 30, 10, 1}, {12, 4, 2, 1}}, {2, 2, 2, 2, 2, 2});
}

TEST(ProgramCopy, NothingIsNoPiece) { expect_pieces({{3, 0, 5}, {60, 10, 1}, {20, 5, 1}}, {}); }

// Of a part that begins from `low` to `high`.
TEST(ProgramParts, AreOutsideWhereNoStartFits) {
  for (std::int64_t low = -3; low <= 6; ++low) {
    for (std::int64_t high = low; high <= 6; ++high) {
      std::vector<Dim> starts{Dim::symbol("start", {1, low, high})};
      if (low == high) starts.emplace_back(low);
      for (std::int64_t size = -1; size <= 7; ++size) {
        for (std::int64_t extent = 0; extent <= 5; ++extent) {
          const bool fits =
              size >= 0 && high >= 0 && std::max<std::int64_t>(low, 0) + size <= extent;
          for (const Dim& start : starts) {
            EXPECT_EQ(is_outside({start}, {size}, {extent}), !fits)
                << start.to_string() << ", " << low << " to " << high << ", " << size << " of "
                << extent;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace tilewright::ir
