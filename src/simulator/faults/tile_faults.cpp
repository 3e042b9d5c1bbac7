#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"
#include "simulator/faults/signals.h"

// Who computes what: the tile that a number means, the parts of a sum, the CTAs that a copy is for.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

// Whether the value follows from which CTA this is, or from a number that was handed out.
bool is_of_tile(const Sites& sites, ValueId value) {
  const std::set<ValueId> from = computed_from(sites, {value});
  return std::any_of(from.begin(), from.end(), [&](ValueId each) {
    const Site* made = sites.definition(each);
    return made && (made->op() == Op::cta_index || made->op() == Op::atomic_add ||
                    made->op() == Op::shared_load);
  });
}

// x of (x + d - 1) / d, whose quotient has a part more for the remainder; kNoValue: it is none.
ValueId without_remainder(const Sites& sites, const Site& division) {
  const std::vector<ValueId>& operands = division.operation->operands;
  const Site* sum = sites.definition(operands[0]);
  const auto divisor = sites.constant(operands[1]);
  if (!divisor || *divisor < 2 || !sum || sum->op() != Op::add) return ir::kNoValue;
  const std::vector<ValueId>& added = sum->operation->operands;
  for (const int i : {0, 1}) {
    if (sites.is_constant(added[i], *divisor - 1)) return added[1 - i];
  }
  return ir::kNoValue;
}

bool is_integer_division(const Sites& sites, const Site& site) {
  return (site.op() == Op::div || site.op() == Op::mod) &&
         is_integer(sites.kernel().type(site.operation->results[0]).dtype);
}

// How the value is computed, in words that are the same in every role: what is handed to a role has
// the line alone.
std::string expression(const Sites& sites, ValueId value, int depth = 8) {
  const Site* made = sites.definition(value);
  if (!made) return "given";
  const ir::Operation& operation = *made->operation;
  if (const auto number = sites.constant(value)) return fmt::format("{}", *number);
  if (operation.op == Op::dim) return operation.attributes.dim().to_string();
  std::string text = fmt::format("{}:{}", ir::info(operation.op).name, operation.where.line);
  if (!ir::info(operation.op).pure() || depth == 0) {
    return fmt::format("handed:{}", operation.where.line);
  }
  for (const ValueId operand : operation.operands) {
    text += " " + expression(sites, operand, depth - 1);
  }
  return "(" + text + ")";
}

// The integer divisions that tiles are counted with. Those that several roles compute alike, each
// for itself, are one: their author wrote it once.
std::vector<std::vector<std::size_t>> divisions_of_tiles(const Sites& sites) {
  // By their expressions, of each role in the order of the kernel.
  std::map<std::string, std::map<std::size_t, std::vector<std::size_t>>> roles;
  for (const Site& site : sites.all()) {
    if (!is_integer_division(sites, site)) continue;
    if (!is_of_tile(sites, site.operation->operands[0])) continue;
    roles[expression(sites, site.operation->results[0])][site.role].push_back(site.number);
  }
  std::vector<std::vector<std::size_t>> divisions;
  for (const auto& [text, by_role] : roles) {
    const std::size_t count = by_role.begin()->second.size();
    const bool alike = std::all_of(by_role.begin(), by_role.end(),
                                   [&](const auto& role) { return role.second.size() == count; });
    if (!alike) {
      for (const auto& [role, numbers] : by_role) {
        for (const std::size_t number : numbers) divisions.push_back({number});
      }
      continue;
    }
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::size_t>& numbers = divisions.emplace_back();
      for (const auto& [role, of_role] : by_role) numbers.push_back(of_role[i]);
      std::sort(numbers.begin(), numbers.end());
    }
  }
  return divisions;
}

// To one more or one less, but at least one.
void change_divisors(ir::Kernel& kernel, const std::vector<std::size_t>& divisions, Op how) {
  for (auto number = divisions.rbegin(); number != divisions.rend(); ++number) {
    const ValueId divisor = operation_at(kernel, *number).operands[1];
    const ValueId one = insert_constant(kernel, *number, 1);
    const ValueId changed = insert_scalar(kernel, *number + 1, how, {divisor, one});
    const ValueId least = insert_scalar(kernel, *number + 2, Op::max, {changed, one});
    operation_at(kernel, *number + 3).operands[1] = least;
  }
}

void add_one(ir::Kernel& kernel, const std::vector<std::size_t>& divisions) {
  for (auto number = divisions.rbegin(); number != divisions.rend(); ++number) {
    const ValueId one = insert_constant(kernel, *number, 1);
    const ValueId right = kernel.add_value(ir::Type::scalar(DType::i32));
    ir::Operation& division = operation_at(kernel, *number + 1);
    const ValueId result = std::exchange(division.results[0], right);
    insert(kernel, *number + 1, Side::after,
           {Op::add, {right, one}, {result}, {}, {}, division.where});
  }
}

Mutant with_mask(const Sites& sites, const Site& copy, std::uint64_t mask, std::string change) {
  Mutant mutant = mutant_at(sites, copy, std::move(change));
  mutant.edit = [number = copy.number, mask](ir::Kernel& kernel) {
    operation_at(kernel, number).attributes.set(Key::multicast, static_cast<std::int64_t>(mask));
  };
  return mutant;
}

}  // namespace

