#include "passes/bufferise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/pinned_registers.h"
#include "ir/text.h"
#include "passes/explicit_kernel.h"

// Tiles become register arrays: what the machine computes with them is compared with numbers worked
// out in float64, and accumulators must not be copied.
namespace tilewright::passes {
namespace {

using test::ExplicitKernel;

int count(const ir::Kernel& kernel, ir::Op op) {
  int found = 0;
  ir::for_each(kernel.body, [&](const ir::Operation& o) { found += o.op == op; });
  return found;
}

// C must be a * product + b.
void expect_multiple(const ir::Kernel& machine, double a, double b = 0) {
  EXPECT_THAT(test::unpinned_registers(machine), testing::IsEmpty());
  for (const std::uint64_t seed : {1, 2}) {
    const test::ExplicitResult result = test::run(machine, seed);
    for (const simulator::Fault& fault : result.faults)
      ADD_FAILURE() << fault.kind << fault.message;
    double difference = 0, magnitude = 0;
    for (std::size_t i = 0; i < result.product.size(); ++i) {
      const double right = a * result.product[i] + b;
      const double got = result.c.flat(static_cast<std::int64_t>(i));
      difference += std::isfinite(got) ? (got - right) * (got - right) : INFINITY;
      magnitude += right * right;
    }
    EXPECT_LT(std::sqrt(difference / magnitude), 1e-5);
  }
}

TEST(BufferiseTest, AnAccumulatorStaysWhereItIs) {
  ExplicitKernel t(5);
  const ir::Kernel machine = t.lower([&] {
    Var sum{zeros({64, 64})};
    for (Index i : range(5)) {
      (void)i;
      const Slot slot = t.ring.consume();
      sum = wait(t.product(slot, sum));
      t.ring.release(slot);
    }
    t.save(sum);
  });
  EXPECT_EQ(count(machine, ir::Op::copy), 0) << ir::to_text(machine);
  EXPECT_EQ(count(machine, ir::Op::registers), 1);
  expect_multiple(machine, 5);
}

TEST(BufferiseTest, AProductInFlightCrossesTheBackEdgeInPlace) {
  ExplicitKernel t(5);
  const ir::Kernel machine = t.lower([&] {
    Cell<Pending> sum(as_pending(zeros({64, 64})));
    Cell<Index> held(0);
    for (Index i : range(5)) {
      const Slot slot = t.ring.consume();
      const Pending before = sum;
      sum = t.product(slot, before);
      retire(before);
      when(i > 0, [&] { t.ring.release(held); });
      held = slot.stage();
    }
    const Tile result = wait(sum);
    t.ring.release(held);
    t.save(result);
  });
  EXPECT_EQ(count(machine, ir::Op::copy), 0) << ir::to_text(machine);
  EXPECT_EQ(count(machine, ir::Op::registers), 1);
  expect_multiple(machine, 5);
}

TEST(BufferiseTest, AnOldAccumulatorThatIsStillNeededIsCopied) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile first = wait(t.product(slot));
    const Tile second = wait(t.product(slot, first));  // 2 products, in place of nothing
    t.ring.release(slot);
    t.save(second * 10 + first);
  });
  EXPECT_EQ(count(machine, ir::Op::copy), 1) << ir::to_text(machine);
  expect_multiple(machine, 21);
}

TEST(BufferiseTest, AWaitedProductThatContinuesIsCopied) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Pending first = t.product(slot);
    const Tile seen = wait(first);
    const Tile second = wait(t.product(slot, first));
    t.ring.release(slot);
    t.save(second * 10 + seen);
  });
  expect_multiple(machine, 21);
}

// A product cannot be copied while it runs; the tile that was waited for can.
TEST(BufferiseTest, TheNextProductRunsWhileTheLastIsRead) {
  ExplicitKernel t(4);
  const ir::Kernel machine = t.lower([&] {
    const Slot first = t.ring.consume();
    Cell<Pending> scores(t.product(first));
    Cell<Index> held(first.stage());
    Var sum{zeros({64, 64})};
    for (Index i : range(3)) {
      (void)i;
      const Tile now = wait(scores);
      t.ring.release(held);
      const Slot slot = t.ring.consume();
      held = slot.stage();
      scores = t.product(slot);
      sum = sum + now * 2;
    }
    const Tile last = wait(scores);
    t.ring.release(held);
    t.save(sum + last);
  });
  EXPECT_EQ(count(machine, ir::Op::copy), 1) << ir::to_text(machine);
  // The copy is read beside the next product, whose fence keeps it in registers of its own.
  ir::ValueId copied = ir::kNoValue;
  std::size_t pinned = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::copy) copied = o.operands[0];
    if (o.op != ir::Op::wgmma_fence) return;
    pinned += static_cast<std::size_t>(std::count(o.operands.begin(), o.operands.end(), copied));
  });
  EXPECT_EQ(pinned, 1u) << ir::to_text(machine);
  expect_multiple(machine, 7);
}

