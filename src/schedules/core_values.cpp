#include "schedules/core_values.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright::schedules {

using ir::Extent2;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

// Leading axes together; a single one is a row.
Extent2 two_axes(const std::vector<std::int64_t>& shape) {
  Extent2 extent{1, 1};
  for (std::size_t i = 0; i < shape.size(); ++i) {
    (i + 1 < shape.size() ? extent.rows : extent.columns) *= shape[i];
  }
  return extent;
}

}  // namespace

CoreTiles::CoreTiles(const ir::Kernel& tile, const target::Core& core)
    : tile_(tile),
      made_(tile.types.size()),
      blocks_(tile.types.size()),
      raw_(tile.types.size()),
      seen_(tile.types.size()),
      extents_(tile.types.size()),
      dtypes_(tile.types.size()),
      uses_(tile.types.size()) {
  for (std::size_t i = 0; i < tile.types.size(); ++i) {
    const auto value = static_cast<ValueId>(i);
    seen_[i].base = value;
    extents_[i] = two_axes(tile.types[i].shape);
    dtypes_[i] = tile.types[i].dtype;
  }
  number(tile.body, nullptr);
  ir::for_each(tile.body, [&](const Operation& o) {
    if (o.op == Op::for_loop && is_accumulating(o)) accumulating_.insert(&o);
  });
  for (const Operation* loop : accumulating_) {
    const std::vector<ValueId>& yielded = loop->blocks[0].body.back().operands;
    for (std::size_t i = 0; i < yielded.size(); ++i) {
      summed_in_[made_[yielded[i]]] = loop->results[i];
    }
  }
  ir::for_each(tile.body, [&](const Operation& o) { alias(o, core); });
  ir::for_each(tile.body, [&](const Operation& o) { use(o); });
}

void CoreTiles::number(const ir::Block& block, const Operation* parent) {
  for (const ValueId argument : block.arguments) blocks_[argument] = &block;
  for (const Operation& o : block.body) {
    numbers_[&o] = static_cast<int>(numbers_.size());
    parents_[&o] = parent;
    block_of_[&o] = &block;
    bool tiles = o.op == Op::store;
    for (std::size_t i = 0; i < o.operands.size(); ++i) raw_[o.operands[i]].push_back({&o, i});
    for (const ValueId result : o.results) {
      made_[result] = &o;
      blocks_[result] = &block;
      tiles = tiles || is_tile(result);
    }
    for (const ir::Block& inner : o.blocks) number(inner, &o);
    if (!tiles && with_tiles_.count(&o) == 0) continue;
    with_tiles_.insert(&o);
    if (parent != nullptr) with_tiles_.insert(parent);
  }
}

bool CoreTiles::is_zero(ValueId value) const {
  const Operation* splat = made_[value];
  if (splat == nullptr || splat->op != Op::splat) return false;
  const Operation* number = made_[splat->operands[0]];
  if (number == nullptr || number->op != Op::constant) return false;
  const auto* zero = std::get_if<double>(number->attributes.find(Key::value));
  return zero != nullptr && *zero == 0;
}

bool CoreTiles::is_accumulating(const Operation& loop) const {
  const ir::Block& body = loop.blocks[0];
  const std::vector<ValueId>& yielded = body.body.back().operands;
  for (std::size_t i = 0; i < loop.results.size(); ++i) {
    const Operation* dot = made_[yielded[i]];
    const bool sums = is_tile(loop.results[i]) && is_zero(loop.operands[3 + i]) && dot != nullptr &&
                      dot->op == Op::dot && dot->operands.size() == 3 &&
                      dot->operands[2] == body.arguments[1 + i] && block_of_.at(dot) == &body &&
                      raw_[dot->operands[2]].size() == 1 && raw_[yielded[i]].size() == 1;
    if (!sums) return false;
  }
  // It runs once more where it would not at all, so that nothing in it may depend on that.
  return !loop.results.empty() &&
         std::all_of(body.body.begin(), body.body.end(), [](const Operation& o) {
           return o.blocks.empty() && o.op != Op::load_index && o.op != Op::store;
         });
}

bool CoreTiles::only_moved(ValueId value) const {
  return std::all_of(raw_[value].begin(), raw_[value].end(), [&](const Raw& raw) {
    const Op op = raw.by->op;
    if (op == Op::transpose || op == Op::reshape) return only_moved(raw.by->results[0]);
    return (op == Op::dot && raw.operand < 2) || op == Op::store;
  });
}