std::vector<Mutant> seed_wrong_division(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    if (!is_integer_division(sites, site)) continue;
    const ValueId whole = site.op() == Op::div ? without_remainder(sites, site) : ir::kNoValue;
    if (whole != ir::kNoValue) {
      mutants.push_back(mutant_at(sites, site, "drops the remainder"));
      mutants.back().division = Mutant::Division::without_remainder;
      mutants.back().edit = [number = site.number, whole](ir::Kernel& kernel) {
        operation_at(kernel, number).operands[0] = whole;
      };
      mutants.back().equivalent = divides_evenly(sites, site, whole);
    }
  }
  for (const std::vector<std::size_t>& alike : divisions_of_tiles(sites)) {
    const Site& site = sites.at(alike.front());
    mutants.push_back(mutant_at(sites, site, "divides by one more"));
    Mutant& mutant = mutants.back();
    mutant.division = Mutant::Division::by_one_more;
    mutant.edit = [alike](ir::Kernel& kernel) { change_divisors(kernel, alike, Op::add); };
    mutant.others = {
        {"divides by one less",
         [alike](ir::Kernel& kernel) { change_divisors(kernel, alike, Op::sub); },
         Mutant::Division::by_one_less},
        // That shows too where no size is large enough for another divisor to make a difference.
        {"its result is one more", [alike](ir::Kernel& kernel) { add_one(kernel, alike); }}};
    for (const std::size_t number : alike) {
      mutant.equivalent = below_divisor(sites, sites.at(number));
      if (mutant.equivalent.empty()) {
        mutant.equivalent = splits_like_loops(sites, sites.at(number));
      }
      if (mutant.equivalent.empty()) break;
    }
  }
  return mutants;
}

std::vector<Mutant> seed_multicast(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* copy : sites.of(Op::tma_load)) {
    const ir::Attributes& attributes = copy->operation->attributes;
    const auto mask = static_cast<std::uint64_t>(attributes.integer_or(Key::multicast, 0));
    if (mask == 0) continue;
    const std::uint64_t fewer = mask & (mask - 1);
    if (fewer != 0) {
      mutants.push_back(with_mask(sites, *copy, fewer,
                                  fmt::format("is for CTAs {:#b} instead of {:#b}", fewer, mask)));
    }
    const std::int64_t group = attributes.integer_or(Key::multicast_group, 0);
    const int ctas = static_cast<int>(group != 0 ? group : sites.kernel().cluster);
    const int added = std::countr_one(mask);
    if (added >= ctas) continue;
    const std::uint64_t more = mask | std::uint64_t{1} << added;
    mutants.push_back(with_mask(sites, *copy, more,
                                fmt::format("is for CTAs {:#b} instead of {:#b}", more, mask)));
  }
  for (const Site* commit : sites.of(Op::tcgen05_commit)) {
    const auto mask =
        static_cast<std::uint64_t>(commit->operation->attributes.integer_or(Key::multicast, 0));
    if (mask == 0) continue;
    for (const std::uint64_t fewer : {mask & (mask - 1), mask & ~std::bit_floor(mask)}) {
      if (fewer == 0) continue;
      mutants.push_back(
          with_mask(sites, *commit, fewer,
                    fmt::format("arrives in CTAs {:#b} instead of {:#b}", fewer, mask)));
    }
  }
  for (const Site* copy : sites.of(Op::tma_load)) {
    if (copy->operation->attributes.integer_or(Key::pair, 0) == 0) continue;
    mutants.push_back(mutant_at(sites, *copy, "is announced to the CTA that it goes to"));
    mutants.back().edit = [number = copy->number](ir::Kernel& kernel) {
      operation_at(kernel, number).attributes.erase(Key::pair);
    };
  }
  for (const Site* copy : sites.of(Op::cluster_copy)) {
    mutants.push_back(mutant_at(sites, *copy, "goes to the CTA behind"));
    mutants.back().edit = [number = copy->number](ir::Kernel& kernel) {
      const ValueId cta = operation_at(kernel, number).operands.back();
      const ValueId one = insert_constant(kernel, number, 1);
      const ValueId all = insert_constant(kernel, number + 1, kernel.cluster);
      const ValueId next = insert_scalar(kernel, number + 2, Op::add, {cta, one});
      const ValueId other = insert_scalar(kernel, number + 3, Op::mod, {next, all});
      operation_at(kernel, number + 4).operands.back() = other;
    };
  }
  return mutants;
}

std::vector<Mutant> seed_other_map(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* choice : sites.of(Op::ragged_map)) {
    mutants.push_back(mutant_at(sites, *choice, "takes the other of the two maps"));
    mutants.back().edit = [number = choice->number](ir::Kernel& kernel) {
      const ValueId outside = operation_at(kernel, number).operands[1];
      const ValueId inside =
          insert_scalar(kernel, number, Op::logical_not, {outside}, DType::boolean);
      operation_at(kernel, number + 1).operands[1] = inside;
    };
  }
  return mutants;
}

}  // namespace tilewright::simulator
