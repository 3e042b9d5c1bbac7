#include "analysis/hidden.h"

#include <algorithm>
#include <cmath>

namespace tilewright::analysis {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

using Known = Hidden::Known;

Known number(double value) { return {value, ir::kNoValue}; }
Known same(ValueId value) { return {std::nullopt, value}; }
bool is(const Known& known, double value) { return known.number && *known.number == value; }

std::optional<double> compute(Op op, double a, double b) {
  double result = NAN;
  if (op == Op::add) result = a + b;
  if (op == Op::sub) result = a - b;
  if (op == Op::mul) result = a * b;
  if (op == Op::min) result = std::min(a, b);
  if (op == Op::max) result = std::max(a, b);
  if (op == Op::lt) result = a < b;
  if (op == Op::le) result = a <= b;
  return std::isnan(result) ? std::nullopt : std::optional<double>(result);
}

}  // namespace

Hidden::Hidden(const ir::Kernel& kernel, const Definitions& definitions, IsFalse is_false,
               bool everywhere, FindsNothing finds_nothing)
    : kernel_(kernel),
      definitions_(definitions),
      is_false_(std::move(is_false)),
      everywhere_(everywhere),
      finds_nothing_(std::move(finds_nothing)) {
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::for_loop) return;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      carried_[o.blocks[0].arguments[1 + i]] = {o.operands[3 + i],
                                                o.blocks[0].body.back().operands[i]};
    }
  });
}

Known Hidden::of(ValueId value) {
  const auto at = known_.find(value);
  if (at != known_.end()) return at->second;
  return known_[value] = evaluate(value);
}

Known Hidden::operand_as(ValueId value, ValueId operand) {
  const Known known = of(operand);
  return known.number || kernel_.type(operand) == kernel_.type(value) ? known : same(value);
}

Known Hidden::evaluate(ValueId value) {
  const Operation* o = definitions_[value];
  if (!o) return same(value);
  if (o->op == Op::constant) {
    if (const auto* real = std::get_if<double>(o->attributes.find(Key::value))) {
      return number(*real);
    }
    return number(static_cast<double>(o->attributes.integer(Key::value)));
  }
  if (o->op == Op::splat) {
    const Known scalar = of(o->operands[0]);
    return scalar.number ? scalar : same(value);
  }
  if (o->op == Op::load && finds_nothing_ && finds_nothing_(*o)) return number(0);
  if (o->op == Op::cast) {
    const Known from = of(o->operands[0]);
    const bool exact = from.number && (*from.number == 0 || std::isinf(*from.number)) &&
                       is_float(kernel_.type(value).dtype);
    return exact ? from : same(value);
  }
  if (o->op == Op::exp || o->op == Op::exp2 || o->op == Op::exp2_polynomial) {
    return is(of(o->operands[0]), -INFINITY) ? number(0) : same(value);
  }
  if (o->op == Op::select || o->op == Op::if_then) return choice(value, *o);
  const bool gathers = o->op == Op::transpose || o->op == Op::slice || o->op == Op::reshape ||
                       o->op == Op::reduce || o->op == Op::any || o->op == Op::dot;
  if (gathers) return everywhere_ ? of_all(value, *o) : same(value);
  return arithmetic(value, *o);
}

Known Hidden::choice(ValueId value, const Operation& o) {
  const bool select = o.op == Op::select;
  std::vector<ValueId> choices;  // if true, if false
  if (select) {
    choices = {o.operands[1], o.operands[2]};
  } else {
    const auto result = std::find(o.results.begin(), o.results.end(), value) - o.results.begin();
    for (const ir::Block& block : o.blocks) {
      choices.push_back(block.body.back().operands[static_cast<std::size_t>(result)]);
    }
  }
  const Known condition = of(o.operands[0]);
  if (is_false_(o.operands[0]) || is(condition, 0)) return operand_as(value, choices[1]);
  if (is(condition, 1)) return operand_as(value, choices[0]);
  const Known one = operand_as(value, choices[0]), other = operand_as(value, choices[1]);
  return one == other ? one : same(value);
}

Known Hidden::arithmetic(ValueId value, const Operation& o) {
  if (!ir::info(o.op).elementwise() || o.operands.size() != 2) return same(value);
  const Known a = of(o.operands[0]), b = of(o.operands[1]);
  if (a.number && b.number) {
    const auto result = compute(o.op, *a.number, *b.number);
    return result ? number(*result) : same(value);
  }
  if (o.op == Op::sub) {
    if (is(b, 0)) return operand_as(value, o.operands[0]);
    above_.clear();
    return is(a, -INFINITY) && above_minus_infinity(o.operands[1]) ? a : same(value);
  }
  // Nothing is below.
  if (o.op == Op::lt) return is(b, -INFINITY) ? number(0) : same(value);
  if (o.op == Op::logical_and) return is(a, 0) || is(b, 0) ? number(0) : same(value);
  if (o.op == Op::add || o.op == Op::mul || o.op == Op::max) {
    const double neutral = o.op == Op::add ? 0 : o.op == Op::mul ? 1 : -INFINITY;
    if (is(a, neutral)) return operand_as(value, o.operands[1]);
    if (is(b, neutral)) return operand_as(value, o.operands[0]);
  }
  return same(value);
}

// Of operations whose elements are made of others' at other places.
Known Hidden::of_all(ValueId value, const Operation& o) {
  const Known first = of(o.operands[0]);
  if (o.op == Op::dot) {
    if (!is(first, 0) && !is(of(o.operands[1]), 0)) return same(value);
    return o.operands.size() > 2 ? of(o.operands[2]) : number(0);
  }
  if (o.op == Op::any) return is(first, 0) ? first : same(value);
  const bool sum = o.op == Op::reduce && o.attributes.function() == Op::add;
  return first.number && (!sum || *first.number == 0) ? first : same(value);
}

bool Hidden::is_minus_infinity(ValueId value) { return is(of(value), -INFINITY); }

// Whether no element is minus infinity: one that is has been replaced.
bool Hidden::above_minus_infinity(ValueId value) {
  if (const auto at = carried_.find(value); at != carried_.end()) {
    if (!above_.insert(value).second) return true;
    return above_minus_infinity(at->second.first) && above_minus_infinity(at->second.second);
  }
  const Operation* o = definitions_[value];
  if (!o) return false;
  if (o->op == Op::constant || o->op == Op::splat) {
    const Known known = of(value);
    return known.number && !is(known, -INFINITY);
  }
  if (o->op == Op::if_then) {
    const auto result = std::find(o->results.begin(), o->results.end(), value) - o->results.begin();
    return std::all_of(o->blocks.begin(), o->blocks.end(), [&](const ir::Block& block) {
      return above_minus_infinity(block.body.back().operands[static_cast<std::size_t>(result)]);
    });
  }
  if (o->op != Op::select || !above_minus_infinity(o->operands[1])) return false;
  if (above_minus_infinity(o->operands[2])) return true;
  // select(x == -infinity, number, x * constant)
  const Operation* condition = definitions_[o->operands[0]];
  if (!condition || condition->op != Op::eq || !is_minus_infinity(condition->operands[1])) {
    return false;
  }
  const Operation* product = definitions_[o->operands[2]];
  const ValueId x = condition->operands[0];
  if (o->operands[2] == x) return true;
  if (!product || product->op != Op::mul) return false;
  const Known factor = of(product->operands[1]);
  return product->operands[0] == x && factor.number && *factor.number > 0 &&
         std::isfinite(*factor.number);
}

}  // namespace tilewright::analysis
