#include "passes/assign_layouts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "passes/drop_conversions.h"
#include "passes/moved_layouts.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::RegisterLayout;
using ir::Type;
using ir::ValueId;

class LayoutAssignment {
 public:
  explicit LayoutAssignment(ir::Kernel& kernel)
      : kernel_(kernel), target_(target::target_of(kernel)) {}

  std::optional<LayoutConflict> run() {
    seed();
    // Each round either fixes at least one more layout or ends.
    do {
      changed_ = false;
      propagate(kernel_.body);
      if (!changed_) lie_as_declared();
      if (!changed_) choose();
      if (!changed_) settle();
      if (!changed_) stretch();
      if (!changed_) transpose_back();
      if (!changed_) spread();
    } while (changed_ && !conflict_);
    if (!conflict_) check();
    return conflict_;
  }

 private:
  using At = LayoutConflict::At;
  // Where an operation meets a value.
  struct Edge {
    const Operation& operation;
    At at;
    std::size_t index = 0;
  };
  static Edge operand(const Operation& o, std::size_t index) { return {o, At::operand, index}; }
  static Edge result(const Operation& o, std::size_t index = 0) { return {o, At::result, index}; }

  bool in_registers(ValueId id) const {
    const Type::Kind kind = kernel_.type(id).kind;
    return kind == Type::Kind::tile || kind == Type::Kind::pending;
  }
  // As an author knows it.
  std::string text_of(ValueId id) const {
    return Type::tile(kernel_.type(id).dtype, kernel_.type(id).shape).to_string();
  }
  const RegisterLayout& layout(ValueId id) const { return kernel_.types[id].layout; }
  bool known(ValueId id) const { return !layout(id).lanes.empty(); }

  void set(ValueId id, const RegisterLayout& layout, const Edge& edge) {
    if (!in_registers(id)) return;
    if (!known(id)) {
      kernel_.types[id].layout = layout;
      changed_ = true;
    } else if (!(this->layout(id) == layout) && !conflict_) {
      conflict(edge, "the threads of the role hold " + text_of(id) +
                         " in one order, and need it here in another");
      // Parts of a sum cannot change places: what is summed has to.
      const ValueId value = value_at(edge);
      const RegisterLayout& other = value == id ? layout : this->layout(id);
      conflict_->wanted = other;
      if (layout.is_partial() || this->layout(id).is_partial()) convert_summed(value, other);
    }
  }
  static ValueId value_at(const Edge& edge) {
    const Operation& o = edge.operation;
    return edge.at == At::operand ? o.operands[edge.index] : o.results[edge.index];
  }
  void convert_summed(ValueId parts, const RegisterLayout& wanted) {
    conflict_->at = At::nothing;
    const auto by = partial_.find(parts);
    const auto source = sources_.find(wanted.to_string());
    if (by == partial_.end() || source == sources_.end()) return;
    const Type& summed = kernel_.type(by->second->operands[0]);
    if (source->second.shape != summed.shape) return;
    conflict_->operation = by->second;
    conflict_->at = At::operand;
    conflict_->index = 0;
    conflict_->wanted = source->second;
  }
  void unify(ValueId a, ValueId b, const Edge& edge) {
    if (known(a)) set(b, layout(a), edge);
    if (known(b)) set(a, layout(b), edge);
  }

  // Only the first counts: others may follow from it.
  void conflict(const Edge& edge, const std::string& problem,
                const char* fix =
                    "pass it through shared memory: store(view, tile), then "
                    "load(view)") {
    if (conflict_) return;
    const std::string name(ir::info(edge.operation.op).name);
    conflict_ =
        LayoutConflict{&edge.operation, edge.at, edge.index, {}, name + ": " + problem, name, fix};
  }

