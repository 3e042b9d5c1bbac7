#pragma once

#include "passes/lowering/role_code.h"

namespace tilewright::passes {

// Lowers reductions: over what a thread holds, then over lanes, then over warps.
class ReductionLowering {
 public:
  ReductionLowering(const ir::Operation& role, RoleCode& code) : role_(role), code_(code) {}
  // `in_loop`: whether it comes round again, so that warps must wait before they write once more.
  void reduce(const ir::Operation& o, bool in_loop);
  void complete(const ir::Operation& o, bool in_loop);

 private:
  void reduce_lanes(ir::ValueId result, const ir::RegisterLayout& partial, const ir::Operation& o);
  void shuffle(ir::ValueId result, const std::vector<int>& distances, const ir::Operation& o);
  void exchange(const ir::Operation& o, bool in_loop);

  const ir::Operation& role_;
  RoleCode& code_;
};

}  // namespace tilewright::passes
