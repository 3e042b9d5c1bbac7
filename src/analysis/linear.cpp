#include "analysis/linear.h"

#include "analysis/definitions.h"

namespace tilewright::analysis {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

Linear sum(const Linear& a, const Linear& b, std::int64_t factor = 1) {
  Linear result = a;
  result.constant += factor * b.constant;
  result.per_index += factor * b.per_index;
  for (const auto& [value, times] : b.values) {
    if ((result.values[value] += factor * times) == 0) result.values.erase(value);
  }
  return result;
}

}  // namespace

LinearFacts::LinearFacts(const ir::Kernel& kernel, const Definitions& definitions,
                         const OwnRows& own)
    : kernel_(kernel), definitions_(definitions), own_(own), index_(ir::kNoValue) {}

LinearFacts::LinearFacts(const ir::Kernel& kernel, const Definitions& definitions,
                         const OwnRows& own, const Operation& loop)
    : kernel_(kernel), definitions_(definitions), own_(own), index_(loop.blocks[0].arguments[0]) {
  note(loop.blocks[0]);
}

void LinearFacts::note(const ir::Block& block) {
  inside_.insert(block.arguments.begin(), block.arguments.end());
  for (const Operation& o : block.body) {
    inside_.insert(o.results.begin(), o.results.end());
    for (const ir::Block& inner : o.blocks) note(inner);
  }
}

std::optional<std::vector<Linear>> LinearFacts::all_true(ValueId condition) const {
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

std::optional<Linear> LinearFacts::all_false(ValueId comparison) const {
  const Operation* o = definitions_[comparison];
  if (!o || (o->op != Op::lt && o->op != Op::le)) return {};
  const auto a = range(o->operands[0]), b = range(o->operands[1]);
  if (!a || !b) return {};
  Linear slack = sum(a->least, b->greatest, -1);
  if (o->op == Op::le) slack.constant -= 1;
  return slack;
}

std::optional<Linear> LinearFacts::linear(ValueId value) const {
  if (kernel_.type(value).dtype != DType::i32) return {};
  const Operation* o = definitions_[value];
  if (const auto constant = integer_constant(o)) return Linear{*constant, 0, {}};
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
      const auto factor = integer_constant(definitions_[o->operands[side]]);
      const auto other = linear(o->operands[1 - side]);
      if (factor && other) return sum({}, *other, *factor);
    }
  }
  return {};
}

// Of the elements of a tile of integers, or of a scalar. `turned`: its rows are columns of the tile
// in question.
std::optional<LinearFacts::Range> LinearFacts::range(ValueId value, bool turned) const {
  const ir::Type& type = kernel_.type(value);
  if (type.dtype != DType::i32) return {};
  if (type.is_scalar()) {
    const auto exact = linear(value);
    return exact ? std::optional<Range>(Range{*exact, *exact}) : std::nullopt;
  }
  const Operation* o = definitions_[value];
  if (!o) return {};
  if (o->op == Op::splat) return range(o->operands[0], turned);
  if (o->op == Op::iota) {
    const auto axis = static_cast<std::size_t>(o->attributes.integer(Key::axis));
    if (!turned && axis == 0 && own_.rows != 0 && type.shape[0] == own_.rows) {
      return Range{{0, 0, {{own_.first, 1}}}, {-1, 0, {{own_.end, 1}}}};
    }
    return Range{{}, Linear{type.shape[axis] - 1, 0, {}}};
  }
  if (o->op == Op::transpose) {
    const std::vector<std::int64_t>& from = o->attributes.integers(Key::permutation);
    // Of two axes the second turn undoes the first. Of more, rows that have left stay away.
    const bool swapped = from.size() == 2 && from[0] == 1;
    return range(o->operands[0], swapped ? !turned : turned || from[0] != 0);
  }
  if (o->op != Op::add && o->op != Op::sub) return {};
  const auto a = range(o->operands[0], turned), b = range(o->operands[1], turned);
  if (!a || !b) return {};
  if (o->op == Op::add) return Range{sum(a->least, b->least), sum(a->greatest, b->greatest)};
  return Range{sum(a->least, b->greatest, -1), sum(a->greatest, b->least, -1)};
}

}  // namespace tilewright::analysis
