#include "compiler/additions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "simulator/red_tiles_kernel.h"
#include "simulator/tma_reduce_kernel.h"
#include "tilewright/hopper.h"
#include "tilewright/library.h"
#include "tilewright/ranks.h"

// What `explain` says of sums that are added in any order.
namespace tilewright {
namespace {

using testing::ElementsAre;

std::vector<std::string> additions_of(const Kernel& kernel) {
  std::vector<std::string> texts;
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  for (const compiler::Addition& each : compiler::additions_in(machine)) {
    EXPECT_GT(each.where.line, 0);
    texts.push_back(std::to_string(each.count) + " " + each.instruction + " to " + each.tensor);
  }
  return texts;
}

enum class As { product, fragments, columns_apart, pairs, halves_apart };

// A product's result of two parts of columns, added to memory part by part.
Kernel add_product(As how) {
  Kernel kernel("add_product");
  const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor sums = kernel.inout("sums", f32, {32, 128}), C = kernel.inout("C", f32, {64, 64});
  const Tensor apart = kernel.inout("apart", f32, {64, 64});
  const Tensor pairs = kernel.inout("pairs", bf16, {64, 64});
  const Tensor halves = kernel.inout("halves", f16, {64, 64});
  kernel.ctas(2);
  test::multiply_once(kernel, A, B, 64, 64, [&](const Tile& product) {
    if (how == As::product) atomic_add(C(all, all), product);
    if (how == As::columns_apart) atomic_add(apart(all, all), product.T());
    if (how == As::pairs) atomic_add(pairs(all, all), product.cast(bf16));
    if (how == As::halves_apart) atomic_add(halves(all, all), product.cast(f16).T());
    if (how != As::fragments) return;
    for (int part = 0; part < 2; ++part) {
      const Tile half = product.slice({0, 32 * part}, {64, 32});
      atomic_add(sums(Block(Index(16 * part), 16, Index(32)), all),
                 fragments(half).reshape({16, 128}));
    }
  });
  return kernel;
}

TEST(Additions, AsWideAsTheLayoutAllows) {
  EXPECT_THAT(additions_of(add_product(As::product)), ElementsAre("1 red.global.add.v2.f32 to C"));
  EXPECT_THAT(additions_of(add_product(As::fragments)),
              ElementsAre("2 red.global.add.v4.f32 to sums"));
  EXPECT_THAT(additions_of(add_product(As::columns_apart)),
              ElementsAre("1 red.global.add.f32 to apart"));
  EXPECT_THAT(additions_of(add_product(As::pairs)),
              ElementsAre("1 red.global.add.bf16x2 to pairs"));
  EXPECT_THAT(additions_of(add_product(As::halves_apart)),
              ElementsAre("1 red.global.add.f16 to halves"));
}

TEST(Additions, ByTmaToo) {
  EXPECT_THAT(additions_of(accumulate(f16, Reduction::add, 64)),
              ElementsAre("1 cp.reduce.async.bulk.tensor.add of f16 to Y"));
}

// A role of one warp adds to sums, and keeps what was there or does not.
Kernel add_in_order(DType dtype, bool keeps) {
  Kernel kernel("add_in_order");
  const Tensor sums = kernel.inout("sums", dtype, {4, 128});
  const Tensor old = kernel.out("old", dtype, {4, 128});
  const MemoryOrder order{Semantics::relaxed, Scope::gpu};
  kernel.ctas(2);
  kernel.roles({role("all", warps(1), registers(40), [&] {
    const Tile part = full({4, 128}, 1, dtype);
    if (!keeps) return red(sums(all, all), part, order);
    const Tile before = atom_add(sums(all, all), part, order);
    when(cta_index() == 0, [&] { store(old(all, all), before); });
  })});
  return kernel;
}

TEST(Additions, WhatSaysItsOrderIsAddedElementByElement) {
  EXPECT_THAT(additions_of(add_in_order(f32, false)), ElementsAre("1 red.global.add.f32 to sums"));
  EXPECT_THAT(additions_of(add_in_order(f32, true)), ElementsAre("1 atom.global.add.f32 to sums"));
  EXPECT_THAT(additions_of(add_in_order(bf16, true)),
              ElementsAre("1 atom.global.add.bf16x2 to sums"));
}

TEST(Additions, WhatNoOrderChangesIsNone) {
  EXPECT_THAT(additions_of(add_in_order(i32, true)), ElementsAre());
  EXPECT_THAT(additions_of(accumulate(f16, Reduction::min, 64)), ElementsAre());
  EXPECT_THAT(additions_of(accumulate(i32, Reduction::add, 32)), ElementsAre());
}

// What attention backward promises of its bits: in turns nothing is added in any order.
TEST(Additions, OfAttentionBackwardAreInOrder) {
  const LibraryKernel& entry = find_kernel("attention_backward");
  const auto orders = [&](const std::vector<std::string>& settings) {
    std::set<bool> found;
    const OptionValues options = resolve_options(entry, settings);
    const ir::Program program =
        build_program(entry, choose_schedule(entry, options, "sm_90a")).finish();
    for (const auto& kernel : program.kernels) {
      const ir::Kernel machine = compiler::compile_to_machine(*kernel, ir::default_target()).kernel;
      for (const compiler::Addition& each : compiler::additions_in(machine)) {
        found.insert(each.ordered);
      }
    }
    return found;
  };
  for (const char* dim : {"dim=64", "dim=128", "dim=192", "dim=256"}) {
    SCOPED_TRACE(dim);
    EXPECT_THAT(orders({dim, "schedule=ordered"}), ElementsAre(true));
    EXPECT_THAT(orders({dim, "schedule=atomic"}), ElementsAre(false));
  }
  EXPECT_THAT(orders({"kv_heads=1", "schedule=ordered"}), ElementsAre(true));
  EXPECT_THAT(orders({"kv_heads=1", "schedule=atomic"}), ElementsAre(false));
}

TEST(Additions, OfStoresThereAreNone) {
  Kernel kernel("store");
  const Tensor Y = kernel.out("Y", f32, {64, 64});
  kernel.grid(1);
  store(Y(all, all), full({64, 64}, 1));
  EXPECT_THAT(additions_of(kernel), ElementsAre());
}

}  // namespace
}  // namespace tilewright
