#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"
#include "runtime/ptxas_report.h"
#include "support/diagnostic.h"

// What kernels' authors require (tilewright/require.h), held against what was made.
namespace tilewright::compiler {

// Operations of the kernel that become instructions, by name; "wgmma" counts all that it is made
// into.
std::map<std::string, std::int64_t> count_instructions(const ir::Kernel& kernel);

struct CheckedClaim {
  Claim claim;
  std::optional<std::int64_t> found;  // nothing: not known before the kernel is assembled
  bool holds() const { return !found || claim.holds_of(*found); }
};
// `resources` is null where the kernel is not assembled. A claim about a place that the kernel does
// not have is a usage error.
std::vector<CheckedClaim> check_claims(const ir::Kernel& machine,
                                       const runtime::FunctionResources* resources);

// What to tell the author of a claim that does not hold.
Diagnostic diagnostic_of(const CheckedClaim& checked, const ir::Kernel& machine);
// Raises it for the first of the machine's claims that does not hold.
void enforce_claims(const ir::Kernel& machine, const runtime::FunctionResources* resources);

}  // namespace tilewright::compiler
