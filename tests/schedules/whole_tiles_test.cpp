#include <gtest/gtest.h>

#include "common/schedules.h"
#include "ir/text.h"
#include "ir/verifier.h"
#include "schedules/empty_loops.h"
#include "tilewright/compile.h"
#include "tilewright/kernel.h"

// Tiles that every warpgroup has whole, and loops that never run.
namespace tilewright {
namespace {

// Beside products of two warpgroups' rows a tile is stored that both have: one of them stores it.
TEST(WholeTiles, OneWarpgroupStoresWhatAllHave) {
  for (const bool turned : {false, true}) {
    Kernel kernel("beside");
    const Tensor A = kernel.in("A", bf16, {128, 64}), B = kernel.in("B", bf16, {64, 64});
    const Tensor Y = kernel.out("Y", f32, {128, 64}), X = kernel.in("X", f32, {16, 32});
    const Tensor Z =
        kernel.out("Z", f32, turned ? std::vector<Dim>{32, 16} : std::vector<Dim>{16, 32});
    kernel.grid(1);
    store(Y(all, all), dot(load(A(all, all)), load(B(all, all))));
    const Tile twice = load(X(all, all)) * 2;
    store(Z(all, all), turned ? twice.T() : twice);
    HostTensor a = HostTensor::random_normal(bf16, {128, 64}, 1),
               b = HostTensor::random_normal(bf16, {64, 64}, 2),
               x = HostTensor::random_normal(f32, {16, 32}, 3),
               y = HostTensor::poisoned(f32, {128, 64}),
               z = turned ? HostTensor::poisoned(f32, {32, 16})
                          : HostTensor::poisoned(f32, {16, 32});
    ASSERT_NO_THROW(compile(kernel, "sim:sm_90a").run({ref(a), ref(b), ref(y), ref(x), ref(z)}));
    for (std::int64_t i = 0; i < 16; ++i) {
      for (std::int64_t j = 0; j < 32; ++j) {
        ASSERT_EQ(turned ? z.at({j, i}) : z.at({i, j}), 2 * x.at({i, j})) << i << ", " << j;
      }
    }
  }
}

// What a loop without turns carries is, in its place, what it began with.
TEST(WholeTiles, LoopsThatNeverRunLeaveWhatTheyBeganWith) {
  const std::string begin =
      "kernel \"loops\" tile\nout Y: f32[64] = %0\ngrid (1)\nbody (%1: i32) {\n"
      "  %2: i32 = constant {value = 4}\n  %3: i32 = constant {value = 1}\n"
      "  %4: f32 = constant {value = 5.0}\n  %5: f32 = constant {value = 7.0}\n";
  const auto end = [](const std::string& value) {
    return "  %20: tile<f32, 64> = splat " + value +
           "\n  %21: i32 = constant {value = 0}\n  %22: i32 = constant {value = 64}\n"
           "  store %0, %20, %21, %22 {sizes = [64]}\n}\n";
  };
  const std::string loop =
      "  %10: f32, %11: f32 = for_loop %2, %2, %3, %4, %5 (%6: i32, %7: f32, %8: f32) {\n"
      "    yield %8, %7\n  }\n";
  for (const auto& [result, initial] : {std::pair("%10", "%4"), std::pair("%11", "%5")}) {
    ir::Kernel kernel = ir::parse_text(begin + loop + end(result), "loops.tw");
    ir::verify(kernel);
    schedules::drop_empty_loops(kernel);
    ir::Kernel wanted = ir::parse_text(begin + end(initial), "loops.tw");
    ir::canonicalise(kernel);
    ir::canonicalise(wanted);
    EXPECT_EQ(ir::to_text(kernel, {.locations = false}), ir::to_text(wanted, {.locations = false}));
  }
}

}  // namespace
}  // namespace tilewright
