#include "passes/check_starts.h"

#include "analysis/definitions.h"
#include "analysis/extents.h"
#include "support/diagnostic.h"

namespace tilewright::passes {

using ir::Op;
using ir::Operation;

void check_starts(ir::Kernel& kernel) {
  const analysis::Extents extents(kernel);
  const std::vector<const Operation*> definitions = analysis::definitions(kernel);
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::dot) return;
    for (const std::size_t side : {0u, 1u}) {
      const Operation* from = definitions[o.operands[side]];
      while (from && (from->op == Op::transpose || from->op == Op::slice)) {
        from = definitions[from->operands[0]];
      }
      if (!from || from->op != Op::load || !extents.reaches_out_twice(*from)) continue;
      const std::string& name = kernel.parameter_of(from->operands[0])->name;
      Diagnostic(from->where, "schedule: load: a block of " + name +
                                  " that products read may begin before the tensor and end before "
                                  "it does")
          .token("load")
          .note(o.where, "a product reads it")
          .fix("let it end with " + name + ", or begin inside of it: max(start, 0) does")
          .raise();
    }
  });
}

}  // namespace tilewright::passes
