#include <fmt/format.h>

#include <set>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"
#include "simulator/faults/signals.h"

// Rings: which stage, which phase, when a stage is read and when it is released.
namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

namespace {

// Operand numbers of the index of a barrier in its array; 0 where the operation has none.
std::size_t index_operand(Op op) {
  // The index stands behind the array.
  const auto& operands = ir::info(op).operands;
  for (std::size_t i = 0; i + 1 < operands.count; ++i) {
    if (operands.items[i].kind == ir::OperandKind::Kind::mbarriers) return i + 1;
  }
  return 0;
}

// What indices of barriers, or parities of waits, are computed from.
std::set<ValueId> stages_or_phases(const Sites& sites, bool phases) {
  std::vector<ValueId> roots;
  for (const Site& site : sites.all()) {
    const std::size_t index = index_operand(site.op());
    if (!phases && index > 0) roots.push_back(site.operation->operands[index]);
    if (phases && site.op() == Op::mbarrier_wait) roots.push_back(site.operation->operands[2]);
  }
  return computed_from(sites, std::move(roots));
}

// The uses are given `old` instead of the value that follows it.
Mutant not_renewed(const Sites& sites, const Site& site, std::vector<Use> uses, ValueId old,
                   std::string change) {
  Mutant mutant = mutant_at(sites, site, std::move(change));
  mutant.equivalent = loop_ends(sites, uses);
  mutant.edit = [uses = std::move(uses), old](ir::Kernel& kernel) {
    for (const Use& use : uses) operation_at(kernel, use.site).operands[use.operand] = old;
  };
  return mutant;
}

bool holds(const Site& outer, std::size_t number) {
  return outer.number < number && number < outer.end;
}

// Whether an operation between two sites, both excluded, defines an operand of the second.
bool defined_between(const Sites& sites, const Site& first, const Site& second) {
  for (const ValueId operand : second.operation->operands) {
    const Site* made = sites.definition(operand);
    if (made && made->number > first.number && made->number < second.number) return true;
  }
  return false;
}

// The last wgmma_wait before the operation in its block, or in one around it.
const Site* wait_before(const Sites& sites, const Site& site) {
  for (const Site* at = &site; at; at = sites.parent(*at)) {
    for (const Site* before = sites.previous(*at); before; before = sites.previous(*before)) {
      if (before->op() == Op::wgmma_wait) return before;
    }
  }
  return nullptr;
}

// The operation in the block that is the last to read shared memory into registers before `site`.
const Site* read_before(const Sites& sites, const Site& site) {
  const Site* first = nullptr;
  for (const Site* before = sites.previous(site); before; before = sites.previous(*before)) {
    if (before->op() == Op::mbarrier_wait) break;
    if (ir::info(before->op()).reads(ir::Memory::shared, ir::Proxy::generic)) first = before;
  }
  return first;
}

struct Move {
  std::size_t number = 0, target = 0;
  Side side = Side::before;
};

Mutant moved(const Sites& sites, const Site& site, const Move& way, std::string change) {
  Mutant mutant = mutant_at(sites, site, std::move(change));
  mutant.edit = [way](ir::Kernel& kernel) { move(kernel, way.number, way.target, way.side); };
  return mutant;
}

}  // namespace

std::vector<Mutant> seed_stage(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const ValueId value : stages_or_phases(sites, false)) {
    const ValueId stage = advanced_from(sites, value);
    if (stage == ir::kNoValue) continue;
    mutants.push_back(not_renewed(sites, *sites.definition(value), sites.uses(value), stage,
                                  "stays at the same stage"));
  }
  return mutants;
}

std::vector<Mutant> seed_phase(const Sites& sites) {
  std::vector<Mutant> mutants;
  const std::set<ValueId> phases = stages_or_phases(sites, true);
  for (const ValueId value : phases) {
    const ValueId phase = flipped_from(sites, value);
    if (phase == ir::kNoValue) continue;
    const Site& made = *sites.definition(value);
    // A bare 1 - phase may also be the parity of a wait; what is carried on is the next phase.
    std::vector<Use> uses;
    for (const Use& use : sites.uses(value)) {
      const Op op = sites.at(use.site).op();
      if (made.op() == Op::select || op == Op::yield || op == Op::for_loop ||
          op == Op::while_loop) {
        uses.push_back(use);
      }
    }
    if (uses.empty()) continue;
    mutants.push_back(not_renewed(sites, made, std::move(uses), phase, "keeps its phase"));
    if (made.op() == Op::select) mutants.back().matters_if = made.operation->operands[0];
  }
  return mutants;
}

std::vector<Mutant> seed_early_use(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* wait : waits(sites, false)) {
    mutants.push_back(left_out(sites, *wait));
    const Site* product = nullptr;
    for (const Site* at = sites.next(*wait); at; at = sites.next(*at)) {
      if (ir::info(at->op()).completion == ir::Completion::products) product = at;
      if (at->op() != Op::wgmma_commit || !product) continue;
      mutants.push_back(
          moved(sites, *wait, {wait->number, at->number, Side::after}, "moved behind the product"));
      break;
    }
  }
  return mutants;
}

std::vector<Mutant> seed_early_release(const Sites& sites) {
  std::vector<Mutant> mutants;
  const auto add = [&](const Site& site, const Move& way, std::string change) {
    mutants.push_back(moved(sites, site, way, std::move(change)));
  };
  for (const Site* arrive : sites.of(Op::mbarrier_arrive)) {
    if (const Site* read = read_before(sites, *arrive)) {
      if (!defined_between(sites, *read, *arrive)) {
        add(*arrive, {arrive->number, read->number, Side::before},
            "moved before what it releases is read");
      }
      continue;
    }
    if (!is_empty_barrier(sites, arrive->operation->operands[0])) continue;
    const Site* wait = wait_before(sites, *arrive);
    if (!wait) continue;
    const bool beside = wait->parent == arrive->parent && wait->block == arrive->block;
    if (beside && !defined_between(sites, *wait, *arrive)) {
      add(*arrive, {arrive->number, wait->number, Side::before}, "moved before the wgmma_wait");
      continue;
    }
    const Site* outer = sites.beside(*wait, *arrive);
    if (!outer || holds(*outer, wait->number)) continue;
    add(*wait, {wait->number, outer->number, Side::after},
        fmt::format("moved behind mbarrier_arrive {}", sites.name(arrive->operation->operands[0])));
  }
  return mutants;
}

}  // namespace tilewright::simulator
