#include "passes/drop_selects.h"

#include <map>
#include <optional>

#include "analysis/definitions.h"
#include "analysis/hidden.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// A comparison of integers, element by element: constant + the sum of factor * value + the sum of
// factor * coordinate along an axis >= 0.
struct Comparison {
  std::int64_t constant = 0;
  std::map<ValueId, std::int64_t> values;
  std::map<std::int64_t, std::int64_t> axes;  // counted from behind the last
  friend bool operator==(const Comparison& a, const Comparison& b) {
    return a.constant == b.constant && a.values == b.values && a.axes == b.axes;
  }
};

class Dropping {
 public:
  Dropping(ir::Kernel& kernel, bool of_loads)
      : kernel_(kernel),
        before_(kernel),
        definitions_(analysis::definitions(before_)),
        of_loads_(of_loads) {}

  void visit(ir::Block& block) {
    for (Operation& o : block.body) {
      for (ValueId& operand : o.operands) operand = stands_for(operand);
      for (ir::Block& inner : o.blocks) visit(inner);
      if (o.op == Op::select && redundant(o)) instead_[o.results[0]] = stands_for(o.operands[1]);
    }
  }

 private:
  ValueId stands_for(ValueId value) const {
    const auto at = instead_.find(value);
    return at == instead_.end() ? value : at->second;
  }

  // Of the kernel as it was: what has been dropped changed no element.
  bool redundant(const Operation& select) const {
    if (!kernel_.type(select.results[0]).is_tile()) return false;
    if (kernel_.type(select.operands[1]) != kernel_.type(select.results[0])) return false;
    const auto asked = comparison(select.operands[0]);
    if (!asked) return false;
    const auto is_false = [&](ValueId condition) { return includes(condition, *asked); };
    const auto finds_nothing = [&](const Operation& load) {
      return of_loads_ && ends_by(load, *asked);
    };
    analysis::Hidden hidden(before_, definitions_, is_false, false, finds_nothing);
    const auto other = hidden.of(select.operands[2]);
    return other.number && hidden.of(select.operands[1]) == other;
  }

  // Whether the comparison says of an axis of the load how much of it exists.
  bool ends_by(const Operation& load, const Comparison& asked) const {
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    const auto rank = static_cast<std::int64_t>(kernel_.type(load.results[0]).shape.size());
    std::int64_t tile_axis = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 0) continue;
      Comparison own;
      own.constant = -1;
      own.axes[tile_axis++ - rank] = -1;
      const std::size_t start = 1 + axis, limit = start + sizes.size();
      if (!add(own, load.operands[limit], 1) || !add(own, load.operands[start], -1)) continue;
      drop_zeros(own);
      if (own == asked) return true;
    }
    return false;
  }

  bool includes(ValueId condition, const Comparison& asked) const {
    const Operation* o = definitions_[condition];
    if (o && o->op == Op::logical_and) {
      return includes(o->operands[0], asked) || includes(o->operands[1], asked);
    }
    const auto own = comparison(condition);
    return own && *own == asked;
  }

  std::optional<Comparison> comparison(ValueId condition) const {
    const Operation* o = definitions_[condition];
    if (!o || (o->op != Op::lt && o->op != Op::le)) return {};
    Comparison result;
    if (o->op == Op::lt) result.constant = -1;
    if (!add(result, o->operands[1], 1) || !add(result, o->operands[0], -1)) return {};
    drop_zeros(result);
    return result;
  }

  static void drop_zeros(Comparison& comparison) {
    std::erase_if(comparison.values, [](const auto& each) { return each.second == 0; });
  }

  bool add(Comparison& to, ValueId value, std::int64_t factor) const {
    if (kernel_.type(value).dtype != DType::i32) return false;
    const Operation* o = definitions_[value];
    const auto number = [&](ValueId v) -> const std::int64_t* {
      const Operation* made = definitions_[v];
      if (!made || made->op != Op::constant) return nullptr;
      return std::get_if<std::int64_t>(made->attributes.find(Key::value));
    };
    if (const std::int64_t* constant = number(value)) {
      to.constant += factor * *constant;
      return true;
    }
    if (o && (o->op == Op::add || o->op == Op::sub)) {
      return add(to, o->operands[0], factor) &&
             add(to, o->operands[1], o->op == Op::add ? factor : -factor);
    }
    if (o && o->op == Op::splat) return add(to, o->operands[0], factor);
    if (o && o->op == Op::iota) {
      const auto rank = static_cast<std::int64_t>(kernel_.type(value).shape.size());
      to.axes[o->attributes.integer(Key::axis) - rank] += factor;
      return true;
    }
    if (o && o->op == Op::mul) {
      for (const std::size_t side : {0u, 1u}) {
        const std::int64_t* times = number(o->operands[side]);
        if (times) return add(to, o->operands[1 - side], factor * *times);
      }
    }
    // The same tile has the same elements, too.
    to.values[value] += factor;
    return true;
  }

  ir::Kernel& kernel_;
  const ir::Kernel before_;
  const std::vector<const Operation*> definitions_;
  const bool of_loads_;
  std::map<ValueId, ValueId> instead_;  // of what was dropped
};

}  // namespace

void drop_selects(ir::Kernel& kernel) { Dropping(kernel, false).visit(kernel.body); }
void drop_selects_of_loads(ir::Kernel& kernel) { Dropping(kernel, true).visit(kernel.body); }

}  // namespace tilewright::passes
