#include <map>
#include <set>
#include <utility>
#include <vector>

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

// Only computes: a mask that is applied where a tile may be cut.
bool is_conditional_mask(const Site& site) {
  if (site.op() != Op::if_then) return false;
  for (const ir::Block& block : site.operation->blocks) {
    for (const ir::Operation& operation : block.body) {
      const bool computes = operation.op == Op::compute || operation.op == Op::copy ||
                            operation.op == Op::coordinate || ir::info(operation.op).pure();
      if (!computes && operation.op != Op::yield) return false;
    }
  }
  return true;
}

// The block that the site stands in, apart from such conditions.
std::pair<std::size_t, std::size_t> block_of(const Sites& sites, const Site& site) {
  const Site* at = &site;
  for (const Site* outer = sites.parent(*at); outer && is_conditional_mask(*outer);
       outer = sites.parent(*at)) {
    at = outer;
  }
  return {at->parent, at->block};
}

}  // namespace

std::vector<Mutant> seed_tail_mask(const Sites& sites) {
  // One mask may be applied several times, to scores and again to their weights: what is left out
  // is all that a block of operations masks.
  struct Mask {
    std::size_t number = 0;
    std::size_t kept = 0;  // operand
  };
  std::map<std::pair<std::size_t, std::size_t>, std::vector<Mask>> blocks;
  const std::set<ValueId> masks = positional(sites);
  for (const Site* site : sites.of(Op::compute)) {
    if (site->operation->attributes.function() != Op::select) continue;
    const std::vector<ValueId>& operands = site->operation->operands;
    if (masks.count(operands[1]) == 0) continue;
    // A mask has a scalar on one side, the values on the other.
    const std::size_t kept = sites.kernel().type(operands[2]).is_scalar() ? 3 : 2;
    if (sites.kernel().type(operands[kept]).is_scalar()) continue;
    blocks[block_of(sites, *site)].push_back({site->number, kept});
  }
  std::vector<Mutant> mutants;
  for (const auto& [block, selects] : blocks) {
    Mutant mutant = mutant_at(sites, sites.at(selects.front().number), "masks nothing");
    mutant.edit = [selects = selects](ir::Kernel& kernel) {
      for (const Mask& mask : selects) {
        ir::Operation& select = operation_at(kernel, mask.number);
        std::vector<ir::IndexMap> maps = select.attributes.maps();
        const std::size_t other = mask.kept == 2 ? 3 : 2;
        select.operands[other] = select.operands[mask.kept];
        maps[other - 1] = maps[mask.kept - 1];
        select.attributes.set(Key::maps, std::move(maps));
      }
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
