#include "passes/peel_masks.h"

#include <map>
#include <optional>
#include <set>

#include "analysis/definitions.h"
#include "ir/builder.h"
#include "ir/cloner.h"

namespace tilewright::passes {
namespace {

using ir::Builder;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// constant + per_index * index + the sum of factor * value over values from outside of the loop.
struct Linear {
  std::int64_t constant = 0, per_index = 0;
  std::map<ValueId, std::int64_t> values;
};

Linear sum(const Linear& a, const Linear& b, std::int64_t factor = 1) {
  Linear result = a;
  result.constant += factor * b.constant;
  result.per_index += factor * b.per_index;
  for (const auto& [value, times] : b.values) {
    if ((result.values[value] += factor * times) == 0) result.values.erase(value);
  }
  return result;
}

struct Range {
  Linear least, greatest;
};

// What is known of the values in one loop; or, of none, in terms of scalars as they are.
class LoopFacts {
 public:
  using Definitions = std::vector<const Operation*>;
  LoopFacts(const ir::Kernel& kernel, const Definitions& definitions)
      : kernel_(kernel), definitions_(definitions), index_(ir::kNoValue) {}
  LoopFacts(const ir::Kernel& kernel, const Definitions& definitions, const Operation& loop)
      : kernel_(kernel), definitions_(definitions), index_(loop.blocks[0].arguments[0]) {
    note(loop.blocks[0]);
  }

  // Differences that are all >= 0 only where every element of the condition holds.
  std::optional<std::vector<Linear>> all_true(ValueId condition) const {
    const Operation* o = definitions_[condition];
    if (!o) return {};
    if (o->op == Op::logical_and) {
      auto a = all_true(o->operands[0]);
      const auto b = all_true(o->operands[1]);
      if (!a || !b) return {};
      a->insert(a->end(), b->begin(), b->end());
      return a;
    }
    if (o->op != Op::lt && o->op != Op::le) return {};
    const auto a = range(o->operands[0]), b = range(o->operands[1]);
    if (!a || !b) return {};
    Linear slack = sum(b->least, a->greatest, -1);
    if (o->op == Op::lt) slack.constant -= 1;
    return std::vector<Linear>{slack};
  }

 private:
  void note(const ir::Block& block) {
    inside_.insert(block.arguments.begin(), block.arguments.end());
    for (const Operation& o : block.body) {
      inside_.insert(o.results.begin(), o.results.end());
      for (const ir::Block& inner : o.blocks) note(inner);
    }
  }

  static std::optional<std::int64_t> number(const Operation* o) {
    if (!o || o->op != Op::constant) return {};
    const auto* value = std::get_if<std::int64_t>(o->attributes.find(Key::value));
    return value ? std::optional<std::int64_t>(*value) : std::nullopt;
  }

  std::optional<Linear> linear(ValueId value) const {
    if (kernel_.type(value).dtype != DType::i32) return {};
    const Operation* o = definitions_[value];
    if (const auto constant = number(o)) return Linear{*constant, 0, {}};
    if (value == index_) return Linear{0, 1, {}};
    if (inside_.count(value) == 0) return Linear{0, 0, {{value, 1}}};
    if (!o) return {};
    if (o->op == Op::add || o->op == Op::sub) {
      const auto a = linear(o->operands[0]), b = linear(o->operands[1]);
      if (!a || !b) return {};
      return sum(*a, *b, o->op == Op::add ? 1 : -1);
    }
    if (o->op == Op::mul) {
      for (const std::size_t side : {0u, 1u}) {
        const auto factor = number(definitions_[o->operands[side]]);
        const auto other = linear(o->operands[1 - side]);
        if (factor && other) return sum({}, *other, *factor);
      }
    }
    return {};
  }

  // Of the elements of a tile of integers, or of a scalar.
  std::optional<Range> range(ValueId value) const {
    const ir::Type& type = kernel_.type(value);
    if (type.dtype != DType::i32) return {};
    if (type.is_scalar()) {
      const auto exact = linear(value);
      return exact ? std::optional<Range>(Range{*exact, *exact}) : std::nullopt;
    }
    const Operation* o = definitions_[value];
    if (!o) return {};
    if (o->op == Op::splat) return range(o->operands[0]);
    if (o->op == Op::iota) {
      const auto axis = static_cast<std::size_t>(o->attributes.integer(Key::axis));
      return Range{{}, Linear{type.shape[axis] - 1, 0, {}}};
    }
    if (o->op == Op::transpose) return range(o->operands[0]);
    if (o->op != Op::add && o->op != Op::sub) return {};
    const auto a = range(o->operands[0]), b = range(o->operands[1]);
    if (!a || !b) return {};
    if (o->op == Op::add) return Range{sum(a->least, b->least), sum(a->greatest, b->greatest)};
    return Range{sum(a->least, b->greatest, -1), sum(a->greatest, b->least, -1)};
  }

  const ir::Kernel& kernel_;
  const Definitions& definitions_;
  const ValueId index_;
  std::set<ValueId> inside_;
};

ValueId emit(Builder& builder, const Linear& linear) {
  ValueId result = builder.constant(linear.constant);
  for (const auto& [value, factor] : linear.values) {
    const ValueId term = builder.binary(Op::mul, value, builder.constant(factor));
    result = builder.binary(Op::add, result, term);
  }
  return result;
}

class Peeling {
 public:
  explicit Peeling(ir::Kernel& kernel) : kernel_(kernel) {}

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

  void collect(const ir::Block& block, const LoopFacts& facts, Masks& masks) const {
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
    const auto slacks = LoopFacts(kernel_, definitions_).all_true(select.operands[0]);
    if (!slacks) return false;
    Builder builder(kernel_, block, select.where);
    ValueId whole = ir::kNoValue;
    for (const Linear& slack : *slacks) {
      const ValueId slack_value = emit(builder, slack);
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
    collect(loop.blocks[0], LoopFacts(kernel_, definitions_, loop), masks);
    if (masks.selects.empty()) return false;
    const ValueId low = loop.operands[0], high = loop.operands[1];
    ValueId first = low, last = high;  // of the whole iterations
    bool below = false, above = false;
    for (const Linear& slack : masks.slacks) {
      if (slack.per_index == 0) continue;
      // constant + per_index * i >= 0
      const std::int64_t slope = std::abs(slack.per_index);
      const ValueId limit = emit(builder, slack);
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
  std::vector<const Operation*> definitions_;
};

}  // namespace

void peel_masks(ir::Kernel& kernel) {
  bool products = false;
  ir::for_each(kernel.body, [&](const Operation& o) { products |= o.op == Op::dot; });
  if (products) Peeling(kernel).visit(kernel.body, false);
}

}  // namespace tilewright::passes
