#pragma once

#include <vector>

#include "ir/ir.h"
#include "target/core_rules.h"

namespace tilewright::target {

// The values of a kernel that are memories of a core, and windows of them.
class CoreOperands {
 public:
  CoreOperands(const ir::Kernel& kernel, const Core& core);

  // Of a value that is a window of a memory.
  CoreOperand window(ir::ValueId window) const;
  // Of a part of a tensor.
  CoreOperand part(const ir::Parameter& tensor, const ir::Operation& copy) const;
  const ir::Operation& made(ir::ValueId window) const { return *made_[window]; }
  const ir::Operation& memory(ir::ValueId memory) const { return *made_[memory]; }
  const CoreSpace& space_of(ir::ValueId memory) const;
  // Whole: of one stage.
  Matrix matrix_of(ir::ValueId memory) const;

 private:
  const ir::Kernel& kernel_;
  const Core& core_;
  std::vector<const ir::Operation*> made_;
};

}  // namespace tilewright::target
