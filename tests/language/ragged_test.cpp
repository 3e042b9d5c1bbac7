#include <gtest/gtest.h>

#include "ir/text.h"
#include "ir/verifier.h"
#include "language/misuse.h"
#include "tilewright/hopper.h"

// Packed axes and their sequences.
namespace tilewright {
namespace {

using test::misuse;

struct TracedRagged {
  Kernel kernel{"k"};
  Dim batch = kernel.dim("batch");
  Dim rows = kernel.dim("rows"), others = kernel.dim("others");
  Tensor X = kernel.in("X", bf16, {rows, 64});
  Tensor Y = kernel.out("Y", bf16, {rows, 64});
  Tensor Z = kernel.in("Z", bf16, {others, 64});
  Tensor offsets = kernel.in("offsets", i32, {batch + 1});
  Ragged ragged{rows, offsets};
};

TEST(RaggedErrors, ASequencesBlockOnAnotherAxis) {
  TracedRagged t;
  const Block block = t.ragged.of(0).block(0, 64);
  misuse("Z(",
         {"load: axis 0 of Z is others, and the block is of a sequence of rows", "Z is declared at",
          "fix: take the block of the sequence that the axis packs"},
         [&] { load(t.Z(block, all)); });
  misuse("Z(", {"and the block is of a sequence of rows"},
         [&] { load(t.Z(block.part(1, 16), all)); });
  EXPECT_NO_THROW(load(t.X(block, all)));
  EXPECT_NO_THROW(load(t.X(t.rows.block(0, 64), all)));
}

TEST(RaggedErrors, OffsetsAndIndices) {
  TracedRagged t;
  misuse("Ragged(", {"Ragged: X is no vector of i32", "fix: declare it as in(name, i32"},
         [&] { Ragged(t.rows, t.X); });
  misuse("load_index(", {"load_index: X is not indexed to an i32 element", "fix: "},
         [&] { load_index(t.X(0, 0)); });
  misuse("load_index(", {"load_index: offsets is not indexed to an i32 element"},
         [&] { load_index(t.offsets(t.batch.block(0, 4))); });
  misuse("block(", {"block: the size 0 is not positive"}, [&] { t.ragged.of(0).block(0, 0); });
}

// A copy of rows that end before the tensor: where, and of which map.
std::string copied(const std::function<Block(TracedRagged&)>& block) {
  TracedRagged t;
  t.kernel.ctas(1);
  Ring ring(t.kernel, "x", stages(1), {{bf16, 64, 64}});
  t.kernel.roles(
      {role("load", warps(1), registers(24),
            [&] { ring.produce([&](const Slot& slot) { tma_load(t.X(block(t), all), slot); }); }),
       role("store", warps(1), registers(24), [&] {
         const Slot slot = ring.consume();
         tma_store(t.Y(block(t), all), slot);
         bulk_commit();
         bulk_wait(0);
         ring.release(slot);
       })});
  ir::verify(t.kernel.finish());
  return ir::to_text(t.kernel.finish(), {.locations = false});
}

TEST(RaggedCopies, TakeARaggedMapWhereTheBlockEndsEarlier) {
  const std::string ragged = copied([](TracedRagged& t) { return t.ragged.of(1).block(2, 64); });
  EXPECT_NE(ragged.find("{name = \"X_64x64\", box = [64, 64], swizzle = 128, ragged = 0}"),
            std::string::npos)
      << ragged;
  EXPECT_NE(ragged.find("{name = \"Y_64x64\", box = [64, 64], swizzle = 128, ragged = 0}"),
            std::string::npos);
  const std::string whole = copied([](TracedRagged& t) { return t.rows.block(2, 64); });
  EXPECT_EQ(whole.find("ragged"), std::string::npos) << whole;
  // A part of a dimension that the author ends himself.
  const std::string own =
      copied([](TracedRagged& t) { return Block(Index(0), 64, Index(t.rows) - 3); });
  EXPECT_NE(own.find("ragged = 0"), std::string::npos);
}

TEST(RaggedCopies, OneAxisMayEndEarlier) {
  TracedRagged t;
  t.kernel.ctas(1);
  Ring ring(t.kernel, "x", stages(1), {{bf16, 64, 64}});
  misuse("tma_load(",
         {"on axis 1 the part of X ends before 64", "X is declared at",
          "the last axis of a copy ends with the tensor"},
         [&] {
           t.kernel.roles({role("load", warps(1), registers(24), [&] {
             ring.produce([&](const Slot& slot) {
               tma_load(t.X(t.rows.block(0, 64), Block(Index(0), 64, Index(60))), slot);
             });
           })});
         });
}

}  // namespace
}  // namespace tilewright
