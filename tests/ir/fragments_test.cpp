#include <gtest/gtest.h>

#include <map>
#include <set>

#include "ir/layout.h"

// The layouts that instructions impose, beside what PTX says of them.
namespace tilewright::ir {
namespace {

using Coordinates = std::vector<std::int64_t>;

// The D fragment of wgmma.mma_async.m64nNk16 as PTX describes it.
TEST(RegisterLayout, WgmmaAccumulatorIsTheFragmentOfPtx) {
  for (std::int64_t n = 8; n <= 256; n += 8) {
    const RegisterLayout layout = wgmma_accumulator(64, n);
    ASSERT_EQ(layout.register_count(), n / 2);
    ASSERT_EQ(layout.problem(), std::nullopt);
    for (int thread = 0; thread < 128; ++thread) {
      const int warp = thread / 32;
      const int group = thread % 32 / 4;
      const int in_group = thread % 4;
      for (std::int64_t i = 0; i < n / 2; ++i) {
        const std::int64_t row = 16 * warp + group + (i % 4 >= 2 ? 8 : 0);
        const std::int64_t column = 8 * (i / 4) + 2 * in_group + i % 2;
        ASSERT_EQ(layout.coordinates(i, thread % 32, warp), (Coordinates{row, column}))
            << "n " << n << " thread " << thread << " register " << i;
      }
    }
  }
}

TEST(RegisterLayout, WgmmaAccumulatorOfTwoProductsListsTheirRegistersInOrder) {
  const RegisterLayout one = wgmma_accumulator(64, 96);
  const RegisterLayout two = wgmma_accumulator(128, 96);
  for (std::int64_t i = 0; i < two.register_count(); ++i) {
    Coordinates expected = one.coordinates(i % 48, 13, 2);
    expected[0] += i / 48 * 64;
    EXPECT_EQ(two.coordinates(i, 13, 2), expected);
  }
}

// The A fragments of m64nNk16 (16 bits), m64nNk32 (8 bits) and m64nNk8 (tf32): rows and columns of
// the elements a0, a1, ... of the thread with group and thread-in-group numbers g and t.
TEST(RegisterLayout, WgmmaAFragmentIsTheFragmentOfPtx) {
  for (const int bytes : {1, 2, 4}) {
    const int k_step = 32 / bytes;
    const RegisterLayout layout = wgmma_a_fragment(64, 3 * k_step, bytes);
    const int elements = 16 / bytes;
    ASSERT_EQ(layout.register_count(), 3 * elements);
    for (int thread = 0; thread < 128; ++thread) {
      const int g = thread % 32 / 4;
      const int t = thread % 4;
      for (int i = 0; i < 3 * elements; ++i) {
        const int a = i % elements;
        int row = 0;
        int column = 0;
        if (bytes == 2) {
          row = (a == 2 || a == 3 || a == 6 || a == 7) ? g + 8 : g;
          column = t * 2 + (a & 1) + (a >= 4 ? 8 : 0);
        } else if (bytes == 1) {
          row = ((a >= 4 && a < 8) || a >= 12) ? g + 8 : g;
          column = t * 4 + (a & 3) + (a >= 8 ? 16 : 0);
        } else {
          row = (a == 1 || a == 3) ? g + 8 : g;
          column = t + (a >= 2 ? 4 : 0);
        }
        ASSERT_EQ(layout.coordinates(i, thread % 32, thread / 32),
                  (Coordinates{row + thread / 32 * 16, column + i / elements * k_step}))
            << bytes << " bytes, thread " << thread << ", element " << i;
      }
    }
  }
}

TEST(RegisterLayout, AccumulatorIsReadAsTheNextProductsA) {
  EXPECT_EQ(wgmma_accumulator(64, 176), wgmma_a_fragment(64, 176, 2));
  EXPECT_FALSE(wgmma_accumulator(64, 128) == wgmma_a_fragment(64, 128, 1));
}

// A warp has a quarter of the rows; in it lanes lie along 64 columns first.
TEST(RegisterLayout, WarpsHaveRowsInWideRuns) {
  const RegisterLayout layout = warp_rows(64, 128, 16).value();
  EXPECT_FALSE(layout.problem());
  EXPECT_EQ(layout.adjacent(), 16);
  for (int thread = 0; thread < 128; ++thread) {
    const int lane = thread % 32, row = thread / 32 * 16 + lane / 4;
    for (int i = 0; i < 64; ++i) {
      const int column = lane % 4 * 16 + i % 16 + i / 16 % 2 * 64;
      ASSERT_EQ(layout.coordinates(i, lane, thread / 32), (Coordinates{row + i / 32 * 8, column}));
    }
  }
  EXPECT_FALSE(warp_rows(64, 96, 16).value().problem());
  EXPECT_FALSE(warp_rows(64, 24, 16)) << "three runs of 8";
  EXPECT_FALSE(warp_rows(64, 16, 16)) << "32 lanes in a warp's 16 rows";
  EXPECT_EQ(wgmma_accumulator(64, 64).adjacent(), 2);
  EXPECT_EQ(wgmma_accumulator(64, 64).transposed().adjacent(), 1);
}

TEST(RegisterLayout, ImpossibleFragmentsAreErrors) {
  EXPECT_THROW(wgmma_accumulator(32, 128), Error);
  EXPECT_THROW(wgmma_accumulator(64, 12), Error);
  EXPECT_THROW(wgmma_accumulator(64, 0), Error);
  EXPECT_THROW(wgmma_a_fragment(64, 24, 2), Error);
  EXPECT_THROW(wgmma_a_fragment(64, 48, 3), Error);
  EXPECT_THROW(blocked({64, 64}, 48, 1), Error);
  EXPECT_THROW(blocked({64, 0}, 32, 1), Error);
  EXPECT_THROW(blocked({64, 64}, 2048, 1), Error);
}

TEST(RegisterLayout, ARowOfTensorMemoryIsInOneLane) {
  const RegisterLayout layout = tensor_memory_rows(64);
  EXPECT_EQ(layout.shape, (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(layout.register_count(), 64);
  EXPECT_EQ(layout.warp_count(), 4);
  EXPECT_EQ(layout.adjacent(), 64);
}

}  // namespace
}  // namespace tilewright::ir
