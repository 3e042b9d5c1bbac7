#include "analysis/repeated_stores.h"

#include <algorithm>
#include <optional>

#include "analysis/carried.h"
#include "analysis/data_dependence.h"
#include "analysis/definitions.h"
#include "support/diagnostic.h"

namespace tilewright::analysis {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

// The axes of the grid, a bit each, that values may depend on.
class GridAxes {
 public:
  explicit GridAxes(const ir::Kernel& kernel) : of_(kernel.types.size(), 0) {
    for (std::size_t axis = 0; axis < kernel.grid.size(); ++axis) {
      of_[kernel.body.arguments[axis]] = 1u << axis;
    }
    do {
      has_changed_ = false;
      ir::for_each(kernel.body, [this](const Operation& operation) { visit(operation); });
    } while (has_changed_);
  }

  std::uint32_t of(ValueId value) const { return of_[value]; }

 private:
  void visit(const Operation& operation) {
    std::uint32_t all = 0;
    for (const ValueId operand : operation.operands) all |= of_[operand];
    // Its condition says how often a while_loop turns.
    if (operation.op == Op::while_loop) all |= of_[operation.blocks[0].body.back().operands[0]];
    for (const ValueId result : operation.results) add(result, all);
    if (operation.op == Op::for_loop) add(operation.blocks[0].arguments[0], all);
    for_each_carried(operation, [this](ValueId from, ValueId to) { add(to, of_[from]); });
  }

  void add(ValueId value, std::uint32_t axes) {
    has_changed_ = has_changed_ || (axes & ~of_[value]) != 0;
    of_[value] |= axes;
  }

  std::vector<std::uint32_t> of_;
  bool has_changed_ = false;
};

// What is computed of numbers; nothing where that is more than sums, products and quotients.
std::optional<std::int64_t> number_of(const Operation& o,
                                      const std::vector<std::optional<std::int64_t>>& known) {
  if (const auto constant = integer_constant(&o)) return constant;
  if (o.operands.size() != 2) return {};
  const std::optional<std::int64_t> a = known[o.operands[0]], b = known[o.operands[1]];
  if (o.op == Op::mul && (a == 0 || b == 0)) return 0;
  if ((o.op == Op::div || o.op == Op::mod) && a == 0) return 0;
  if (!a || !b) return {};
  std::int64_t result = 0;
  if (o.op == Op::add && !__builtin_add_overflow(*a, *b, &result)) return result;
  if (o.op == Op::sub && !__builtin_sub_overflow(*a, *b, &result)) return result;
  if (o.op == Op::mul && !__builtin_mul_overflow(*a, *b, &result)) return result;
  return {};
}

// By value, in the grid's first block, which each launch has that has any.
std::vector<std::optional<std::int64_t>> in_first_block(const ir::Kernel& kernel) {
  std::vector<std::optional<std::int64_t>> known(kernel.types.size());
  for (std::size_t axis = 0; axis < kernel.grid.size(); ++axis) {
    known[kernel.body.arguments[axis]] = 0;
  }
  for (const Operation& o : kernel.body.body) {
    if (o.results.size() == 1) known[o.results[0]] = number_of(o, known);
  }
  return known;
}

class Finder {
 public:
  explicit Finder(const ir::Kernel& kernel)
      : kernel_(kernel),
        axes_(kernel),
        depends_(data_dependent(kernel)),
        definitions_(definitions(kernel)),
        in_first_block_(in_first_block(kernel)) {}

  std::vector<RepeatedStore> run() {
    for (const Operation& operation : kernel_.body.body) {
      if (operation.op == Op::store) add(operation);
    }
    return std::move(found_);
  }

 private:
  void add(const Operation& store) {
    const std::optional<std::size_t> tensor = output_of(store.operands[0]);
    if (!tensor || may_be_empty(store)) return;
    std::uint32_t axes = 0;
    for (std::size_t i = 2; i < store.operands.size(); ++i) {
      if (depends_[store.operands[i]]) return;
      axes |= axes_.of(store.operands[i]);
    }
    for (std::size_t axis = 0; axis < kernel_.grid.size(); ++axis) {
      if ((axes >> axis & 1) == 0) {
        found_.push_back({store.where, *tensor, axis, starts_of(store)});
      }
    }
  }

  std::vector<std::int64_t> starts_of(const Operation& store) const {
    std::vector<std::int64_t> starts(kernel_.parameter_of(store.operands[0])->shape.size());
    for (std::size_t axis = 0; axis < starts.size(); ++axis) {
      starts[axis] = *in_first_block_[store.operands[2 + axis]];
    }
    return starts;
  }

  // Whether the grid's first block may have none of its elements, although the tensor does not end
  // before: where a limit is neither the tensor's end nor a number, or the start is not known.
  bool may_be_empty(const Operation& store) const {
    const std::vector<Dim>& shape = kernel_.parameter_of(store.operands[0])->shape;
    const std::vector<std::int64_t>& sizes = store.attributes.integers(ir::Key::sizes);
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
      const std::optional<std::int64_t> start = in_first_block_[store.operands[2 + axis]];
      if (!start || *start + std::max<std::int64_t>(sizes[axis], 1) <= 0) return true;
      const ValueId limit = store.operands[2 + shape.size() + axis];
      const Operation* const made = definitions_[limit];
      const bool is_end =
          made != nullptr && made->op == Op::dim && made->attributes.dim() == shape[axis];
      const std::int64_t least = std::max<std::int64_t>(*start, 0);
      if (!is_end && integer_constant(made).value_or(0) <= least) return true;
    }
    return false;
  }

  std::optional<std::size_t> output_of(ValueId value) const {
    std::size_t number = 0;
    for (const ir::Parameter& parameter : kernel_.parameters) {
      if (!parameter.is_tensor()) continue;
      if (parameter.value == value) {
        return parameter.kind == ir::Parameter::Kind::out ? std::optional(number) : std::nullopt;
      }
      ++number;
    }
    return std::nullopt;  // as it is in another rank
  }

  const ir::Kernel& kernel_;
  const GridAxes axes_;
  const std::vector<bool> depends_;
  const std::vector<const Operation*> definitions_;
  const std::vector<std::optional<std::int64_t>> in_first_block_;
  std::vector<RepeatedStore> found_;
};

}  // namespace

std::vector<RepeatedStore> repeated_stores(const ir::Kernel& kernel) {
  if (kernel.form != ir::Form::tile) return {};
  return Finder(kernel).run();
}

void check_repeated_stores(const std::vector<RepeatedStore>& stores,
                           const std::vector<std::int64_t>& grid,
                           const std::vector<TensorArgument>& tensors) {
  if (std::find(grid.begin(), grid.end(), 0) != grid.end()) return;
  for (const RepeatedStore& store : stores) {
    const TensorArgument& tensor = tensors[store.tensor];
    bool is_empty = false;
    for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
      is_empty = is_empty || tensor.shape[axis] <= store.starts[axis];
    }
    if (grid[store.axis] < 2 || is_empty) continue;
    Diagnostic(store.where, "store: all " + std::to_string(grid[store.axis]) +
                                " blocks along axis " + std::to_string(store.axis) +
                                " of the grid store the same elements of " + tensor.name)
        .token(tensor.name)
        .fix("let each element belong to one block: address " + tensor.name +
             " by that index of the grid too, or store it in one of them, inside of "
             "when(index == 0, ...)")
        .raise();
  }
}

}  // namespace tilewright::analysis
