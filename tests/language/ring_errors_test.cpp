#include <gtest/gtest.h>

#include "language/misuse.h"
#include "tilewright/blackwell.h"
#include "tilewright/hopper.h"

// Misuse of rings, of what travels with their stages, and of declared layouts.
namespace tilewright {
namespace {

using test::misuse;

struct TracedRing {
  Kernel kernel{"k"};
  Tensor A = kernel.in("A", bf16, {64, 64});
  Tensor Y = kernel.out("Y", f32, {64, 64});
  Ring ring{kernel, "ring", stages(2), {{bf16, 64, 64}}};
  void math(const std::function<void()>& body, int groups = 1) {
    kernel.ctas(1);
    kernel.roles({role("math", warpgroups(groups), registers(160), body)});
  }
};

TEST(RingErrors, TilesAndNumbersThatAStageDoesNotHave) {
  misuse("Slot slot = t.ring.consume()",
         {"tile -1 of the stage that is taken here, which has 1", "fix: tiles count from 0"}, [] {
           TracedRing t;
           t.math([&] {
             Slot slot = t.ring.consume();
             slot[-1];
           });
         });
  for (const int which : {-1, 2}) {
    misuse("number(which)", {"number: " + std::to_string(which) + " of 2", "fix: "}, [&] {
      TracedRing t;
      t.ring.numbered(2);
      t.math([&] { t.ring.consume().number(which); });
    });
  }
  misuse("Ring none(", {"numbered: 0 numbers a stage of the ring \"none\"", "fix: ask for one"},
         [] {
           TracedRing t;
           Ring none(t.kernel, "none", stages(2), {});
           none.numbered(0);
         });
}

// One warp of several may fill a stage, and it alone.
TEST(RingErrors, SeveralWarpsThatProduce) {
  const auto produce = [](bool alone) {
    TracedRing t;
    const auto fill = [&] {
      t.ring.produce([&](const Slot& slot) { tma_load(t.A(all, all), slot); });
    };
    t.math([&] { alone ? when(warp_index() == 0, fill) : fill(); });
  };
  produce(true);
  misuse("produce(", {"every one of the 4 warps", "fix: "}, [&] { produce(false); });
}

// The barrier counts one arrival a wait.
TEST(ProductBarrierErrors, OneWarpOfOneRoleWaits) {
  const auto wait_in = [](const std::vector<int>& roles_of_warps) {
    Kernel kernel("k");
    kernel.target("sm_100a");
    ProductBarrier products(kernel, "products");
    std::vector<RoleSpec> roles;
    for (const int count : roles_of_warps) {
      roles.push_back(role("multiply" + std::to_string(roles.size()), warps(count), registers(64),
                           [&] { products.wait(); }));
    }
    kernel.roles(roles);
  };
  wait_in({1});
  misuse("wait()", {"the role \"multiply0\" is not the one warp", "fix: "}, [&] { wait_in({4}); });
  misuse("wait()", {"the role \"multiply1\" is not the one warp", "fix: give each such role"}, [&] {
    wait_in({1, 1});
  });
}

TEST(LayoutErrors, AMapOfWarpsThatTheRoleDoesNotHave) {
  const RegisterMap rows_of_eight{{{16, 1, 4}}, {{4, 1, 1}, {8, 0, 1}}, {{8, 0, 8}}};
  const auto load_rows = [&](int groups) {
    TracedRing t;
    const Tensor X = t.kernel.in("X", f32, {64, 64});
    t.math([&] { store(t.Y(all, all), load(X(all, all), rows_of_eight)); }, groups);
  };
  load_rows(2);
  misuse("load(",
         {"load: the map is of 8 warps, and the role \"math\" has 4", "fix: let the digits"},
         [&] { load_rows(1); });
}

TEST(LayoutErrors, APaddingThatDoesNotFit32Bits) {
  misuse("\"t\"", {"shared tile \"t\": a padding of 2147483644 f32", "fix: "}, [] {
    TracedRing t;
    SharedTile(t.kernel, "t", f32, 64, 64, SharedMap{.padding = 0x7ffffffc});
  });
}

}  // namespace
}  // namespace tilewright
