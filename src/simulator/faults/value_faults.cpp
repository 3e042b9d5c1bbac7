#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"

// Results that are wrong although all is in order: masks that keep out what does not exist, heads
// that share keys, pages that lie anywhere.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

constexpr std::size_t kFirstCoordinate = 5;  // of a tma_load's operands

// Register arrays whose values depend on where an element lies.
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

// Where a copy's coordinate goes along an axis of which it takes a single element, such as heads
// and pages.
bool is_single_coordinate(const Sites& sites, const Use& use) {
  const Site& site = sites.at(use.site);
  if (site.op() != Op::tma_load || use.operand < kFirstCoordinate) return false;
  const Site* map = sites.definition(site.operation->operands[0]);
  while (ir::info(map->op()).family == ir::Family::map_choice) {
    map = sites.definition(map->operation->operands[0]);
  }
  const std::vector<std::int64_t>& box = map->operation->attributes.integers(Key::box);
  // Innermost first; a map of sequences has one more, the outermost.
  const std::size_t axis = use.operand - kFirstCoordinate;
  return axis < box.size() && box[box.size() - 1 - axis] == 1;
}

bool chooses_single_elements(const Sites& sites, ValueId value) {
  const std::vector<Use>& uses = sites.uses(value);
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
    return is_single_coordinate(sites, use);
  });
}

// Heads of queries share one of keys: as if fewer did.
void add_other_groups(const Sites& sites, std::vector<Mutant>& mutants) {
  for (const Site* site : sites.of(Op::div)) {
    const auto heads = sites.constant(site->operation->operands[1]);
    if (!heads || *heads < 2) continue;
    if (!chooses_single_elements(sites, site->operation->results[0])) continue;
    mutants.push_back(
        mutant_at(sites, *site, fmt::format("divides by {} instead of {}", *heads - 1, *heads)));
    mutants.back().edit = [number = site->number, heads = *heads](ir::Kernel& kernel) {
      const ValueId fewer = insert_constant(kernel, number, heads - 1);
      operation_at(kernel, number + 1).operands[1] = fewer;
    };
  }
}

// The page behind that of the even block before it, as if two lay side by side.
void add_neighbouring_pages(const Sites& sites, std::vector<Mutant>& mutants) {
  for (const Site* site : sites.of(Op::load_index)) {
    const ValueId page = site->operation->results[0];
    if (!chooses_single_elements(sites, page)) continue;
    mutants.push_back(
        mutant_at(sites, *site, "taken of even blocks alone: the odd one's page lies behind it"));
    mutants.back().edit = [number = site->number](ir::Kernel& kernel) {
      const SourceLocation where = operation_at(kernel, number).where;
      const auto new_value = [&] { return kernel.add_value(ir::Type::scalar(DType::i32)); };
      const auto scalar = [&](Op op, ValueId a, ValueId b, ValueId result) {
        return ir::Operation{op, {a, b}, {result}, {}, {}, where};
      };
      const ValueId two = insert_constant(kernel, number, 2);
      const ValueId block = operation_at(kernel, number + 1).operands.back();
      const ValueId odd = new_value(), even = new_value(), loaded = new_value();
      insert(kernel, number + 1, Side::before, scalar(Op::mod, block, two, odd));
      insert(kernel, number + 2, Side::before, scalar(Op::sub, block, odd, even));
      ir::Operation& load = operation_at(kernel, number + 3);
      const ValueId page = std::exchange(load.results[0], loaded);
      load.operands.back() = even;
      insert(kernel, number + 3, Side::after, scalar(Op::add, loaded, odd, page));
    };
  }
}

void add_masks(const Sites& sites, std::vector<Mutant>& mutants) {
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
  for (const auto& [block, selects] : blocks) {
    Mutant mutant = mutant_at(sites, sites.at(selects.front().number), "masks nothing");
    for (const Mask& mask : selects) mutant.computations.push_back(mask.number);
    mutant.equivalent = hides_zeros(sites, mutant.computations);
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
}

// A strict bound as one that is not, and the other way round.
Op other_strictness(Op comparison) {
  if (comparison == Op::lt) return Op::le;
  return comparison == Op::le ? Op::lt : comparison;
}

}  // namespace

