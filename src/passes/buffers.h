#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::passes {

// Which register array each tile of a role lives in. Values that a product, a loop or a condition
// passes on share one unless they interfere; what could not be shared has to be copied.
class Buffers {
 public:
  Buffers(const ir::Kernel& kernel, const ir::Block& role);
  static bool in_registers(const ir::Type& type) {
    return type.is_tile() || type.is(ir::Type::Kind::pending);
  }
  // A number below count() for a tile or pending product of the role.
  int of(ir::ValueId value) const { return number_[value]; }
  int count() const { return static_cast<int>(representative_.size()); }
  // One of the values that live there.
  ir::ValueId representative(int buffer) const { return representative_[buffer]; }

 private:
  std::vector<int> number_;
  std::vector<ir::ValueId> representative_;
};

}  // namespace tilewright::passes
