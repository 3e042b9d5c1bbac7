#pragma once

#include <set>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "ir/program.h"

// Sums of floats whose terms come in any order, so that their last bits differ from launch to
// launch.
namespace tilewright::checks {

// Tensors that several CTAs add to, in no order.
std::set<std::string> added_in_any_order(const ir::Kernel& machine);

// Tensors that hold such sums after a launch, or what may follow from them.
std::set<std::string> left_by_any_order(const ir::Kernel& machine);

// The same of a program's buffers; `machine` has its kernels' machine forms.
std::set<std::string> left_by_any_order(const ir::Program& program,
                                        const std::vector<ir::Kernel>& machine);

}  // namespace tilewright::checks
