#pragma once

#include "passes/convert_layouts.h"
#include "passes/lowering/role_code.h"

namespace tilewright::passes {

// Lowers conversions between register layouts: all warps of a tile write it to shared memory, and
// read it as they need it.
class ConversionLowering {
 public:
  ConversionLowering(const ir::Operation& role, RoleCode& code) : role_(role), code_(code) {}
  // `in_loop`: whether it comes round again.
  void convert(const ir::Operation& o, bool in_loop);

 private:
  const ir::Operation& role_;
  RoleCode& code_;
  // Whether an earlier one, within warps or not, may still be read.
  bool before_[2] = {false, false};
};

}  // namespace tilewright::passes
