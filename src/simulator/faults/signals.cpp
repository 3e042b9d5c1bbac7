#include "simulator/faults/signals.h"

namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

std::optional<std::int64_t> first_value(const Sites& sites, ValueId value) {
  if (const auto constant = sites.constant(value)) return constant;
  const Use start = sites.start_of(value);
  if (start.site != kNoSite) return first_value(sites, sites.operand(start));
  const Site* made = sites.definition(value);
  if (!made) return std::nullopt;
  const std::vector<ValueId>& operands = made->operation->operands;
  if (made->op() == Op::sub) {
    const auto a = first_value(sites, operands[0]), b = first_value(sites, operands[1]);
    return a && b ? std::optional(*a - *b) : std::nullopt;
  }
  if (made->op() == Op::select) return first_value(sites, operands[2]);
  if (ir::info(made->op()).family != ir::Family::control) return std::nullopt;
  const std::vector<Use> sources = sites.sources(value);
  return sources.empty() ? std::nullopt : first_value(sites, sites.operand(sources.front()));
}

std::set<ValueId> computed_from(const Sites& sites, std::vector<ValueId> values) {
  std::set<ValueId> seen;
  while (!values.empty()) {
    const ValueId value = values.back();
    values.pop_back();
    if (!seen.insert(value).second) continue;
    for (const Use& use : sites.sources(value)) values.push_back(sites.operand(use));
    const Site* made = sites.definition(value);
    if (made && made->operation->blocks.empty()) {
      values.insert(values.end(), made->operation->operands.begin(),
                    made->operation->operands.end());
    }
  }
  return seen;
}

std::vector<Use> starts_of(const Sites& sites, ValueId value) {
  std::vector<Use> starts;
  std::set<ValueId> seen;
  std::vector<ValueId> open{value};
  while (!open.empty()) {
    const ValueId from = open.back();
    open.pop_back();
    if (!seen.insert(from).second) continue;
    for (const Use& use : sites.sources(from)) {
      const bool is_start = sites.at(use.site).op() != Op::yield;
      if (is_start && sites.constant(sites.operand(use))) starts.push_back(use);
      open.push_back(sites.operand(use));
    }
    const Site* made = sites.definition(from);
    if (!made || (made->op() != Op::sub && made->op() != Op::select)) continue;
    // Of a select what it gives, not why.
    const std::vector<ValueId>& operands = made->operation->operands;
    open.insert(open.end(), operands.begin() + 1, operands.end());
  }
  return starts;
}

bool is_empty_barrier(const Sites& sites, ValueId barriers) {
  for (const Use& use : sites.uses(barriers)) {
    const Site& site = sites.at(use.site);
    if (site.op() != Op::mbarrier_wait || use.operand != 0) continue;
    if (const auto parity = first_value(sites, site.operation->operands[2])) return *parity == 1;
  }
  return false;
}

std::vector<const Site*> waits(const Sites& sites, bool on_empty) {
  std::vector<const Site*> result;
  for (const Site* site : sites.of(Op::mbarrier_wait)) {
    if (is_empty_barrier(sites, site->operation->operands[0]) == on_empty) result.push_back(site);
  }
  return result;
}

ValueId advanced_from(const Sites& sites, ValueId value) {
  const Site* select = sites.definition(value);
  if (!select || select->op() != Op::select) return ir::kNoValue;
  const std::vector<ValueId>& operands = select->operation->operands;
  const Site* wrapped = sites.definition(operands[0]);
  const Site* next = sites.definition(operands[2]);
  if (!wrapped || wrapped->op() != Op::eq || !sites.is_constant(operands[1], 0) || !next ||
      next->op() != Op::add) {
    return ir::kNoValue;
  }
  const std::vector<ValueId>& compared = wrapped->operation->operands;
  if (compared[0] != operands[2] && compared[1] != operands[2]) return ir::kNoValue;
  // A single stage is always the same one.
  const ValueId stages = compared[0] == operands[2] ? compared[1] : compared[0];
  if (sites.is_constant(stages, 1)) return ir::kNoValue;
  const std::vector<ValueId>& added = next->operation->operands;
  if (sites.is_constant(added[1], 1)) return added[0];
  if (sites.is_constant(added[0], 1)) return added[1];
  return ir::kNoValue;
}

ValueId flipped_from(const Sites& sites, ValueId value) {
  const Site* made = sites.definition(value);
  if (!made) return ir::kNoValue;
  const std::vector<ValueId>& operands = made->operation->operands;
  if (made->op() == Op::sub && sites.is_constant(operands[0], 1)) return operands[1];
  if (made->op() != Op::select) return ir::kNoValue;
  const ValueId flipped = flipped_from(sites, operands[1]);
  return flipped == operands[2] ? flipped : ir::kNoValue;
}

}  // namespace tilewright::simulator
