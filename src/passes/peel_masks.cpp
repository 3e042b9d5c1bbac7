#include "passes/peel_masks.h"

#include <optional>
#include <set>

#include "analysis/definitions.h"
#include "analysis/linear.h"
#include "ir/builder.h"
#include "ir/cloner.h"
#include "passes/own_rows.h"

namespace tilewright::passes {
namespace {

using analysis::Linear;
using analysis::LinearFacts;
using ir::Builder;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

class Peeling {
 public:
  explicit Peeling(ir::Kernel& kernel) : kernel_(kernel), own_(own_rows(kernel)) {}

  void visit(ir::Block& block, bool in_loop) {
    for (Operation& operation : block.body) {
      for (ir::Block& inner : operation.blocks) {
        visit(inner, in_loop || operation.op != Op::if_then);
      }
    }
    // Loops inside have been split: definitions are looked up anew.
    definitions_ = analysis::definitions(kernel_);
    std::vector<Operation> old = block.body;
    ir::Block fresh{block.arguments, {}};
    for (const Operation& operation : old) {
      const bool replaced = operation.op == Op::for_loop             ? peel(fresh, operation)
                            : operation.op == Op::select && !in_loop ? guard(fresh, operation)
                                                                     : false;
      if (!replaced) fresh.body.push_back(operation);
    }
    block = std::move(fresh);
    definitions_ = analysis::definitions(kernel_);
  }

 private:
  // A loop's selects that may go, with what must hold for it.
  struct Masks {
    std::set<const Operation*> selects;
    std::vector<Linear> slacks;
  };

  void collect(const ir::Block& block, const LinearFacts& facts, Masks& masks) const {
    for (const Operation& o : block.body) {
      for (const ir::Block& inner : o.blocks) collect(inner, facts, masks);
      if (o.op != Op::select || !kernel_.type(o.results[0]).is_tile()) continue;
      if (kernel_.type(o.operands[1]) != kernel_.type(o.results[0])) continue;
      const auto slacks = facts.all_true(o.operands[0]);
      if (!slacks) continue;
      bool depends = true;
      for (const Linear& slack : *slacks) {
        depends &= slack.per_index != 0 || (slack.values.empty() && slack.constant >= 0);
      }
      if (!depends) continue;
      masks.selects.insert(&o);
      masks.slacks.insert(masks.slacks.end(), slacks->begin(), slacks->end());
    }
  }

  // A mask outside of loops is asked as a whole before it is computed.
  bool guard(ir::Block& block, const Operation& select) {
    const ir::Type& type = kernel_.type(select.results[0]);
    if (!type.is_tile() || kernel_.type(select.operands[1]) != type) return false;
    const auto slacks = LinearFacts(kernel_, definitions_, own_).all_true(select.operands[0]);
    if (!slacks) return false;
    Builder builder(kernel_, block, select.where);
    ValueId whole = ir::kNoValue;
    for (const Linear& slack : *slacks) {
      const ValueId slack_value = without_index(builder, slack);
      const ValueId holds = builder.binary(Op::le, builder.constant(0), slack_value);
      whole = whole == ir::kNoValue ? holds : builder.binary(Op::logical_and, whole, holds);
    }
    builder.if_then(
        whole, [&](Builder&) { return std::vector<ValueId>{select.operands[1]}; },
        [&](Builder& masked) {
          ir::Cloner cloner(kernel_);
          copy_condition(masked.block(), cloner, select.operands[0]);
          masked.block().body.push_back(cloner.copy(select));
          return masked.block().body.back().results;
        });
    block.body.back().results = select.results;
    return true;
  }

  // The tiles that make a condition, where only the masked branch needs them.
  void copy_condition(ir::Block& block, ir::Cloner& cloner, ValueId value) {
    const Operation* o = definitions_[value];
    if (!o || !kernel_.type(value).is_tile() || cloner(value) != value) return;
    for (const ValueId operand : o->operands) copy_condition(block, cloner, operand);
    block.body.push_back(cloner.copy(*o));
  }

