#include "analysis/definitions.h"

namespace tilewright::analysis {

using ir::Op;
using ir::Operation;

std::vector<const Operation*> definitions(const ir::Kernel& kernel) {
  std::vector<const Operation*> result(kernel.types.size(), nullptr);
  ir::for_each(kernel.body, [&](const Operation& operation) {
    for (const ir::ValueId value : operation.results) result[value] = &operation;
  });
  return result;
}

const Operation* load_behind(const std::vector<const Operation*>& definitions, ir::ValueId value,
                             bool& transposed) {
  const Operation* operation = definitions[value];
  if (operation && operation->op == Op::transpose) {
    transposed = !transposed;
    operation = definitions[operation->operands[0]];
  }
  return operation && operation->op == Op::load ? operation : nullptr;
}

}  // namespace tilewright::analysis
