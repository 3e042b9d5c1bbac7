#include <functional>
#include <string>
#include <vector>

#include "language/misuse.h"
#include "tilewright/hopper.h"
#include "tilewright/ranks.h"

// Misuse of additions from registers, and of what brings tiles into their order.
namespace tilewright {
namespace {

using test::misuse;

struct TracedSums {
  Kernel kernel{"k"};
  Dim rows = kernel.dim("rows");
  Tensor In = kernel.in("In", f32, {rows, 64});
  Tensor Out = kernel.out("Out", f32, {rows, 64});
  Tensor Sums = kernel.inout("Sums", f32, {rows, 64});
  Tensor Counted = kernel.inout("Counted", i32, {rows, 64});
  Block block = rows.block(0, 64);
};

// Raised by a statement in the body of a role.
void in_math(const std::string& caret, const std::vector<std::string>& parts,
             const std::function<void(TracedSums&)>& body) {
  misuse(caret, parts, [&] {
    TracedSums t;
    t.kernel.roles({role("math", warpgroups(1), registers(240), [&] { body(t); })});
  });
}

TEST(AtomicAddErrors, WhatIsNotReadAndWritten) {
  in_math("atomic_add(",
          {"atomic_add: In is not declared as Kernel::inout", "In is declared at",
           "fix: what is added to is read and written: declare it as inout"},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 64});
            atomic_add(t.In(t.block, all), tile);
          });
  in_math("atomic_add(",
          {"atomic_add: Out is not declared as Kernel::inout", "Out is declared at", "fix: "},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 64});
            atomic_add(t.Out(t.block, all), tile);
          });
}

TEST(AtomicAddErrors, DTypesAndShapes) {
  in_math("atomic_add(",
          {"atomic_add: there is no add of i32, but add of f32, bf16 and f16",
           "Counted is declared at", "fix: add to a tensor of f32"},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 64}, i32);
            atomic_add(t.Counted(t.block, all), tile);
          });
  in_math("atomic_add(",
          {"the tile is tile<bf16, 64x64>, the place in Sums is tile<f32, 64x64>",
           "the tile is computed at", "fix: add a tile of the view's shape and dtype"},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 64}, bf16);
            atomic_add(t.Sums(t.block, all), tile);
          });
  in_math("atomic_add(",
          {"the tile is tile<f32, 64x32>, the place in Sums is tile<f32, 64x64>", "fix: "},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 32});
            atomic_add(t.Sums(t.block, all), tile);
          });
}

TEST(OrderedTileErrors, DTypesAndShapes) {
  constexpr MemoryOrder kRelaxed{Semantics::relaxed, Scope::gpu};
  in_math("st(",
          {"st: the tile is tile<bf16, 64x64>, the place in Sums is tile<f32, 64x64>",
           "the tile is computed at", ".cast(dtype) converts"},
          [&](TracedSums& t) {
            const Tile tile = zeros({64, 64}, bf16);
            st(t.Sums(t.block, all), tile, kRelaxed);
          });
  in_math("red(",
          {"red: the tile is tile<f32, 64x32>, the place in Sums is tile<f32, 64x64>", "fix: "},
          [&](TracedSums& t) {
            const Tile tile = zeros({64, 32});
            red(t.Sums(t.block, all), tile, kRelaxed);
          });
}

TEST(AtomicAddErrors, OfOneLane) {
  in_math("atomic_add(",
          {"atomic_add: one lane is elected, and all lanes of a warp do this",
           "fix: call it before elect, or behind it"},
          [](TracedSums& t) {
            const Tile tile = zeros({64, 64});
            elect([&] { atomic_add(t.Sums(t.block, all), tile); });
          });
}

TEST(AtomicAddErrors, OutsideARole) {
  misuse("atomic_add(", {"\"k\" has a tile-level grid and explicit operations", "fix: "}, [] {
    TracedSums t;
    t.kernel.grid(1);
    const Tile tile = zeros({64, 64});
    atomic_add(t.Sums(t.block, all), tile);
  });
  misuse("", {"\"k\" has no roles", "fix: call Kernel::roles"}, [] {
    TracedSums t;
    t.kernel.ctas(1);
    const Tile tile = zeros({64, 64});
    atomic_add(t.Sums(t.block, all), tile);
    t.kernel.finish();
  });
}

// At the tile level.
void in_block(const std::string& caret, const std::vector<std::string>& parts,
              const std::function<void(TracedSums&)>& body) {
  misuse(caret, parts, [&] {
    TracedSums t;
    t.kernel.grid(1);
    body(t);
  });
}

TEST(AddErrors, WhatIsNotReadAndWritten) {
  in_block("add(", {"add: In is not declared as Kernel::inout", "In is declared at", "fix: "},
           [](TracedSums& t) {
             add(t.In(t.block, all), zeros({64, 64}));
           });
  in_block("add(", {"add: Out is not declared as Kernel::inout", "Out is declared at", "fix: "},
           [](TracedSums& t) {
             add(t.Out(t.block, all), zeros({64, 64}), Order::any);
           });
}

