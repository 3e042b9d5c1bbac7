#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::checks {

// What was done to a kernel.
struct Breakage {
  std::string what;
  SourceLocation where;
};

// Breaks the machine form, to show what the simulator then says. `release`: a stage of a ring is
// released although the products that read it may still run, by moving an arrival on an mbarrier on
// which no copy completes before the wgmma_wait ahead of it: the first of those in the innermost
// loop, wherever its line of the source stands. `warp_sync`: one lane releases what the others may
// still read, for want of the warp_sync before its arrival: all that stand right before one. An
// unknown name, and a kernel with nothing to break so, are usage errors.
Breakage break_kernel(ir::Kernel& machine, const std::string& name);
// The same of the first of a program's kernels that has something to break so.
Breakage break_one_of(std::vector<ir::Kernel>& machine, const std::string& name);

}  // namespace tilewright::checks
