#pragma once

#include "ir/verifier_context.h"
#include "target/target.h"

namespace tilewright::target {

// A kernel past the tile form against the record of a core with explicit memories.
void verify_core(ir::VerifierContext& context, const Target& target);

}  // namespace tilewright::target
