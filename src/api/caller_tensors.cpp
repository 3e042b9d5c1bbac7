#include "api/caller_tensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "support/counted.h"
#include "support/diagnostic.h"

namespace tilewright {
namespace {

using Kind = ir::ProgramOperation::Kind;

void require_own(const ir::Program& recorded, const ir::ProgramOperation& operation,
                 const ir::ProgramPart& part) {
  const ir::ProgramBuffer& buffer = recorded.buffers[static_cast<std::size_t>(part.buffer)];
  if (!buffer.is_passed()) return;
  Diagnostic(operation.where,
             fmt::format("program {}: this {} reaches {} of other ranks, and a caller's tensor is "
                         "one process's alone",
                         recorded.name, ir::name_of(operation.kind), buffer.name))
      .fix("keep what other ranks reach in scratch(); or load a ProgramMemory, run and store it")
      .raise();
}

void require_own_tensors(const ir::Program& recorded, const ir::ProgramOperation& operation) {
  if (operation.kind == Kind::copy) {
    const int rank = recorded.streams[static_cast<std::size_t>(operation.stream)].rank;
    for (const ir::ProgramPart& part : {operation.to, operation.from}) {
      if (part.rank != rank) require_own(recorded, operation, part);
    }
  }
  if (operation.kind != Kind::launch) return;
  std::size_t next = 0;
  for (const ir::Parameter& parameter :
       recorded.kernels[static_cast<std::size_t>(operation.kernel)]->parameters) {
    if (!parameter.is_tensor() || next == operation.tensors.size()) continue;
    const ir::ProgramPart& part = operation.tensors[next++];
    if (parameter.is_symmetric()) require_own(recorded, operation, part);
  }
}

}  // namespace

ir::Kernel signature_of_rank(const ir::Program& recorded) {
  for (const ir::ProgramOperation& operation : recorded.operations) {
    require_own_tensors(recorded, operation);
  }
  ir::Program alone = recorded;
  alone.ranks = 1;
  return ir::signature_of(alone);
}

void require_count(const ir::Program& recorded, const ir::Kernel& signature, std::size_t given) {
  std::vector<std::string> names;
  for (const ir::Parameter& parameter : signature.parameters) {
    if (parameter.is_tensor()) names.push_back(parameter.name);
  }
  if (names.size() == given) return;
  Diagnostic(recorded.where, fmt::format("program {} takes {} of a rank's, and {} given",
                                         recorded.name, counted(names.size(), "tensor"),
                                         given == 1 ? "1 is" : fmt::format("{} are", given)))
      .fix(fmt::format("pass this rank's {}", fmt::join(names, ", ")))
      .raise();
}

}  // namespace tilewright
