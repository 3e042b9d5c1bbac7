#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "ir/ir.h"
#include "tilewright/numerics.h"

namespace tilewright::passes {

// Called after each pass: its name, what it left, how long it took, whether it changed anything.
using PassObserver = std::function<void(std::string_view name, const ir::Kernel& kernel,
                                        double milliseconds, bool changed)>;

// The rewrites that may be left out: those that change rounding, those that may cost more registers
// than there are, conversions of layouts, which an author of the explicit level writes himself, and
// checks that nobody asks for. How often each was applied.
struct Rewrites {
  Numerics allowed;
  std::map<std::string, int> applied;  // by the pass's name
  bool overlap_products = true;
  bool convert_layouts = false;
  bool join_copies = true;
  bool check_accesses = false;
};

// All verify the kernel before the first pass and after each.
// Simplifies a kernel of the tile or scheduled form.
void simplify_kernel(ir::Kernel& kernel, const PassObserver& observer = {});
// The same, and what else a kernel of the tile form goes through before a schedule for the target
// is made of it: passes that its record lists, as those of lower_to_machine. From here on the
// kernel knows its target.
void prepare_for_schedule(ir::Kernel& kernel, std::string_view target, const PassObserver& observer,
                          Rewrites& rewrites);
// Takes a kernel of the scheduled form to the machine form.
void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer, Rewrites& rewrites);
void lower_to_machine(ir::Kernel& kernel, const PassObserver& observer = {});

}  // namespace tilewright::passes