  bool peel(ir::Block& block, const Operation& loop) {
    Builder builder(kernel_, block, loop.where);
    const Operation* step = definitions_[loop.operands[2]];
    if (!step || step->op != Op::constant || step->attributes.integer(Key::value) != 1) {
      return false;
    }
    Masks masks;
    collect(loop.blocks[0], LinearFacts(kernel_, definitions_, own_, loop), masks);
    if (masks.selects.empty()) return false;
    const ValueId low = loop.operands[0], high = loop.operands[1];
    ValueId first = low, last = high;  // of the whole iterations
    bool below = false, above = false;
    for (const Linear& slack : masks.slacks) {
      if (slack.per_index == 0) continue;
      // constant + per_index * i >= 0
      const std::int64_t slope = std::abs(slack.per_index);
      const ValueId limit = without_index(builder, slack);
      const ValueId quotient = builder.binary(Op::div, limit, builder.constant(slope));
      if (slack.per_index < 0) {
        last =
            builder.binary(Op::min, last, builder.binary(Op::add, quotient, builder.constant(1)));
        above = true;
      } else {
        first =
            builder.binary(Op::max, first, builder.binary(Op::sub, builder.constant(0), quotient));
        below = true;
      }
    }
    first = below ? builder.binary(Op::min, first, high) : low;
    last = above ? builder.binary(Op::max, last, first) : high;
    std::vector<ValueId> carried(loop.operands.begin() + 3, loop.operands.end());
    if (below) carried = part(block, loop, low, first, std::move(carried), {});
    carried = part(block, loop, first, last, std::move(carried), masks.selects);
    if (above) carried = part(block, loop, last, high, std::move(carried), {});
    // Who read the loop reads its last part.
    Operation& end = block.body.back();
    end.results = loop.results;
    return true;
  }

  // The iterations low..high-1, without the given selects.
  std::vector<ValueId> part(ir::Block& block, const Operation& loop, ValueId low, ValueId high,
                            std::vector<ValueId> carried,
                            const std::set<const Operation*>& without) {
    ir::Cloner cloner(kernel_);
    Operation copy{Op::for_loop, {low, high, loop.operands[2]}, {}, loop.attributes, {},
                   loop.where};
    copy.operands.insert(copy.operands.end(), carried.begin(), carried.end());
    copy.blocks.push_back(this->copy(cloner, loop.blocks[0], without));
    for (const ValueId result : loop.results) {
      copy.results.push_back(kernel_.add_value(ir::Type(kernel_.type(result))));
    }
    block.body.push_back(copy);
    return copy.results;
  }

  ir::Block copy(ir::Cloner& cloner, const ir::Block& block,
                 const std::set<const Operation*>& without) {
    ir::Block result;
    for (const ValueId argument : block.arguments) {
      const ValueId fresh = kernel_.add_value(ir::Type(kernel_.type(argument)));
      cloner.bind(argument, fresh);
      result.arguments.push_back(fresh);
    }
    for (const Operation& o : block.body) {
      if (without.count(&o) != 0) {
        cloner.bind(o.results[0], cloner(o.operands[1]));
        continue;
      }
      if (o.blocks.empty()) {
        result.body.push_back(cloner.copy(o));
        continue;
      }
      Operation nested{o.op, cloner(o.operands), {}, o.attributes, {}, o.where};
      for (const ir::Block& inner : o.blocks) nested.blocks.push_back(copy(cloner, inner, without));
      for (const ValueId value : o.results) {
        nested.results.push_back(kernel_.add_value(ir::Type(kernel_.type(value))));
        cloner.bind(value, nested.results.back());
      }
      result.body.push_back(std::move(nested));
    }
    return result;
  }

  ir::Kernel& kernel_;
  const analysis::OwnRows own_;
  std::vector<const Operation*> definitions_;
};

}  // namespace

void peel_masks(ir::Kernel& kernel) {
  bool products = false;
  ir::for_each(kernel.body, [&](const Operation& o) { products |= o.op == Op::dot; });
  if (products) Peeling(kernel).visit(kernel.body, false);
}

}  // namespace tilewright::passes
