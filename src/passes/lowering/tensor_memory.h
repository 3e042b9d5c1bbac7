#pragma once

#include "passes/lowering/role_code.h"
#include "passes/lowering/views.h"
#include "target/target.h"

namespace tilewright::passes {

// Lowers products whose results are in tensor memory, and tiles between there and registers.
class TensorMemoryLowering {
 public:
  TensorMemoryLowering(const ir::Kernel& kernel, RoleCode& code, Views& views)
      : limits_(target::target_of(kernel).limits), code_(code), views_(views) {}
  void product(const ir::Operation& o);
  void load(const ir::Operation& o);
  void store(const ir::Operation& o);

 private:
  ir::ValueId own_window(ir::ValueId address, SourceLocation where);
  ir::ValueId at(ir::ValueId address, std::int64_t column, SourceLocation where);
  template <typename Emit>
  void in_pieces(ir::ValueId tile, ir::ValueId address, const ir::Operation& o, Emit emit);

  const TargetLimits& limits_;
  RoleCode& code_;
  Views& views_;
};

}  // namespace tilewright::passes
