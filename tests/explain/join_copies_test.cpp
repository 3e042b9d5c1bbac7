#include "passes/join_copies.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "explain/tiers.h"
#include "ir/verifier.h"
#include "passes/pipeline.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"

// Pages that a table names, four a stage, in an explicit kernel that copies each by itself.
namespace tilewright {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Not;

constexpr int kPages = 4, kSlots = 16, kColumns = 64, kRows = kPages * kSlots;

// How a kernel comes by the numbers of a stage's pages.
enum class Numbers { a_stage_ahead, in_front_of_the_copies };

Kernel pages_by_table(Numbers numbers) {
  Kernel kernel("pages_by_table");
  const Dim pages = kernel.dim("pages"), blocks = kernel.dim("blocks");
  const Tensor T = kernel.in("T", i32, {blocks, kPages});
  const Tensor X = kernel.in("X", bf16, {pages, kSlots, kColumns});
  const Tensor Y = kernel.out("Y", bf16, {kRows * blocks, kColumns});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(2), {{bf16, kRows, kColumns}});
  const auto listed = [&](const Index& block, int i) {
    return load_index(T(min(block, Index(blocks) - 1), i));
  };
  const auto load_stages = [&] {
    std::vector<std::unique_ptr<Cell<Index>>> next;
    for (int i = 0; i < kPages; ++i) {
      next.push_back(std::make_unique<Cell<Index>>(listed(Index(0), i)));
    }
    for (Index block : range(blocks)) {
      std::vector<Index> now;
      for (int i = 0; i < kPages; ++i) {
        Cell<Index>& ahead = *next[static_cast<std::size_t>(i)];
        now.push_back(numbers == Numbers::a_stage_ahead ? Index(ahead) : listed(block, i));
        ahead = listed(block + 1, i);
      }
      ring.produce([&](const Slot& slot) {
        for (int i = 0; i < kPages; ++i) {
          tma_load(X(now[static_cast<std::size_t>(i)], all, all), slot[0].rows(i * kSlots, kSlots));
        }
      });
    }
  };
  kernel.roles({role("load", warps(1), registers(40), load_stages),
                role("store", warpgroups(1), registers(200), [&] {
                  for (Index block : range(blocks)) {
                    const Slot slot = ring.consume();
                    const Tile rows = load(slot);
                    fence_proxy_async();
                    ring.release(slot);
                    store(Y((kRows * blocks).block(block, kRows), all), rows);
                  }
                })});
  return kernel;
}

// How stages are filled from a second tensor, or to a second tile.
enum class Beside { the_same_pages, other_pages, fewer_pages, halves_of_two_tiles };

Kernel pages_of_two_tiles(Beside beside) {
  Kernel kernel("pages_of_two_tiles");
  const Dim pages = kernel.dim("pages");
  const Tensor T = kernel.in("T", i32, {kPages});
  const Tensor X = kernel.in("X", bf16, {pages, kSlots, kColumns});
  const Tensor Z = kernel.in("Z", bf16, {pages, kSlots, kColumns});
  const Tensor Y = kernel.out("Y", bf16, {2, kRows, kColumns});
  kernel.ctas(1);
  const TileShape tile{bf16, kRows, kColumns};
  Ring ring(kernel, "x", stages(2), {tile, tile});
  kernel.roles({role("load", warps(1), registers(40),
                     [&] {
                       std::vector<std::unique_ptr<Cell<Index>>> numbers;
                       for (int i = 0; i < kPages; ++i) {
                         numbers.push_back(std::make_unique<Cell<Index>>(load_index(T(i))));
                       }
                       for ([[maybe_unused]] Index step : range(2)) {
                         std::vector<Index> now;
                         for (const auto& number : numbers) now.emplace_back(*number);
                         for (int i = 0; i < kPages; ++i) *numbers[i] = load_index(T(i));
                         ring.produce([&](const Slot& slot) {
                           for (int i = 0; i < kPages; ++i) {
                             const int part = beside == Beside::halves_of_two_tiles ? i / 2 : 0;
                             tma_load(X(now[i], all, all), slot[part].rows(i * kSlots, kSlots));
                           }
                           const int of_z = beside == Beside::halves_of_two_tiles ? 0
                                            : beside == Beside::fewer_pages       ? kPages - 1
                                                                                  : kPages;
                           for (int i = 0; i < of_z; ++i) {
                             const int page = beside == Beside::other_pages ? kPages - 1 - i : i;
                             tma_load(Z(now[page], all, all), slot[1].rows(i * kSlots, kSlots));
                           }
                         });
                       }
                     }),
                role("store", warpgroups(1), registers(200), [&] {
                  for ([[maybe_unused]] Index step : range(2)) {
                    const Slot slot = ring.consume();
                    for (int part = 0; part < 2; ++part) {
                      const Tile rows = load(slot[part]);
                      store(Y(part, all, all), rows);
                    }
                    fence_proxy_async();
                    ring.release(slot);
                  }
                })});
  return kernel;
}

