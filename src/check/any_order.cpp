#include "check/any_order.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include "compiler/additions.h"
#include "ir/operation_record.h"

namespace tilewright::checks {
namespace {

using Kind = ir::Parameter::Kind;

// Whether the kernel loads one of these tensors.
bool loads(const ir::Kernel& machine, const std::set<std::string>& names) {
  std::set<ir::ValueId> tensors;  // and maps of them
  for (const ir::Parameter& parameter : machine.parameters) {
    if (names.count(parameter.name) > 0) tensors.insert(parameter.value);
  }
  bool found = false;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const auto is_one = [&](ir::ValueId operand) { return tensors.count(operand) > 0; };
    if (std::none_of(operation.operands.begin(), operation.operands.end(), is_one)) return;
    const ir::OpInfo& record = ir::info(operation.op);
    if (operation.op == ir::Op::tensor_map || record.family == ir::Family::map_choice) {
      tensors.insert(operation.results[0]);
    }
    const bool adds = operation.op == ir::Op::red_registers || operation.op == ir::Op::tma_reduce;
    found = found || (record.reads(ir::Memory::global) && !adds);
  });
  return found;
}

// Adds to `found`, which has buffers by number, what the launch leaves of sums in any order.
void follow_launch(const ir::ProgramOperation& launch, const ir::Kernel& machine,
                   std::set<int>& found) {
  const std::set<std::string> added = left_by_any_order(machine);
  std::vector<int> written;
  bool follows = false;
  std::size_t next = 0;
  for (const ir::Parameter& parameter : machine.parameters) {
    if (!parameter.is_tensor()) continue;
    // Behind them stands what the runtime owns, which lasts no longer than the launch.
    if (next == launch.tensors.size()) break;
    const int buffer = launch.tensors[next++].buffer;
    follows = follows || (parameter.kind != Kind::out && found.count(buffer) > 0);
    if (parameter.kind != Kind::in) written.push_back(buffer);
    if (added.count(parameter.name) > 0) found.insert(buffer);
  }
  if (follows) found.insert(written.begin(), written.end());
}

}  // namespace

std::set<std::string> added_in_any_order(const ir::Kernel& machine) {
  std::set<std::string> found;
  for (const compiler::Addition& addition : compiler::additions_in(machine)) {
    if (!addition.ordered) found.insert(addition.tensor);
  }
  return found;
}

std::set<std::string> left_by_any_order(const ir::Kernel& machine) {
  std::set<std::string> found = added_in_any_order(machine);
  if (!loads(machine, found)) return found;
  for (const ir::Parameter& parameter : machine.parameters) {
    if (parameter.is_tensor() && parameter.kind != Kind::in) found.insert(parameter.name);
  }
  return found;
}

std::set<std::string> left_by_any_order(const ir::Program& program,
                                        const std::vector<ir::Kernel>& machine) {
  std::set<int> found;
  for (const ir::ProgramOperation& operation : program.operations) {
    if (operation.kind == ir::ProgramOperation::Kind::launch) {
      follow_launch(operation, machine.at(static_cast<std::size_t>(operation.kernel)), found);
    } else if (operation.kind == ir::ProgramOperation::Kind::copy &&
               found.count(operation.from.buffer) > 0) {
      found.insert(operation.to.buffer);
    }
  }
  std::set<std::string> names;
  for (const int buffer : found) {
    names.insert(program.buffers.at(static_cast<std::size_t>(buffer)).name);
  }
  return names;
}

}  // namespace tilewright::checks