TEST(AddErrors, DTypesAndShapes) {
  in_block("add(",
           {"add: there is no add of i32, but add of f32, bf16 and f16", "Counted is declared at",
            "fix: add to a tensor of f32"},
           [](TracedSums& t) {
             add(t.Counted(t.block, all), zeros({64, 64}, i32));
           });
  in_block("add(",
           {"the tile is tile<bf16, 64x64>, the place in Sums is tile<f32, 64x64>",
            "the tile is computed at", "fix: add a tile of the view's shape and dtype"},
           [](TracedSums& t) {
             add(t.Sums(t.block, all), zeros({64, 64}, bf16));
           });
  in_block("add(", {"the tile is tile<f32, 64x32>, the place in Sums is tile<f32, 64x64>", "fix: "},
           [](TracedSums& t) {
             add(t.Sums(t.block, all), zeros({64, 32}));
           });
}

TEST(AddErrors, WhatIsAlsoLoadedOrStored) {
  in_block("load(", {"load: the kernel also adds to Sums", "it is added to at", "fix: "},
           [](TracedSums& t) {
             add(t.Sums(t.block, all), zeros({64, 64}));
             load(t.Sums(t.block, all));
           });
  in_block("store(", {"store: the kernel also adds to Sums", "it is added to at", "fix: "},
           [](TracedSums& t) {
             add(t.Sums(t.block, all), zeros({64, 64}), Order::any);
             store(t.Sums(t.block, all), zeros({64, 64}));
           });
  in_block("add(", {"add: the kernel loads or stores Sums", "which it does at", "fix: "},
           [](TracedSums& t) {
             const Tile before = load(t.Sums(t.block, all));
             add(t.Sums(t.block, all), before);
           });
}

TEST(AddErrors, TwoOrdersOfOneTensor) {
  in_block("add(",
           {"add: Sums is added to in the blocks' order and in any", "it is also added to at",
            "fix: give all that adds to it the same Order"},
           [](TracedSums& t) {
             add(t.Sums(t.block, all), zeros({64, 64}), Order::any);
             add(t.Sums(t.block, all), zeros({64, 64}));
           });
}

TEST(AddErrors, AtTheExplicitLevel) {
  in_math("add(", {"add: it has no place at the explicit level", "fix: use atomic_add(view, tile)"},
          [](TracedSums& t) {
            add(t.Sums(t.block, all), zeros({64, 64}));
          });
}

TEST(PermuteErrors, EachAxisOnce) {
  const std::string fix = "fix: name each axis of the tile once, the slowest of the result first";
  for (const std::vector<int>& axes :
       {std::vector<int>{0, 1, 1}, std::vector<int>{0, 1}, std::vector<int>{0, 1, 2, 3},
        std::vector<int>{0, 1, 3}, std::vector<int>{-1, 0, 1}, std::vector<int>{}}) {
    std::string written;
    for (const int axis : axes) written += (written.empty() ? "" : ", ") + std::to_string(axis);
    misuse("permute(", {"permute: the tile f32 {2, 4, 8} by axes {" + written + "}", fix}, [&] {
      TracedSums t;
      const Tile tile = zeros({2, 4, 8});
      tile.permute(axes);
    });
  }
}

TEST(FragmentErrors, NoProductsResult) {
  const std::string fix = "fix: give {64, columns}, the columns a multiple of 8";
  in_math("fragments(", {"fragments: the tile is tile<f32, 32x64>", fix}, [](TracedSums&) {
    fragments(Tile(zeros({32, 64})));
  });
  in_math("fragments(", {"fragments: the tile is tile<f32, 64x4>", fix}, [](TracedSums&) {
    fragments(Tile(zeros({64, 4})));
  });
  in_math("fragments(", {"fragments: the tile is tile<f32, 4096>", fix},
          [](TracedSums&) { fragments(Tile(zeros({4096}))); });
}

TEST(FragmentErrors, NoFragments) {
  const std::string fix = "fix: give {64 * columns}, the columns a multiple of 8";
  in_math("from_fragments(", {"from_fragments: the tile is tile<f32, 1024>", fix},
          [](TracedSums&) { from_fragments(Tile(zeros({1024})), 8); });
  in_math("from_fragments(", {"from_fragments: the tile is tile<f32, 8x128>", fix},
          [](TracedSums&) {
            from_fragments(Tile(zeros({8, 128})), 16);
          });
  for (const int columns : {0, -16, 4}) {
    in_math("from_fragments(", {"from_fragments: the tile is tile<f32, 256>", fix},
            [&](TracedSums&) { from_fragments(Tile(zeros({256})), columns); });
  }
}

TEST(RingErrors, TheLastStageOfAnotherRole) {
  misuse("last(",
         {"last: the role \"load\" is both producer and consumer of the ring \"numbers\"",
          "fix: a role that waits for itself never goes on"},
         [] {
           TracedSums t;
           Ring numbers(t.kernel, "numbers", stages(2), {});
           numbers.numbered();
           t.kernel.roles({role("load", warps(1), registers(24), [&] {
             numbers.produce(1);
             numbers.last();
           })});
         });
  misuse("last(", {"last is called outside a role", "fix: call it in the body of a role"}, [] {
    TracedSums t;
    Ring numbers(t.kernel, "numbers", stages(2), {});
    numbers.last();
  });
}

}  // namespace
}  // namespace tilewright
