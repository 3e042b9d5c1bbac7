#include <set>

#include "simulator/faults/families.h"

// Masks that keep out what does not exist.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

// Register arrays whose values hang on where an element lies.
std::set<ValueId> positional(const Sites& sites) {
  std::set<ValueId> arrays;
  for (std::size_t before = SIZE_MAX; before != arrays.size();) {
    before = arrays.size();
    for (const Site& site : sites.all()) {
      const std::vector<ValueId>& operands = site.operation->operands;
      if (site.op() == Op::coordinate) arrays.insert(operands[0]);
      const bool is_compute =
          site.op() == Op::compute && site.operation->attributes.function() != Op::select;
      if (!is_compute && site.op() != Op::copy) continue;
      for (std::size_t i = 1; i < operands.size(); ++i) {
        if (arrays.count(operands[i]) != 0) arrays.insert(operands[0]);
      }
    }
  }
  return arrays;
}

}  // namespace

std::vector<Mutant> seed_tail_mask(const Sites& sites) {
  std::vector<Mutant> mutants;
  const std::set<ValueId> masks = positional(sites);
  for (const Site* site : sites.of(Op::compute)) {
    if (site->operation->attributes.function() != Op::select) continue;
    const std::vector<ValueId>& operands = site->operation->operands;
    if (masks.count(operands[1]) == 0) continue;
    // A mask has a scalar on one side, the values on the other.
    const bool second = sites.kernel().type(operands[2]).is_scalar();
    const std::size_t kept = second ? 3 : 2;
    if (sites.kernel().type(operands[kept]).is_scalar()) continue;
    Mutant mutant = mutant_at(sites, *site, "masks nothing");
    mutant.edit = [number = site->number, kept](ir::Kernel& kernel) {
      std::vector<ValueId>& changed = operation_at(kernel, number).operands;
      std::vector<ir::IndexMap> maps = operation_at(kernel, number).attributes.maps();
      const std::size_t other = kept == 2 ? 3 : 2;
      changed[other] = changed[kept];
      maps[other - 1] = maps[kept - 1];
      operation_at(kernel, number).attributes.set(Key::maps, std::move(maps));
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
