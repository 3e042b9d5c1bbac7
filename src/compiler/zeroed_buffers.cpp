#include "compiler/zeroed_buffers.h"

#include <algorithm>

namespace tilewright::compiler {
namespace {

using ir::ProgramOperation;

bool touches(const ProgramOperation& operation, int buffer) {
  if (operation.kind == ProgramOperation::Kind::launch) {
    return std::any_of(operation.tensors.begin(), operation.tensors.end(),
                       [&](const ir::ProgramPart& part) { return part.buffer == buffer; });
  }
  return operation.to.buffer == buffer ||
         (operation.kind == ProgramOperation::Kind::copy && operation.from.buffer == buffer);
}

}  // namespace

const ir::ProgramOperation* first_zeros(const ir::Program& program, int buffer) {
  for (const ir::ProgramOperation& operation : program.operations) {
    if (!touches(operation, buffer)) continue;
    const bool zeroes_all = operation.kind == ir::ProgramOperation::Kind::zero &&
                            operation.to.sizes == program.buffers[buffer].shape;
    return zeroes_all ? &operation : nullptr;
  }
  return nullptr;
}

}  // namespace tilewright::compiler
