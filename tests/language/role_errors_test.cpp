#include <optional>

#include "ir/ir.h"
#include "language/traced_roles.h"

// Roles and grids of the explicit level that cannot be, found while tracing.
namespace tilewright {
namespace {

using test::in_role;
using test::misuse;
using test::TracedRoles;

TEST(RoleErrors, NamesAndBodies) {
  misuse("", {"role \"a\\x0ab\": its name holds a line break", "\"a\\x0ab\" takes 1 warps"}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a\nb", warps(1), registers(24), [] {})});
  });
  misuse("\"a\"", {"role \"a\": it has no body", "fix: give what its warps do"}, [&] {
    TracedRoles t;
    t.kernel.roles({RoleSpec("a", warps(1), registers(24), nullptr)});
  });
}

TEST(RoleErrors, WarpsAndRegisters) {
  const auto nothing = [] {};
  misuse("\"a\"", {"role \"a\": 0 warps", "fix: 1 to 4 warps"}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a", warps(0), registers(24), nothing)});
  });
  misuse("\"a\"", {"role \"a\": 5 warps", "fix: "}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a", warps(5), registers(24), nothing)});
  });
  misuse("\"a\"", {"role \"a\": 30 registers a thread", "fix: 24 to 256, a multiple of 8"}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a", warps(4), registers(30), nothing)});
  });
  misuse("\"b\"",
         {"the roles so far take 98304 registers of 65536", "\"a\" takes 4 warps, 32768 registers",
          "\"b\" takes 8 warps, 65536 registers", "fix: "},
         [&] {
           TracedRoles t;
           t.kernel.roles({role("a", warpgroups(1), registers(256), nothing),
                           role("b", warpgroups(2), registers(256), nothing)});
         });
  misuse("\"a\"", {"1152 threads", "1024", "fix: "}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a", warpgroups(9), registers(24), nothing)});
  });
  misuse("\"a\"", {"34359738368 threads of 1024", "fix: "}, [&] {
    TracedRoles t;
    t.kernel.roles({role("a", warps(1 << 30), registers(24), nothing)});
  });
  misuse("roles(", {"no role", "fix: "}, [&] {
    TracedRoles t;
    t.kernel.roles({});
  });
}

// As many as C++ decides while it records.
TEST(RoleErrors, RolesOfAVector) {
  Kernel kernel("k");
  kernel.ctas(1);
  std::vector<RoleSpec> roles{role("load", warps(1), registers(24), [] {})};
  std::vector<std::string> bodies;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "math" + std::to_string(i);
    roles.push_back(
        role(name, warpgroups(1), registers(160), [&bodies, name] { bodies.push_back(name); }));
  }
  kernel.roles(roles);
  EXPECT_EQ(bodies, (std::vector<std::string>{"math0", "math1", "math2"}));
  EXPECT_EQ(kernel.finish().threads, 512);
  misuse("roles(", {"no role", "fix: "}, [] {
    TracedRoles t;
    t.kernel.roles(std::vector<RoleSpec>());
  });
  misuse("\"many\"", {"two roles are named \"many\"", "fix: "}, [] {
    TracedRoles t;
    const std::vector<RoleSpec> two(2, role("many", warps(1), registers(24), [] {}));
    t.kernel.roles(two);
  });
}

TEST(RoleErrors, TwiceAndNested) {
  const auto nothing = [] {};
  misuse("roles(", {"the roles of \"k\" are declared twice", "fix: "}, [&] {
    TracedRoles t;
    t.in_role(nothing);
    t.kernel.roles({role("again", warps(1), registers(24), nothing)});
  });
  in_role("roles(", {"roles: inside", "\"math\"", "fix: "}, [&](TracedRoles& t) {
    t.kernel.roles({role("inner", warps(1), registers(24), nothing)});
  });
  misuse("roles(", {"roles: inside a loop or condition", "fix: "}, [&] {
    TracedRoles t;
    for (Index i : range(4)) {
      (void)i;
      t.kernel.roles({role("looped", warps(1), registers(24), nothing)});
    }
  });
  misuse("\"a\"", {"two roles are named \"a\"", "fix: "}, [&] {
    TracedRoles t;
    t.kernel.roles(
        {role("a", warps(1), registers(24), nothing), role("a", warps(1), registers(24), nothing)});
  });
}

TEST(RoleErrors, VariablesStayInTheirRole) {
  misuse("t.kernel.roles({",
         {"a variable made outside is assigned inside", "the variable is made at", "fix: "}, [] {
           TracedRoles t;
           Cell<Index> count(0);
           t.kernel.roles({role("a", warps(1), registers(24), [&] { count = count + 1; })});
         });
}

TEST(RoleErrors, ValuesStayInTheirRole) {
  std::optional<Index> inside;
  misuse("+ 1", {"computed inside a loop, condition or role that has ended", "fix: "}, [&] {
    TracedRoles t;
    const auto first = [&] { inside = t.block.start() * 2; };
    const auto second = [&] { *inside + 1; };
    t.kernel.roles(
        {role("a", warps(1), registers(24), first), role("b", warps(1), registers(24), second)});
  });
}

TEST(GridErrors, ClustersAndTwoGrids) {
  misuse("ctas(", {"a cluster of 17", "fix: 1 to 16"}, [] {
    TracedRoles t;
    t.kernel.ctas(17, 17);
  });
  misuse("ctas(", {"the grid of \"k\" is declared twice", "fix: "}, [] {
    TracedRoles t;
    t.kernel.ctas(16);
    t.kernel.ctas(16);
  });
  misuse("SharedTile ",
         {"\"tiled\" has a tile-level grid and explicit operations", "fix: use Kernel::ctas"}, [] {
           Kernel kernel("tiled");
           kernel.grid(4);
           SharedTile tile(kernel, "tile", bf16, 64, 64);
         });
  misuse("nowhere", {"\"nowhere\" has no grid", "fix: call Kernel::ctas"}, [] {
    Kernel kernel("nowhere");
    SharedTile tile(kernel, "tile", bf16, 64, 64);
    kernel.roles({role("math", warpgroups(1), registers(240), [] {})});
    kernel.finish();
  });
}

}  // namespace
}  // namespace tilewright
