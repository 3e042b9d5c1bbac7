#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/aligned.h"
#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"

// The lanes of a warp: what makes them wait for each other, and what they execute together.
namespace tilewright::simulator {

using ir::Op;

std::vector<Mutant> seed_unmet_lanes(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::warp_sync)) {
    mutants.push_back(left_out(sites, *site));
    mutants.back().equivalent = lanes_meet_anyway(sites, *site);
  }
  return mutants;
}

// Of several such operations that one line makes in a block the first: what parts the lanes before
// it parts them before all.
std::vector<Mutant> seed_parted_lanes(const Sites& sites) {
  std::vector<Mutant> mutants;
  std::set<std::tuple<Op, std::size_t, std::size_t, const char*, int>> seen;
  for (const Site& site : sites.all()) {
    const SourceLocation where = site.operation->where;
    if (!is_aligned(site.op()) || !site.operation->results.empty()) continue;
    if (!seen.insert({site.op(), site.parent, site.block, where.file, where.line}).second) continue;
    Mutant mutant = mutant_at(sites, site, "in a branch that one lane takes");
    mutant.edit = [number = site.number](ir::Kernel& kernel) {
      ir::Operation& operation = operation_at(kernel, number);
      ir::Operation elect{Op::elect, {}, {}, {}, {}, operation.where};
      ir::Block& block = elect.blocks.emplace_back();
      block.body.push_back(std::move(operation));
      block.body.push_back({Op::yield, {}, {}, {}, {}, elect.where});
      operation_at(kernel, number) = std::move(elect);
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
