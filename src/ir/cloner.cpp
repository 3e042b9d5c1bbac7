#include "ir/cloner.h"

namespace tilewright::ir {

ValueId Cloner::operator()(ValueId value) const {
  const auto at = values_.find(value);
  return at == values_.end() ? value : at->second;
}

std::vector<ValueId> Cloner::operator()(const std::vector<ValueId>& values) const {
  std::vector<ValueId> result;
  result.reserve(values.size());
  for (const ValueId value : values) result.push_back((*this)(value));
  return result;
}

ValueId Cloner::renew(ValueId value) {
  const ValueId copy = kernel_.add_value(Type(kernel_.type(value)));
  bind(value, copy);
  return copy;
}

Operation Cloner::copy(const Operation& operation) {
  Operation result{operation.op,   (*this)(operation.operands), {}, operation.attributes, {},
                   operation.where};
  for (const Block& block : operation.blocks) result.blocks.push_back(copy(block));
  for (const ValueId value : operation.results) result.results.push_back(renew(value));
  return result;
}

Block Cloner::copy(const Block& block) {
  Block result;
  for (const ValueId argument : block.arguments) result.arguments.push_back(renew(argument));
  for (const Operation& operation : block.body) result.body.push_back(copy(operation));
  return result;
}

}  // namespace tilewright::ir
