#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "language/misuse.h"
#include "tilewright/hopper.h"

// A kernel of the explicit level with a bit of everything, for errors of its roles.
namespace tilewright::test {

struct TracedRoles {
  Kernel kernel{"k"};
  Dim rows = kernel.dim("rows");
  Tensor X = kernel.in("X", bf16, {rows, 64});
  Tensor F = kernel.in("F", f32, {rows, 64});
  Tensor Y = kernel.out("Y", bf16, {rows, 64});
  Tensor counter = kernel.inout("counter", i32, {1});
  Block block = rows.block(0, 64);
  Ring ring{kernel, "ring", stages(2), {{bf16, 64, 64}}};
  SharedTile tile{kernel, "tile", bf16, 64, 64};

  void in_role(const std::function<void()>& body) {
    kernel.roles({role("math", warpgroups(1), registers(240), body)});
  }
};

// Raised by a statement in the body of a role.
inline void in_role(const std::string& caret, const std::vector<std::string>& parts,
                    const std::function<void(TracedRoles&)>& body,
                    std::string_view file = __builtin_FILE()) {
  const auto action = [&] {
    TracedRoles t;
    t.in_role([&] { body(t); });
  };
  misuse(caret, parts, action, file);
}

}  // namespace tilewright::test
