#include "passes/begin_sums.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "analysis/tile_registers.h"
#include "ir/builder.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Beginning {
 public:
  explicit Beginning(ir::Kernel& kernel) : kernel_(kernel), uses_(kernel.types.size(), 0) {
    ir::for_each(kernel.body, [this](const Operation& o) {
      for (const ValueId operand : o.operands) ++uses_[operand];
    });
  }

  int count() const { return count_; }

  void visit(ir::Block& block) {
    std::map<ValueId, std::size_t> products;  // without a sum, by where they stand
    std::vector<std::pair<std::size_t, std::size_t>> found;
    std::vector<ValueId> rows;
    for (std::size_t i = 0; i < block.body.size(); ++i) {
      Operation& o = block.body[i];
      for (ir::Block& inner : o.blocks) visit(inner);
      if (o.op == Op::dot && o.operands.size() == 2) products[o.results[0]] = i;
      const auto product = o.op == Op::sub ? products.find(o.operands[0]) : products.end();
      if (product == products.end() || uses_[product->first] != 1) continue;
      const std::vector<std::int64_t>& shape = kernel_.type(o.operands[1]).shape;
      if (shape.size() != 2 || (shape[0] != 1 && shape[1] != 1)) continue;
      if (shape[1] != 1) rows.push_back(o.operands[1]);
      found.emplace_back(product->second, i);
    }
    const bool fit = analysis::rows_fit(kernel_, block, rows);
    found.erase(std::remove_if(found.begin(), found.end(),
                               [&](const auto& each) {
                                 const ValueId d = block.body[each.second].operands[1];
                                 return kernel_.type(d).shape[1] != 1 && !fit;
                               }),
                found.end());
    if (!found.empty()) rewrite(block, found);
  }

 private:
  // Each product moves to where something is taken from it.
  void rewrite(ir::Block& block, const std::vector<std::pair<std::size_t, std::size_t>>& found) {
    std::vector<Operation> old = std::exchange(block.body, {});
    ir::Builder builder(kernel_, block);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const auto moved =
          std::any_of(found.begin(), found.end(), [&](const auto& f) { return f.first == i; });
      if (moved) continue;
      const auto taken =
          std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.second == i; });
      if (taken == found.end()) {
        block.body.push_back(std::move(old[i]));
        continue;
      }
      Operation sum = std::move(old[taken->first]);
      const ir::Type type = kernel_.type(old[i].results[0]);
      builder.at(old[i].where);
      const ValueId zeros = builder.value(Op::splat, {builder.constant(0.0, type.dtype)}, type);
      sum.operands.push_back(builder.value(Op::sub, {zeros, old[i].operands[1]}, type));
      sum.results = old[i].results;
      block.body.push_back(std::move(sum));
      ++count_;
    }
  }

  ir::Kernel& kernel_;
  std::vector<int> uses_;
  int count_ = 0;
};

}  // namespace

int begin_sums(ir::Kernel& kernel) {
  Beginning beginning(kernel);
  beginning.visit(kernel.body);
  return beginning.count();
}

}  // namespace tilewright::passes
