#include "analysis/extents.h"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

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

// The operation of the kernel's `number`-th access of the kind.
const ir::Operation& access(const ir::Kernel& kernel, ir::Op op, int number = 0) {
  const ir::Operation* found = nullptr;
  ir::for_each(kernel.body, [&](const ir::Operation& o) {
    if (o.op == op && number-- == 0) found = &o;
  });
  return *found;
}

// What a kernel stores, by how it is made of the rows of X that exist: {64, 8} from row 64 i on.
Extents::Bounds stored(const std::function<Tile(const Tile&)>& make, std::size_t axis = 0) {
  Kernel kernel("made");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 8});
  const auto [i] = kernel.grid(ceil_div(n, 64));
  const Tile tile = make(load(X(n.block(i, 64), all)));
  std::vector<Dim> shape;
  std::vector<Selector> whole;
  for (const int size : tile.shape()) {
    shape.emplace_back(size);
    whole.emplace_back(all);
  }
  const Tensor Y = kernel.out("Y", f32, shape);
  store(TensorView(Y.handle(), whole, here()), tile);
  const ir::Kernel traced = kernel.finish();
  return Extents(traced).of(access(traced, ir::Op::store).operands[1], axis);
}

TEST(Extents, FollowPartsAndShapes) {
  const auto only = [](const Extents::Bounds& bounds) {
    EXPECT_EQ(bounds.size(), 1u);
    return bounds.empty() ? Extents::Bound{} : *bounds.begin();
  };
  const Extents::Bound as_loaded = only(stored([](const Tile& x) { return x + 1; }));
  EXPECT_EQ(as_loaded.factor, 1);
  EXPECT_EQ(as_loaded.offset, 0);
  EXPECT_TRUE(stored([](const Tile& x) { return x + 1; }, 1).empty());
  // Rows 24 to 47, and of these 8 to 15.
  const auto part = [](const Tile& x) { return x.slice({24, 0}, {24, 8}); };
  EXPECT_EQ(only(stored(part)).offset, 24);
  EXPECT_EQ(only(stored([&](const Tile& x) { return part(x).slice({8, 0}, {8, 8}); })).offset, 32);
  // As elements in a row, and as rows of another length: these are cut where an element's row is.
  const Extents::Bound elements = only(stored([&](const Tile& x) {
    return part(x).reshape({192, 1});
  }));
  EXPECT_EQ(elements.factor, 8);
  EXPECT_EQ(elements.offset, 192);
  EXPECT_TRUE(stored([&](const Tile& x) { return x.reshape({32, 16}); }).empty());
  EXPECT_TRUE(stored([&](const Tile& x) { return part(x).reshape({12, 16}); }).empty());
  // Of elements that follow each other, from the middle of a row on.
  EXPECT_TRUE(stored([&](const Tile& x) {
                return x.reshape({512, 1}).slice({4, 0}, {496, 1}).reshape({62, 8});
              }).empty());
  // What a product adds to ends where it ends.
  EXPECT_EQ(stored([&](const Tile& x) {
              return dot(zeros({64, 64}), zeros({64, 8}), x);
            }).size(),
            1u);
  // A stretched axis is as long as the other operand says.
  EXPECT_EQ(stored([&](const Tile& x) { return x + full({1, 8}, 1.0); }).size(), 1u);
}

// A row that exists or not says nothing of the rows that it is added to.
TEST(Extents, OfAnAxisThatIsStretched) {
  Kernel kernel("stretched");
  const Dim n = kernel.dim("n"), m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {n, 8}), Y = kernel.out("Y", f32, {64, 8});
  const auto [i] = kernel.grid(1);
  store(Y(all, all), zeros({64, 8}) + load(X(Block(i, 1, Index(m)), all)));
  const ir::Kernel traced = kernel.finish();
  const Extents extents(traced);
  EXPECT_FALSE(extents.of(access(traced, ir::Op::load).results[0], 0).empty());
  EXPECT_TRUE(extents.of(access(traced, ir::Op::store).operands[1], 0).empty());
}

// A block that ends exactly with its axis exists whole, one more row does not.
TEST(Extents, OfBlocksThatEndWithTheAxis) {
  Kernel kernel("whole");
  const Tensor X = kernel.in("X", f32, {96, 8}), Y = kernel.out("Y", f32, {32, 8});
  kernel.grid(1);
  const Dim rows = 96;
  store(Y(all, all), load(X(rows.block(2, 32), all)) + load(X(Block(65, 32, Index(96)), all)));
  const ir::Kernel traced = kernel.finish();
  const Extents extents(traced);
  EXPECT_TRUE(extents.of(access(traced, ir::Op::load, 0).results[0], 0).empty());
  EXPECT_EQ(extents.of(access(traced, ir::Op::load, 1).results[0], 0).size(), 1u);
}

// What a copy of boxes clips as the access says.
TEST(Extents, BoxesThatCopiesClip) {
  Kernel kernel("boxes");
  const Dim n = kernel.dim("n"), m = kernel.dim("m");
  const Tensor X = kernel.inout("X", f32, {n, m, 64});
  const Tensor W = kernel.inout("W", f32, {n, m, 2, 2, 64});
  const auto [i] = kernel.grid(ceil_div(n, 64));
  const auto early = [&](const Index& start, int size) { return Block(start, size, start + 3); };
  const Index unknown = i * 3 - 1;
  const Tile zero = zeros({8, 8, 64});
  store(X(n.block(i, 8), m.block(0, 8), all), zero);        // 0: ends with its tensor
  store(X(early(i, 8), m.block(0, 8), all), zero);          // 1: on one axis
  store(X(early(i, 8), early(i, 8), all), zero);            // 2: on two
  store(X(0, 0, early(i, 64)), zeros({64}));                // 3: on the last one
  store(X(early(unknown, 8), m.block(0, 8), all), zero);    // 4: and may begin before its tensor
  store(W(early(i, 8), m.block(0, 8), 0, 0, all), zero);    // 5: of five axes
  store(X(Block(i, 8, Index(m)), 0, all), zeros({8, 64}));  // 6: with another dim
  store(X(n.block(i, 8), Block(unknown, 8, Index(m)), all),
        zero);                                                    // 7: ends with it, begins before
  store(X(early(i, 8), Block(unknown, 8, Index(m)), all), zero);  // 8: ends on another axis
  const ir::Kernel traced = kernel.finish();
  const Extents extents(traced);
  for (int number = 0; number < 6; ++number) {
    const ir::Operation& each = access(traced, ir::Op::store, number);
    EXPECT_EQ(extents.clips_boxes(each), number <= 1) << number;
    EXPECT_EQ(extents.reaches_out_twice(each), number == 4) << number;
  }
  EXPECT_FALSE(extents.ends_earlier(access(traced, ir::Op::store, 0), 0));
  EXPECT_TRUE(extents.ends_earlier(access(traced, ir::Op::store, 1), 0));
  EXPECT_TRUE(extents.ends_earlier(access(traced, ir::Op::store, 6), 0));
  // A store by a copy begins in its tensor. So does a load that ends earlier, on every axis.
  EXPECT_FALSE(extents.clips_boxes(access(traced, ir::Op::store, 7)));
  EXPECT_FALSE(extents.reaches_out_twice(access(traced, ir::Op::store, 7)));
  EXPECT_TRUE(extents.reaches_out_twice(access(traced, ir::Op::store, 8)));
}

}  // namespace
}  // namespace tilewright::analysis
