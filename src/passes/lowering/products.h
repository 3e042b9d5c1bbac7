#pragma once

#include <map>
#include <vector>

#include "analysis/product_operands.h"
#include "passes/lowering/role_code.h"
#include "passes/lowering/views.h"
#include "target/target.h"

namespace tilewright::passes {

// Lowers wgmma and the waits for it.
class ProductLowering {
 public:
  ProductLowering(const ir::Kernel& kernel, const ir::Block& role, RoleCode& code, Views& views)
      : operands_(kernel, role),
        depth_bytes_(target::target_of(kernel).limits.product_depth_bytes),
        code_(code),
        views_(views) {}
  // Before the products of a block.
  void begin_block(const ir::Block& block);
  void product(const ir::Operation& o);
  void wait(const ir::Operation& o);
  // What is copied in a block matters to the products of that block only.
  void end_block() { copied_.clear(); }

 private:
  const analysis::ProductOperands operands_;
  const std::int64_t depth_bytes_;  // of an operand's row, that one instruction takes
  RoleCode& code_;
  Views& views_;
  // By a product, what later ones of the block begin with and what is there before it.
  std::map<ir::ValueId, std::vector<ir::ValueId>> ready_;
  std::map<ir::ValueId, ir::ValueId> copied_;  // from an accumulator in this block, and to where
};

}  // namespace tilewright::passes
