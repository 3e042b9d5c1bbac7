#pragma once

#include "language/explicit_tracing.h"
#include "target/core_rules.h"
#include "tilewright/incore.h"

namespace tilewright {

// Reads and makes windows of the memories of a core.
class CoreTracing {
 public:
  static CoreWindow whole(const CoreMemory& memory, const Handle& stage, const Handle& zero);
  static CoreWindow part(const CoreWindow& from, const IndexOperand& row,
                         const IndexOperand& column, int rows, int columns, SourceLocation where);
  static CoreWindow transposed(const CoreWindow& from);
  // The `window` operation. Raises where it begins at no multiple of the granule.
  static ir::ValueId emit(Tracer& tracer, const CoreWindow& window, const char* what,
                          SourceLocation where);
  static target::CoreOperand operand(Tracer& tracer, const CoreWindow& window, const char* what,
                                     SourceLocation where);
};

// The record of the kernel's target. Raises where that has no explicit memories.
const target::Core& core_of(Tracer& tracer, const char* what, SourceLocation where);
void raise_core(const target::CoreProblem& problem, const char* what, SourceLocation where);
// Kernel::roles of such a target.
void trace_sequencers(Tracer& tracer, std::span<const RoleSpec> roles, SourceLocation where);

}  // namespace tilewright