// What stages are filled with, in the order in which it is tried.
std::vector<std::string> ways_of(const Kernel& kernel) {
  ir::Kernel scheduled = kernel.finish();
  passes::simplify_kernel(scheduled);
  passes::join_copies(scheduled);
  ir::verify(scheduled);
  std::vector<std::string> ways;
  for (const explanations::Tiers& each : explanations::tiers_in(scheduled)) {
    for (const auto& way : each.ways) {
      ways.push_back("x" + std::to_string(way.together) + " " + way.copies);
    }
  }
  return ways;
}

TEST(JoinCopiesTest, NamesTheWaysOfAStage) {
  EXPECT_THAT(ways_of(pages_by_table(Numbers::a_stage_ahead)),
              ElementsAre("x4 1 of X_4x16x64", "x2 2 of X_2x16x64", "x1 4 of X_16x64"));
  EXPECT_THAT(ways_of(pages_by_table(Numbers::in_front_of_the_copies)), IsEmpty());
}

// One copy brings pages of one number, and to one tile.
TEST(JoinCopiesTest, PagesOfOtherNumbersAndTilesStayApart) {
  EXPECT_THAT(ways_of(pages_of_two_tiles(Beside::the_same_pages)), Not(IsEmpty()));
  EXPECT_THAT(ways_of(pages_of_two_tiles(Beside::other_pages)), IsEmpty());
  EXPECT_THAT(ways_of(pages_of_two_tiles(Beside::fewer_pages)), IsEmpty());
  EXPECT_THAT(ways_of(pages_of_two_tiles(Beside::halves_of_two_tiles)), IsEmpty());
}

// Pages of a tier, of another one in each stage, and on both ends of the tensor.
TEST(JoinCopiesTest, EachTierBringsWhatTheTableNames) {
  constexpr std::int64_t kAll = 9;
  const HostTensor X = HostTensor::random_normal(bf16, {kAll, kSlots, kColumns}, 3);
  const Executable joined = compile(pages_by_table(Numbers::a_stage_ahead), "sim:sm_90a");
  for (const std::vector<double>& table :
       {std::vector<double>{0, 1, 2, 3, 4, 5, 6, 7, 5, 6, 7, 8},     // x4
        std::vector<double>{7, 8, 0, 1, 4, 5, 2, 3, 3, 4, 5, 6},     // x2, x2, x4
        std::vector<double>{3, 2, 1, 0, 0, 1, 3, 4, 0, 2, 4, 6},     // x1, x2, x1
        std::vector<double>{0, 1, 2, 4, 4, 4, 4, 4, 8, 0, 1, 2}}) {  // x1
    HostTensor T = HostTensor::from_values(i32, {3, kPages}, table);
    HostTensor Y = HostTensor::poisoned(bf16, {3 * kRows, kColumns}), x = X;
    joined.run({ref(T), ref(x), ref(Y)});
    for (std::int64_t row = 0; row < 3 * kRows; ++row) {
      const auto page = static_cast<std::int64_t>(table[static_cast<std::size_t>(row / kSlots)]);
      for (std::int64_t column = 0; column < kColumns; ++column) {
        ASSERT_EQ(Y.at({row, column}), X.at({page, row % kSlots, column})) << row;
      }
    }
  }
}

}  // namespace
}  // namespace tilewright
