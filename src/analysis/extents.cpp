#include "analysis/extents.h"

#include <optional>

#include "analysis/carried.h"
#include "analysis/nonnegative.h"
#include "analysis/not_less.h"
#include "ir/dim_order.h"
#include "ir/type_rules.h"

namespace tilewright::analysis {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

std::optional<Dim> known(const Operation* o) {
  if (o && o->op == Op::dim) return o->attributes.dim();
  if (o && o->op == Op::constant) {
    if (const auto* n = std::get_if<std::int64_t>(o->attributes.find(Key::value))) return Dim(*n);
  }
  return std::nullopt;
}

}  // namespace

Extents::Extents(const ir::Kernel& kernel) : kernel_(kernel) {
  definitions_.resize(kernel.types.size(), nullptr);
  bounds_.resize(kernel.types.size());
  for (ValueId id = 0; id < kernel.types.size(); ++id) {
    if (kernel.types[id].is_tile()) bounds_[id].resize(kernel.types[id].shape.size());
  }
  ir::for_each(kernel.body, [&](const Operation& o) {
    for (const ValueId result : o.results) definitions_[result] = &o;
  });
  find_nonnegative();
  // Until nothing is added, so that what loops in loops carry around is seen where it begins.
  const auto known_bounds = [&] {
    std::size_t count = 0;
    for (const std::vector<Bounds>& axes : bounds_) {
      for (const Bounds& bounds : axes) count += bounds.size();
    }
    return count;
  };
  for (std::size_t before = 0;; before = known_bounds()) {
    visit(kernel.body);
    if (known_bounds() == before) return;
  }
}

const Extents::Bounds& Extents::of(ValueId tile, std::size_t axis) const {
  static const Bounds none;
  return axis < bounds_[tile].size() ? bounds_[tile][axis] : none;
}

bool Extents::ends_earlier(const Operation& access, std::size_t axis) const {
  const ir::Parameter& tensor = *kernel_.parameter_of(access.operands[0]);
  const std::size_t rank = tensor.shape.size();
  const std::size_t first = access.operands.size() - rank;  // limits come last
  const auto limit = known(definitions_[access.operands[first + axis]]);
  return access.attributes.integers(Key::sizes)[axis] != 0 &&
         !(limit && ir::never_less(*limit, tensor.shape[axis]));
}

void Extents::find_nonnegative() {
  bool is_asked = false;
  ir::for_each(kernel_.body, [&](const Operation& o) {
    if (ir::info(o.op).family != ir::Family::tile_access) return;
    is_asked |= ir::info(o.op).writes(ir::Memory::global);
    for (std::size_t axis = 0; axis < kernel_.parameter_of(o.operands[0])->shape.size(); ++axis) {
      is_asked |= ends_earlier(o, axis);
    }
  });
  if (!is_asked) return;
  NotLess proof(kernel_);
  nonnegative_ = nonnegative_values(kernel_, [&](ValueId value) {
    const Operation* o = definitions_[value];
    if (!o) return kernel_.parameter_of(value) != nullptr;
    return o->op == Op::load_index || (o->op == Op::dim && proof.proves(std::vector{value}, {})) ||
           (o->op == Op::sub && proof.proves(o->operands[0], o->operands[1]));
  });
}

bool Extents::may_begin_before(const Operation& access) const {
  const std::vector<std::int64_t>& sizes = access.attributes.integers(Key::sizes);
  const std::size_t first = access.operands.size() - 2 * sizes.size();  // starts, then limits
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    if (sizes[axis] != 0 && !nonnegative_[access.operands[first + axis]]) return true;
  }
  return false;
}

bool Extents::reaches_out_twice(const Operation& access) const {
  bool earlier = false;
  const std::size_t rank = access.attributes.integers(Key::sizes).size();
  for (std::size_t axis = 0; axis < rank; ++axis) earlier |= ends_earlier(access, axis);
  return earlier && may_begin_before(access);
}

bool Extents::clips_boxes(const Operation& access) const {
  const std::size_t rank = kernel_.parameter_of(access.operands[0])->shape.size();
  int earlier = 0;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    if (!ends_earlier(access, axis)) continue;
    if (axis == rank - 1 || rank > 4 || ++earlier > 1) return false;
  }
  const bool stores = ir::info(access.op).writes(ir::Memory::global);
  return !((stores || earlier > 0) && may_begin_before(access));
}

// A start that is a multiple of the size, in a dimension that is one too, never meets the end.
bool Extents::whole(const Operation& load, std::size_t axis) const {
  const std::int64_t size = load.attributes.integers(Key::sizes)[axis];
  const std::size_t rank = load.attributes.integers(Key::sizes).size();
  const auto limit = known(definitions_[load.operands[1 + rank + axis]]);
  if (!limit || limit->range().multiple % size != 0) return false;
  const Operation* start = definitions_[load.operands[1 + axis]];
  if (const auto constant = known(start)) {
    return limit->is_constant() && constant->is_constant() &&
           constant->constant() + size <= limit->constant();
  }
  if (!start || start->op != Op::mul) return false;
  for (const ValueId factor : start->operands) {
    const auto constant = known(definitions_[factor]);
    if (constant && constant->is_constant() && constant->constant() % size == 0) return true;
  }
  return false;
}