TEST(BufferiseTest, LoopsMaySwapTheirVariables) {
  for (const int rounds : {0, 1, 2, 3}) {
    ExplicitKernel t;
    const ir::Kernel machine = t.lower([&] {
      const Slot slot = t.ring.consume();
      const Tile product = wait(t.product(slot));
      t.ring.release(slot);
      Var a{product}, b{product * 3};
      for (Index i : range(rounds)) {
        (void)i;
        const Tile before = a;
        a = b;
        b = before;
      }
      t.save(Tile(a) * 10 + b);
    });
    expect_multiple(machine, rounds % 2 == 0 ? 13 : 31);
  }
}

TEST(BufferiseTest, LoopsMayRotateTheirVariables) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    t.ring.release(slot);
    Var a{product}, b{product * 2}, c{product * 3};
    for (Index i : range(4)) {
      (void)i;
      const Tile first = a;
      a = b;
      b = c;
      c = first;
    }
    t.save(Tile(a) * 100 + Tile(b) * 10 + c);
  });
  expect_multiple(machine, 231);
}

TEST(BufferiseTest, OneValueForTwoVariables) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    t.ring.release(slot);
    Var a{product}, b{product};
    for (Index i : range(3)) {
      (void)i;
      a = a + product;
      b = Tile(b) * 2;
    }
    t.save(Tile(a) * 10 + b);
  });
  expect_multiple(machine, 48);
}

TEST(BufferiseTest, BranchesLeaveTheirValueInOnePlace) {
  for (const int which : {0, 1}) {
    ExplicitKernel t;
    const ir::Kernel machine = t.lower([&] {
      const Slot slot = t.ring.consume();
      const Tile product = wait(t.product(slot));
      t.ring.release(slot);
      Var a{product}, b{product * 2};
      when(
          t.block().limit() * which > 0,
          [&] {
            const Tile before = a;
            a = b;
            b = before * 4;
          },
          [&] { a = a + b; });
      t.save(Tile(a) * 10 + b);
    });
    expect_multiple(machine, which ? 24 : 32);
  }
}

TEST(BufferiseTest, AValueOutlivesTheLoopThatReadsIt) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    t.ring.release(slot);
    Var sum{product};
    for (Index i : range(3)) {
      (void)i;
      sum = sum + product * 2;
    }
    t.save(Tile(sum) * 10 + product);
  });
  expect_multiple(machine, 71);
}

// The factor of a running product lives in registers that the product reads while it runs.
TEST(BufferiseTest, ARegisterOperandIsKeptUntilItsProductIsDone) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile ones = wait(t.product(slot)) * 0 + 1;
    const Tile one = ones.cast(bf16);
    const Pending sums = wgmma(one, slot[0]);  // column sums of A, 64 times
    const Tile twos = (ones + ones).cast(bf16);
    const Pending doubled = wgmma(twos, slot[0]);
    const Tile first = wait(sums), second = wait(doubled);
    const Tile product = wait(t.product(slot));
    t.ring.release(slot);
    t.save(product + (second - first * 2));
  });
  expect_multiple(machine, 1);
}

// The next operand of a loop is made while the product still reads the last one.
TEST(BufferiseTest, ARegisterOperandIsNotOverwrittenWhileItsProductRuns) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    Var level{product * 0 + 1}, sum{product * 0};
    Var factor{Tile(level).cast(bf16)};
    for (Index i : range(3)) {
      (void)i;
      const Pending running = wgmma(factor, slot[0]);  // 64, 128, 256 times column sums of A
      level = level * 2;
      const Tile next = Tile(level).cast(bf16);
      sum = sum + wait(running);
      factor = next;
    }
    const Tile once = wait(wgmma((product * 0 + 1).cast(bf16), slot[0]));
    t.ring.release(slot);
    t.save(product + (sum - once * 7));
  });
  expect_multiple(machine, 1);
}

// A B^T, and products of registers that add to one that runs: 1 + 2 + 4 times column sums.
ir::Kernel continued_products() {
  ExplicitKernel t;
  return t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    const auto all = [&](double value) { return (product * 0 + value).cast(bf16); };
    const Tile one = all(1), two = all(2);
    const Pending first = wgmma(one, slot[0]);
    const Pending second = wgmma(two, slot[0], first);
    const Pending third = wgmma(all(4), slot[0], second);
    const Tile sums = wait(third);
    const Tile seven = wait(wgmma((one.cast(f32) * 3 + two.cast(f32) * 2).cast(bf16), slot[0]));
    t.ring.release(slot);
    t.save(product + (sums - seven));
  });
}

