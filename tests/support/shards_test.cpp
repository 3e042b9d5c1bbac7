#include "tilewright/shards.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "common/error_text.h"

namespace tilewright {
namespace {

using testing::HasSubstr;

// {2, rows, 3}, every element another number.
HostTensor counted(std::int64_t rows) {
  std::vector<double> values(static_cast<std::size_t>(2 * rows * 3));
  std::iota(values.begin(), values.end(), 0);
  return HostTensor::from_values(DType::f32, {2, rows, 3}, values);
}

// The rows of the whole that each rank has.
std::vector<std::vector<int>> rows_of_ranks(const std::vector<HostTensor>& shards) {
  std::vector<std::vector<int>> rows;
  for (const HostTensor& own : shards) {
    rows.emplace_back();
    for (std::int64_t i = 0; i < own.shape()[1]; ++i) {
      rows.back().push_back(static_cast<int>(own.at({0, i, 0})) / 3);
    }
  }
  return rows;
}

TEST(Shards, RowsOfEachRank) {
  using Rows = std::vector<std::vector<int>>;
  EXPECT_EQ(rows_of_ranks(shard(counted(6), 1, 2)), (Rows{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_EQ(rows_of_ranks(shard(counted(8), 1, 2, Shards::zig_zag)),
            (Rows{{0, 1, 6, 7}, {2, 3, 4, 5}}));
  // Two early rows and one late one.
  EXPECT_EQ(rows_of_ranks(shard(counted(9), 1, 3, Shards::zig_zag)),
            (Rows{{0, 1, 8}, {2, 3, 7}, {4, 5, 6}}));
}

TEST(Shards, MakeTheWholeAgain) {
  for (const Shards how : {Shards::contiguous, Shards::zig_zag}) {
    for (const std::int64_t rows : {0, 2, 4, 6, 8}) {
      EXPECT_EQ(unshard(shard(counted(rows), 1, 2, how), 1, how), counted(rows)) << rows;
    }
    EXPECT_EQ(unshard(shard(counted(4), 2, 3, how), 2, how), counted(4));
  }
}

TEST(Shards, Heads) {
  EXPECT_EQ(rows_of_ranks(shard_heads(counted(4), 1, 2)),
            (std::vector<std::vector<int>>{{0, 1}, {2, 3}}));
  const std::vector<HostTensor> shared = shard_heads(counted(2), 1, 4);
  EXPECT_EQ(rows_of_ranks(shared), (std::vector<std::vector<int>>{{0}, {0}, {1}, {1}}));
  EXPECT_EQ(unshard_heads(shared, 1, 2), counted(2));
  EXPECT_EQ(unshard_heads(shard_heads(counted(4), 1, 2), 1, 4), counted(4));
}

TEST(Shards, Mistakes) {
  using test::usage_error_of;
  EXPECT_THAT(usage_error_of([] { shard(counted(7), 1, 2); }),
              HasSubstr("7 rows of axis 1 for 2 ranks"));
  EXPECT_THAT(usage_error_of([] { shard(counted(7), 3, 2); }),
              HasSubstr("axis 3 of a tensor of 3 axes"));
  EXPECT_THAT(usage_error_of([] { shard(counted(7), 1, 0); }), HasSubstr("0 ranks"));
  EXPECT_THAT(usage_error_of([] {
                unshard({counted(2), counted(3)}, 1);
              }),
              HasSubstr("the shard of rank 1 is not like that of rank 0"));
  EXPECT_THAT(usage_error_of([] { shard_heads(counted(3), 1, 2); }),
              HasSubstr("3 heads for 2 ranks"));
  EXPECT_THAT(usage_error_of([] {
                unshard_heads({counted(2), counted(2)}, 1, 2);
              }),
              HasSubstr("2 heads in each of 2 ranks"));
}

}  // namespace
}  // namespace tilewright
