#include "analysis/extents.h"

#include <gtest/gtest.h>

#include "ir/ir.h"
#include "tilewright/kernel.h"

namespace tilewright::analysis {
namespace {

// What ends in the outer loop alone is carried into the inner one, and round both.
TEST(Extents, AreCarriedThroughLoopsInLoops) {
  Kernel kernel("carried");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 64}), Y = kernel.out("Y", f32, {n, 64});
  kernel.grid(1);
  const Block rows = n.block(0, 64);
  Var a{zeros({64, 64})};
  for ([[maybe_unused]] Index i : range(3)) {
    Var b{zeros({64, 64})};
    for ([[maybe_unused]] Index j : range(3)) {
      Var c{zeros({64, 64})};
      for ([[maybe_unused]] Index k : range(3)) c = c + b;
      b = c + a;
    }
    a = b + load(X(rows, all));
  }
  store(Y(rows, all), a);
  const ir::Kernel traced = kernel.finish();
  const Extents extents(traced);
  int sums = 0;
  ir::for_each(traced.body, [&](const ir::Operation& o) {
    if (o.op != ir::Op::add || !traced.type(o.results[0]).is_tile()) return;
    ++sums;
    EXPECT_FALSE(extents.of(o.results[0], 0).empty()) << sums;
  });
  EXPECT_EQ(sums, 3);
}

}  // namespace
}  // namespace tilewright::analysis
