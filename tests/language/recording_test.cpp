#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "ir/text.h"
#include "ir/verifier.h"
#include "tilewright/blackwell.h"
#include "tilewright/hopper.h"

// What is recorded, and in which order.
namespace tilewright {
namespace {

struct Recorded {
  Kernel kernel{"k"};
  Dim rows = kernel.dim("rows");
  Tensor X = kernel.in("X", f32, {rows, 64});
  Tensor Y = kernel.inout("Y", f32, {rows, 64});
  std::array<Index, 1> grid = kernel.grid(ceil_div(rows, 64));
  Block block = rows.block(grid[0], 64);
};

std::string text_of(const std::function<void(Recorded&)>& body) {
  Recorded t;
  body(t);
  ir::verify(t.kernel.finish());
  return ir::to_text(t.kernel.finish(), {.locations = false});
}

// C++ leaves the order of evaluation of operands and arguments to the compiler.
TEST(OrderTest, OfOperandsDoesNotShow) {
  const std::string left_first = text_of([](Recorded& t) {
    const Tile x = load(t.X(t.block, all));
    const Tile a = exp(x) * 2, b = log(x + 1);
    store(t.Y(t.block, all), a - b);
  });
  const std::string right_first = text_of([](Recorded& t) {
    const Tile x = load(t.X(t.block, all));
    const Tile b = log(x + 1), a = exp(x) * 2;
    store(t.Y(t.block, all), a - b);
  });
  EXPECT_EQ(left_first, right_first);
}

TEST(OrderTest, OfScalarsDoesNotShow) {
  const auto body = [](bool first) {
    return text_of([first](Recorded& t) {
      std::optional<Index> early;
      if (first) early = t.grid[0] * 3 + 1;
      const Tile x = load(t.X(t.block, all));
      when(t.grid[0] > 0, [&] {
        const Index at = first ? *early : t.grid[0] * 3 + 1;
        store(t.Y(t.rows.block(t.grid[0], 64), all), x + Tile({64, 64}, at).cast(f32));
      });
    });
  };
  // Scalars made before a condition stay outside, so that only their order before it is free.
  EXPECT_NE(body(true), body(false));
  const auto swapped = [](bool first) {
    return text_of([first](Recorded& t) {
      std::optional<Index> a, b;
      if (first) a = t.grid[0] * 3;
      b = t.grid[0] + 5;
      if (!first) a = t.grid[0] * 3;
      const Tile x = load(t.X(t.block, all));
      store(t.Y(t.block, all), x + Tile({64, 64}, *a - *b).cast(f32));
    });
  };
  EXPECT_EQ(swapped(true), swapped(false));
}

TEST(OrderTest, OfEffectsIsKept) {
  const std::string text = text_of([](Recorded& t) {
    const Tile x = load(t.X(t.block, all));
    const Tile old = load(t.Y(t.block, all));
    store(t.Y(t.block, all), x);
    const Tile now = load(t.Y(t.block, all));
    store(t.Y(t.block, all), now * old);
  });
  const std::size_t first = text.find("load %1"), store = text.find("store %1");
  const std::size_t second = text.find("load %1", store);
  EXPECT_LT(first, store);
  EXPECT_LT(second, text.find("store %1", second));
}

// What is written between two effects stays there: a kernel's author overlaps arithmetic with
// products that run.
TEST(OrderTest, TilesStayBetweenTheirEffects) {
  Kernel kernel("k");
  const Tensor Y = kernel.out("Y", f32, {64, 64});
  kernel.ctas(1);
  SharedTile a(kernel, "a", bf16, 64, 64);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Tile s = wait(wgmma(a, a));
    const Pending next = wgmma(a, a);
    const Tile under = exp2(s);
    const Tile other = wait(next);
    store(Y(all, all), under + other);
  })});
  const std::string text = ir::to_text(kernel.finish());
  const std::size_t product = text.rfind("wgmma"), arithmetic = text.find("exp2");
  EXPECT_LT(product, arithmetic);
  EXPECT_LT(arithmetic, text.find("wait", product));
}

TEST(OrderTest, WhatNothingNeedsIsNotRecorded) {
  const auto body = [](bool extra) {
    return text_of([extra](Recorded& t) {
      const Tile x = load(t.X(t.block, all));
      if (extra) exp(x);
      store(t.Y(t.block, all), x);
    });
  };
  EXPECT_EQ(body(true), body(false));
}

TEST(VariableTest, LoopsCarryOnlyWhatTheyAssign) {
  const std::string text = text_of([](Recorded& t) {
    Var sum{zeros({64, 64})}, untouched{zeros({64, 64})};
    for (Index i : range(4)) sum = sum + Tile({64, 64}, i).cast(f32) + untouched;
    store(t.Y(t.block, all), Tile(sum) + untouched);
  });
  EXPECT_NE(text.find(": tile<f32, 64x64> = for_loop"), std::string::npos) << text;
  EXPECT_EQ(text.find(": tile<f32, 64x64>, %"), std::string::npos)
      << "two values are carried" << text;
}

