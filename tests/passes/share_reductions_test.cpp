#include "passes/share_reductions.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "passes/assign_layouts.h"
#include "passes/explicit_kernel.h"
#include "passes/pass_case.h"

namespace tilewright::passes {
namespace {

// %20 is a product's result, whose rows lie in the four warps of each group.
const std::string kResult =
    "    %10: i32 = constant {value = 0}\n"
    "    %12: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 0}\n"
    "    %13: view<bf16, 64x64> = view %3, %10, %10 {column = 0, transposed = 1}\n"
    "    %19: pending<f32, 64x64> = wgmma %12, %13\n"
    "    %20: tile<f32, 64x64> = wait %19\n"
    "    %21: tile<f32, 64x32> = slice %20 {offsets = [0, 8]}\n";

// The reductions of a role of two warpgroups.
std::vector<ir::Operation> shared(const std::string& body) {
  std::string text = test::role_kernel(kResult + body);
  text.replace(text.find("warps = 4"), 9, "warps = 8");
  text.replace(text.find("threads 128"), 11, "threads 256");
  ir::Kernel kernel = test::parsed(text);
  assign_layouts(kernel);
  share_reductions(kernel);
  std::vector<ir::Operation> reductions;
  ir::for_each(kernel.body, [&](const ir::Operation& o) {
    if (o.op == ir::Op::reduce) reductions.push_back(o);
  });
  return reductions;
}

// Each warpgroup has a barrier, behind those that the author took.
TEST(ShareReductionsTest, BarriersAreTheirOwn) {
  const std::string reduce = "    %22: tile<f32, 1x64> = reduce %20 {function = max, axis = 0";
  const auto first = [](const ir::Operation& o) { return o.attributes.integer(ir::Key::first); };
  EXPECT_EQ(first(shared(reduce + "}\n")[0]), 1);
  EXPECT_EQ(first(shared("    named_sync %2 {first = 1, threads = 128, count = 2}\n" + reduce +
                         "}\n")[0]),
            3);
  const std::vector<ir::Operation> two = shared(
      reduce + "}\n    %23: tile<f32, 1x64> = reduce %20 {function = max, axis = 0, count = 2}\n");
  EXPECT_EQ(first(two[0]), 1);
  EXPECT_EQ(first(two[1]), 3);
}

// Where warpgroups meet they find each other's parts: of one shape, in one place.
TEST(ShareReductionsTest, GroupsMeetInAPlaceForEachShape) {
  const auto reduce = [](const std::string& result, const std::string& from, int columns) {
    return "    " + result + ": tile<f32, 1x" + std::to_string(columns) + "> = reduce " + from +
           " {function = max, axis = 0, count = 2}\n";
  };
  const std::vector<ir::Operation> all =
      shared(reduce("%22", "%20", 64) + reduce("%23", "%21", 32) + reduce("%24", "%20", 64));
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].operands[1], all[2].operands[1]);
  EXPECT_NE(all[0].operands[1], all[1].operands[1]);
  EXPECT_EQ(all[0].attributes.integer(ir::Key::first), all[1].attributes.integer(ir::Key::first));
}

// A place is written once outside of loops: nobody reads it before. In a loop all have read the
// last turn's parts before the next one's are written.
TEST(ShareReductionsTest, WarpsMeetAsOftenAsTheyHaveTo) {
  const auto meetings = [](bool in_loop) {
    test::ExplicitKernel k;
    const ir::Kernel machine = k.lower([&] {
      const Slot slot = k.ring.consume();
      const Tile product = wait(k.product(slot));
      k.ring.release(slot);
      Var most{reduce_max(product, 0)};
      if (in_loop) {
        most = zeros({1, 64});
        for ([[maybe_unused]] Index i : range(2)) most = most + reduce_max(product + most, 0);
      }
      k.save(product + most);
    });
    int count = 0;
    ir::for_each(machine.body,
                 [&](const ir::Operation& o) { count += o.op == ir::Op::named_sync; });
    return count;
  };
  EXPECT_EQ(meetings(false), 1);
  EXPECT_EQ(meetings(true), 2);
}

}  // namespace
}  // namespace tilewright::passes
