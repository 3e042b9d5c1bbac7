#include "language/misuse.h"
#include "passes/explicit_kernel.h"

// Misuse of the explicit level that is found while it is lowered: the errors name the user's line.
namespace tilewright {
namespace {

void misuse(const std::string& caret, const std::vector<std::string>& parts,
            const std::function<void(test::ExplicitKernel&)>& math, int loads = 1) {
  test::misuse(caret, parts, [&] {
    test::ExplicitKernel t(loads);
    t.lower([&] { math(t); });
  });
}

TEST(LoweringErrors, ARingThatIsNeverReleased) {
  test::misuse("Ring idle", {"\"idle_empty\" is never released", "fix: call Ring::release"}, [] {
    test::ExplicitKernel t;
    Ring idle(t.kernel, "idle", stages(2), {{bf16, 64, 64}});
    t.lower([&] {
      const Slot slot = t.ring.consume();
      t.save(wait(t.product(slot)));
      t.ring.release(slot);
    });
  });
}

TEST(LoweringErrors, TooMuchSharedMemoryListsWhatTakesIt) {
  test::misuse(
      "test::ExplicitKernel t",
      {"\"explicit\" needs 295008 bytes", "a CTA has 232448", "262144 bytes: large (4 stages)",
       "16384 bytes: ab0 (2 stages)", "fix: use smaller tiles or fewer stages"},
      [] {
        test::ExplicitKernel t;
        Ring large(t.kernel, "large", stages(4), {{bf16, 256, 128}});
        t.lower([&] {
          const Slot slot = t.ring.consume();
          t.save(wait(t.product(slot)));
          t.ring.release(slot);
          const Slot other = large.consume();
          large.release(other);
        });
      });
}

TEST(LoweringErrors, WaitsThatDisagreeOverPaths) {
  misuse("when(",
         {"a product in flight is followed by 1 others on one path and by 0 on another",
          "it is issued at", "fix: issue the same products on both paths"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Pending first = t.product(slot);
           Cell<Pending> second(as_pending(zeros({64, 64})));
           when(t.block().limit() > 32, [&] { second = t.product(slot); });
           t.save(wait(first) + wait(second));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, APendingProductWithoutEnd) {
  misuse("for (", {"a product in flight is followed by", "it is issued at"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Pending first = t.product(slot);
           Cell<Pending> last(as_pending(zeros({64, 64})));
           for (Index i : range(t.block().limit())) {
             (void)i;
             last = t.product(slot);
           }
           t.save(wait(first) + wait(last));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, AProductInFlightGoesOnTwice) {
  misuse("", {"a product in flight would have to be copied", "fix: wait for it"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Pending first = t.product(slot);
           const Pending second = wgmma(slot[0], slot[1].T(), first);
           const Pending third = wgmma(slot[0], slot[1].T(), first);
           t.save(wait(second) + wait(third));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, ProductsInFlightChangePlaces) {
  misuse("for (", {"a product in flight would have to be copied", "keep each product in a Cell"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           Cell<Pending> older(t.product(slot)), newer(t.product(slot));
           Var sum{zeros({64, 64})};
           for (Index i : range(3)) {
             (void)i;
             sum = sum + wait(older);
             older = newer;
             newer = t.product(slot);
           }
           sum = sum + wait(older);
           t.save(sum + wait(newer));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, AnOperandInRegistersIsReadWhileItsProductRuns) {
  misuse("",
         {"cast reads a tile in registers that a product in flight reads as its A",
          "it is issued at", "fix: wait for the product first"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile a = load(slot[0]);
           const Pending first = wgmma(a, slot[1].T());
           const Tile twice = a.cast(f32) * 2;
           t.save(wait(t.product(slot, first)) + twice);
           t.ring.release(slot);
         });
}

// A wait for an older product leaves it running.
TEST(LoweringErrors, AnOperandIsReadBetweenTheWaitsForTwoProducts) {
  misuse(
      "",
      {"cast reads a tile in registers that a product in flight reads as its A", "it is issued at"},
      [](test::ExplicitKernel& t) {
        const Slot slot = t.ring.consume();
        const Tile a = load(slot[0]), b = load(slot[1]);
        const Pending older = wgmma(a, slot[1].T()), newer = wgmma(b, slot[1].T());
        const Tile first = wait(older);
        const Tile twice = b.cast(f32) * 2;
        t.save(wait(newer) + first + twice);
        t.ring.release(slot);
      });
}

// Also of a product that another one continues.
TEST(LoweringErrors, AnOperandOfAContinuedProductIsReadWhileItRuns) {
  misuse("",
         {"cast reads a tile in registers that a product in flight reads as its A",
          "it is issued at", "fix: wait for the product first"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile a = load(slot[0]), b = load(slot[1]);
           const Pending both = wgmma(b, slot[1].T(), wgmma(a, slot[1].T()));
           const Tile twice = a.cast(f32) * 2;
           t.save(wait(both) + twice);
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, AnOperandOfAContinuedProductIsMadeAgainWhileItRuns) {
  misuse("",
         {"cast writes a tile in registers that a product in flight reads as its A",
          "it is issued at"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           Var x{wait(t.product(slot))};
           Cell<Pending> sum(as_pending(zeros({64, 64})));
           for (Index i : range(3)) {
             (void)i;
             const Tile a = (x * 0.5).cast(bf16);
             sum = wgmma(a, slot[1].T(), sum);
             x = x + 1;
           }
           t.save(wait(sum));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, AnOperandInRegistersIsMadeAgainWhileItsProductRuns) {
  misuse("",
         {"cast writes a tile in registers that a product in flight reads as its A",
          "it is issued at"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           Var x{wait(t.product(slot))};
           Cell<Pending> sum(as_pending(zeros({64, 64})));
           for (Index i : range(3)) {
             (void)i;
             const Tile a = (x * 0.5).cast(bf16);
             sum = wgmma(a, slot[1].T(), wait(sum));
             x = x + 1;
           }
           t.save(wait(sum));
           t.ring.release(slot);
         });
}

TEST(LoweringErrors, ProductsThatSomeWarpsSkip) {
  const auto skipped = [](const std::string& source, const auto& condition) {
    misuse(
        "wgmma",
        {"wgmma: inside a loop or condition that the warps of a warpgroup may decide differently",
         "its warps may differ in " + source, "fix: a warpgroup multiplies and reduces together"},
        [&](test::ExplicitKernel& t) {
          const Slot slot = t.ring.consume();
          Var sum{wait(t.product(slot))};
          Cell<Condition> more(true);
          repeat_while(more, [&] {
            more = condition(sum);
            for (Index i : range(2)) {
              (void)i;
              sum = wait(wgmma(slot[0], slot[1].T(), sum));
            }
          });
          t.save(sum);
          t.ring.release(slot);
        });
  };
  skipped("warp_index", [](const Var&) { return warp_index() == 1; });
  skipped("any", [](const Var& sum) { return any(sum > 1); });
}

TEST(LoweringErrors, SlicesOfRows) {
  misuse("slice", {"slice: axis 0 from 8, 8 of 64 elements do not fall on whole registers"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile narrow = wait(wgmma(slot[0], slot[1].rows(0, 8).T()));
           t.ring.release(slot);
           store(t.C(t.rows.block(0, 8), Block(0, 8, 64)), narrow.slice({8, 0}, {8, 8}));
         });
}

TEST(LoweringErrors, ATileWhoseLayoutNothingDetermines) {
  test::misuse("const Tile lost",
               {"nothing determines how this tile lies in registers", "tile<f32, 64x64>",
                "fix: make it inside a role"},
               [] {
                 test::ExplicitKernel t;
                 const Tile lost = zeros({64, 64});
                 t.lower([&] {
                   const Slot slot = t.ring.consume();
                   t.ring.release(slot);
                   t.save(lost);
                 });
               });
}

TEST(LoweringErrors, TwoLayoutsForOneTile) {
  misuse("t.save(s",
         {"add: the threads of the role hold the elements of tile<f32, 1x64> in another order",
          "fix: pass it through shared memory"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile s = wait(t.product(slot));
           t.ring.release(slot);
           const Tile across = reduce_max(s, 1).reshape({1, 64});
           t.save(s + across);
         });
}

TEST(LoweringErrors, ReductionsAcrossWarpsThatMayPart) {
  misuse("reduce",
         {"reduce: inside a loop or condition that the warps of a warpgroup may decide differently",
          "fix: a warpgroup multiplies and reduces together"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile s = wait(t.product(slot));
           t.ring.release(slot);
           when(warp_index() == 0, [&] {
             const Tile top = reduce_max(s, 0);
             t.save(s - top);
           });
         });
}

TEST(LoweringErrors, SlicesOffWholeRegisters) {
  misuse("slice(",
         {"slice: axis 1 from 4, 8 of 64 elements do not fall on whole registers", "fix: slice"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile s = wait(t.product(slot));
           t.ring.release(slot);
           const Tile part = s.slice({0, 4}, {64, 8});
           store(t.C(t.block(), t.rows.block(0, 8)), part);
         });
}

TEST(LoweringErrors, ReshapesThatTearLanesApart) {
  misuse("reshape(",
         {"to tile<f32, 24x64> tears apart what a lane holds",
          "fix: split or join axes by powers of two"},
         [](test::ExplicitKernel& t) {
           const Slot slot = t.ring.consume();
           const Tile s = wait(t.product(slot));
           t.ring.release(slot);
           const Tile part = s.slice({0, 0}, {64, 24}).reshape({24, 64});
           store(t.C(t.rows.block(0, 24), all), part);
         });
}

TEST(LoweringErrors, PartsOfAPanel) {
  misuse("store(",
         {"columns from 8 of a shared tile whose panels are 64 wide", "fix: begin at a multiple"},
         [](test::ExplicitKernel& t) {
           SharedTile out(t.kernel, "out", bf16, 64, 64);
           const Slot slot = t.ring.consume();
           const Tile s = wait(t.product(slot)).cast(bf16);
           t.ring.release(slot);
           store(out.columns(8, 16), s.slice({0, 0}, {64, 16}));
         });
}

}  // namespace
}  // namespace tilewright
