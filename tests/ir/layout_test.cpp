#include "ir/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

namespace tilewright::ir {
namespace {

using Coordinates = std::vector<std::int64_t>;

// Counts how often registers, lanes and warps reach each element.
std::map<Coordinates, std::int64_t> coverage(const RegisterLayout& layout) {
  std::map<Coordinates, std::int64_t> count;
  for (std::int64_t warp = 0; warp < layout.warp_count(); ++warp) {
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      for (std::int64_t reg = 0; reg < layout.register_count(); ++reg) {
        ++count[layout.coordinates(reg, lane, warp)];
      }
    }
  }
  return count;
}

std::int64_t replicas(const RegisterLayout& layout) {
  std::int64_t product = 1;
  for (const auto* modes : {&layout.registers, &layout.lanes, &layout.warps}) {
    for (const Mode& mode : *modes) {
      if (mode.kind != ModeKind::distribute) product *= mode.size;
    }
  }
  return product;
}

bool covers_shape(const RegisterLayout& layout) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : layout.shape) elements *= extent;
  const auto count = coverage(layout);
  if (static_cast<std::int64_t>(count.size()) != elements) return false;
  for (const auto& [coordinates, times] : count) {
    for (std::size_t axis = 0; axis < coordinates.size(); ++axis) {
      if (coordinates[axis] >= layout.shape[axis]) return false;
    }
    if (times != replicas(layout)) return false;
  }
  return true;
}

TEST(RegisterLayout, BlockedCoversEveryShapeAndCoalesces) {
  const std::vector<Coordinates> shapes = {{64, 128}, {128, 96}, {1, 80},   {5, 7},  {256},
                                           {3},       {},        {8, 4, 6}, {64, 1}, {16, 512}};
  for (const Coordinates& shape : shapes) {
    for (const int threads : {32, 64, 128, 256, 384}) {
      for (const int vector : {1, 4, 8}) {
        const RegisterLayout layout = blocked(shape, threads, vector);
        EXPECT_EQ(layout.problem(), std::nullopt) << layout.to_string();
        EXPECT_EQ(layout.warp_count() * 32, threads);
        EXPECT_TRUE(covers_shape(layout)) << layout.to_string();
      }
    }
  }
  const RegisterLayout layout = blocked({64, 128}, 128, 8);
  EXPECT_EQ(layout.register_count(), 64);
  for (int lane = 0; lane < 32; ++lane) {
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(layout.coordinates(i, lane, 0), (Coordinates{lane / 16, lane % 16 * 8 + i}));
    }
  }
}

