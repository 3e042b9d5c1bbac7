#include "analysis/cluster_values.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/carried.h"

namespace tilewright::analysis {

using ir::Op;
using ir::Operation;
using ir::ValueId;

ClusterValues::ClusterValues(const ir::Kernel& kernel)
    : kernel_(kernel), known_(kernel.types.size()) {
  // What loops carry is known only behind their blocks.
  while (visit(kernel.body)) {
  }
}

std::int64_t ClusterValues::different(ValueId value) const {
  const Classes& classes = known_[value].classes;
  const auto count = std::set<std::int64_t>(classes.begin(), classes.end()).size();
  return static_cast<std::int64_t>(std::max<std::size_t>(count, 1));
}

std::vector<std::int64_t> ClusterValues::by_rank(ValueId value) const {
  const Known& known = known_[value];
  return known.exact && !known.shifted ? known.classes : Classes();
}

ClusterValues::Known ClusterValues::uniform() const {
  return {Classes(static_cast<std::size_t>(kernel_.cluster), 0), false, false};
}

ClusterValues::Known ClusterValues::per_rank(
    const std::function<std::int64_t(std::int64_t)>& value) const {
  Known known{{}, true, false};
  for (std::int64_t rank = 0; rank < kernel_.cluster; ++rank) known.classes.push_back(value(rank));
  return known;
}

ClusterValues::Known ClusterValues::joined(const Known& a, const Known& b) const {
  if (a.classes.empty()) return b;
  if (b.classes.empty() || a == b) return a;
  Known both;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbers;
  for (std::size_t rank = 0; rank < a.classes.size(); ++rank) {
    const auto next = static_cast<std::int64_t>(numbers.size());
    const auto key = std::pair(a.classes[rank], b.classes[rank]);
    both.classes.push_back(numbers.try_emplace(key, next).first->second);
  }
  return both;
}

bool ClusterValues::set(ValueId value, Known known) {
  if (known_[value] == known) return false;
  known_[value] = std::move(known);
  return true;
}

bool ClusterValues::visit(const ir::Block& block) {
  bool changed = false;
  for (const Operation& operation : block.body) changed |= visit(operation);
  return changed;
}

bool ClusterValues::visit(const Operation& operation) {
  if (!operation.blocks.empty()) return visit_control(operation);
  bool changed = false;
  const Known known = evaluate(operation);
  for (const ValueId result : operation.results) changed |= set(result, known);
  return changed;
}

bool ClusterValues::visit_control(const Operation& operation) {
  bool changed = false;
  const bool loops = operation.op == Op::for_loop || operation.op == Op::while_loop;
  if (!loops) {
    for (const ir::Block& block : operation.blocks) {
      for (const ValueId argument : block.arguments) changed |= set(argument, uniform());
      changed |= visit(block);
    }
    for (std::size_t i = 0; i < operation.results.size(); ++i) {
      Known known = known_[operation.operands[0]];
      for (const ir::Block& block : operation.blocks) {
        known = joined(known, known_[block.body.back().operands[i]]);
      }
      changed |= set(operation.results[i], std::move(known));
    }
    return changed;
  }
  const ir::Block& block = operation.blocks[0];
  if (operation.op == Op::for_loop) {
    const std::vector<ValueId>& bounds = operation.operands;
    changed |= set(block.arguments[0], joined(known_[bounds[0]], known_[bounds[2]]));
  }
  const Carried c = carried(operation);
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    changed |=
        set(block.arguments[c.first + i], joined(known_[operation.operands[c.leading + i]],
                                                 known_[block.body.back().operands[c.extra + i]]));
  }
  changed |= visit(block);
  // CTAs may leave in different turns.
  Known end = uniform();
  if (operation.op == Op::for_loop) {
    for (std::size_t i = 0; i < 3; ++i) end = joined(end, known_[operation.operands[i]]);
  }
  for (std::size_t i = 0; i < operation.results.size(); ++i) {
    changed |= set(operation.results[i], joined(end, known_[block.arguments[c.first + i]]));
  }
  return changed;
}

ClusterValues::Known ClusterValues::of_cta_index(Op op, std::int64_t divisor) const {
  if (op == Op::div && divisor % kernel_.cluster == 0) return uniform();
  if (op == Op::mod && kernel_.cluster % divisor == 0) {
    return per_rank([divisor](std::int64_t rank) { return rank % divisor; });
  }
  Known known = per_rank([](std::int64_t rank) { return rank; });
  known.exact = false;
  return known;
}

ClusterValues::Known ClusterValues::arithmetic(const Operation& operation, const Known& a,
                                               const Known& b) const {
  const bool divides = operation.op == Op::div || operation.op == Op::mod;
  const bool by_zero =
      divides && std::count(b.classes.begin(), b.classes.end(), std::int64_t{0}) != 0;
  if (a.exact && a.shifted && divides && b.exact && !b.shifted && !by_zero &&
      std::set<std::int64_t>(b.classes.begin(), b.classes.end()).size() == 1) {
    return of_cta_index(operation.op, b.classes[0]);
  }
  if (!a.exact || !b.exact || a.shifted || b.shifted || by_zero) return joined(a, b);
  static const std::map<Op, Dim::Kind> kinds = {{Op::add, Dim::Kind::add},
                                                {Op::sub, Dim::Kind::sub},
                                                {Op::mul, Dim::Kind::mul},
                                                {Op::div, Dim::Kind::floordiv},
                                                {Op::mod, Dim::Kind::mod}};
  const auto kind = kinds.find(operation.op);
  if (kind == kinds.end()) return joined(a, b);
  return per_rank([&](std::int64_t rank) {
    const auto r = static_cast<std::size_t>(rank);
    return Dim::binary(kind->second, a.classes[r], b.classes[r]).constant();
  });
}

ClusterValues::Known ClusterValues::evaluate(const Operation& operation) const {
  if (operation.op == Op::cluster_rank || operation.op == Op::cta_index) {
    Known known = per_rank([](std::int64_t rank) { return rank; });
    known.shifted = operation.op == Op::cta_index;
    return known;
  }
  if (operation.op == Op::constant) {
    const auto* value = std::get_if<std::int64_t>(operation.attributes.find(ir::Key::value));
    return value ? per_rank([value](std::int64_t) { return *value; }) : uniform();
  }
  if (operation.operands.size() == 2 && ir::info(operation.op).elementwise()) {
    const Known& a = known_[operation.operands[0]];
    const Known& b = known_[operation.operands[1]];
    if (!a.classes.empty() && !b.classes.empty()) return arithmetic(operation, a, b);
  }
  Known known = uniform();
  for (const ValueId operand : operation.operands) known = joined(known, known_[operand]);
  return known;
}

}  // namespace tilewright::analysis
