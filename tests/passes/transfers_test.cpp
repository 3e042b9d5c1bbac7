#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ir/text.h"
#include "passes/explicit_kernel.h"
#include "tilewright/hopper.h"

// Tiles that pass through shared memory come back as they were: by matrices of 8 x 8 or element by
// element, whole or in parts that begin at a panel, as they lie or transposed.
namespace tilewright::passes {
namespace {

using test::argument;

constexpr int kMovedRows = 64;

// X goes into one place of shared memory, from there to another, and from that to Y; `columns` of
// each step at a time, of as many as there are.
struct Steps {
  int put, pass, take;
  bool transposed = false;  // when it is taken
};
Kernel moved(DType dtype, int columns, const Steps& steps) {
  Kernel kernel("moved");
  const int rows = kMovedRows;
  const Tensor X = kernel.in("X", dtype, {rows, columns});
  const Tensor Y = steps.transposed ? kernel.out("Y", dtype, {columns, rows})
                                    : kernel.out("Y", dtype, {rows, columns});
  kernel.ctas(1);
  const SharedTile first(kernel, "first", dtype, rows, columns);
  const SharedTile second(kernel, "second", dtype, rows, columns);
  NamedBarrier all_warps(kernel, 128);
  const auto part = [](const Dim& dim, int begin, int size) {
    return dim.block(begin / size, size);
  };
  kernel.roles({role("move", warpgroups(1), registers(240), [&] {
    for (int at = 0; at < columns; at += steps.put) {
      store(first.columns(at, steps.put), load(X(all, part(columns, at, steps.put))));
    }
    all_warps.sync();
    for (int at = 0; at < columns; at += steps.pass) {
      store(second.columns(at, steps.pass), load(first.columns(at, steps.pass)));
    }
    all_warps.sync();
    for (int at = 0; at < columns; at += steps.take) {
      const SharedView view = second.columns(at, steps.take);
      if (steps.transposed) {
        store(Y(part(columns, at, steps.take), all), load(view.T()));
      } else {
        store(Y(all, part(columns, at, steps.take)), load(view));
      }
    }
  })});
  return kernel;
}

void expect_moved(DType dtype, int columns, const Steps& steps) {
  SCOPED_TRACE(std::to_string(columns) + " columns of " + std::string(name_of(dtype)));
  ir::Kernel machine = moved(dtype, columns, steps).finish();
  lower_to_machine(machine);
  HostTensor x = HostTensor::random_normal(dtype, {kMovedRows, columns}, 1);
  HostTensor y = HostTensor::poisoned(dtype, steps.transposed
                                                 ? std::vector<std::int64_t>{columns, kMovedRows}
                                                 : std::vector<std::int64_t>{kMovedRows, columns});
  Arguments arguments;
  arguments.tensors = {argument("X", x), argument("Y", y)};
  const simulator::MachineReport report = simulator::run_machine(machine, arguments);
  for (const simulator::Fault& fault : report.faults) ADD_FAILURE() << fault.message;
  for (std::int64_t row = 0; row < kMovedRows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const double got = steps.transposed ? y.at({column, row}) : y.at({row, column});
      ASSERT_EQ(got, x.at({row, column})) << row << ", " << column << "\n" << ir::to_text(machine);
    }
  }
}

TEST(TransfersTest, WholeTiles) {
  for (const int columns : {8, 16, 24, 32, 64, 128}) {
    expect_moved(bf16, columns, {columns, columns, columns});
    expect_moved(f32, columns, {columns, columns, columns});
  }
}

TEST(TransfersTest, PartsThatBeginAtAPanel) {
  expect_moved(bf16, 128, {64, 128, 128});
  expect_moved(bf16, 128, {128, 64, 128});
  expect_moved(bf16, 128, {128, 128, 64});
  expect_moved(f32, 64, {32, 64, 64});
  expect_moved(f32, 64, {64, 32, 64});
  expect_moved(f32, 64, {64, 64, 32});
}

// What a product has left, with its axes swapped, beside the same times 2: each in a panel.
TEST(TransfersTest, TransposedProductsInPartsThatBeginAtAPanel) {
  for (const int taken : {0, 64}) {
    test::ExplicitKernel e;
    const SharedTile turned(e.kernel, "turned", bf16, 64, 128);
    NamedBarrier all_warps(e.kernel, 128);
    const ir::Kernel machine = e.lower([&] {
      const Slot slot = e.ring.consume();
      const Tile sum = wait(e.product(slot));
      e.ring.release(slot);
      for (const int at : {0, 64}) {
        store(turned.columns(at, 64), (at == 0 ? sum : sum * 2).cast(bf16).T());
      }
      all_warps.sync();
      e.save(load(turned.columns(taken, 64)).cast(f32));
    });
    const test::ExplicitResult result = test::run(machine);
    for (const simulator::Fault& fault : result.faults) ADD_FAILURE() << fault.message;
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < 64; ++j) {
        const double sum = result.product[64 * i + j] * (taken == 0 ? 1 : 2);
        ASSERT_NEAR(result.c.at({j, i}), sum, 1e-3 + std::abs(sum) / 128) << i << ", " << j;
      }
    }
  }
}

TEST(TransfersTest, TransposedTiles) {
  expect_moved(bf16, 64, {64, 64, 64, true});
  expect_moved(f32, 64, {64, 64, 64, true});
  expect_moved(bf16, 128, {128, 64, 64, true});
}

}  // namespace
}  // namespace tilewright::passes