// Sums in every lane, then by the butterfly shuffles that the layout names; all lanes must end
// with the sums of the whole rows (or columns).
TEST(RegisterLayout, ReduceAndShufflesSumEveryRow) {
  for (const RegisterLayout& layout :
       {wgmma_accumulator(64, 40), blocked({64, 96}, 128, 4), blocked({8, 16}, 32, 1)}) {
    for (const int axis : {0, 1}) {
      const bool in_one_warp = std::none_of(layout.warps.begin(), layout.warps.end(),
                                            [axis](const Mode& m) { return m.axis == axis; });
      if (!in_one_warp) continue;
      const RegisterLayout partial = layout.reduce(axis, Reduction::partial);
      const RegisterLayout complete = layout.reduce(axis, Reduction::complete);
      ASSERT_EQ(partial.problem(), std::nullopt);
      ASSERT_EQ(complete.problem(), std::nullopt);
      EXPECT_TRUE(covers_shape(complete));
      EXPECT_FALSE(complete.is_partial());
      EXPECT_EQ(partial.is_partial(axis), !layout.shuffle_distances(axis).empty());
      EXPECT_FALSE(partial.is_partial(1 - axis));
      EXPECT_EQ(partial.shuffle_distances(axis), layout.shuffle_distances(axis));
      EXPECT_EQ(partial.reduce(axis, Reduction::complete), complete);
      EXPECT_EQ(partial.register_count(), complete.register_count());

      const auto value = [](const Coordinates& c) { return c[0] * 1000 + c[1] * c[1]; };
      std::map<std::int64_t, std::int64_t> expected;
      for (std::int64_t row = 0; row < layout.shape[0]; ++row) {
        for (std::int64_t column = 0; column < layout.shape[1]; ++column) {
          expected[axis == 0 ? column : row] += value({row, column});
        }
      }
      for (std::int64_t warp = 0; warp < layout.warp_count(); ++warp) {
        std::vector<std::map<std::int64_t, std::int64_t>> sums(32);
        for (std::int64_t lane = 0; lane < 32; ++lane) {
          for (std::int64_t reg = 0; reg < layout.register_count(); ++reg) {
            const Coordinates at = layout.coordinates(reg, lane, warp);
            sums[lane][at[1 - axis]] += value(at);
          }
        }
        for (const int distance : partial.shuffle_distances(axis)) {
          const auto before = sums;
          for (int lane = 0; lane < 32; ++lane) {
            for (auto& [at, sum] : sums[lane]) sum += before[lane ^ distance].at(at);
          }
        }
        for (std::int64_t lane = 0; lane < 32; ++lane) {
          EXPECT_EQ(static_cast<std::int64_t>(sums[lane].size()), complete.register_count());
          for (std::int64_t reg = 0; reg < complete.register_count(); ++reg) {
            const std::int64_t at = complete.coordinates(reg, lane, warp)[1 - axis];
            EXPECT_EQ(sums[lane].at(at), expected.at(at));
          }
        }
      }
    }
  }
}

// Lanes that hold the same between those that differ have no part in the sum, and take up room.
TEST(RegisterLayout, ShufflesReachOverLanesThatHoldTheSame) {
  const RegisterLayout rows = RegisterLayout::parse("[4x2|l:2@1:1,4*,4@0:1]");
  EXPECT_EQ(rows.shuffle_distances(0), (std::vector<int>{8, 16}));
  EXPECT_EQ(rows.shuffle_distances(1), (std::vector<int>{1}));
}

TEST(RegisterLayout, ReduceOfTheAccumulatorIsAQuad) {
  const RegisterLayout layout = wgmma_accumulator(64, 128);
  EXPECT_EQ(layout.shuffle_distances(1), (std::vector<int>{1, 2}));
  EXPECT_EQ(layout.shuffle_distances(0), (std::vector<int>{4, 8, 16}));
  EXPECT_EQ(layout.reduce(1, Reduction::partial).to_string(),
            "[64x1|r:2@0:8|l:4+1,8@0:1|w:4@0:16]");
  EXPECT_EQ(layout.reduce(1, Reduction::complete).to_string(),
            "[64x1|r:2@0:8|l:4*,8@0:1|w:4@0:16]");
}

// Every register of the result must find its element in the register that the map names.
void expect_correct(const RegisterMap& map, const RegisterLayout& result,
                    const RegisterLayout& operand) {
  ASSERT_TRUE(map.ok()) << map.mismatch;
  for (std::int64_t warp = 0; warp < result.warp_count(); ++warp) {
    for (std::int64_t lane = 0; lane < 32; ++lane) {
      for (std::int64_t reg = 0; reg < result.register_count(); ++reg) {
        Coordinates wanted = result.coordinates(reg, lane, warp);
        for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
          if (operand.shape[axis] == 1) wanted[axis] = 0;
        }
        const std::int64_t source = evaluate(map.terms, reg);
        ASSERT_LT(source, operand.register_count());
        ASSERT_EQ(operand.coordinates(source, lane, warp), wanted)
            << result.to_string() << " from " << operand.to_string();
      }
    }
  }
}

