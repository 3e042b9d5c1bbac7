#include "target/core_rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "target/target.h"

// What a record allows, held at its edges: for each entry what is just allowed, and one more.
namespace tilewright::target {
namespace {

void for_cores(const std::function<void(const Core& core)>& body) {
  for (const Target* target : targets()) {
    if (!target->core) continue;
    SCOPED_TRACE(target->name);
    body(*target->core);
  }
}

CoreOperand operand(const Core& core, const std::string& space, std::int64_t rows,
                    std::int64_t columns, DType dtype, bool transposed = false) {
  return {space.empty() ? nullptr : core.space(space), {rows, columns, dtype}, transposed};
}

TEST(CoreRules, MovesAtTheirEdges) {
  for_cores([](const Core& core) {
    for (const CoreMove& each : core.moves) {
      SCOPED_TRACE(each.from + " to " + each.to + " by " + each.unit);
      const std::string& sequencer = core.unit(each.unit)->sequencer;
      const auto is_allowed = [&](std::int64_t rows, std::int64_t columns, DType from, DType to,
                                  bool turned_from, bool turned_to) {
        const CoreMove* found = nullptr;
        return find_move(core, operand(core, each.to, rows, columns, to, turned_to),
                         operand(core, each.from, rows, columns, from, turned_from), sequencer,
                         each.unit, found)
            .none();
      };
      EXPECT_TRUE(is_allowed(each.rows, each.columns, f32, f32, false, false));
      EXPECT_FALSE(is_allowed(each.rows + 1, each.columns, f32, f32, false, false));
      EXPECT_FALSE(is_allowed(each.rows, each.columns + 1, f32, f32, false, false));
      EXPECT_EQ(is_allowed(16, 16, bf16, bf16, true, false), each.transposes);
      EXPECT_EQ(is_allowed(16, 16, bf16, bf16, false, true), each.transposes);
      EXPECT_TRUE(is_allowed(16, 16, bf16, bf16, true, true));
      for (const DType from : {f32, bf16, i8}) {
        for (const DType to : {f32, f16, bf16}) {
          const auto& known = each.conversions;
          const bool is_known = from == to || std::find(known.begin(), known.end(),
                                                        std::pair(from, to)) != known.end();
          EXPECT_EQ(is_allowed(16, 16, from, to, false, false), is_known);
        }
      }
      const CoreMove* found = nullptr;
      for (const std::int64_t more : {0, 1}) {
        CoreOperand from = operand(core, each.from, 16, 16, bf16);
        from.matrices = each.matrices + more;
        const CoreProblem problem = find_move(core, operand(core, each.to, 16, 16, bf16), from,
                                              sequencer, each.unit, found);
        EXPECT_EQ(problem.none(), more == 0);
      }
      // Its extents count as it lies where it goes to: in memory, a part of a tensor has none.
      if (each.to.empty() || each.rows == each.columns) continue;
      const std::int64_t long_one = std::max(each.rows, each.columns);
      const bool is_wide = each.columns == long_one;
      EXPECT_TRUE(
          find_move(
              core, operand(core, each.to, is_wide ? 16 : long_one, is_wide ? long_one : 16, bf16),
              operand(core, each.from, is_wide ? long_one : 16, is_wide ? 16 : long_one, bf16),
              sequencer, each.unit, found)
              .none());
    }
  });
}

// Of several ways a sequencer takes its own.
TEST(CoreRules, ASequencerTakesItsOwnUnit) {
  for_cores([](const Core& core) {
    for (const CoreMove& each : core.moves) {
      const CoreMove* found = nullptr;
      const std::string& sequencer = core.unit(each.unit)->sequencer;
      EXPECT_TRUE(find_move(core, operand(core, each.to, 16, 16, f32),
                            operand(core, each.from, 16, 16, f32), sequencer, "", found)
                      .none());
      EXPECT_EQ(core.unit(found->unit)->sequencer, sequencer);
    }
  });
}

TEST(CoreRules, ProductsAtTheirEdges) {
  for_cores([](const Core& core) {
    for (const CoreProduct& each : core.products) {
      struct Turned {
        bool left = false, right = false, result = false;
      };
      const auto is_allowed = [&](std::int64_t m, std::int64_t n, std::int64_t k,
                                  const Turned& turned = {}, DType right = bf16,
                                  DType result = f32) {
        const bool left = turned.left != each.left_transposed;
        const CoreProduct* found = nullptr;
        return find_product(core,
                            operand(core, each.result, turned.result ? n : m, turned.result ? m : n,
                                    result, turned.result),
                            operand(core, each.left, left ? k : m, left ? m : k, bf16, left),
                            operand(core, each.right, turned.right ? n : k, turned.right ? k : n,
                                    right, turned.right),
                            core.unit(each.unit)->sequencer, found)
            .none();
      };
      EXPECT_TRUE(is_allowed(each.m, each.n, each.k));
      EXPECT_FALSE(is_allowed(each.m + 1, each.n, each.k));
      EXPECT_FALSE(is_allowed(each.m, each.n + 1, each.k));
      EXPECT_FALSE(is_allowed(each.m, each.n, each.k + each.piece_k_bytes));
      EXPECT_EQ(is_allowed(16, 16, 8), !each.sums_pad);
      EXPECT_TRUE(is_allowed(16, 16, 16));
      for (const Turned& turned : {Turned{true}, {false, true}, {false, false, true}}) {
        EXPECT_FALSE(is_allowed(16, 16, 16, turned));
      }
      EXPECT_FALSE(is_allowed(16, 16, 16, {}, f16));
      EXPECT_FALSE(is_allowed(16, 16, 16, {}, bf16, bf16));
    }
  });
}

TEST(CoreRules, UnitsComputeWhereTheyReach) {
  for_cores([](const Core& core) {
    const auto is_allowed = [&](const std::string& to, const std::vector<std::string>& from,
                                const char* function, bool is_fill, const CoreFunctions& by) {
      std::vector<CoreOperand> operands;
      for (const std::string& space : from) operands.push_back(operand(core, space, 16, 16, f32));
      const CoreFunctions* found = nullptr;
      return find_functions(core, operand(core, to, 16, 16, f32), operands, function, is_fill,
                            core.unit(by.unit)->sequencer, by.unit, found)
          .none();
    };
    for (const CoreFunctions& each : core.functions) {
      SCOPED_TRACE(each.unit);
      const auto has = [](const std::vector<std::string>& list, const std::string& name) {
        return std::find(list.begin(), list.end(), name) != list.end();
      };
      for (const CoreSpace& space : core.spaces) {
        EXPECT_EQ(is_allowed(space.name, {}, "", true, each), has(each.writes, space.name));
        // What fills computes nothing, of no operands either.
        EXPECT_EQ(is_allowed(space.name, {}, "", false, each),
                  has(each.writes, space.name) && !each.only_fills);
        EXPECT_EQ(is_allowed(each.writes[0], {space.name}, "add", false, each),
                  has(each.reads, space.name) && !each.only_fills);
      }
      for (const std::string_view lacks : each.lacks) {
        EXPECT_FALSE(is_allowed(each.writes[0], {each.reads[0]}, lacks.data(), false, each));
      }
    }
  });
}

TEST(CoreRules, MemoriesHoldWhatTheyHave) {
  for_cores([](const Core& core) {
    for (const CoreSpace& each : core.spaces) {
      SCOPED_TRACE(each.name);
      EXPECT_FALSE(check_memory(core, each.name, {0, 16, f32}).none());
      EXPECT_FALSE(check_memory(core, each.name, {16, 0, f32}).none());
      const std::int64_t rows = each.partitions > 1 ? each.partitions : 1000;
      EXPECT_TRUE(check_memory(core, each.name, {rows, 16, f32}).none());
      EXPECT_EQ(check_memory(core, each.name, {rows + 1, 16, f32}).none(), each.partitions == 1);
      // Windows begin at granules and nowhere else.
      const Matrix whole{64, 64, bf16};
      for (std::int64_t row = 0; row<64; row += each.partitions> 1 ? 64 : 1) {
        for (std::int64_t column = 0; column < 64; ++column) {
          EXPECT_EQ(check_start(each, whole, row, column).none(),
                    each.layout->offset(whole, row, column) % each.granule == 0);
        }
      }
    }
  });
}

TEST(CoreRules, EventsAreOfTheirEnds) {
  for_cores([](const Core& core) {
    for (const CoreEventPair& each : core.events) {
      const std::string &from = core.unit(each.from)->sequencer,
                        &to = core.unit(each.to)->sequencer;
      EXPECT_TRUE(check_event(core, each.from, each.to, true, from).none());
      EXPECT_TRUE(check_event(core, each.from, each.to, false, to).none());
      if (from == to) continue;
      EXPECT_FALSE(check_event(core, each.from, each.to, true, to).none());
      EXPECT_FALSE(check_event(core, each.from, each.to, false, from).none());
    }
  });
}

}  // namespace
}  // namespace tilewright::target