void Extents::merge(ValueId to, ValueId from) {
  std::vector<Bounds>&target = bounds_[to], &source = bounds_[from];
  const std::size_t missing = target.size() - source.size();
  for (std::size_t axis = 0; axis < source.size(); ++axis) {
    // A stretched axis is as long as the other operand says.
    if (kernel_.type(from).shape[axis] == 1) continue;
    target[missing + axis].insert(source[axis].begin(), source[axis].end());
  }
}

void Extents::visit(const ir::Block& block) {
  for (const Operation& o : block.body) {
    visit(o);
    for (const ir::Block& inner : o.blocks) visit(inner);
    for_each_carried(o, [this](ValueId from, ValueId to) {
      if (kernel_.type(to).is_tile()) merge(to, from);
    });
  }
}

// An axis keeps its ends; where it is the first of several that become others, these end with
// whole rows. Of what ends inside of a row nothing is known: the interpreter refuses it.
void Extents::reshape(const Operation& o) {
  const ValueId from = o.operands[0], to = o.results[0];
  const std::vector<std::int64_t>&before = kernel_.type(from).shape,
        &behind = kernel_.type(to).shape;
  const auto row = [](const std::vector<std::size_t>& axes,
                      const std::vector<std::int64_t>& shape) {
    std::int64_t elements = 1;
    for (std::size_t i = 1; i < axes.size(); ++i) elements *= shape[axes[i]];
    return elements;
  };
  for (const ir::ReshapedAxes& axes : ir::reshaped_axes(before, behind)) {
    const std::int64_t times = row(axes.from, before), by = row(axes.to, behind);
    for (Bound bound : bounds_[from][axes.from[0]]) {
      if (bound.factor * times % by != 0 || bound.offset * times % by != 0) continue;
      bound.factor = bound.factor * times / by;
      bound.offset = bound.offset * times / by;
      bounds_[to][axes.to[0]].insert(bound);
    }
  }
}

void Extents::visit(const Operation& o) {
  if (o.results.size() != 1 || !kernel_.type(o.results[0]).is_tile()) return;
  const ValueId result = o.results[0];
  if (ir::info(o.op).elementwise()) {
    for (const ValueId operand : o.operands) {
      if (kernel_.type(operand).is_tile()) merge(result, operand);
    }
    return;
  }
  if (o.op == Op::load) {
    const std::vector<std::int64_t>& sizes = o.attributes.integers(Key::sizes);
    std::size_t axis = 0;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      if (sizes[i] == 0) continue;
      if (!whole(o, i)) {
        bounds_[result][axis].insert({o.operands[1 + i], o.operands[1 + sizes.size() + i]});
      }
      ++axis;
    }
  } else if (o.op == Op::dot) {
    bounds_[result][0] = bounds_[o.operands[0]][0];
    bounds_[result][1] = bounds_[o.operands[1]][1];
    if (o.operands.size() > 2) merge(result, o.operands[2]);
  } else if (ir::info(o.op).family == ir::Family::tile) {
    tile(o);
  }
}

void Extents::tile(const Operation& o) {
  const ValueId result = o.results[0];
  switch (ir::as<ir::TileOp>(o.op)) {
    case ir::TileOp::transpose: {
      const std::vector<std::int64_t>& from = o.attributes.integers(Key::permutation);
      for (std::size_t axis = 0; axis < from.size(); ++axis) {
        bounds_[result][axis] = bounds_[o.operands[0]][from[axis]];
      }
      return;
    }
    case ir::TileOp::reduce:
      bounds_[result] = bounds_[o.operands[0]];
      bounds_[result][static_cast<std::size_t>(o.attributes.integer(Key::axis))].clear();
      return;
    case ir::TileOp::slice: {
      const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
      for (std::size_t axis = 0; axis < offsets.size(); ++axis) {
        for (Bound bound : bounds_[o.operands[0]][axis]) {
          bound.offset += offsets[axis];
          bounds_[result][axis].insert(bound);
        }
      }
      return;
    }
    case ir::TileOp::reshape:
      return reshape(o);
    case ir::TileOp::splat:  // all of it exists
    case ir::TileOp::iota:
    case ir::TileOp::any:
    case ir::TileOp::complete:  // of the scheduled form
      return;
    case ir::TileOp::convert:
      if (!o.attributes.has(Key::offsets)) bounds_[result] = bounds_[o.operands[0]];
      return;
  }
}

}  // namespace tilewright::analysis