bool CoreTiles::only_stored(ValueId value) const {
  return std::all_of(raw_[value].begin(), raw_[value].end(), [&](const Raw& raw) {
    return raw.by->op == Op::reshape ? only_stored(raw.by->results[0]) : raw.by->op == Op::store;
  });
}

bool CoreTiles::moves_elements(const Operation& o) const {
  return o.op == Op::reshape && is_tile(o.results[0]) && seen_[o.results[0]].base == o.results[0];
}

bool CoreTiles::stretches_inside(const Operation& o) const {
  if (!ir::info(o.op).elementwise() || o.results.size() != 1 || !is_tile(o.results[0]))
    return false;
  const Extent2 result = extents_[o.results[0]];
  return std::any_of(o.operands.begin(), o.operands.end(), [&](ValueId operand) {
    if (!is_tile(operand)) return false;
    const Extent2 own = extents_[operand];
    return (own.rows != result.rows && own.rows != 1) ||
           (own.columns != result.columns && own.columns != 1);
  });
}

void CoreTiles::alias(const Operation& o, const target::Core& core) {
  if (o.op != Op::transpose && o.op != Op::reshape && o.op != Op::cast) return;
  if (!is_tile(o.results[0])) return;
  const Seen from = seen_[o.operands[0]];
  const ValueId result = o.results[0];
  if (o.op == Op::transpose) {
    if (tile_.type(result).shape.size() != 2) return;
    seen_[result] = {from.base, !from.turned};
    extents_[result] = ir::transposed(extents_[o.operands[0]]);
    return;
  }
  if (o.op == Op::reshape) {
    const Extent2 wanted = two_axes(tile_.type(result).shape), have = extents_[o.operands[0]];
    const auto is_vector = [](Extent2 extent) {
      return std::min(extent.rows, extent.columns) == 1;
    };
    // A load brings a row, or a matrix, as a column where all take it so.
    const Operation* load = made_[from.base];
    const bool loads = load != nullptr && load->op == Op::load && !from.turned &&
                       o.operands[0] == from.base && raw_[from.base].size() == 1 &&
                       is_vector(wanted);
    // Else elements keep their places where only the number of axes changes, or where a store takes
    // a row as a column.
    if (wanted != have && !loads && !(is_vector(have) && only_stored(result))) return;
    seen_[result] = from;
    extents_[result] = have;
    if (wanted != have && loads) extents_[from.base] = extents_[result] = wanted;
    return;
  }
  // A product's result is converted by the way that it takes, where all of it is.
  const Operation* source = made_[from.base];
  const bool is_product =
      source != nullptr && !from.turned && o.operands[0] == from.base &&
      ((source->op == Op::dot && source->operands.size() == 2) || accumulates(*source));
  if (!is_product || raw_[from.base].size() != 1 || !only_moved(result)) return;
  const std::pair conversion{dtypes_[from.base], dtypes_[result]};
  const bool known = std::any_of(core.moves.begin(), core.moves.end(), [&](const auto& move) {
    return move.from == core.products.front().result &&
           std::find(move.conversions.begin(), move.conversions.end(), conversion) !=
               move.conversions.end();
  });
  if (!known) return;
  seen_[result] = from;
  dtypes_[from.base] = dtypes_[result];
}

void CoreTiles::use(const Operation& o) {
  const bool is_alias = o.results.size() == 1 && seen_[o.results[0]].base != o.results[0];
  if (o.op == Op::any || is_alias) return;
  const auto add = [&](ValueId value, CoreEnd end) {
    uses_[seen_[value].base].push_back({&o, end, seen_[value].turned});
  };
  if (o.op == Op::yield) {
    const Operation* parent = parents_.at(&o);
    if (parent != nullptr && accumulates(*parent)) return;
  }
  if (const Operation* any = o.op == Op::if_then ? computed_condition(o) : nullptr) {
    add(any->operands[0], CoreEnd::vector);
  }
  for (std::size_t i = 0; i < o.operands.size(); ++i) {
    if (!is_tile(o.operands[i])) continue;
    if (accumulates(o)) continue;
    if (o.op == Op::dot) {
      if (i == 2 && summed_in_.count(&o) != 0) continue;
      add(o.operands[i], i == 0 ? CoreEnd::left : i == 1 ? CoreEnd::right : CoreEnd::vector);
    } else {
      add(o.operands[i], o.op == Op::store ? CoreEnd::tensor : CoreEnd::vector);
    }
  }
}