// Bounds on where an element lies: one more of them, or one less, is within.
std::vector<Mutant> seed_shifted_masks(const Sites& sites) {
  std::vector<Mutant> mutants;
  const std::set<ValueId> places = positional(sites);
  for (const Site* site : sites.of(Op::compute)) {
    const Op comparison = site->operation->attributes.function();
    const Op other = other_strictness(comparison);
    const std::vector<ValueId>& operands = site->operation->operands;
    if (other == comparison || places.count(operands[0]) == 0) continue;
    const DType dtype = sites.kernel().type(operands[1]).dtype;
    if (!is_integer(dtype)) continue;
    mutants.push_back(
        mutant_at(sites, *site,
                  fmt::format("{} becomes {}", ir::info(comparison).name, ir::info(other).name)));
    mutants.back().computations = {site->number};
    mutants.back().edit = [number = site->number, other](ir::Kernel& kernel) {
      operation_at(kernel, number).attributes.set(Key::function, other);
    };
    // The other way: the array on one side is off by one, and is as it was behind the comparison.
    const std::size_t moved = sites.kernel().type(operands[1]).is_scalar() ? 2 : 1;
    const ir::Type& type = sites.kernel().type(operands[moved]);
    if (type.is_scalar()) continue;
    const bool more = (comparison == Op::lt) == (moved == 1);
    Mutant::Way& way = mutants.back().others.emplace_back();
    way.change = comparison == Op::lt ? "of one less" : "of one more";
    way.edit = [number = site->number, array = operands[moved], more,
                count = type.shape[0]](ir::Kernel& kernel) {
      const ValueId one = insert_constant(kernel, number, 1);
      const std::vector<ir::IndexMap> maps = {{{1, count, 1}}, {}};
      const auto moves = [&](bool up) {
        return ir::Operation{
            Op::compute, {array, array, one},
            {},          {{Key::function, up ? Op::add : Op::sub}, {Key::maps, maps}},
            {},          operation_at(kernel, number + 1).where};
      };
      insert(kernel, number + 1, Side::after, moves(!more));
      insert(kernel, number + 1, Side::before, moves(more));
    };
  }
  return mutants;
}

// The exponentials of a softmax, and factors of one array to another.
std::vector<Mutant> seed_wrong_weights(const Sites& sites) {
  static constexpr double kFactor = 1.005;
  std::vector<Mutant> mutants;
  const SpecialValues values(sites);
  for (const Site* site : sites.of(Op::compute)) {
    const Op function = site->operation->attributes.function();
    const std::vector<ValueId>& operands = site->operation->operands;
    const ir::Type& type = sites.kernel().type(operands[0]);
    const bool scales =
        function == Op::mul && std::all_of(operands.begin(), operands.end(), [&](ValueId operand) {
          return !sites.kernel().type(operand).is_scalar();
        });
    const bool weighs =
        function == Op::exp || function == Op::exp2 || function == Op::exp2_polynomial;
    if ((!weighs && !scales) || type.dtype != DType::f32) continue;
    mutants.push_back(mutant_at(sites, *site, "its result times 1.005"));
    mutants.back().equivalent = values.never_finite(*site);
    if (mutants.back().equivalent.empty()) {
      mutants.back().equivalent = meets_zeros(sites, *site);
    }
    if (mutants.back().equivalent.empty()) {
      mutants.back().equivalent = scale_cancels(sites, *site);
    }
    mutants.back().computations = {site->number};
    mutants.back().edit = [number = site->number, result = operands[0],
                           count = type.shape[0]](ir::Kernel& kernel) {
      const ValueId factor =
          insert_scalar(kernel, number, Op::constant, {}, DType::f32, {{Key::value, kFactor}});
      const std::vector<ir::IndexMap> maps = {{{1, count, 1}}, {}};
      insert(kernel, number + 1, Side::after,
             {Op::compute,
              {result, result, factor},
              {},
              {{Key::function, Op::mul}, {Key::maps, maps}},
              {},
              operation_at(kernel, number + 1).where});
    };
  }
  return mutants;
}

std::vector<Mutant> seed_wrong_elements(const Sites& sites) {
  std::vector<Mutant> mutants;
  add_masks(sites, mutants);
  add_other_groups(sites, mutants);
  add_neighbouring_pages(sites, mutants);
  return mutants;
}

}  // namespace tilewright::simulator