TEST(RegisterMap, FindsBroadcastOperands) {
  const RegisterLayout result = wgmma_accumulator(64, 128);
  const RegisterLayout reordered =
      RegisterLayout::parse("[64x128|r:4@1:32,2@1:1,4@1:8,2@0:8|l:4@1:2,8@0:1|w:4@0:16]");
  for (const RegisterLayout& operand :
       {result, result.reduce(1, Reduction::complete), result.reduce(0, Reduction::complete),
        result.reduce(0, Reduction::complete).reduce(1, Reduction::complete),
        RegisterLayout::parse("[64x128|r:16@1:8,2@0:8,2@1:1|l:4@1:2,8@0:1|w:4@0:16]"), reordered}) {
    expect_correct(register_map(result, operand), result, operand);
    EXPECT_TRUE(register_map(result, operand).ok());
  }
  expect_correct(register_map(reordered, result), reordered, result);
  EXPECT_EQ(register_map(result, result).terms, (std::vector<IndexTerm>{{1, 64, 1}}));
  EXPECT_EQ(register_map(result, result.reduce(1, Reduction::complete)).terms,
            (std::vector<IndexTerm>{{2, 2, 1}}));
  EXPECT_EQ(register_map(result, result.reduce(0, Reduction::complete)).terms,
            (std::vector<IndexTerm>{{1, 2, 1}, {4, 16, 2}}));
  const RegisterLayout rows = blocked({64, 96}, 128, 4);
  expect_correct(register_map(rows, rows.reduce(0, Reduction::complete)), rows,
                 rows.reduce(0, Reduction::complete));
}

TEST(RegisterMap, SaysWhereLayoutsDisagree) {
  const RegisterLayout result = wgmma_accumulator(64, 128);
  const auto mismatch = [&](const RegisterLayout& operand) {
    EXPECT_FALSE(register_map(result, operand).ok());
    return register_map(result, operand).mismatch;
  };
  EXPECT_NE(mismatch(blocked({64, 128}, 128, 8)).find("lane 1 starts at 2 on axis 1"),
            std::string::npos);
  EXPECT_NE(mismatch(blocked({64, 128}, 256, 8)).find("in 8 warps, the result in 4"),
            std::string::npos);
  EXPECT_NE(mismatch(wgmma_accumulator(64, 64)).find("axis 1 has size 64 in the operand but 128"),
            std::string::npos);
  EXPECT_NE(mismatch(blocked({64}, 128, 1)).find("rank 1 for a result of rank 2"),
            std::string::npos);
  EXPECT_NE(mismatch(RegisterLayout::parse("[64x128|r:2@1:1,2@0:8,16@1:8|l:4@1:2,8@0:1|"
                                           "w:2@0:32,2@0:16]"))
                .find("warp 1 starts at 16 on axis 0"),
            std::string::npos);
  EXPECT_NE(mismatch(result.reduce(1, Reduction::partial)).find("partial sum over axis 1"),
            std::string::npos);
  const RegisterLayout by_six = RegisterLayout::parse("[6x32|r:2@0:1,3@0:2|l:32@1:1]");
  const RegisterLayout by_three = RegisterLayout::parse("[6x32|r:3@0:1,2@0:3|l:32@1:1]");
  EXPECT_TRUE(register_map(by_six, by_three).ok()) << "both merge to 6 rows in order";
  const RegisterLayout interleaved = RegisterLayout::parse("[6x32|r:2@0:3,3@0:1|l:32@1:1]");
  const RegisterLayout pairs = RegisterLayout::parse("[6x32|r:3@0:2,2@0:1|l:32@1:1]");
  EXPECT_NE(register_map(pairs, interleaved).mismatch.find("orders differently"),
            std::string::npos);
}

// A running sum that is partial may be scaled and added to by values of its own layout.
TEST(RegisterMap, AllowsPartialSumsOnlyInThemselves) {
  const RegisterLayout tile = wgmma_accumulator(64, 128);
  const RegisterLayout partial = tile.reduce(1, Reduction::partial);
  const RegisterLayout complete = tile.reduce(1, Reduction::complete);
  EXPECT_TRUE(register_map(partial, partial).ok());
  EXPECT_TRUE(register_map(partial, complete).ok());
  EXPECT_FALSE(register_map(complete, partial).ok());
  EXPECT_FALSE(register_map(tile, partial).ok());
}

