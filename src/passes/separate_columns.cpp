#include "passes/separate_columns.h"

#include <unordered_map>
#include <vector>

#include "analysis/definitions.h"
#include "ir/cloner.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::Type;
using ir::ValueId;

class Separating {
 public:
  explicit Separating(ir::Kernel& kernel)
      : kernel_(kernel),
        definitions_(analysis::definitions(kernel)),
        in_column_(kernel.types.size(), false),
        in_row_(kernel.types.size(), false) {
    ir::for_each(kernel.body, [&](const Operation& o) {
      if (is_column(o)) mark(o.operands[0], in_column_);
      if (is_row(o)) mark(o.operands[0], in_row_);
    });
  }

  void visit(ir::Block& block) {
    std::vector<Operation> old = std::move(block.body);
    block.body.clear();
    for (Operation& o : old) {
      for (ir::Block& inner : o.blocks) visit(inner);
      const bool column = o.results.size() == 1 && in_column_[o.results[0]];
      const bool both = column && in_row_[o.results[0]];
      if (is_column(o) || (column && !both)) {
        for (ValueId& operand : o.operands) operand = cloner_(operand);
      }
      block.body.push_back(std::move(o));
      if (both) {
        const ValueId row = block.body.back().results[0];
        Operation column = cloner_.copy(block.body.back());
        cloner_.bind(row, column.results[0]);
        block.body.push_back(std::move(column));
      }
    }
  }

 private:
  const std::vector<std::int64_t>& shape(ValueId value) const { return kernel_.type(value).shape; }
  bool is_reshape(const Operation& o) const {
    return o.op == Op::reshape && shape(o.operands[0]).size() == 1 &&
           shape(o.results[0]).size() == 2;
  }
  bool is_column(const Operation& o) const { return is_reshape(o) && shape(o.results[0])[1] == 1; }
  bool is_row(const Operation& o) const { return is_reshape(o) && shape(o.results[0])[0] == 1; }

  // The value and what it is made of, as far as that can be made twice.
  void mark(ValueId value, std::vector<bool>& marked) const {
    const Operation* o = definitions_[value];
    if (marked[value] || !o || !kernel_.type(value).is_tile() || shape(value).size() != 1) return;
    const bool input =
        o->op == Op::load && kernel_.parameter_of(o->operands[0])->kind == ir::Parameter::Kind::in;
    if (!input && !ir::info(o->op).pure()) return;
    marked[value] = true;
    for (const ValueId operand : o->operands) {
      if (!ir::info(o->op).elementwise()) break;
      mark(operand, marked);
    }
  }

  ir::Kernel& kernel_;
  const std::vector<const Operation*> definitions_;
  std::vector<bool> in_column_, in_row_;
  ir::Cloner cloner_{kernel_};
};

}  // namespace

void separate_columns(ir::Kernel& kernel) { Separating(kernel).visit(kernel.body); }

}  // namespace tilewright::passes
