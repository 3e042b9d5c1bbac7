#include "ir/replace.h"

#include <iterator>
#include <utility>

namespace tilewright::ir {
namespace {

class Replacing {
 public:
  Replacing(const Kernel& kernel,
            const std::function<std::optional<Replacement>(Operation&)>& replacement)
      : replacement_(replacement), replaced_(kernel.types.size(), kNoValue) {}

  void visit(Block& block) {
    std::vector<Operation> kept;
    kept.reserve(block.body.size());
    for (Operation& operation : block.body) {
      for (ValueId& operand : operation.operands) {
        if (replaced_[operand] != kNoValue) operand = replaced_[operand];
      }
      for (Block& inner : operation.blocks) visit(inner);
      std::optional<Replacement> made = replacement_(operation);
      if (!made) {
        kept.push_back(std::move(operation));
        continue;
      }
      for (std::size_t i = 0; i < operation.results.size(); ++i) {
        replaced_[operation.results[i]] = made->values[i];
      }
      std::move(made->body.begin(), made->body.end(), std::back_inserter(kept));
    }
    block.body = std::move(kept);
  }

 private:
  const std::function<std::optional<Replacement>(Operation&)>& replacement_;
  std::vector<ValueId> replaced_;
};

}  // namespace

void replace(Kernel& kernel,
             const std::function<std::optional<Replacement>(Operation&)>& replacement) {
  Replacing(kernel, replacement).visit(kernel.body);
}

}  // namespace tilewright::ir
