#include "compiler/additions.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/access_vectors.h"
#include "support/diagnostic.h"

namespace tilewright::compiler {
namespace {

std::string instruction_of(const ir::Operation& operation, DType dtype) {
  if (operation.op == ir::Op::tma_reduce) {
    return fmt::format("cp.reduce.async.bulk.tensor.add of {}", name_of(dtype));
  }
  const char* const verb = operation.op == ir::Op::atomic_registers ? "atom" : "red";
  const int width = analysis::elements_at_once(operation, dtype);
  if (size_of(dtype) == 2) {  // pairs, however many lie side by side
    return fmt::format("{}.global.add.{}{}", verb, name_of(dtype), width > 1 ? "x2" : "");
  }
  // What says its order is added element by element.
  const bool is_vector = width > 1 && !operation.attributes.has(ir::Key::semantics);
  return fmt::format("{}.global.add{}.{}", verb, is_vector ? fmt::format(".v{}", width) : "",
                     name_of(dtype));
}

}  // namespace

std::vector<Addition> additions_in(const ir::Kernel& machine) {
  std::vector<Addition> found;
  std::map<ir::ValueId, ir::ValueId> tensors;  // of maps
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const bool is_map = operation.op == ir::Op::tensor_map ||
                        ir::info(operation.op).family == ir::Family::map_choice;
    if (is_map) tensors[operation.results[0]] = operation.operands[0];
    if (operation.op != ir::Op::red_registers && operation.op != ir::Op::atomic_registers &&
        operation.op != ir::Op::tma_reduce) {
      return;
    }
    ir::ValueId tensor = operation.operands[0];
    for (auto at = tensors.find(tensor); at != tensors.end(); at = tensors.find(tensor)) {
      tensor = at->second;
    }
    const ir::Parameter& parameter = *machine.parameter_of(tensor);
    if (operation.attributes.function() != ir::Op::add || !is_float(parameter.dtype)) return;
    const std::string instruction = instruction_of(operation, parameter.dtype);
    const bool ordered = operation.attributes.has(ir::Key::ordered);
    const auto like = std::find_if(found.begin(), found.end(), [&](const Addition& each) {
      return each.tensor == parameter.name && each.ordered == ordered &&
             each.instruction == instruction &&
             format_location(each.where) == format_location(operation.where);
    });
    if (like != found.end()) {
      ++like->count;
    } else {
      found.push_back({parameter.name, instruction, 1, ordered, operation.where});
    }
  });
  return found;
}

}  // namespace tilewright::compiler
