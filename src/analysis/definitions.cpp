#include "analysis/definitions.h"

namespace tilewright::analysis {

using ir::Key;
using ir::Op;
using ir::Operation;

std::vector<const Operation*> definitions(const ir::Kernel& kernel) {
  std::vector<const Operation*> result(kernel.types.size(), nullptr);
  ir::for_each(kernel.body, [&](const Operation& operation) {
    for (const ir::ValueId value : operation.results) result[value] = &operation;
  });
  return result;
}

std::optional<std::int64_t> integer_constant(const Operation* operation) {
  if (!operation || operation->op != Op::constant) return {};
  const auto* value = std::get_if<std::int64_t>(operation->attributes.find(Key::value));
  return value ? std::optional<std::int64_t>(*value) : std::nullopt;
}

bool is_loaded(const std::vector<const Operation*>& definitions, ir::ValueId value) {
  const Operation* operation = definitions[value];
  while (operation && (operation->op == Op::transpose || operation->op == Op::slice)) {
    operation = definitions[operation->operands[0]];
  }
  return operation && operation->op == Op::load;
}

}  // namespace tilewright::analysis