TEST(RegisterLayout, ProblemAgreesWithCountingElements) {
  std::mt19937 random(20261121);
  const auto below = [&](int n) { return static_cast<int>(random() % n); };
  int valid = 0;
  for (int round = 0; round < 5000; ++round) {
    // Starts from a valid split of the shape in a random order, then often breaks one number.
    RegisterLayout layout;
    layout.shape = {1, 1};
    int lanes = 32;
    for (int digit = 0; digit < 8; ++digit) {
      const int axis = below(2);
      auto& modes = digit < 5 ? layout.lanes : digit < 7 ? layout.registers : layout.warps;
      const int size = digit < 5 ? 2 : 1 + below(3);
      if (digit < 5) lanes /= 2;
      const Mode mode{size, axis, layout.shape[axis], ModeKind::distribute};
      if (below(6) == 0) {
        modes.push_back({size, 0, 0, ModeKind::replicate});
      } else {
        modes.push_back(mode);
        layout.shape[axis] *= size;
      }
    }
    std::shuffle(layout.lanes.begin(), layout.lanes.end(), random);
    std::shuffle(layout.registers.begin(), layout.registers.end(), random);
    ASSERT_EQ(lanes, 1);
    if (below(2) == 0) {
      auto& modes = below(2) == 0 ? layout.lanes : layout.registers;
      if (!modes.empty()) modes[below(static_cast<int>(modes.size()))].stride += 1 + below(2);
    } else if (below(3) == 0) {
      layout.shape[below(2)] += 1;
    }
    ASSERT_EQ(layout.problem() == std::nullopt, covers_shape(layout))
        << layout.to_string() << ": " << layout.problem().value_or("no problem");
    valid += layout.problem() == std::nullopt;
  }
  EXPECT_GT(valid, 500);
  EXPECT_LT(valid, 4500);
}

TEST(RegisterLayout, EqualityIgnoresHowDigitsAreSplit) {
  const RegisterLayout merged = RegisterLayout::parse("[32x12|r:12@1:1|l:32@0:1]");
  const RegisterLayout split = RegisterLayout::parse("[32x12|r:2@1:1,6@1:2,1@0:7|l:8@0:1,4@0:8]");
  const RegisterLayout other = RegisterLayout::parse("[32x12|r:6@1:2,2@1:1|l:32@0:1]");
  EXPECT_EQ(merged, split);
  EXPECT_EQ(merged.hash(), split.hash());
  EXPECT_FALSE(merged == other);
  EXPECT_FALSE(merged == RegisterLayout::parse("[32x12|r:12@1:1|l:32@0:1|w:4*]"));
}

// Sums over one axis are not sums over another one.
TEST(RegisterLayout, PartialSumsOfTwoAxesStayApart) {
  const RegisterLayout sums = row_layout(8, 4, split_rows(8, 4, 1, 1), 1)
                                  .reduce(1, Reduction::partial)
                                  .reduce(0, Reduction::partial);
  EXPECT_TRUE(sums.is_partial(0)) << sums.to_string();
  EXPECT_TRUE(sums.is_partial(1)) << sums.to_string();
}

// Warps share out what there is of one axis first, and then of the other one.
TEST(RegisterLayout, WarpsShareOutColumnsOrRows) {
  const auto split = [](bool columns_first) { return split_rows(4, 1024, 8, 8, columns_first); };
  EXPECT_EQ(split(true).column_warps, 4);
  EXPECT_EQ(split(true).row_warps, 2);
  EXPECT_EQ(split(false).column_warps, 2);
  EXPECT_EQ(split(false).row_warps, 4);
  // Of more warps than there is something for, several have the same.
  const RowSplit few = split_rows(1, 256, 4, 8, false);
  EXPECT_EQ(few.column_warps * few.row_warps, 1);
  EXPECT_EQ(row_layout(1, 256, few, 8).warp_count(), 4);
}

