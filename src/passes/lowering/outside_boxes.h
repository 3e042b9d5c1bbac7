#pragma once

#include <vector>

#include "analysis/loaded_integers.h"
#include "analysis/not_less.h"
#include "ir/ir.h"
#include "passes/lowering/role_code.h"

namespace tilewright::passes {

// Which copies of tiles may have a box that lies wholly outside of its tensor: with a ragged map
// such a copy takes another one (operations.def). Asked while the kernel is lowered, of what it was
// before.
class OutsideBoxes {
 public:
  explicit OutsideBoxes(const ir::Kernel& scheduled);

  // Appends what computes whether the box of the copy's columns from `column` on lies wholly
  // outside; gives the number false where that cannot be. The map is ragged.
  ir::ValueId condition(RoleCode& code, const ir::Operation& copy, const ir::Operation& map,
                        std::int64_t column) const;

 private:
  const ir::Kernel kernel_;
  const analysis::LoadedIntegers loaded_;
  const std::vector<bool> nonnegative_;
  mutable analysis::NotLess not_less_;  // remembers what it was asked
};

}  // namespace tilewright::passes
