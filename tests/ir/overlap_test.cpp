#include "ir/overlap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <set>

#include "support/random.h"

namespace tilewright::ir {
namespace {

std::int64_t place(const ElementIndex& index, const std::vector<std::int64_t>& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), std::int64_t{0});
}

// Whether two elements lie in one place, by going through all of them.
bool overlaps(const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides) {
  std::set<std::int64_t> places;
  ElementIndex index(sizes.size(), 0);
  for (;;) {
    if (!places.insert(place(index, strides)).second) return true;
    std::size_t axis = 0;
    while (axis < sizes.size() && ++index[axis] == sizes[axis]) index[axis++] = 0;
    if (axis == sizes.size()) return false;
  }
}

TEST(Overlap, IsFoundWhereElementsMeet) {
  Random random(5);
  int found = 0;
  for (int i = 0; i < 3000; ++i) {
    std::vector<std::int64_t> sizes, strides;
    for (int axis = 1 + random.below(4); axis > 0; --axis) {
      sizes.push_back(1 + random.below(5));
      strides.push_back(1 + random.below(20));
    }
    const auto elements = overlap(sizes, strides);
    ASSERT_EQ(elements.has_value(), overlaps(sizes, strides))
        << testing::PrintToString(sizes) << testing::PrintToString(strides);
    if (!elements) continue;
    ++found;
    EXPECT_NE(elements->first, elements->second);
    EXPECT_EQ(place(elements->first, strides), place(elements->second, strides));
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      EXPECT_LT(elements->first[axis], sizes[axis]);
      EXPECT_LT(elements->second[axis], sizes[axis]);
    }
  }
  EXPECT_GT(found, 500);
  EXPECT_LT(found, 2500);
}

// Of two tensors, by going through the elements of both.
bool share(const TensorArgument& a, const TensorArgument& b) {
  std::set<std::byte*> places;
  const auto each = [](const TensorArgument& t, const auto& visit) {
    for (std::int64_t i = 0; i < t.shape[0]; ++i) {
      for (std::int64_t j = 0; j < t.shape[1]; ++j) {
        visit(t.data + (i * t.strides[0] + j * t.strides[1]) * t.element_bytes());
      }
    }
  };
  bool found = false;
  each(a, [&](std::byte* place) { places.insert(place); });
  each(b, [&](std::byte* place) { found = found || places.count(place) != 0; });
  return found;
}

TEST(Overlap, OfTwoTensors) {
  Random random(6);
  alignas(float) std::byte memory[1024] = {};
  int shared = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto draw = [&] {
      const std::int64_t columns = 1 + random.below(4);
      return TensorArgument{"t",
                            DType::f32,
                            {1 + random.below(4), columns},
                            {columns + random.below(4), 1},
                            memory + 4 * random.below(24)};
    };
    TensorArgument a = draw(), b = draw();
    if (random.below(2) == 0) b.shape = a.shape, b.strides = a.strides;
    const bool expected = share(a, b);
    shared += expected;
    EXPECT_EQ(share_elements(a, b), expected)
        << testing::PrintToString(a.shape) << testing::PrintToString(a.strides) << " "
        << testing::PrintToString(b.shape) << testing::PrintToString(b.strides) << " "
        << (b.data - a.data) / 4;
  }
  EXPECT_GT(shared, 500);
  EXPECT_LT(shared, 1900);
  const TensorArgument none{"t", DType::f32, {0, 4}, {4, 1}, memory};
  EXPECT_FALSE(share_elements(none, none));
  const TensorArgument nowhere{"t", DType::f32, {2, 4}, {4, 1}, nullptr};
  EXPECT_FALSE(share_elements(nowhere, nowhere));
}

TEST(Overlap, OfLargeTensors) {
  constexpr std::int64_t kMany = 1 << 30;
  EXPECT_FALSE(overlap({kMany, kMany}, {kMany, 1}));
  EXPECT_TRUE(overlap({kMany, kMany}, {kMany - 1, 1}));
  EXPECT_TRUE(overlap({kMany, kMany, 2}, {1, 1, 1}));
}

}  // namespace
}  // namespace tilewright::ir
