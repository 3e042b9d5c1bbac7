#pragma once

#include <functional>
#include <string_view>

#include "ir/ir.h"
#include "simulator/machine/machine.h"
#include "support/arguments.h"
#include "tilewright/numerics.h"

namespace tilewright::checks {

// Runs a kernel before and after each pass that changes it, and raises Error(result) that names the
// first one behind which an output differs. The tile form is interpreted, and keeps every bit but
// for the rewrites of docs/numerics.md. A scheduled form is executed by what the passes behind make
// of it without further rewrites, on the simulated GPU, as is the machine form itself. What came
// last is in the outputs.
// `spoil`, for tests of this check: changes what a pass left, as a wrong pass would.
using Spoil = std::function<void(std::string_view pass, ir::Kernel& after)>;
void check_passes(const ir::Kernel& kernel, std::string_view target, const Arguments& arguments,
                  const Numerics& numerics, const simulator::MachineOptions& simulated,
                  const Spoil& spoil = {});

}  // namespace tilewright::checks
