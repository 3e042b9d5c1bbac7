#include <gtest/gtest.h>

#include <functional>

#include "codegen/nvrtc_build.h"
#include "language/misuse.h"
#include "schedules/two_ways.h"
#include "tilewright/check.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"

// Plain kernels that no automatic schedule takes: each error names the line, the object, the values
// and a way out.
namespace tilewright {
namespace {

void refuses(const char* caret, const std::vector<std::string>& parts,
             const std::function<void(Kernel&)>& record) {
  test::misuse(caret, parts, [&] {
    Kernel kernel("refused");
    kernel.grid(1);
    record(kernel);
    compile(kernel, "sm_90a");
  });
}

TEST(Refusals, AnInnerDimensionThatProductsDoNotTake) {
  refuses("dot(",
          {"dot: k is 24 in a tile<bf16, 64x24> x b tile<bf16, 24x64>", "multiples of 16",
           "fix: load blocks of 32 along it: Dim(24).block(0, 32)"},
          [](Kernel& kernel) {
            const Tensor A = kernel.in("A", bf16, {64, 24}), B = kernel.in("B", bf16, {24, 64});
            const Tensor C = kernel.out("C", f32, {64, 64});
            store(C(all, all), dot(load(A(all, all)), load(B(all, all))));
          });
}

TEST(Refusals, AWidthThatProductsDoNotTake) {
  refuses("dot(",
          {"dot: n is 20 in a tile<bf16, 64x64> x b tile<bf16, 64x20>", "multiples of 8",
           "fix: load blocks of 24"},
          [](Kernel& kernel) {
            const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {20, 64});
            const Tensor C = kernel.out("C", f32, {64, 20});
            store(C(all, all), dot(load(A(all, all)), load(B(all, all)).T()));
          });
}

// Warps that decide each for itself would not all come to the product.
TEST(Refusals, AProductInAConditionThatEachWarpDecides) {
  using Ask = std::function<Condition(const Condition& first, const Tile& sums)>;
  const auto product = [](const Ask& ask) {
    return [ask](Kernel& kernel) {
      const Tensor A = kernel.in("A", bf16, {128, 64}), B = kernel.in("B", bf16, {64, 64});
      const Tensor C = kernel.out("C", f32, {128, 64});
      const Tile a = load(A(all, all)), b = load(B(all, all)).T();
      Var sum{dot(a, b)};
      const Condition first = Index(kernel.dim("step")) == 0;
      when(ask(first, sum), [&] { sum = dot(a, b, sum); });
      store(C(all, all), sum);
    };
  };
  const Ask asks[] = {
      [](const Condition&, const Tile& sums) { return any_nearby(sums > 0); },
      [](const Condition& first, const Tile& sums) { return first && any_nearby(sums > 0); },
      [](const Condition& first, const Tile& sums) { return any_nearby(sums > 0) || first; },
      [](const Condition&, const Tile& sums) { return !any_nearby(sums > 0); }};
  for (const Ask& ask : asks) {
    SCOPED_TRACE(&ask - asks);
    refuses("dot(", {"in a condition that each warp decides", "fix: ask any(...)"}, product(ask));
  }
  Kernel kernel("asked");
  kernel.grid(1);
  product([](const Condition& first, const Tile& sums) { return first && any(sums > 0); })(kernel);
  EXPECT_NO_THROW(compile(kernel, "sm_90a"));
}

// Which ptxas ends at, wherever else the kernel has room.
TEST(Refusals, AProductOfMoreRegistersThanAThreadHas) {
  const auto product = [](int rows, int columns) {
    return [rows, columns](Kernel& kernel) {
      const Tensor A = kernel.in("A", bf16, {rows, 64}), B = kernel.in("B", bf16, {columns, 64});
      const Tensor C = kernel.out("C", f32, {rows, columns});
      store(C(all, all), dot(load(A(all, all)), load(B(all, all)).T()));
    };
  };
  refuses("dot(",
          {"dot: 192 x 208 results take 104 registers of a thread beside 26 others",
           "with so many rows there are 128", "fix: use at most 200 columns, or fewer rows"},
          product(192, 208));
  refuses("dot(", {"256 x 144 results", "fix: use at most 136 columns"}, product(256, 144));
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const auto& [rows, columns] : {std::pair(192, 200), {256, 136}}) {
    Kernel kernel("widest");
    kernel.grid(1);
    product(rows, columns)(kernel);
    EXPECT_NO_THROW(compile(kernel, "sm_90a"));
  }
}

