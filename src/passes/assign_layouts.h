#pragma once

#include <optional>
#include <string>

#include "ir/ir.h"

namespace tilewright::passes {

// Gives every tile of the scheduled form a register layout: products impose the accumulator's, the
// rest follows through elementwise operations, reductions and loops. A tile that nothing
// determines, or that two operations want differently, is an error at its line. Conversions of
// tiles that lie right already are dropped.
void assign_layouts(ir::Kernel& kernel);

// Where an assignment fails.
struct LayoutConflict {
  // What would have to lie otherwise: an operand, a result, or, where no layout serves, what the
  // operation does.
  enum class At { operand, result, itself, nothing };
  const ir::Operation* operation;
  At at = At::nothing;
  std::size_t index = 0;                     // of the operand or result
  std::optional<ir::RegisterLayout> wanted;  // how it would have to lie
  std::string problem, token, fix;           // as the author is told

  [[noreturn]] void raise() const;
};
// The first of them; the kernel's layouts are assigned as far as they go.
std::optional<LayoutConflict> find_layout_conflict(ir::Kernel& kernel);

}  // namespace tilewright::passes