// The rule of pinned registers sees each one that a fence or the only wait for it does not name.
TEST(BufferiseTest, RegistersThatAreNotPinnedAreFound) {
  const ir::Kernel machine = continued_products();
  std::size_t number = 0, of_fences = 0, of_waits = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    const std::size_t at = number++;
    if (o.op != ir::Op::wgmma_fence && o.op != ir::Op::wgmma_wait) return;
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      ir::Kernel changed = machine;
      std::size_t other = 0;
      ir::for_each(changed.body, [&](ir::Operation& each) {
        if (other++ == at) each.operands.erase(each.operands.begin() + static_cast<int>(i));
      });
      const bool is_found = !test::unpinned_registers(changed).empty();
      (o.op == ir::Op::wgmma_fence ? of_fences : of_waits) += is_found;
    }
  });
  // A fence names the result, and the operand of four of the five products. What two waits name is
  // pinned without one of them.
  EXPECT_EQ(of_fences, 9u);
  EXPECT_GT(of_waits, 3u);
}

// They are three groups and one wait, which hands back the registers that all of them read.
TEST(BufferiseTest, ProductsOfRegistersContinueEachOtherInFlight) {
  const ir::Kernel machine = continued_products();
  expect_multiple(machine, 1);
  std::vector<std::size_t> handed_back;
  std::vector<std::int64_t> left;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::wgmma_wait) return;
    handed_back.push_back(o.operands.size());
    left.push_back(o.attributes.integer(ir::Key::count));
  });
  // Those of A B^T alone, of the sum with its three factors, and of the last product with its own.
  EXPECT_EQ(handed_back, (std::vector<std::size_t>{1, 4, 2})) << ir::to_text(machine);
  EXPECT_EQ(left, (std::vector<std::int64_t>{0, 0, 0}));
}

// Around a loop: the next factor is made once the product before is done, to which it adds.
TEST(BufferiseTest, ProductsOfRegistersContinueAroundALoop) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile product = wait(t.product(slot));
    Var level{product * 0 + 1};
    Cell<Pending> sum(as_pending(zeros({64, 64})));
    for (Index i : range(3)) {
      (void)i;
      const Pending before = sum;
      retire(before);
      const Tile factor = Tile(level).cast(bf16);
      level = level * 2;
      sum = wgmma(factor, slot[0], before);
    }
    const Tile sums = wait(sum);
    const Tile seven = wait(wgmma((product * 0 + 7).cast(bf16), slot[0]));
    t.ring.release(slot);
    t.save(product + (sums - seven));
  });
  expect_multiple(machine, 1);
}

// Whichever of the waits is left out, the machine tells what is in flight.
TEST(BufferiseTest, ARegisterOperandThatIsUsedInFlightIsFound) {
  ir::Kernel machine = continued_products();
  int wait = 0;
  const std::function<void(ir::Block&)> leave_out = [&](ir::Block& block) {
    for (ir::Operation& o : block.body) {
      for (ir::Block& inner : o.blocks) leave_out(inner);
    }
    block.body.erase(std::remove_if(block.body.begin(), block.body.end(),
                                    [&](const ir::Operation& o) {
                                      return o.op == ir::Op::wgmma_wait && ++wait == 2;
                                    }),
                     block.body.end());
  };
  leave_out(machine.body);
  const test::ExplicitResult result = test::run(machine);
  ASSERT_FALSE(result.faults.empty());
  EXPECT_EQ(result.faults[0].kind, "wgmma");
  EXPECT_NE(result.faults[0].message.find("is in flight as"), std::string::npos)
      << result.faults[0].message;
}

TEST(BufferiseTest, RowSumsOfOneLoop) {
  ExplicitKernel t(3);
  const ir::Kernel machine = t.lower([&] {
    Var sum{zeros({64, 1})}, last{zeros({64, 64})};
    for (Index i : range(3)) {
      (void)i;
      const Slot slot = t.ring.consume();
      const Tile s = wait(t.product(slot));
      t.ring.release(slot);
      sum = sum + reduce_sum(s, 1);
      last = s;
    }
    t.save(Tile(last) + (sum - reduce_sum(last, 1) * 3));
  });
  expect_multiple(machine, 1);
}

// A partial sum scales a tile that is not one: it is completed first.
TEST(BufferiseTest, ARowSumScalesATile) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile s = wait(t.product(slot));
    t.ring.release(slot);
    const Tile ones = s * 0 + 1;
    t.save(s * reduce_sum(ones, 1));
  });
  expect_multiple(machine, 64);
}