TEST(Refusals, ColumnsThatWarpgroupsCannotDivide) {
  const auto product = [](int columns) {
    return [columns](Kernel& kernel) {
      const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {64, columns});
      const Tensor C = kernel.out("C", f32, {64, columns});
      store(C(all, all), dot(load(A(all, all)), load(B(all, all))));
    };
  };
  refuses("dot(",
          {"dot: 272 columns over 2 warpgroups are 136 for each",
           "tile<bf16, 64x272> lies in panels of 16 columns",
           "fix: use a multiple of 128 columns, or at most 256"},
          product(272));
  refuses("dot(", {"320 columns over 2 warpgroups are 160 for each", "panels of 64"}, product(320));
  Kernel kernel("divided");
  kernel.grid(1);
  product(384)(kernel);
  EXPECT_NO_THROW(compile(kernel, "sm_90a"));
}

// What the error about k advises.
TEST(Refusals, ABlockBeyondTheDimensionIsTaken) {
  Kernel kernel("padded");
  const Tensor A = kernel.in("A", bf16, {64, 24}), B = kernel.in("B", bf16, {24, 64});
  const Tensor C = kernel.out("C", f32, {64, 64});
  kernel.grid(1);
  const Block depth = Dim(24).block(0, 32);
  store(C(all, all), dot(load(A(all, depth)), load(B(depth, all))));
  test::expect_two_ways(
      kernel,
      {HostTensor::random_normal(bf16, {64, 24}, 1), HostTensor::random_normal(bf16, {24, 64}, 2),
       HostTensor::poisoned(f32, {64, 64})},
      2, 1e-4);
}

// Two extents below 0 make a product above it: each is asked.
TEST(Refusals, AGridOfFewerThanNoBlocks) {
  for (const bool products : {false, true}) {
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      test::misuse(
          "Kernel kernel", {"shrunk: the grid has (n - 5) = -2 blocks", "fix: ", "max((n - 5), 0)"},
          [&] {
            Kernel kernel("shrunk");
            const Dim n = kernel.dim("n");
            const Tensor X = kernel.in("X", bf16, {n, 64}), Y = kernel.out("Y", f32, {64, 64});
            kernel.grid(n - 5, n - 4);
            const Tile x = load(X(n.block(0, 64), all));
            store(Y(all, all), products ? dot(x, x.T()) : x.cast(f32));
            HostTensor in = HostTensor::zeros(bf16, {3, 64}),
                       out = HostTensor::zeros(f32, {64, 64});
            compile(kernel, target).run({ref(in), ref(out)});
          });
    }
  }
}

TEST(Refusals, TilesInLoopsThatTheKernelEnds) {
  refuses("repeat_while",
          {"repeat_while: it assigns a tile, tile<f32, 64x64>", "fix: loop over a range"},
          [](Kernel& kernel) {
            const Tensor A = kernel.in("A", bf16, {64, 64}), C = kernel.out("C", f32, {64, 64});
            const Tile a = load(A(all, all));
            Var sum{zeros({64, 64})};
            Cell<Index> turn(0);
            Cell<Condition> going(true);
            repeat_while(going, [&] {
              sum = dot(a, a.T(), sum);
              turn = turn + 1;
              going = turn < 5;
            });
            store(C(all, all), sum);
          });
  refuses("repeat_while",
          {"repeat_while: it loads what products read", "fix: loop over a range, or load before"},
          [](Kernel& kernel) {
            const Tensor A = kernel.in("A", bf16, {5, 64, 64}), C = kernel.out("C", f32, {64, 64});
            Cell<Index> turn(0);
            Cell<Condition> going(true);
            repeat_while(going, [&] {
              const Tile a = load(A(turn, all, all));
              store(C(all, all), dot(a, a.T()));
              turn = turn + 1;
              going = turn < 5;
            });
          });
}

}  // namespace
}  // namespace tilewright
