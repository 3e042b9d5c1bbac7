#include "passes/join_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/numbered_blocks.h"
#include "passes/explicit_kernel.h"
#include "passes/pipeline.h"
#include "simulator/interpreter.h"
#include "tilewright/kernel.h"

// Steps of a loop that take one page each, whose number a table has.
namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kWide = 64, kMostSteps = 12, kPagesThereAre = 7;

struct PagesOfSteps {
  int slots = 16;
  int columns = kWide;
  bool rescales = true;    // so that the order of the steps shows
  bool scaled = false;     // something else than products reads the pages
  bool by_halves = false;  // every second step takes the other half of a page
  bool by_rows = false;    // pages lie one behind the other
  bool hands_on = false;   // each step writes the number of the one behind the next
  bool chained = false;    // another number says where a page's number is
};

// Y = sum over steps of (Y / 2 + A dot the step's page), of the pages that a table names.
ir::Kernel sum_of_pages(const PagesOfSteps& c) {
  Kernel kernel("sum_of_pages");
  const Dim pages = kernel.dim("pages");
  const Tensor T =
      c.hands_on ? kernel.inout("T", i32, {kMostSteps}) : kernel.in("T", i32, {kMostSteps});
  const Tensor A = kernel.in("A", bf16, {kWide, c.slots});
  const Tensor P = c.by_rows
                       ? kernel.in("P", bf16, {pages, c.columns})
                       : kernel.in("P", bf16, {pages, (c.by_halves ? 2 : 1) * c.slots, c.columns});
  const Tensor Y = kernel.out("Y", f32, {kWide, c.columns});
  const Tensor N = kernel.in("N", i32, {1});
  kernel.grid(1);
  const Tile a = load(A(all, all));
  Var sum{zeros({kWide, c.columns})};
  for (Index i : range(1, load_index(N(0)))) {
    const Index place = c.chained ? load_index(T(i)) : i;
    const Index page = load_index(T(place));
    const Index first = c.by_halves ? i % 2 * c.slots : Index(0);
    const Index row = page * c.slots;
    Tile rows = c.by_rows ? load(P(Block(row, c.slots, row + c.slots), all))
                          : load(P(page, Block(first, c.slots, first + c.slots), all));
    if (c.hands_on) store(T(Block(i + 2, 1, Index(kMostSteps))), full({1}, 1).cast(i32));
    if (c.scaled) rows = (rows.cast(f32) * 2).cast(bf16);
    sum = c.rescales ? sum * 0.5 + dot(a, rows) : sum + dot(a, rows);
  }
  store(Y(all, all), sum);
  ir::Kernel traced = kernel.finish();
  traced.target = "sm_90a";
  simplify_kernel(traced);
  return traced;
}

// Of each step's loads of pages, loop by loop: which part of a stage.
std::vector<std::string> pages_loaded(const ir::Kernel& kernel) {
  std::vector<std::string> loads;
  ir::for_each(kernel.body, [&](const Operation& loop) {
    if (loop.op != Op::for_loop) return;
    std::string own;
    for (const Operation& o : loop.blocks[0].body) {
      if (o.op != Op::load) continue;
      const auto* part = o.attributes.find(ir::Key::joined);
      own += part ? std::to_string(o.attributes.integers(ir::Key::joined)[0]) : "x";
    }
    loads.push_back(own);
  });
  return loads;
}

HostTensor result_of(const ir::Kernel& kernel, const PagesOfSteps& c, std::int64_t steps) {
  std::vector<double> table;
  for (std::int64_t i = 0; i < kMostSteps; ++i) {
    // No step reads what the table has behind the last one, nor its first number.
    table.push_back(i > 0 && i < steps ? static_cast<double>(i * 3 % kPagesThereAre) : 1e6);
  }
  HostTensor t = HostTensor::from_values(i32, {kMostSteps}, table);
  HostTensor a = HostTensor::random_normal(bf16, {kWide, c.slots}, 1);
  HostTensor p = HostTensor::random_normal(
      bf16, {kPagesThereAre, (c.by_halves ? 2 : 1) * c.slots, c.columns}, 2);
  HostTensor n = HostTensor::from_values(i32, {1}, {static_cast<double>(steps)});
  HostTensor y = HostTensor::poisoned(f32, {kWide, c.columns});
  Arguments arguments;
  arguments.tensors = {test::argument("T", t), test::argument("A", a), test::argument("P", p),
                       test::argument("Y", y), test::argument("N", n)};
  simulator::interpret(kernel, arguments);
  return y;
}

// As many as fill a stage of 64 rows, and steps of their own for the rest: the same bits for every
// number of steps, of which there may be none.
TEST(JoinStepsTest, JoinedStepsHaveTheBitsOfOneByOne) {
  for (const int slots : {8, 16, 32}) {
    const PagesOfSteps c{slots};
    const ir::Kernel before = sum_of_pages(c);
    ir::Kernel after = before;
    ASSERT_EQ(join_steps(after), 1) << slots;
    ir::canonicalise(after);
    const std::string stage =
        std::string("01234567").substr(0, static_cast<std::size_t>(kWide / slots));
    EXPECT_THAT(pages_loaded(after), ElementsAre(stage, "x"));
    for (std::int64_t steps = 0; steps <= kMostSteps; ++steps) {
      EXPECT_TRUE(result_of(before, c, steps) == result_of(after, c, steps))
          << slots << " " << steps;
    }
  }
}

std::vector<std::string> why_alone(const PagesOfSteps& c) {
  ir::Kernel kernel = sum_of_pages(c);
  EXPECT_EQ(join_steps(kernel), 0);
  std::vector<std::string> why;
  for (const analysis::NumberedBlock& each : analysis::numbered_blocks(kernel)) {
    EXPECT_EQ(each.tensor, "P");
    EXPECT_EQ(each.together, 1);
    why.push_back(each.alone);
  }
  return why;
}

TEST(JoinStepsTest, WhatIsNotJoinedSaysWhy) {
  EXPECT_THAT(why_alone({64}), ElementsAre(HasSubstr("a block has 64 rows")));
  EXPECT_THAT(why_alone({16, kWide, true, true}), ElementsAre(HasSubstr("not products alone")));
  EXPECT_THAT(why_alone({16, kWide, true, false, true}),
              ElementsAre(HasSubstr("differ in more than a number")));
  EXPECT_THAT(why_alone({32, 1024}), ElementsAre(HasSubstr("65536 bytes")));
  PagesOfSteps by_rows{16}, hands_on{16};
  PagesOfSteps chained{16};
  by_rows.by_rows = hands_on.hands_on = chained.chained = true;
  EXPECT_THAT(why_alone(by_rows), ElementsAre(HasSubstr("differ in more than a number")));
  // Who loads them ahead waits for the one before he can ask for the other.
  EXPECT_THAT(why_alone(chained), ElementsAre(HasSubstr("more than a number")));
  // Numbers that the loop itself writes are not loaded ahead: such a loop has no numbers.
  EXPECT_THAT(why_alone(hands_on), IsEmpty());
}

TEST(JoinStepsTest, AnalysisNamesJoinedBlocksOnce) {
  ir::Kernel kernel = sum_of_pages({16});
  join_steps(kernel);
  const auto found = analysis::numbered_blocks(kernel);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].together, 4);
}

}  // namespace
}  // namespace tilewright::passes
