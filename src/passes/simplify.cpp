#include "passes/simplify.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/compare.h"
#include "ir/replace.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// Of functions that dimensions have too.
std::optional<Dim::Kind> dim_kind(Op op) {
  constexpr std::pair<Op, Dim::Kind> kKinds[] = {
      {Op::add, Dim::Kind::add},      {Op::sub, Dim::Kind::sub}, {Op::mul, Dim::Kind::mul},
      {Op::div, Dim::Kind::floordiv}, {Op::mod, Dim::Kind::mod}, {Op::ceildiv, Dim::Kind::ceildiv},
      {Op::min, Dim::Kind::min},      {Op::max, Dim::Kind::max}};
  for (const auto& [each, kind] : kKinds) {
    if (each == op) return kind;
  }
  return std::nullopt;
}

bool commutes(Op op) {
  return op == Op::add || op == Op::mul || op == Op::min || op == Op::max || op == Op::eq ||
         op == Op::ne || op == Op::logical_and || op == Op::logical_or || op == Op::bit_and ||
         op == Op::bit_or || op == Op::bit_xor;
}

class Simplifier {
 public:
  explicit Simplifier(ir::Kernel& kernel) : kernel_(kernel), known_(kernel.types.size()) {}

  void run() {
    ir::replace(kernel_, [&](Operation& operation) -> std::optional<ir::Replacement> {
      if (const auto same = fold(operation)) return ir::Replacement{{*same}, {}};
      remember(operation);
      return {};
    });
  }

 private:
  // The value that the operation's result equals, or nothing; may rewrite the operation in place.
  std::optional<ValueId> fold(Operation& operation) {
    if (operation.op == Op::transpose) return untransposed(operation);
    if (operation.results.size() != 1 || !ir::info(operation.op).elementwise()) return {};
    const ir::Type& type = kernel_.type(operation.results[0]);
    if (!type.is_scalar()) return {};
    // One order for operands that commute, so that equal values are found equal.
    if (commutes(operation.op) && operation.operands[0] > operation.operands[1]) {
      std::swap(operation.operands[0], operation.operands[1]);
    }
    const std::vector<ValueId>& in = operation.operands;
    const auto constant = [&](std::size_t i) {
      return known_[in[i]] && known_[in[i]]->is_constant();
    };
    const auto is = [&](std::size_t i, std::int64_t value) {
      return constant(i) && known_[in[i]]->constant() == value;
    };
    if (operation.op == Op::select) {
      if (in[1] == in[2]) return in[1];
      if (constant(0)) return in[known_[in[0]]->constant() ? 1 : 2];
      return {};
    }
    if (operation.op == Op::logical_and || operation.op == Op::logical_or) {
      const std::int64_t neutral = operation.op == Op::logical_and ? 1 : 0;
      if (is(0, neutral) || in[0] == in[1]) return in[1];
      if (is(1, neutral)) return in[0];
      if (is(0, 1 - neutral)) return in[0];
      if (is(1, 1 - neutral)) return in[1];
      return {};
    }
    if (operation.op == Op::logical_not) {
      if (constant(0)) become(operation, Dim(1 - known_[in[0]]->constant()));
      return {};
    }
    if (ir::info(operation.op).is_comparison()) {
      compare(operation);
      return {};
    }
    if (type.dtype != i32) return {};
    const auto kind = dim_kind(operation.op);
    if (!kind) return {};
    if ((operation.op == Op::min || operation.op == Op::max) && in[0] == in[1]) return in[0];
    if (operation.op == Op::add && is(0, 0)) return in[1];
    if ((operation.op == Op::add || operation.op == Op::sub) && is(1, 0)) return in[0];
    if (operation.op == Op::mul && is(0, 1)) return in[1];
    const bool divides = operation.op == Op::div || operation.op == Op::ceildiv;
    if ((operation.op == Op::mul || divides) && is(1, 1)) return in[0];
    if (operation.op == Op::mul && (is(0, 0) || is(1, 0))) return in[is(0, 0) ? 0 : 1];
    if (operation.op == Op::mod && constant(1) && is_multiple(in[0], known_[in[1]]->constant())) {
      become(operation, 0);
      return {};
    }
    if (operation.op == Op::mul && (constant(0) || constant(1))) {
      factors_[operation.results[0]] = known_[in[constant(0) ? 0 : 1]]->constant();
    }
    if (!known_[in[0]] || !known_[in[1]]) return {};
    // A division by zero stays where it is, for its error to name the line.
    if ((divides || operation.op == Op::mod) && known_[in[1]]->range().minimum <= 0) return {};
    const Dim result = Dim::binary(*kind, *known_[in[0]], *known_[in[1]]);
    const DimFacts range = result.range();
    if (result.is_constant() && (range.minimum < INT32_MIN || range.maximum > INT32_MAX)) return {};
    become(operation, result);
    return {};
  }

  // Of powers of two, which a product that is too large for its dtype keeps.
  bool is_multiple(ValueId value, std::int64_t of) const {
    const auto factor = factors_.find(value);
    const bool is_power = of > 0 && (of & (of - 1)) == 0;
    return of == 1 || (is_power && factor != factors_.end() && factor->second % of == 0);
  }

  // What is transposed back is what it was.
  std::optional<ValueId> untransposed(const Operation& operation) {
    const std::vector<std::int64_t>& axes = operation.attributes.integers(Key::permutation);
    if (std::is_sorted(axes.begin(), axes.end())) return operation.operands[0];
    const auto before = transposed_.find(operation.operands[0]);
    if (before != transposed_.end()) {
      bool same = true;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::int64_t from = before->second.axes[static_cast<std::size_t>(axes[i])];
        same = same && from == static_cast<std::int64_t>(i);
      }
      if (same) return before->second.source;
    }
    transposed_[operation.results[0]] = {operation.operands[0], axes};
    return {};
  }

  void compare(Operation& operation) {
    const auto &a = known_[operation.operands[0]], &b = known_[operation.operands[1]];
    if (!a || !b || !a->is_constant() || !b->is_constant()) return;
    become(operation, Dim(ir::compare(operation.op, a->constant(), b->constant())));
  }

  void become(Operation& operation, const Dim& value) {
    operation.operands.clear();
    operation.op = value.is_constant() ? Op::constant : Op::dim;
    operation.attributes = value.is_constant() ? ir::Attributes{{Key::value, value.constant()}}
                                               : ir::Attributes{{Key::dim, value}};
  }

  void remember(const Operation& operation) {
    if (operation.op == Op::dim) known_[operation.results[0]] = operation.attributes.dim();
    if (operation.op != Op::constant) return;
    const auto* value = std::get_if<std::int64_t>(operation.attributes.find(Key::value));
    if (value) known_[operation.results[0]] = Dim(*value);
  }

  struct Transposed {
    ValueId source;
    std::vector<std::int64_t> axes;
  };

  ir::Kernel& kernel_;
  std::map<ValueId, Transposed> transposed_;
  std::vector<std::optional<Dim>> known_;    // integer constants and dimensions
  std::map<ValueId, std::int64_t> factors_;  // of products
};

}  // namespace

void simplify(ir::Kernel& kernel) { Simplifier(kernel).run(); }

}  // namespace tilewright::passes