  void seed() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      const bool is_moved = o.op == Op::reshape || o.op == Op::transpose || o.op == Op::cast;
      if (o.op == Op::load_tile || (is_moved && from_shared_.count(o.operands[0]) != 0)) {
        from_shared_.insert(o.results[0]);
      }
      if (o.op == Op::load || o.op == Op::splat || o.op == Op::iota || o.op == Op::convert) {
        if (o.attributes.has(Key::layout)) {
          set(o.results[0], o.attributes.register_layout(), result(o));
        }
      }
      if (o.op == Op::tcgen05_load) in_lanes(o.results[0], result(o));
      if (o.op == Op::tcgen05_store) in_lanes(o.operands[2], operand(o, 2));
      products_ |= o.op == Op::tcgen05_mma;
      if (!ir::info(o.op).is_asynchronous_product()) return;
      products_ = true;
      const std::vector<std::int64_t>& shape = kernel_.type(o.results[0]).shape;
      set(o.results[0], accumulator(shape, o.where), result(o));
      const Type& a = kernel_.type(o.operands[0]);
      if (a.is_tile()) {
        set(o.operands[0], target_.product_operand(a.shape[0], a.shape[1], a.dtype, o.where),
            operand(o, 0));
      }
      accumulate(o, o.results[0], ir::accumulator_of(o));
    });
  }

  // As it lies in tensor memory: what has 64 rows as parts of a product do.
  void in_lanes(ValueId tile, const Edge& edge) {
    const Type& type = kernel_.type(tile);
    const bool whole = type.shape[0] == target_.limits.tensor_lanes;
    if (whole) return set(tile, ir::tensor_memory_rows(type.shape[1]), edge);
    const auto layout = size_of(type.dtype) == 4 ? target_.accumulator : target_.product_operand;
    set(tile, layout(type.shape[0], type.shape[1], type.dtype, edge.operation.where), edge);
  }

  RegisterLayout accumulator(const std::vector<std::int64_t>& shape, SourceLocation where) const {
    return target_.accumulator(shape[0], shape[1], f32, where);
  }

  bool may_accumulate(const std::vector<std::int64_t>& shape) const {
    const TargetLimits& limits = target_.limits;
    return target_.accumulator && shape.size() == 2 && shape[0] == limits.group_rows &&
           shape[1] % limits.product_column_unit == 0 && shape[1] <= limits.product_columns;
  }

  bool is_accumulator(ValueId value) const {
    const std::vector<std::int64_t>& shape = kernel_.type(value).shape;
    return known(value) && may_accumulate(shape) && layout(value) == accumulator(shape, {});
  }

  // A tile from shared memory that no product determines lies as an accumulator would; one of bytes
  // lies so that a lane reads 16 of them at once, where nothing asks for parts of what is computed.
  void choose() {
    if (!in_parts()) {
      ir::for_each(kernel_.body, [this](const Operation& o) {
        if (changed_ || o.op != Op::load_tile || known(o.results[0])) return;
        const Type& type = kernel_.type(o.results[0]);
        if (size_of(type.dtype) != 1 || !may_accumulate(type.shape)) return;
        const auto wide = ir::warp_rows(type.shape[0], type.shape[1], kWidestAccess);
        if (wide) set(o.results[0], *wide, result(o));
      });
    }
    ir::for_each(kernel_.body, [this](const Operation& o) {
      const bool loads = o.op == Op::load_tile || o.op == Op::load_fragment;
      if (changed_ || !loads || known(o.results[0])) return;
      const std::vector<std::int64_t>& shape = kernel_.type(o.results[0]).shape;
      if (!may_accumulate(shape)) return;
      set(o.results[0], accumulator(shape, o.where), result(o));
    });
  }

  // Whether tiles that nothing determines are summed or cut.
  bool in_parts() const {
    bool any = false;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      any |= (o.op == Op::reduce || o.op == Op::slice) && !known(o.operands[0]);
    });
    return any;
  }

  // What stretches a little along its last axis (the parts of a byte) lies as its operand does, the
  // copies of an element in neighbouring registers.
  void stretch() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      if (changed_ || !ir::info(o.op).elementwise() || !in_registers(o.results[0])) return;
      if (known(o.results[0])) return;
      for (const ValueId value : o.operands) {
        if (!in_registers(value) || !known(value) || changed_) continue;
        if (const auto made = stretched(layout(value), kernel_.type(o.results[0]).shape)) {
          set(o.results[0], *made, result(o));
        }
      }
    });
  }

  // What only a conversion reads, whose result is to lie in a certain way, lies so itself.
  void lie_as_declared() {
    std::map<ValueId, int> readers;
    ir::for_each(kernel_.body, [&](const Operation& o) {
      for (const ValueId operand : o.operands) ++readers[operand];
    });
    ir::for_each(kernel_.body, [&](const Operation& o) {
      if (changed_ || o.op != Op::convert || !o.attributes.has(Key::layout)) return;
      const ValueId from = o.operands[0];
      if (o.attributes.has(Key::offsets) || known(from) || readers.at(from) > 1) return;
      if (kernel_.type(from).shape != kernel_.type(o.results[0]).shape) return;
      set(from, layout(o.results[0]), operand(o, 0));
    });
  }

  // What is converted without need stays as it is.
  void settle() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      if (changed_ || o.op != Op::convert || o.attributes.has(Key::offsets)) return;
      if (kernel_.type(o.operands[0]).shape != kernel_.type(o.results[0]).shape) return;
      if (known(o.operands[0]) && !known(o.results[0])) {
        set(o.results[0], layout(o.operands[0]), result(o));
      }
    });
  }

  // What only a transposition uses lies as its result wants it.
  void transpose_back() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      if (changed_ || o.op != Op::transpose || !in_registers(o.operands[0])) return;
      if (known(o.results[0]) && !known(o.operands[0])) transpose_operand(o);
    });
  }

  // Warps that share the tiles of a role: as many as it says, else those of a warpgroup, or all of
  // a smaller role, unless a layout that is known says otherwise.
  std::int64_t warps_of(const Operation& role) const {
    if (role.attributes.has(Key::threads)) return role.attributes.integer(Key::threads) / 32;
    std::int64_t warps = 0;
    ir::for_each(role.blocks[0], [&](const Operation& o) {
      for (const ValueId result : o.results) {
        if (in_registers(result) && known(result)) warps = layout(result).warp_count();
      }
    });
    return warps != 0 ? warps : std::min<std::int64_t>(role.attributes.integer(Key::warps), 4);
  }

  // What nothing determines is spread over lanes as coalesced accesses want it; the largest tile
  // first, so that those which stretch beside it follow. Beside products it is one that lies as
  // their results, if there is one: what is reshaped to it follows.
  void spread() {
    for (const Operation& role : kernel_.body.body) {
      if (changed_ || role.op != Op::role) continue;
      const Operation* largest = nullptr;
      ir::for_each(role.blocks[0], [&](const Operation& o) {
        if (o.results.size() != 1 || !kernel_.type(o.results[0]).is_tile()) return;
        if (known(o.results[0])) return;
        const auto rank = [&](const Operation* of) {
          const Type& type = kernel_.type(of->results[0]);
          return std::pair(type.elements(), products_ && may_accumulate(type.shape));
        };
        if (!largest || rank(&o) > rank(largest)) largest = &o;
      });
      if (largest) set(largest->results[0], coalesced(*largest, warps_of(role)), result(*largest));
    }
  }

  // Beside products a warp has the rows that it has of their results: it may store rows for a copy
  // of its own, and load what it stored itself.
  RegisterLayout coalesced(const Operation& o, std::int64_t warps) const {
    const Type& type = kernel_.type(o.results[0]);
    if (products_ && warps == 4 && may_accumulate(type.shape)) {
      return accumulator(type.shape, o.where);
    }
    const int vector = std::max(1, 16 / size_of(type.dtype));
    if (type.shape.size() == 2) {
      return ir::row_layout(type.shape[0], type.shape[1],
                            ir::split_rows(type.shape[0], type.shape[1], warps, vector), vector);
    }
    return ir::blocked(type.shape, static_cast<int>(32 * warps), vector, o.where);
  }

  void propagate(const ir::Block& block) {
    for (const Operation& o : block.body) {
      for (const ir::Block& inner : o.blocks) propagate(inner);
      visit(o);
    }
  }

  // What accesses and products want is known before.
  void visit(const Operation& o) {
    const ir::Family family = ir::info(o.op).family;
    if (family == ir::Family::function) return elementwise(o);
    if (family == ir::Family::tile) return tile(o);
    if (family == ir::Family::control) return control(o);
    if (family == ir::Family::pending) return pending(o);
    if (o.op == Op::atomic_tile) return unify(o.operands[1], o.results[0], result(o));
    if (family == ir::Family::tile_product) accumulate(o, ir::accumulator_of(o), o.results[0]);
  }

  // A product's result lies as what it is added to, if anything.
  void accumulate(const Operation& o, ValueId from, ValueId to) {
    if (from == ir::kNoValue || to == ir::kNoValue) return;
    unify(from, to, operand(o, static_cast<std::size_t>(ir::info(o.op).accumulator)));
  }

  void pending(const Operation& o) {
    switch (ir::as<ir::PendingOp>(o.op)) {
      case ir::PendingOp::wait:
        return unify(o.operands[0], o.results[0], result(o));
      case ir::PendingOp::as_pending:
        return unify(o.operands[0], o.results[0], operand(o, 0));
      case ir::PendingOp::retire:
        return;
    }
  }

  void tile(const Operation& o) {
    switch (ir::as<ir::TileOp>(o.op)) {
      case ir::TileOp::complete:
        if (known(o.operands[0])) set(o.results[0], completed(layout(o.operands[0])), result(o));
        return;
      case ir::TileOp::reduce:
        return reduce(o);
      case ir::TileOp::transpose:
        return transpose(o);
      case ir::TileOp::reshape:
        return reshape(o);
      case ir::TileOp::slice:
        return slice(o);
      case ir::TileOp::splat:  // these take any
      case ir::TileOp::iota:
      case ir::TileOp::any:
      case ir::TileOp::convert:
        return;
    }
  }

  void control(const Operation& o) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::for_loop:
        return loop(o, 3, 0);
      case ir::ControlOp::while_loop:
        return loop(o, 1, 1);
      case ir::ControlOp::if_then:
        for (std::size_t i = 0; i < o.results.size(); ++i) {
          if (!in_registers(o.results[i])) continue;
          for (const ir::Block& branch : o.blocks) {
            const Operation& yield = branch.body.back();
            unify(yield.operands[i], o.results[i], operand(yield, i));
          }
        }
        return;
      case ir::ControlOp::yield:
      case ir::ControlOp::role:
      case ir::ControlOp::elect:
        return;
    }
  }

  // Carried values are the operands from `leading` on, and what is yielded from `extra` on.
  void loop(const Operation& o, std::size_t leading, std::size_t extra) {
    const ir::Block& body = o.blocks[0];
    const std::size_t first = body.arguments.size() - o.results.size();
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      if (!in_registers(o.results[i])) continue;
      const Operation& yield = body.body.back();
      unify(body.arguments[first + i], o.results[i], result(o, i));
      unify(yield.operands[extra + i], body.arguments[first + i], operand(yield, extra + i));
      unify(o.operands[leading + i], body.arguments[first + i], operand(o, leading + i));
    }
  }

  void reduce(const Operation& o) {
    if (!known(o.operands[0])) return;
    const int axis = static_cast<int>(o.attributes.integer(Key::axis));
    const RegisterLayout& source = layout(o.operands[0]);
    if (o.attributes.integer_or(Key::partial, 0) == 0) {
      return set(o.results[0], source.reduce(axis, ir::Reduction::complete), result(o));
    }
    const RegisterLayout parts = source.reduce(axis, ir::Reduction::partial);
    sources_.emplace(parts.to_string(), source);
    partial_[o.results[0]] = &o;
    set(o.results[0], parts, result(o));
  }

  void elementwise(const Operation& o) {
    const ValueId made = o.results[0];
    if (!in_registers(made)) return;
    const Type& type = kernel_.type(made);
    const std::int64_t partial = o.attributes.integer_or(Key::partial, -1);
    // Where operands disagree, the result lies as products have it.
    for (const ValueId value : o.operands) {
      if (!known(made) && partial < 0 && in_registers(value) && is_accumulator(value) &&
          kernel_.type(value).shape == type.shape) {
        set(made, layout(value), result(o));
      }
    }
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      const ValueId value = o.operands[i];
      if (!in_registers(value)) continue;
      const Type& other = kernel_.type(value);
      if (other.shape == type.shape) {
        // A scaled partial sum is partial, its factor is not.
        if (partial >= 0 && i < 2 && static_cast<std::int64_t>(i) != partial) continue;
        unify(value, made, operand(o, i));
      } else if (known(made) && !known(value)) {
        set(value, before_stretching(layout(made), other.shape), operand(o, i));
      }
    }
  }

  // Whether everything has a layout, and operands that stretch have what their lanes need.
  void check() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      for (const ValueId made : o.results) {
        if (!in_registers(made) || known(made)) continue;
        conflict(
            {o, At::nothing},
            "nothing determines how this tile lies in registers: " + kernel_.type(made).to_string(),
            "make it inside a role, or remove it");
      }
    });
    if (conflict_) return;
    ir::for_each(kernel_.body, [this](const Operation& o) {
      if (conflict_ || !ir::info(o.op).elementwise() || !in_registers(o.results[0])) return;
      for (std::size_t i = 0; i < o.operands.size(); ++i) {
        if (!in_registers(o.operands[i])) continue;
        if (ir::register_map(layout(o.results[0]), layout(o.operands[i])).ok()) continue;
        conflict(operand(o, i),
                 "the threads of the role hold the elements of " + text_of(o.operands[i]) +
                     " in another order than those of the result, " + text_of(o.results[0]));
        conflict_->wanted =
            before_stretching(layout(o.results[0]), kernel_.type(o.operands[i]).shape);
        if (layout(o.operands[i]).is_partial()) conflict_->at = At::nothing;
        return;
      }
    });
  }

  // Backwards only to what is loaded from shared memory, from wherever it is wanted: other tiles
  // lie as their other readers want them.
  void transpose(const Operation& o) {
    const ValueId from = o.operands[0], to = o.results[0];
    const std::vector<std::int64_t>& permutation = o.attributes.integers(Key::permutation);
    if (known(from)) {
      set(to, permuted(layout(from), permutation), result(o));
    } else if (known(to) && from_shared_.count(from) != 0) {
      transpose_operand(o);
    }
  }
  void transpose_operand(const Operation& o) {
    const std::vector<std::int64_t>& permutation = o.attributes.integers(Key::permutation);
    set(o.operands[0], permuted_back(layout(o.results[0]), permutation), operand(o, 0));
  }

  void reshape(const Operation& o) {
    const ValueId from = o.operands[0], to = o.results[0];
    if (known(from)) return reshape(from, to, result(o));
    if (known(to)) reshape(to, from, operand(o, 0));
  }

  // Gives `other` what `known` holds, as a tile of its own shape.
  void reshape(ValueId known, ValueId other, const Edge& edge) {
    const std::optional<RegisterLayout> moved = layout(known).reshaped(kernel_.type(other).shape);
    if (moved) return set(other, *moved, edge);
    const Operation& o = edge.operation;
    conflict(
        {o, At::itself},
        text_of(o.operands[0]) + " to " + text_of(o.results[0]) + " tears apart what a lane holds",
        "split or join axes by powers of two, or add and drop axes of size 1");
  }

  // Whole registers are cut out.
  void slice(const Operation& o) {
    const ValueId from = o.operands[0], to = o.results[0];
    const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
    const std::vector<std::int64_t>& sizes = kernel_.type(to).shape;
    if (known(from)) {
      const Slice cut = sliced(layout(from), offsets, sizes);
      if (!cut.torn_axis) return set(to, cut.layout, result(o));
      const std::size_t axis = *cut.torn_axis;
      return conflict({o, At::itself},
                      "axis " + std::to_string(axis) + " from " + std::to_string(offsets[axis]) +
                          ", " + std::to_string(sizes[axis]) + " of " +
                          std::to_string(kernel_.type(from).shape[axis]) +
                          " elements do not fall on whole registers",
                      "slice the accumulator's columns by multiples of 8");
    }
    // What is loaded from shared memory as a whole lies as each of its parts is wanted.
    if (!known(to) || from_shared_.count(from) == 0) return;
    const auto whole = whole_of_slices(layout(to), offsets, kernel_.type(from).shape);
    if (whole) set(from, *whole, operand(o, 0));
  }

  static constexpr int kWidestAccess = 16;  // bytes

  ir::Kernel& kernel_;
  const target::Target& target_;
  bool changed_ = false;
  bool products_ = false;
  std::set<ValueId> from_shared_;                  // results of load_tile, moved or cast
  std::map<std::string, RegisterLayout> sources_;  // of partial sums, by how these lie
  std::map<ValueId, const Operation*> partial_;    // what makes them
  std::optional<LayoutConflict> conflict_;
};

}  // namespace

void LayoutConflict::raise() const {
  Diagnostic(operation->where, problem).token(token).fix(fix).raise();
}

std::optional<LayoutConflict> find_layout_conflict(ir::Kernel& kernel) {
  return LayoutAssignment(kernel).run();
}

void assign_layouts(ir::Kernel& kernel) {
  if (const auto conflict = find_layout_conflict(kernel)) conflict->raise();
  drop_conversions(kernel, true);
}

}  // namespace tilewright::passes
