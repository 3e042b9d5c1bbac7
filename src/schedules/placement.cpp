#include "schedules/placement.h"

#include <algorithm>

#include "analysis/definitions.h"
#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

void unfit(const Operation& o, const std::string& why, const std::string& fix) {
  Diagnostic(o.where, "schedule for sm_90a: " + std::string(ir::info(o.op).name) + ": " + why)
      .token(ir::info(o.op).name)
      .fix(fix)
      .raise();
}

Placement::Placement(const ir::Kernel& kernel)
    : kernel(kernel), definitions(analysis::definitions(kernel)) {
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::dot) visit_dot(o);
  });
  if (rows == 0) {
    Diagnostic(kernel.where, "schedule for sm_90a: \"" + kernel.name + "\" has no product")
        .fix("run it on the interpreter, or write it at the explicit level")
        .raise();
  }
  ir::for_each(kernel.body, [&](const Operation& o) { check_reader(o); });
}

bool Placement::depends(ValueId value, ValueId argument) const {
  if (value == argument) return true;
  const Operation* o = definitions[value];
  if (!o || !ir::info(o->op).elementwise()) return false;
  return std::any_of(o->operands.begin(), o->operands.end(),
                     [&](ValueId operand) { return depends(operand, argument); });
}

const Operation* Placement::load_of(ValueId value, bool& transposed) const {
  return analysis::load_behind(definitions, value, transposed);
}

void Placement::visit_dot(const Operation& o) {
  const Type &a = kernel.type(o.operands[0]), &result = kernel.type(o.results[0]);
  if (result.shape[0] % kGroupRows != 0 || result.shape[0] > 3 * kGroupRows) {
    unfit(o, std::to_string(result.shape[0]) + " rows", "use tiles of 64, 128 or 192 rows");
  }
  if (rows != 0 && rows != result.shape[0]) {
    unfit(o, std::to_string(result.shape[0]) + " rows, another product has " + std::to_string(rows),
          "give all products of a kernel the same rows");
  }
  rows = result.shape[0];
  if (size_of(a.dtype) > 2) {
    unfit(o, "operands are " + std::string(name_of(a.dtype)), "convert them to bf16 or f16");
  }
  bool transposed = false;
  if (!load_of(o.operands[1], transposed)) {
    unfit(o, "its second operand is not a loaded tile", "load it, or swap the operands");
  }
  transposed = false;
  if (load_of(o.operands[0], transposed) && transposed) {
    unfit(o, "its first operand is transposed", "store the tensor transposed");
  }
}

// A loaded tile is read by products alone: it never is in registers.
void Placement::check_reader(const Operation& o) const {
  if (o.op == Op::transpose) return;
  for (const ValueId operand : o.operands) {
    const Operation* from = definitions[operand];
    if (!from || (from->op != Op::load && from->op != Op::transpose)) continue;
    if (o.op != Op::dot || (operand != o.operands[0] && operand != o.operands[1])) {
      unfit(o, "reads a loaded tile, which is in shared memory for products",
            "the automatic schedule does not load tiles for other operations yet");
    }
    bool transposed = false;
    if (!load_of(operand, transposed)) {
      unfit(o, "a transposed tile is not a loaded one", "transpose while loading");
    }
  }
}

bool has_loads(const ir::Block& block) {
  bool any = false;
  ir::for_each(block, [&](const Operation& o) { any |= o.op == Op::load; });
  return any;
}

}  // namespace tilewright::schedules
