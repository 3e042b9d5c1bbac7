#include "tilewright/hopper.h"

#include "language/traced_roles.h"
#include "tilewright/blackwell.h"

// Misuse of the explicit level that is found while tracing.
namespace tilewright {
namespace {

using test::in_role;
using test::misuse;
using test::TracedRoles;

TEST(FragmentErrors, OtherShape) {
  misuse("store(", {"the tile is", "the fragments f32 {64, 16}", "fix: both must agree"}, [] {
    TracedRoles t;
    SharedFragments parts(t.kernel, "parts", 2, 16);
    t.in_role([&] { parts.store(0, zeros({64, 32})); });
  });
}

TEST(FragmentErrors, NoSuchCta) {
  misuse("load(", {"load: CTA 2 of a cluster of 2", "CTAs count from 0 to 1"}, [] {
    TracedRoles t;
    t.kernel.ctas(2, 2);
    SharedFragments parts(t.kernel, "parts", 2, 16);
    t.in_role([&] { parts.load(0, 2); });
  });
}

TEST(ClusterBarrierErrors, TwoRoles) {
  misuse("arrive(",
         {"the role \"b\" uses the cluster barrier \"met\" of the role \"a\"",
          "fix: give each role a barrier of its own"},
         [] {
           TracedRoles t;
           t.kernel.ctas(2, 2);
           ClusterBarrier met(t.kernel, "met");
           t.kernel.roles({role("a", warps(1), registers(24), [&] { met.arrive(); }),
                           role("b", warps(1), registers(24), [&] { met.arrive(); })});
         });
}

TEST(LoadErrors, OutsideProduce) {
  in_role("tma_load(", {"tma_load: outside Ring::produce", "fix: a stage's loads are counted"},
          [](TracedRoles& t) { tma_load(t.X(t.block, all), t.tile); });
}

TEST(LoadErrors, OutsideARole) {
  misuse("load(", {"load is called outside a role", "fix: call it in the body of a role"}, [] {
    TracedRoles t;
    t.kernel.ctas(1);
    load(t.X(t.block, all));
  });
}

TEST(LoadErrors, Conditionally) {
  in_role("tma_load(", {"inside a loop or condition of Ring::produce", "unconditionally"},
          [](TracedRoles& t) {
            t.ring.produce([&](const Slot& slot) {
              when(t.block.start() > 0, [&] { tma_load(t.X(t.block, all), slot); });
            });
          });
}

TEST(LoadErrors, NothingIsLoaded) {
  in_role("produce(", {"nothing is loaded into the ring \"ring\"", "fix: call tma_load"},
          [](TracedRoles& t) { t.ring.produce([](const Slot&) {}); });
}

TEST(LoadErrors, TheTileDisagreesWithTheTensor) {
  const auto load = [](const std::string& caret, const std::vector<std::string>& parts,
                       const std::function<void(TracedRoles&, const Slot&)>& statement) {
    in_role(caret, parts,
            [&](TracedRoles& t) { t.ring.produce([&](const Slot& slot) { statement(t, slot); }); });
  };
  load("tma_load(",
       {"the part of X is bf16 {32, 64}, the shared tile is bf16 {64, 64}", "X is declared at",
        "fix: both must agree"},
       [](TracedRoles& t, const Slot& slot) { tma_load(t.X(t.rows.block(0, 32), all), slot); });
  load("tma_load(", {"the part of X is bf16 {64, 64}, the shared tile is bf16 {64, 32}"},
       [](TracedRoles& t, const Slot& slot) {
         tma_load(t.X(t.block, all), slot[0].columns(0, 32));
       });
  load("tma_load(", {"the part of F is f32 {64, 64}, the shared tile is bf16 {64, 64}", "fix: "},
       [](TracedRoles& t, const Slot& slot) { tma_load(t.F(t.block, all), slot); });
  load("tma_load(", {"multicast into a ring that is not multicast", "fix: declare it"},
       [](TracedRoles& t, const Slot& slot) {
         t.kernel.ctas(4, 2);
         tma_load(t.X(t.block, all), slot, {Cache::normal, true});
       });
}

TEST(RingErrors, MulticastGroups) {
  misuse("multicast(", {"multicast: a group of 1 CTAs", "fix: give at least 2"}, [] {
    TracedRoles t;
    t.ring.multicast(1);
  });
  misuse("release(",
         {"the ring \"ring\" is multicast to groups of 3 CTAs, which do not divide a cluster of 4",
          "fix: give Ring::multicast a divisor of the cluster"},
         [] {
           TracedRoles t;
           t.kernel.ctas(4, 4);
           t.ring.multicast(3);
           t.in_role([&] { t.ring.release(t.ring.consume()); });
         });
}

TEST(RingErrors, ReceiversDivideTheGroup) {
  for (const TmaOptions& options :
       {TmaOptions{Cache::normal, true, 3}, TmaOptions{Cache::normal, true, 2, 3},
        TmaOptions{Cache::normal, true, 2, 0}, TmaOptions{Cache::normal, true, -2}}) {
    misuse(
        "tma_load(",
        {"tma_load: multicast to " + std::to_string(options.receivers) + " CTAs that are " +
             std::to_string(options.stride) + " apart, in a ring for groups of 4",
         "fix: receivers * stride must divide the group"},
        [&] {
          TracedRoles t;
          t.kernel.ctas(8, 8);
          t.ring.multicast(4);
          t.in_role([&] {
            t.ring.produce([&](const Slot& slot) { tma_load(t.X(t.block, all), slot, options); });
          });
        });
  }
}

TEST(ClusterCopyErrors, StandInAStageOfAMulticastRing) {
  in_role("cluster_copy(", {"cluster_copy: outside Ring::produce", "fix: "},
          [](TracedRoles& t) { cluster_copy(t.tile, t.tile, 0); });
  misuse("cluster_copy(", {"cluster_copy: multicast into a ring that is not", "fix: declare it"},
         [] {
           TracedRoles t;
           t.in_role(
               [&] { t.ring.produce([&](const Slot& slot) { cluster_copy(t.tile, slot, 0); }); });
         });
}

TEST(ClusterCopyErrors, IntoARingOfPairs) {
  misuse("cluster_copy(", {"cluster_copy: into a ring of pairs", "fix: copy into a ring without"},
         [] {
           Kernel kernel("k");
           kernel.target("sm_100a");
           kernel.ctas(2, 2);
           const TensorMemory memory(kernel, "sums", 64, CtaGroup::pair);
           const SharedTile own(kernel, "own", bf16, 128, 64);
           Ring ring(kernel, "ring", stages(1), {{bf16, 128, 64}});
           ring.pairs();
           ring.multicast(2);
           const auto copy = [&](const Slot& slot) { cluster_copy(own, slot[0], 0); };
           kernel.roles({role("load", warps(1), registers(64), [&] { ring.produce(copy); })});
         });
}

TEST(ClusterCopyErrors, MovesWholePanelsOfOneShape) {
  const auto copy = [](const std::vector<std::string>& wanted,
                       const std::function<void(const Slot&, const SharedView&)>& copied) {
    misuse("cluster_copy(", wanted, [&] {
      TracedRoles t;
      t.ring.multicast();
      const SharedTile wide(t.kernel, "wide", bf16, 64, 128);
      t.in_role([&] { t.ring.produce([&](const Slot& slot) { copied(slot, wide); }); });
    });
  };
  copy({"view<bf16, 32x64> in panels of 64 to view<bf16, 64x64>", "fix: copy whole panels"},
       [](const Slot& slot, const SharedView& wide) {
         cluster_copy(wide.columns(0, 64).rows(0, 32), slot, 0);
       });
  copy({"(transposed)", "fix: copy whole panels"}, [](const Slot& slot, const SharedView& wide) {
    cluster_copy(wide.columns(64, 64).T(), slot, 0);
  });
  copy({"view<bf16, 64x32> in panels of 64", "fix: copy whole panels"},
       [](const Slot& slot, const SharedView& wide) {
         cluster_copy(wide.columns(0, 32), slot[0].columns(0, 32), 0);
       });
  // As many elements in other rows.
  copy({"view<bf16, 32x128> in panels of 64 to view<bf16, 64x64>"},
       [](const Slot& slot, const SharedView& wide) { cluster_copy(wide.rows(0, 32), slot, 0); });
  misuse("cluster_copy(", {"in panels of 32 to view<bf16, 64x64> in panels of 64"}, [] {
    TracedRoles t;
    t.ring.multicast();
    const SharedTile narrow(t.kernel, "narrow", bf16, 64, 64, SharedMap{.swizzle = 64});
    t.in_role([&] { t.ring.produce([&](const Slot& slot) { cluster_copy(narrow, slot, 0); }); });
  });
}

TEST(SharedErrors, SwizzlesThatThereAreNot) {
  for (const int swizzle : {-32, 16, 96, 256}) {
    misuse("\"tile\"",
           {"a swizzle of " + std::to_string(swizzle) + " bytes", "fix: take 0, 32, 64 or 128"},
           [&] {
             Kernel kernel("k");
             SharedTile tile(kernel, "tile", bf16, 64, 64, SharedMap{.swizzle = swizzle});
           });
  }
}

TEST(SharedErrors, ATileOfAnotherShapeIsStored) {
  in_role("store(", {"the tile is tile<bf16, 32x64>, the shared view", "fix: both must agree"},
          [](TracedRoles& t) {
            store(t.tile, zeros({32, 64}).cast(bf16));
          });
  in_role("store(", {"the tile is tile<f32, 64x64>, the shared view", "fix: both must agree"},
          [](TracedRoles& t) {
            store(t.tile, zeros({64, 64}));
          });
}

TEST(LoadErrors, ABoxHasAtMost256Rows) {
  misuse("tma_load(", {"512 rows; one copy takes at most 256", "fix: "}, [] {
    TracedRoles t;
    Ring tall(t.kernel, "tall", stages(1), {{bf16, 512, 64}});
    t.in_role([&] {
      tall.produce([&](const Slot& slot) { tma_load(t.X(t.rows.block(0, 512), all), slot); });
    });
  });
}

TEST(LoadErrors, ABoxHasAtMost256Columns) {
  misuse("tma_load(",
         {"panels of 512 columns; one copy takes at most 256", "the shared tile is declared at",
          "fix: declare it with narrower panels"},
         [] {
           TracedRoles t;
           const Tensor wide = t.kernel.in("wide", bf16, {t.rows, 512});
           Ring ring(t.kernel, "ring", stages(1), {{bf16, 64, 512, SharedMap{.panel = 512}}});
           t.kernel.roles({role("load", warps(1), registers(64), [&] {
             ring.produce([&](const Slot& slot) { tma_load(wide(t.block, all), slot); });
           })});
         });
}

TEST(ReduceErrors, ToAnInputAndOfAnotherDType) {
  in_role("tma_reduce(",
          {"tma_reduce: X is an input", "X is declared at", "fix: declare it with Kernel::inout"},
          [](TracedRoles& t) { tma_reduce(t.X(t.block, all), t.tile); });
  misuse("tma_reduce(",
         {"tma_reduce: there is no max of f32, but add of f32, max of f16, max of bf16, max of i32",
          "A is declared at", "fix: take what there is, or another dtype of A"},
         [] {
           TracedRoles t;
           const Tensor A = t.kernel.inout("A", f32, {t.rows, 32});
           SharedTile staging(t.kernel, "staging", f32, 64, 32);
           t.in_role([&] { tma_reduce(A(t.block, all), staging, Reduction::max); });
         });
  misuse("tma_reduce(",
         {"tma_reduce: there is no add of f8e4m3, but add of f32, add of f16", "A is declared at"},
         [] {
           TracedRoles t;
           const Tensor A = t.kernel.inout("A", f8e4m3, {t.rows, 64});
           SharedTile staging(t.kernel, "staging", f8e4m3, 64, 64);
           t.in_role([&] { tma_reduce(A(t.block, all), staging); });
         });
  in_role("tma_reduce(", {"the part of Y is bf16 {64, 64}, the shared tile is"},
          [](TracedRoles& t) { tma_reduce(t.Y(t.block, all), t.tile.rows(0, 32)); });
}

TEST(StoreErrors, ToAnInputAndOfAnotherShape) {
  in_role("tma_store(",
          {"tma_store: X is an input", "X is declared at", "fix: declare it with Kernel::out"},
          [](TracedRoles& t) { tma_store(t.X(t.block, all), t.tile); });
  in_role(
      "store(",
      {"the tile is tile<f32, 64x32>, the shared view view<bf16, 64x64>", "fix: both must agree"},
      [](TracedRoles& t) {
        const Tile narrow = zeros({64, 32});
        store(t.tile, narrow);
      });
}

TEST(RingErrors, OneRoleIsBothEnds) {
  in_role("produce(",
          {"the role \"math\" is both producer and consumer of the ring \"ring\"", "fix: "},
          [](TracedRoles& t) {
            t.ring.consume();
            t.ring.produce([&](const Slot& slot) { tma_load(t.X(t.block, all), slot); });
          });
}

TEST(RingErrors, TwoProducers) {
  misuse("produce(", {"the roles \"first\" and \"second\" both produce the ring \"ring\"", "fix: "},
         [] {
           TracedRoles t;
           const auto load = [&] {
             t.ring.produce([&](const Slot& slot) { tma_load(t.X(t.block, all), slot); });
           };
           t.kernel.roles({role("first", warps(1), registers(24), load),
                           role("second", warps(1), registers(24), load)});
         });
}

TEST(RingErrors, EveryWarpOfARoleProduces) {
  misuse(
      "produce(",
      {"every one of the 2 warps of the role \"load\" would fill the stages of the ring \"ring\"",
       "fix: give the role warps(1)"},
      [] {
        TracedRoles t;
        t.kernel.roles({role("load", warps(2), registers(24), [&] {
          t.ring.produce([&](const Slot& slot) { tma_load(t.X(t.block, all), slot); });
        })});
      });
}

TEST(RingErrors, NumbersThatAreNotThere) {
  in_role("produce(", {"the stages of the ring \"ring\" carry 0 numbers, but 1 are given", "fix: "},
          [](TracedRoles& t) { t.ring.produce(1); });
  in_role("number(", {"number: the ring's stages carry none", "fix: declare it as"},
          [](TracedRoles& t) { t.ring.consume().number(); });
  in_role("number(", {"number: 2 of 2", "fix: declare the ring with .numbered(3)"},
          [](TracedRoles& t) {
            t.ring.numbered(2);
            t.ring.consume().number(2);
          });
}

TEST(RingErrors, OutsideARole) {
  misuse("consume(", {"consume is called outside a role", "fix: call it in the body of a role"},
         [] {
           TracedRoles t;
           t.ring.consume();
         });
  misuse("release_if(", {"release_if is called outside a role"}, [] {
    TracedRoles t;
    t.ring.release_if(true, 0);
  });
}

TEST(RingErrors, Declarations) {
  TracedRoles t;
  misuse("\"r\", stages(0)", {"shared tile \"r\": 0 stages of 64 x 64", "fix: "}, [&] {
    Ring(t.kernel, "r", stages(0), {{bf16, 64, 64}});
  });
  misuse("\"s\", bf16", {"shared tile \"s\": 1 stages of 60 x 64", "fix: "},
         [&] { SharedTile s(t.kernel, "s", bf16, 60, 64); });
  misuse("\"s\", f32",
         {"shared tile \"s\": a swizzle of 128 bytes of one row", "fix: leave it out"},
         [&] { SharedTile s(t.kernel, "s", f32, 1, 64, SharedMap{.swizzle = 128}); });
  misuse("\"s\", bf16",
         {"shared tile \"s\": a row of 4 bf16 has 8 bytes", "fix: make rows a multiple of 16"},
         [&] { SharedTile s(t.kernel, "s", bf16, 64, 4); });
  misuse("SharedIntegers ", {"\"n\": 0 integers", "fix: "},
         [&] { SharedIntegers n(t.kernel, "n", 0); });
}

TEST(RingErrors, LoadsNeedATile) {
  misuse("produce(", {"produce: the ring \"none\" has no tile to load into", "fix: "}, [] {
    TracedRoles t;
    Ring numbers(t.kernel, "none", stages(2), {});
    t.kernel.roles(
        {role("load", warps(1), registers(24), [&] { numbers.produce([](const Slot&) {}); })});
  });
}

TEST(RingErrors, ATileThatTheStageDoesNotHave) {
  in_role("", {"tile 1 of the stage", "which has 1"}, [](TracedRoles& t) {
    const Slot slot = t.ring.consume();
    load(slot[1]);
  });
  misuse("", {"tile 0 of the stage", "which has 0"}, [] {
    TracedRoles t;
    Ring numbers(t.kernel, "numbers", stages(2), {});
    numbers.numbered();
    t.in_role([&] {
      const Slot slot = numbers.consume();
      load(slot);
    });
  });
}

TEST(RingErrors, MoreThanMemoryHas) {
  misuse("Ring", {"more than 2^31 - 1 elements", "fewer stages"}, [] {
    TracedRoles t;
    Ring(t.kernel, "many", stages(1 << 20), {{bf16, 64, 64}});
  });
}

TEST(ElectErrors, WhatAWholeWarpDoes) {
  for (const auto& body :
       std::vector<std::function<void()>>{[] { warp_sync(); }, [] { cluster_sync(); },
                                          [] {
                                            any(zeros({64, 8}) > 0);
                                          }}) {
    EXPECT_NE(test::usage_error_of([&] {
                TracedRoles t;
                t.in_role([&] { elect(body); });
              }).find("one lane is elected"),
              std::string::npos);
  }
  in_role("store(", {"store: one lane is elected", "before elect"}, [](TracedRoles& t) {
    elect([&] { store(t.tile, Tile(zeros({64, 64})).cast(bf16)); });
  });
  in_role("sync(", {"sync: one lane is elected", "before elect"}, [](TracedRoles& t) {
    const NamedBarrier barrier(t.kernel, 128);
    elect([&] { NamedBarrier(barrier).sync(); });
  });
}

TEST(ViewErrors, RowsAndColumnsLieInside) {
  in_role("rows(", {"12 rows of a view of 64", "fix: take a multiple of 8"},
          [](TracedRoles& t) { t.tile.rows(0, 12); });
  in_role("rows(", {"rows: from row 4, no multiple of 8", "fix: "},
          [](TracedRoles& t) { t.tile.rows(4, 16); });
  in_role("rows(", {"rows: [56, 72) of a view of 64", "fix: "},
          [](TracedRoles& t) { t.tile.rows(56, 16); });
  in_role("rows(", {"(transposed)", "before .T()"}, [](TracedRoles& t) { t.tile.T().rows(0, 16); });
  in_role("columns(", {"[32, 96) of a view of 64 columns", "fix: take columns that lie inside"},
          [](TracedRoles& t) { t.tile.columns(32, 64); });
  in_role("column_part(", {"runs of 32 columns of a view of 64, in panels of 64", "fix: "},
          [](TracedRoles& t) { t.tile.column_part(warp_index(), 32); });
  in_role("column_part(", {"(transposed)", "before .T()"},
          [](TracedRoles& t) { t.tile.T().column_part(0, 64); });
  in_role("column_part(", {"run 1 of 1", "fix: "},
          [](TracedRoles& t) { t.tile.column_part(1, 64); });
}

TEST(ViewErrors, CopiesOfTransposedViews) {
  in_role("tma_store(", {"tma_store: the shared view is transposed", "store(view.T(), tile)"},
          [](TracedRoles& t) { tma_store(t.Y(t.block, all), t.tile.T()); });
}

TEST(ProductErrors, ShapesAndDTypes) {
  in_role("wgmma(",
          {"inner dimensions differ: a bf16 {64, 64} x b bf16 {32, 64}", "fix: b is {k, n}"},
          [](TracedRoles& t) { wgmma(t.tile, t.tile.rows(0, 32)); });
  in_role("wgmma(", {"a warpgroup multiplies 64 rows: a bf16 {32, 64}", "fix: take a.rows"},
          [](TracedRoles& t) { wgmma(t.tile.rows(0, 32), t.tile); });
  in_role("wgmma(", {"dtypes differ: a f16 {64, 64} x b bf16 {64, 64}", "fix: "},
          [](TracedRoles& t) {
            const Tile a = zeros({64, 64}, f16);
            wgmma(a, t.tile);
          });
  in_role("wgmma(", {"no such product: a f32", "fix: use bf16"}, [](TracedRoles& t) {
    const Tile a = zeros({64, 64});
    SharedTile b(t.kernel, "b", f32, 64, 64);
    wgmma(a, b);
  });
  in_role("wgmma(", {"k is no multiple of 16: a bf16 {64, 8} x b bf16 {8, 64}", "fix: "},
          [](TracedRoles& t) {
            const Tile a = zeros({64, 8}, bf16);
            wgmma(a, t.tile.rows(0, 8));
          });
  in_role("wgmma(",
          {"n is no multiple of 8 up to 256: a bf16 {64, 64} x b bf16 {64, 512}", "fix: "},
          [](TracedRoles& t) {
            SharedTile b(t.kernel, "b", bf16, 64, 512);
            wgmma(t.tile, b);
          });
  in_role("wgmma(", {"the accumulator is tile<f32, 64x32>", "fix: make it with zeros"},
          [](TracedRoles& t) {
            const Tile sum = zeros({64, 32});
            wgmma(t.tile, t.tile, sum);
          });
  in_role("wgmma(", {"a is a number", "fix: "}, [](TracedRoles& t) { wgmma(2, t.tile); });
  in_role("wgmma(", {"a does not have two axes: tile<bf16, 64>", "fix: "}, [](TracedRoles& t) {
    const Tile a = zeros({64}, bf16);
    wgmma(a, t.tile);
  });
}

TEST(ProductErrors, AWholeWarpgroupMultiplies) {
  misuse("wgmma(", {"wgmma: the role \"half\" has 2 warps", "fix: "}, [] {
    TracedRoles t;
    t.kernel.roles({role("half", warps(2), registers(240), [&] { wgmma(t.tile, t.tile); })});
  });
}

TEST(BarrierErrors, TooManyAndBrokenOnes) {
  TracedRoles t;
  misuse("NamedBarrier ", {"17 named barriers are asked for", "fix: a CTA has 15"},
         [&] { NamedBarrier many(t.kernel, 128, 17); });
  misuse("NamedBarrier ", {"100 threads", "fix: whole warps"},
         [&] { NamedBarrier odd(t.kernel, 100); });
  misuse("NamedBarrier ", {"0 barriers", "fix: "}, [&] { NamedBarrier none(t.kernel, 128, 0); });
}

TEST(BarrierErrors, MoreThreadsThanTheCtaHas) {
  in_role("sync(", {"a named barrier of 256 threads, and the CTA has 128", "roles are declared"},
          [](TracedRoles& t) {
            NamedBarrier all(t.kernel, 256);
            all.sync();
          });
}

TEST(BulkErrors, FewerThanNoGroups) {
  in_role("bulk_wait(", {"bulk_wait: -1 groups", "0 or more"}, [](TracedRoles&) { bulk_wait(-1); });
  in_role("bulk_wait_read(", {"-2 groups"}, [](TracedRoles&) { bulk_wait_read(-2); });
}

TEST(BarrierErrors, AnIndexBeyondTheLast) {
  misuse("sync(2)", {"barrier 2 of 2", "fix: "}, [] {
    TracedRoles t;
    NamedBarrier turn(t.kernel, 128, 2);
    t.in_role([&] { turn.sync(2); });
  });
}

TEST(AtomicErrors, OnlyIntegers) {
  in_role("atomic_add(", {"F is not one element of an i32 vector", "fix: declare it as inout"},
          [](TracedRoles& t) { atomic_add(t.F(0, 0), 1); });
}

TEST(TileErrors, ProductsAreThoseOfWarpgroups) {
  in_role("dot(", {"dot: it has no place at the explicit level", "fix: use wgmma"},
          [](TracedRoles&) {
            const Tile a = zeros({64, 64});
            dot(a, a);
          });
}

}  // namespace
}  // namespace tilewright
