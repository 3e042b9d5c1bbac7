#include "analysis/repeated_stores.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

#include "common/error_text.h"
#include "tilewright/kernel.h"

namespace tilewright::analysis {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The axes of a grid of two along which what `body` stores to Y is stored again.
std::vector<std::size_t> axes_of(
    const std::function<void(const Tensor& X, const Tensor& Y, const Dim& rows, const Index& x,
                             const Index& y)>& body,
    bool inout = false) {
  Kernel kernel("stores");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", i32, {rows, 32});
  const Tensor Y = inout ? kernel.inout("Y", i32, {rows, 32}) : kernel.out("Y", i32, {rows, 32});
  const auto [x, y] = kernel.grid(ceil_div(rows, 16), 2);
  body(X, Y, rows, x, y);
  std::vector<std::size_t> axes;
  for (const RepeatedStore& store : repeated_stores(kernel.finish())) {
    EXPECT_EQ(store.tensor, 1u);
    axes.push_back(store.axis);
  }
  return axes;
}

TEST(RepeatedStores, AxesThatSayNothingOfThePlace) {
  const auto copy = [](const Tensor& X, const Tensor& Y, const Dim& rows, const Index& x,
                       const Index&) {
    store(Y(rows.block(x, 16), all), load(X(rows.block(x, 16), all)));
  };
  EXPECT_THAT(axes_of(copy), ElementsAre(1));
  EXPECT_THAT(axes_of(copy, /*inout=*/true), ElementsAre());
  EXPECT_THAT(axes_of([](const Tensor&, const Tensor& Y, const Dim&, const Index&, const Index&) {
                store(Y(0, all), zeros({32}, i32));
              }),
              ElementsAre(0, 1));
}

TEST(RepeatedStores, EveryWayToSayThePlace) {
  // By a start, a limit, a condition, a loop's variable, what a loop changes, a loaded number.
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim& rows, const Index& x, const Index& y) {
        store(Y(rows.block(2 * x + y, 8), all), zeros({8, 32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim&, const Index& x, const Index& y) {
        store(Y(Block(16 * x, 16, 16 * x + 16 * y), all), zeros({16, 32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim& rows, const Index& x, const Index& y) {
        when(y == 0, [&] { store(Y(rows.block(x, 16), all), zeros({16, 32}, i32)); });
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim&, const Index& x, const Index& y) {
        Cell<Index> last{0};
        for (Index i : range(x, x + y)) last = i;
        store(Y(x * last, all), zeros({32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim&, const Index& x, const Index& y) {
        Cell<Index> place{x};
        for ([[maybe_unused]] Index i : range(4)) place = place + y;
        store(Y(x * place, all), zeros({32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim&, const Index& x, const Index& y) {
        Cell<Index> place{1};
        Cell<Condition> more(true);
        repeat_while(more, [&] {
          place = place + 1;
          more = place < y;
        });
        store(Y(x * place, all), zeros({32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor& X, const Tensor& Y, const Dim&, const Index& x, const Index&) {
        store(Y(x * load_index(X(x, 0)), all), zeros({32}, i32));
      }),
      ElementsAre());
  EXPECT_THAT(
      axes_of([](const Tensor& X, const Tensor& Y, const Dim&, const Index& x, const Index&) {
        Cell<Index> last{x};
        for (Index i : range(load_index(X(0, 0)))) last = x + i;
        store(Y(x * last, all), zeros({32}, i32));
      }),
      ElementsAre());
}

// A loop may turn no time.
TEST(RepeatedStores, LoopsAreLeftOut) {
  EXPECT_THAT(
      axes_of([](const Tensor&, const Tensor& Y, const Dim& rows, const Index&, const Index&) {
        for ([[maybe_unused]] Index i : range(rows / 16)) store(Y(0, all), zeros({32}, i32));
      }),
      ElementsAre());
}

// A limit that is not the tensor's end may be 0 while the tensor has elements.
TEST(RepeatedStores, StoresOfNothingAreLeftOut) {
  const auto axes_of_limit = [](bool is_end) {
    Kernel kernel("stores");
    const Dim rows = kernel.dim("rows"), written = kernel.dim("written");
    const Tensor Y = kernel.out("Y", i32, {rows, 32});
    kernel.in("X", i32, {written, 32});
    const auto [x, y] = kernel.grid(ceil_div(rows, 16), 2);
    const Block block = is_end ? rows.block(x, 16) : written.block(x, 16);
    store(Y(block, all), zeros({16, 32}, i32));
    std::vector<std::size_t> axes;
    for (const RepeatedStore& each : repeated_stores(kernel.finish())) axes.push_back(each.axis);
    return axes;
  };
  EXPECT_THAT(axes_of_limit(true), ElementsAre(1));
  EXPECT_THAT(axes_of_limit(false), ElementsAre());
}

// Where the first block begins a launch knows whether it stores anything. Of dims nobody knows it.
TEST(RepeatedStores, StartsBehindTheEnd) {
  using Starts = std::vector<std::vector<std::int64_t>>;  // of each axis of the grid
  const auto starts_of = [](const auto& start) {
    Kernel kernel("stores");
    const Dim rows = kernel.dim("rows"), written = kernel.dim("written");
    const Tensor Y = kernel.out("Y", i32, {rows, 32});
    kernel.in("X", i32, {written, 32});
    const auto [x, y] = kernel.grid(2, 2);
    const Index first = start(Index(written), x, y);
    store(Y(Block(first, 4, Index(rows)), Block(0, 16, 16)), zeros({4, 16}, i32));
    Starts starts;
    for (const RepeatedStore& each : repeated_stores(kernel.finish())) {
      starts.push_back(each.starts);
    }
    return starts;
  };
  using I = const Index&;
  EXPECT_EQ(starts_of([](I, I, I) { return Index(5); }), Starts({{5, 0}, {5, 0}}));
  EXPECT_EQ(starts_of([](I, I, I) { return Index(-3); }), Starts({{-3, 0}, {-3, 0}}));
  EXPECT_EQ(starts_of([](I, I, I) { return Index(-4); }), Starts());
  EXPECT_EQ(starts_of([](I written, I, I) { return written; }), Starts());
  EXPECT_EQ(starts_of([](I, I x, I y) { return 8 * x + 4 * y; }), Starts());
  EXPECT_EQ(starts_of([](I, I x, I) { return 4 * x; }), Starts({{0, 0}}));
  EXPECT_EQ(starts_of([](I, I x, I) { return 8 + 4 * (x / 2); }), Starts({{8, 0}}));
  EXPECT_EQ(starts_of([](I written, I x, I) { return x * written; }), Starts({{0, 0}}));
  EXPECT_EQ(starts_of([](I written, I x, I) { return x + written; }), Starts());
}

// From row 8 on, up to row 8 or 9.
TEST(RepeatedStores, LimitsAtTheStartAreLeftOut) {
  const auto axes_up_to = [](int limit) {
    return axes_of([limit](const Tensor&, const Tensor& Y, const Dim&, const Index&, const Index&) {
      store(Y(Block(8, 4, limit), all), zeros({4, 32}, i32));
    });
  };
  EXPECT_THAT(axes_up_to(8), ElementsAre());
  EXPECT_THAT(axes_up_to(9), ElementsAre(0, 1));
}

TEST(RepeatedStores, ALaunchThatMakesOne) {
  const std::vector<RepeatedStore> stores = {{{"own.cpp", 7}, 1, 2, {3}}};
  const auto launch = [&](const std::vector<std::int64_t>& grid, std::int64_t rows) {
    check_repeated_stores(stores, grid, {{"X", i32, {8}, {1}}, {"Y", i32, {rows}, {1}}});
  };
  EXPECT_NO_THROW(launch({4, 4, 1}, 8));
  EXPECT_NO_THROW(launch({4, 4, 0}, 8));
  EXPECT_NO_THROW(launch({4, 0, 3}, 8));
  EXPECT_NO_THROW(launch({4, 4, 3}, 0));
  EXPECT_NO_THROW(launch({4, 4, 3}, 3));
  for (const std::int64_t blocks : {2, 3}) {
    EXPECT_THAT(test::usage_error_of([&] {
                  launch({4, 4, blocks}, 4);
                }),
                AllOf(HasSubstr("own.cpp:7: error: store: all " + std::to_string(blocks) +
                                " blocks along axis 2 of the grid store the same elements of Y"),
                      HasSubstr("fix: ")));
  }
}

}  // namespace
}  // namespace tilewright::analysis
