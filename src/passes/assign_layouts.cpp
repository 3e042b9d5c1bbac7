#include "passes/assign_layouts.h"

#include <algorithm>
#include <functional>
#include <optional>

#include "support/diagnostic.h"

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
  explicit LayoutAssignment(ir::Kernel& kernel) : kernel_(kernel) {}

  void run() {
    seed();
    // Each round either fixes at least one more layout or ends.
    do {
      changed_ = false;
      propagate(kernel_.body);
      if (!changed_) choose();
      if (!changed_) spread();
    } while (changed_);
    ir::for_each(kernel_.body, [this](const Operation& o) {
      for (const ValueId result : o.results) {
        if (in_registers(result) && !known(result)) {
          Diagnostic(o.where, std::string(ir::info(o.op).name) +
                                  ": nothing determines how this tile lies in registers: " +
                                  kernel_.type(result).to_string())
              .token(ir::info(o.op).name)
              .fix("make it inside a role, or remove it")
              .raise();
        }
      }
    });
  }

 private:
  bool in_registers(ValueId id) const {
    const Type::Kind kind = kernel_.type(id).kind;
    return kind == Type::Kind::tile || kind == Type::Kind::pending;
  }
  const RegisterLayout& layout(ValueId id) const { return kernel_.types[id].layout; }
  bool known(ValueId id) const { return !layout(id).shape.empty(); }

  void set(ValueId id, const RegisterLayout& layout, const Operation& o) {
    if (!in_registers(id)) return;
    if (!known(id)) {
      kernel_.types[id].layout = layout;
      changed_ = true;
    } else if (!(this->layout(id) == layout)) {
      Diagnostic(o.where, std::string(ir::info(o.op).name) +
                              ": a tile is wanted in two register layouts: " +
                              this->layout(id).to_string() + " and " + layout.to_string())
          .fix("pass it through shared memory: store(view, tile), then load(view)")
          .raise();
    }
  }
  void unify(ValueId a, ValueId b, const Operation& o) {
    if (known(a)) set(b, layout(a), o);
    if (known(b)) set(a, layout(b), o);
  }

  void seed() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      if (o.op == Op::load || o.op == Op::splat || o.op == Op::iota) {
        if (o.attributes.has(Key::layout)) set(o.results[0], o.attributes.register_layout(), o);
      }
      if (o.op != Op::wgmma) return;
      products_ = true;
      const std::vector<std::int64_t>& shape = kernel_.type(o.results[0]).shape;
      set(o.results[0], ir::wgmma_accumulator(shape[0], shape[1], o.where), o);
      const Type& a = kernel_.type(o.operands[0]);
      if (a.is_tile()) {
        set(o.operands[0], ir::wgmma_a_fragment(a.shape[0], a.shape[1], size_of(a.dtype), o.where),
            o);
      }
      if (o.operands.size() > 2) unify(o.results[0], o.operands[2], o);
    });
  }

  static bool may_accumulate(const std::vector<std::int64_t>& shape) {
    return shape.size() == 2 && shape[0] == 64 && shape[1] % 8 == 0 && shape[1] <= 256;
  }

  // A tile from shared memory that no product determines lies as an accumulator would.
  void choose() {
    ir::for_each(kernel_.body, [this](const Operation& o) {
      const bool loads = o.op == Op::load_tile || o.op == Op::load_fragment;
      if (changed_ || !loads || known(o.results[0])) return;
      const std::vector<std::int64_t>& shape = kernel_.type(o.results[0]).shape;
      if (!may_accumulate(shape)) return;
      set(o.results[0], ir::wgmma_accumulator(shape[0], shape[1], o.where), o);
    });
  }

  // Warps that share the tiles of a role: those of a warpgroup, or all of a smaller role, unless a
  // layout that is known says otherwise.
  std::int64_t warps_of(const Operation& role) const {
    std::int64_t warps = 0;
    ir::for_each(role.blocks[0], [&](const Operation& o) {
      for (const ValueId result : o.results) {
        if (in_registers(result) && known(result)) warps = layout(result).warp_count();
      }
    });
    return warps != 0 ? warps : std::min<std::int64_t>(role.attributes.integer(Key::warps), 4);
  }

  // What nothing determines is spread over lanes as coalesced accesses want it; the largest tile
  // first, so that those which stretch beside it follow.
  void spread() {
    for (const Operation& role : kernel_.body.body) {
      if (changed_ || role.op != Op::role) continue;
      const Operation* largest = nullptr;
      ir::for_each(role.blocks[0], [&](const Operation& o) {
        if (o.results.size() != 1 || !kernel_.type(o.results[0]).is_tile()) return;
        if (known(o.results[0])) return;
        const auto elements = [&](const Operation* of) {
          return kernel_.type(of->results[0]).elements();
        };
        if (!largest || elements(&o) > elements(largest)) largest = &o;
      });
      if (largest) set(largest->results[0], coalesced(*largest, warps_of(role)), *largest);
    }
  }

  // Beside products a warp has the rows that it has of their results: it may store rows for a copy
  // of its own, and load what it stored itself.
  RegisterLayout coalesced(const Operation& o, std::int64_t warps) const {
    const Type& type = kernel_.type(o.results[0]);
    if (products_ && warps == 4 && may_accumulate(type.shape)) {
      return ir::wgmma_accumulator(type.shape[0], type.shape[1], o.where);
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

  void visit(const Operation& o) {
    if (ir::info(o.op).elementwise()) return elementwise(o);
    switch (o.op) {
      case Op::wait:
      case Op::as_pending:
        return unify(o.operands[0], o.results[0], o);
      case Op::wgmma:
        if (o.operands.size() > 2) unify(o.operands[2], o.results[0], o);
        return;
      case Op::complete:
        if (known(o.operands[0])) {
          RegisterLayout whole = layout(o.operands[0]);
          for (std::vector<ir::Mode>* modes : {&whole.lanes, &whole.warps}) {
            for (ir::Mode& mode : *modes) {
              if (mode.kind == ir::ModeKind::partial)
                mode = {mode.size, 0, 0, ir::ModeKind::replicate};
            }
          }
          set(o.results[0], whole, o);
        }
        return;
      case Op::reduce: {
        if (!known(o.operands[0])) return;
        const int axis = static_cast<int>(o.attributes.integer(Key::axis));
        const bool partial = o.attributes.integer_or(Key::partial, 0) != 0;
        set(o.results[0],
            layout(o.operands[0])
                .reduce(axis, partial ? ir::Reduction::partial : ir::Reduction::complete),
            o);
        return;
      }
      case Op::transpose:
        return transpose(o);
      case Op::reshape:
        return reshape(o);
      case Op::slice:
        return slice(o);
      case Op::for_loop:
      case Op::while_loop: {
        const std::size_t extra = o.op == Op::while_loop ? 1 : 0;
        const std::size_t leading = o.op == Op::for_loop ? 3 : 1;
        const ir::Block& body = o.blocks[0];
        const std::size_t first = body.arguments.size() - o.results.size();
        for (std::size_t i = 0; i < o.results.size(); ++i) {
          if (!in_registers(o.results[i])) continue;
          unify(body.arguments[first + i], o.results[i], o);
          unify(body.body.back().operands[extra + i], body.arguments[first + i], o);
          unify(o.operands[leading + i], body.arguments[first + i], o);
        }
        return;
      }
      case Op::if_then:
        for (std::size_t i = 0; i < o.results.size(); ++i) {
          if (!in_registers(o.results[i])) continue;
          for (const ir::Block& branch : o.blocks) {
            unify(branch.body.back().operands[i], o.results[i], o);
          }
        }
        return;
      default:
        return;
    }
  }

  void elementwise(const Operation& o) {
    const ValueId result = o.results[0];
    if (!in_registers(result)) return;
    const Type& type = kernel_.type(result);
    const std::int64_t partial = o.attributes.integer_or(Key::partial, -1);
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      const ValueId operand = o.operands[i];
      if (!in_registers(operand)) continue;
      const Type& other = kernel_.type(operand);
      if (other.shape == type.shape) {
        // A scaled partial sum is partial, its factor is not.
        if (partial >= 0 && i < 2 && static_cast<std::int64_t>(i) != partial) continue;
        unify(operand, result, o);
      } else if (known(result) && !known(operand)) {
        RegisterLayout stretched = layout(result);
        for (std::size_t axis = 0; axis < type.shape.size(); ++axis) {
          if (other.shape[axis] == 1 && type.shape[axis] != 1) {
            stretched = stretched.reduce(static_cast<int>(axis), ir::Reduction::complete);
          }
        }
        set(operand, stretched, o);
      }
    }
  }

  void transpose(const Operation& o) {
    const ValueId from = o.operands[0], to = o.results[0];
    const std::vector<std::int64_t>& permutation = o.attributes.integers(Key::permutation);
    if (known(from)) {
      set(to,
          moved_axes(from, to,
                     [&](int axis) {
                       const auto at = std::find(permutation.begin(), permutation.end(), axis);
                       return static_cast<int>(at - permutation.begin());
                     }),
          o);
    } else if (known(to)) {
      set(from, moved_axes(to, from, [&](int axis) { return static_cast<int>(permutation[axis]); }),
          o);
    }
  }
  // What `known` holds, as the other side of a transposition.
  RegisterLayout moved_axes(ValueId known, ValueId other,
                            const std::function<int(int)>& axis) const {
    RegisterLayout moved = layout(known);
    moved.shape = kernel_.type(other).shape;
    for (std::vector<ir::Mode>* modes : {&moved.registers, &moved.lanes, &moved.warps}) {
      for (ir::Mode& mode : *modes) mode.axis = axis(mode.axis);
    }
    return moved;
  }

  void reshape(const Operation& o) {
    const ValueId from = o.operands[0], to = o.results[0];
    if (known(from)) set(to, reshaped(from, to, o), o);
    if (known(to) && !known(from)) set(from, reshaped(to, from, o), o);
  }

  // What `known` holds, as the tile `other` of the reshape.
  RegisterLayout reshaped(ValueId known, ValueId other, const Operation& o) const {
    const std::optional<RegisterLayout> moved = layout(known).reshaped(kernel_.type(other).shape);
    if (!moved) {
      Diagnostic(o.where, "reshape: " + kernel_.type(o.operands[0]).to_string() + " to " +
                              kernel_.type(o.results[0]).to_string() +
                              " tears apart what a lane holds")
          .token("reshape")
          .fix("split or join axes by powers of two, or add and drop axes of size 1")
          .raise();
    }
    return *moved;
  }

  // Whether lanes or warps divide the digit's axis more coarsely than it does.
  static bool beyond(const RegisterLayout& layout, const ir::Mode& digit) {
    for (const std::vector<ir::Mode>* modes : {&layout.lanes, &layout.warps}) {
      for (const ir::Mode& mode : *modes) {
        if (mode.kind == ir::ModeKind::distribute && mode.axis == digit.axis &&
            mode.stride > digit.stride) {
          return true;
        }
      }
    }
    return false;
  }

  // Whole registers are cut out: the slice must begin and end where the fastest digits repeat.
  void slice(const Operation& o) {
    if (!known(o.operands[0])) return;
    RegisterLayout cut = layout(o.operands[0]).canonical();
    const std::vector<std::int64_t>& offsets = o.attributes.integers(Key::offsets);
    const std::vector<std::int64_t>& sizes = kernel_.type(o.results[0]).shape;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == cut.shape[axis]) continue;
      // Only the slowest register digit may shorten.
      ir::Mode* last = cut.registers.empty() ? nullptr : &cut.registers.back();
      if (!last || last->axis != static_cast<int>(axis) || sizes[axis] % last->stride != 0 ||
          offsets[axis] % last->stride != 0 || beyond(cut, *last)) {
        Diagnostic(o.where, "slice: axis " + std::to_string(axis) + " from " +
                                std::to_string(offsets[axis]) + ", " + std::to_string(sizes[axis]) +
                                " of " + std::to_string(cut.shape[axis]) +
                                " elements do not fall on whole registers")
            .token("slice")
            .fix("slice the accumulator's columns by multiples of 8")
            .raise();
      }
      last->size = sizes[axis] / last->stride;
      cut.shape[axis] = sizes[axis];
    }
    set(o.results[0], cut, o);
  }

  ir::Kernel& kernel_;
  bool changed_ = false;
  bool products_ = false;
};

}  // namespace

void assign_layouts(ir::Kernel& kernel) { LayoutAssignment(kernel).run(); }

}  // namespace tilewright::passes