TEST(VariableTest, BranchesMergeWhatTheyAssign) {
  const std::string text = text_of([](Recorded& t) {
    Var value{load(t.X(t.block, all))};
    when(
        t.grid[0] > 0, [&] { value = value * 2; }, [&] { value = value * 3; });
    store(t.Y(t.block, all), value);
  });
  EXPECT_NE(text.find(": tile<f32, 64x64> = if_then"), std::string::npos) << text;
}

TEST(VariableTest, ACopyIsOfTheValue) {
  const auto body = [](bool copied) {
    return text_of([copied](Recorded& t) {
      Var a{load(t.X(t.block, all))}, b{zeros({64, 64})};
      const Tile before = a;
      a = before * 2;
      if (copied) b = a;
      if (!copied) b = before * 2;
      a = before;
      store(t.Y(t.block, all), b);
    });
  };
  EXPECT_EQ(body(true), body(true));
  EXPECT_NE(body(true).find("mul"), std::string::npos);
}

TEST(VariableTest, AConditionMayEndItsLoopInsideABranch) {
  const std::string text = text_of([](Recorded& t) {
    Cell<Index> i(0);
    Cell<Condition> more(true);
    repeat_while(more, [&] {
      i = i + 1;
      when(Index(i) > 7, [&] { more = false; });
    });
    store(t.Y(t.block, all), Tile({64, 64}, i).cast(f32));
  });
  EXPECT_NE(text.find("while_loop"), std::string::npos);
  EXPECT_NE(text.find(": bool = if_then"), std::string::npos) << text;
}

TEST(FactsTest, OfDimensionsAreRecorded) {
  Kernel kernel("k");
  const Dim n = kernel.dim("n", DimFacts{8, 16, 4096});
  const Tensor X = kernel.inout("X", f32, {n, n * 2});
  const auto [i] = kernel.grid(n / 8);
  const Tile x = load(X(n.block(i, 8), (n * 2).block(i, 16)));
  store(X(n.block(i, 8), (n * 2).block(i, 16)), x);
  const std::string text = ir::to_text(kernel.finish());
  EXPECT_NE(text.find("dim n multiple_of(8) at_least(16) at_most(4096)"), std::string::npos)
      << text;
  EXPECT_NE(text.find("inout X: f32[n, (n * 2)]"), std::string::npos) << text;
}

TEST(RecordingTest, SumsOfNarrowTilesAreInF32) {
  Kernel kernel("narrow");
  const Tensor X = kernel.in("X", bf16, {4, 64}), Y = kernel.out("Y", bf16, {4, 1});
  kernel.grid(1);
  store(Y(all, all), reduce_sum(load(X(all, all)), 1));
  int sums = 0;
  const ir::Kernel& recorded = kernel.finish();
  ir::for_each(recorded.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::reduce) return;
    ++sums;
    EXPECT_EQ(recorded.type(o.operands[0]).dtype, f32);
  });
  EXPECT_EQ(sums, 1);
}

TEST(RecordingTest, TensorsDeclaredInALoopAreThereBehindIt) {
  Kernel kernel("late");
  const Tensor Y = kernel.out("Y", f32, {4});
  kernel.grid(1);
  std::optional<Tensor> x;
  for ([[maybe_unused]] Index i : range(2)) x.emplace(kernel.in("X", f32, {4}));
  store(Y(all), load((*x)(all)));
  EXPECT_EQ(kernel.finish().parameters.size(), 2u);
}

// A fault names the line in the function, not that of what calls it.
TEST(RecordingTest, WhatFillsAStageOrWorksOnATileHasItsOwnLines) {
  Kernel kernel("lines");
  kernel.target("sm_100a");
  const Tensor X = kernel.in("X", bf16, {64, 64}), Y = kernel.out("Y", bf16, {64, 64});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{bf16, 64, 64}});
  GridTiles tiles(kernel, "tiles", stages(1));
  int loads = 0, stores = 0;
  const auto fill = [&](const Slot& slot) {
    loads = __LINE__ + 1;
    tma_load(X(all, all), slot[0]);
  };
  const auto store_tile = [&](const Index&) {
    const Slot slot = ring.consume();
    stores = __LINE__ + 1;
    store(Y(all, all), load(slot[0]));
    ring.release(slot);
  };
  kernel.roles({role("ask", warps(1), registers(64), [&] { tiles.ask(); }),
                role("load", warps(1), registers(64),
                     [&] { tiles.each([&](const Index&) { ring.produce(fill); }); }),
                role("store", warpgroups(1), registers(64), [&] { tiles.each(store_tile); })});
  int found = 0;
  ir::for_each(kernel.finish().body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::tma_load_tile && o.op != ir::Op::store) return;
    ++found;
    EXPECT_EQ(o.where.line, o.op == ir::Op::store ? stores : loads);
  });
  EXPECT_EQ(found, 2);
}

}  // namespace
}  // namespace tilewright