TEST(BufferiseTest, ATileThatNoProductDetermines) {
  ExplicitKernel t;
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile a = load(slot[0]).cast(f32), b = load(slot[1]).cast(f32);
    t.ring.release(slot);
    t.save(a * 2 + b);
  });
  const test::ExplicitResult result = test::run(machine);
  EXPECT_TRUE(result.faults.empty());
  const HostTensor a = HostTensor::random_normal(bf16, {64, 64}, 11);
  const HostTensor b = HostTensor::random_normal(bf16, {64, 64}, 12);
  for (std::int64_t i = 0; i < 64 * 64; ++i) {
    ASSERT_FLOAT_EQ(result.c.flat(i), a.flat(i) * 2 + b.flat(i)) << i;
  }
}

TEST(BufferiseTest, ThroughSharedMemoryAndBack) {
  ExplicitKernel t;
  SharedTile stage(t.kernel, "stage", f32, 64, 64);
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile s = wait(t.product(slot));
    t.ring.release(slot);
    store(stage, s * 2);
    warp_sync();
    t.save(load(stage) + s);
  });
  expect_multiple(machine, 3);
}

// A warpgroup's result goes to shared memory turned round, and comes back so: by matrices, of which
// the last pair stands alone.
TEST(BufferiseTest, TransposedThroughSharedMemoryAndBack) {
  for (const int rows : {64, 40, 8}) {
    ExplicitKernel t;
    SharedTile stage(t.kernel, "stage", bf16, rows, 64);
    NamedBarrier together(t.kernel, 128);
    const ir::Kernel machine = t.lower([&] {
      const Slot slot = t.ring.consume();
      const Tile s = wait(t.product(slot));
      t.ring.release(slot);
      store(stage.T(), s.slice({0, 0}, {64, rows}).cast(bf16));
      together.sync();
      // Row r of the stage is column r of the product.
      store(t.C(t.rows.block(0, rows), all), load(stage).cast(f32));
    });
    int turned = 0, pairs = 0;
    ir::for_each(machine.body, [&](const ir::Operation& o) {
      if (o.op != ir::Op::store_matrix) return;
      turned += o.attributes.integer_or(ir::Key::transposed, 0) == 1;
      pairs += o.attributes.integer_or(ir::Key::count, 4) == 2;
    });
    EXPECT_EQ(turned, (rows + 15) / 16);
    EXPECT_EQ(pairs, rows % 16 == 8);
    EXPECT_EQ(count(machine, ir::Op::store_elements), 0);
    const test::ExplicitResult result = test::run(machine);
    for (const simulator::Fault& fault : result.faults) ADD_FAILURE() << fault.message;
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < rows; ++j) {
        const double right = result.product[i * 64 + j];
        ASSERT_NEAR(result.c.at({j, i}), right, 0.01 * std::abs(right) + 1e-3) << i << ", " << j;
      }
    }
  }
}

TEST(BufferiseTest, LoadedTransposed) {
  ExplicitKernel t;
  SharedTile stage(t.kernel, "stage", bf16, 64, 64);
  NamedBarrier together(t.kernel, 128);
  const ir::Kernel machine = t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile s = wait(t.product(slot));
    t.ring.release(slot);
    store(stage.T(), s.cast(bf16));
    together.sync();
    t.save(load(stage.T()).cast(f32) - s.cast(bf16).cast(f32) + s);
  });
  EXPECT_EQ(count(machine, ir::Op::load_elements) + count(machine, ir::Op::store_elements), 0);
  expect_multiple(machine, 1);
}

// Neither moves a register: the store alone sees the elements elsewhere.
test::ExplicitResult rearranged(Tile (*rearrange)(const Tile&)) {
  test::ExplicitKernel t;
  return test::run(t.lower([&] {
    const Slot slot = t.ring.consume();
    const Tile s = wait(t.product(slot));
    t.ring.release(slot);
    t.save(rearrange(s));
  }));
}

TEST(BufferiseTest, TransposedAndReshapedTiles) {
  const test::ExplicitResult swapped = rearranged([](const Tile& s) { return s.T(); });
  const test::ExplicitResult same = rearranged([](const Tile& s) {
    return s.reshape({16, 4, 64}).reshape({1, 32, 128}).reshape({64, 64});
  });
  ASSERT_TRUE(swapped.faults.empty() && same.faults.empty());
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      ASSERT_NEAR(swapped.c.at({j, i}), swapped.product[i * 64 + j], 1e-3) << i << ", " << j;
      ASSERT_NEAR(same.c.at({i, j}), same.product[i * 64 + j], 1e-3) << i << ", " << j;
    }
  }
}

}  // namespace
}  // namespace tilewright::passes