// Tiles of one split cover their shapes, and what reductions of them leave lies as columns and rows
// do.
TEST(RegisterLayout, RowLayoutsOfOneSplitAgree) {
  for (const std::int64_t rows : {1, 3, 4, 16, 64}) {
    for (const std::int64_t columns : {1, 8, 96, 100, 1024}) {
      for (const std::int64_t warps : {1, 4, 16}) {
        for (const int vector : {1, 4, 8}) {
          const RowSplit split = split_rows(rows, columns, warps, vector);
          const RegisterLayout whole = row_layout(rows, columns, split, vector);
          SCOPED_TRACE(whole.to_string());
          ASSERT_EQ(whole.problem(), std::nullopt);
          if (rows * columns <= 1 << 14) {
            EXPECT_TRUE(covers_shape(whole));
          }
          EXPECT_EQ(whole.warp_count(), warps);
          EXPECT_EQ(whole.reduce(1, Reduction::complete), row_layout(rows, 1, split, vector));
          EXPECT_EQ(whole.reduce(0, Reduction::complete), row_layout(1, columns, split, vector));
          for (const std::int64_t narrow : {8, 48}) {
            const RegisterLayout other = row_layout(rows, narrow, split, vector);
            ASSERT_EQ(other.problem(), std::nullopt);
            EXPECT_EQ(other.reduce(1, Reduction::complete), whole.reduce(1, Reduction::complete));
          }
        }
      }
    }
  }
  // A row for each warp; then all warps for one row, 16 bytes of bf16 a lane.
  EXPECT_EQ(row_layout(4, 256, split_rows(4, 256, 4, 8), 8).to_string(),
            "[4x256|r:8@1:1|l:32@1:8|w:4@0:1]");
  EXPECT_EQ(row_layout(1, 1024, split_rows(1, 1024, 4, 8), 8).to_string(),
            "[1x1024|r:8@1:1|l:32@1:8|w:4@1:256]");
}

std::int64_t row_major(const Coordinates& coordinates, const Coordinates& shape) {
  std::int64_t index = 0;
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    index = index * shape[axis] + coordinates[axis];
  }
  return index;
}

TEST(RegisterLayoutTest, ReshapedHoldsTheSameElements) {
  const RegisterLayout rows = wgmma_accumulator(64, 8).reduce(1, Reduction::complete);
  const std::pair<RegisterLayout, Coordinates> cases[] = {
      {wgmma_accumulator(64, 64), {16, 4, 64}},
      {wgmma_accumulator(64, 64), {32, 128}},
      {wgmma_accumulator(64, 48), {64, 3, 16}},
      {wgmma_accumulator(64, 48), {32, 96}},
      {wgmma_accumulator(64, 48), {1, 64, 1, 48}},
      {wgmma_accumulator(128, 32), {2, 64, 32}},
      {rows, {16, 4}},
      {rows, {64}},
      {rows, {4, 1, 16}},
  };
  for (const auto& [layout, shape] : cases) {
    const std::optional<RegisterLayout> reshaped = layout.reshaped(shape);
    ASSERT_TRUE(reshaped) << layout.to_string();
    SCOPED_TRACE(layout.to_string() + " as " + reshaped->to_string());
    ASSERT_EQ(reshaped->shape, shape);
    ASSERT_EQ(reshaped->register_count(), layout.register_count());
    for (std::int64_t warp = 0; warp < 4; ++warp) {
      for (std::int64_t lane = 0; lane < 32; ++lane) {
        for (std::int64_t reg = 0; reg < layout.register_count(); ++reg) {
          ASSERT_EQ(row_major(reshaped->coordinates(reg, lane, warp), shape),
                    row_major(layout.coordinates(reg, lane, warp), layout.shape));
        }
      }
    }
  }
  EXPECT_FALSE(wgmma_accumulator(64, 24).reshaped({24, 64}));
  EXPECT_FALSE(wgmma_accumulator(64, 48).reshaped({96, 32}));
}

}  // namespace
}  // namespace tilewright::ir