CoreTiles::Seen CoreTiles::seen(ValueId value) const { return seen_[value]; }

bool CoreTiles::is_used(ValueId base, CoreEnd end) const {
  return std::any_of(uses_[base].begin(), uses_[base].end(),
                     [&](const CoreUse& use) { return use.end == end; });
}

const Operation* CoreTiles::at_level(ValueId value, const Operation* by) const {
  while (block_of_.at(by) != blocks_[value]) by = parents_.at(by);
  return by;
}

const Operation* CoreTiles::last_use(ValueId base) const {
  const Operation* last = nullptr;
  for (const CoreUse& use : uses_[base]) {
    const Operation* at = at_level(base, use.by);
    if (last == nullptr || comes_before(last, at)) last = at;
  }
  return last;
}

ValueId CoreTiles::product_of(const Operation& dot) const {
  const auto found = summed_in_.find(&dot);
  return found != summed_in_.end() ? found->second : dot.results[0];
}

bool CoreTiles::loads_nothing_without_a_turn(const Operation& loop) const {
  const auto number = [&](ValueId value) {
    const Operation* o = made_[value];
    return o && o->op == Op::constant ? o->attributes.integer(Key::value) : -1;
  };
  const auto dim = [&](ValueId value) {
    const Operation* o = made_[value];
    return o && o->op == Op::dim ? o->attributes.dim() : Dim(-1);
  };
  const auto is_block_of_turn = [&](ValueId start, const Dim& size) {
    const Operation* o = made_[start];
    const ValueId index = loop.blocks[0].arguments[0];
    return o && o->op == Op::mul &&
           ((o->operands[0] == index && Dim(number(o->operands[1])) == size) ||
            (o->operands[1] == index && Dim(number(o->operands[0])) == size));
  };
  const Dim turns = dim(loop.operands[1]);
  const std::int64_t low = number(loop.operands[0]);
  if (low >= 0 && number(loop.operands[1]) > low) return true;  // it has turns
  if (low != 0 || turns.kind() != Dim::Kind::ceildiv) return false;
  const std::vector<Operation>& body = loop.blocks[0].body;
  return std::any_of(body.begin(), body.end(), [&](const Operation& load) {
    if (load.op != Op::load) return false;
    const std::size_t axes = load.attributes.integers(Key::sizes).size();
    for (std::size_t axis = 0; axis < axes; ++axis) {
      if (is_block_of_turn(load.operands[1 + axis], turns.rhs()) &&
          dim(load.operands[1 + axes + axis]) == turns.lhs()) {
        return true;
      }
    }
    return false;
  });
}

bool CoreTiles::adds_by_itself(const Operation& dot) const {
  return dot.operands.size() == 3 && summed_in_.count(&dot) == 0;
}

bool CoreTiles::spans_without(const Operation& by, ValueId number) const {
  if (!ir::info(by.op).elementwise()) return true;
  Extent2 spanned{1, 1};
  for (const ValueId operand : by.operands) {
    if (!is_tile(operand) || seen_[operand].base == number) continue;
    const Operation* made = made_[seen_[operand].base];
    if (made != nullptr && made->op == Op::splat) continue;
    spanned.rows = std::max(spanned.rows, extents_[operand].rows);
    spanned.columns = std::max(spanned.columns, extents_[operand].columns);
  }
  return spanned == extents_[by.results[0]];
}

bool CoreTiles::is_number(ValueId base) const {
  const Operation* splat = made_[base];
  return splat != nullptr && splat->op == Op::splat &&
         std::all_of(uses_[base].begin(), uses_[base].end(), [&](const CoreUse& use) {
           return use.end == CoreEnd::vector && use.by->op != Op::reduce &&
                  spans_without(*use.by, base);
         });
}

const Operation* CoreTiles::computed_condition(const Operation& if_then) const {
  const Operation* any = made_[if_then.operands[0]];
  return any != nullptr && any->op == Op::any ? any : nullptr;
}

}  // namespace tilewright::schedules
