#include <fmt/format.h>

#include <map>
#include <set>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"
#include "simulator/faults/signals.h"

// Barriers: parities, arrivals, bytes, initialisation, named barriers.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

Mutant with_attribute(const Sites& sites, const Site& site, Key key, std::int64_t value,
                      std::string change) {
  Mutant mutant = mutant_at(sites, site, std::move(change));
  mutant.edit = [number = site.number, key, value](ir::Kernel& kernel) {
    operation_at(kernel, number).attributes.set(key, value);
  };
  return mutant;
}

Mutant twice(const Sites& sites, const Site& site) {
  Mutant mutant = mutant_at(sites, site, "done twice");
  mutant.edit = [number = site.number](ir::Kernel& kernel) {
    insert(kernel, number, Side::after, operation_at(kernel, number));
  };
  return mutant;
}

// The barrier that follows the initialisation: what makes it known to all.
const Site* publishing_sync(const Sites& sites) {
  bool initialised = false;
  for (const Site& site : sites.all()) {
    initialised = initialised || site.op() == Op::mbarrier_init;
    if (initialised && (site.op() == Op::cta_sync || site.op() == Op::cluster_sync)) return &site;
  }
  return nullptr;
}

// Arrivals that complete the first phase of every barrier of the array before anything else.
Mutant primed(const Sites& sites, const Site& init, const Site& sync) {
  const ValueId barriers = init.operation->operands[0];
  const std::int64_t arrivals = init.operation->attributes.integer(Key::arrivals);
  const std::int64_t count = sites.kernel().type(barriers).shape[0];
  Mutant mutant = mutant_at(sites, init, "followed by arrivals that complete its first phase");
  mutant.edit = [=, number = sync.number](ir::Kernel& kernel) {
    std::size_t last = number;
    for (std::int64_t index = 0; index < count; ++index) {
      const SourceLocation where = operation_at(kernel, last).where;
      const ValueId number = kernel.add_value(ir::Type::scalar(DType::i32));
      insert(kernel, last++, Side::after,
             {Op::constant, {}, {number}, {{Key::value, index}}, {}, where});
      for (std::int64_t i = 0; i < arrivals; ++i) {
        insert(kernel, last++, Side::after,
               {Op::mbarrier_arrive, {barriers, number}, {}, {}, {}, where});
      }
    }
  };
  return mutant;
}

std::vector<Mutant> flipped_waits(const Sites& sites, bool on_empty) {
  std::vector<Mutant> mutants;
  for (const Site* site : waits(sites, on_empty)) {
    Mutant mutant = mutant_at(sites, *site, "waits for the other parity");
    mutant.edit = [number = site->number](ir::Kernel& kernel) {
      const ValueId one = insert_constant(kernel, number, 1);
      const ValueId parity = operation_at(kernel, number + 1).operands[2];
      const ValueId other = insert_scalar(kernel, number + 1, Op::sub, {one, parity});
      operation_at(kernel, number + 2).operands[2] = other;
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

// Whether a role's warps, or those of each of its warpgroups, meet here all together.
bool meet_together(const Sites& sites, const Site& site) {
  if (site.op() != Op::named_sync || site.role == kNoSite) return false;
  const ir::Operation& role = *sites.at(site.role).operation;
  const ir::ValueId index = site.operation->operands[0];
  const std::int64_t threads = site.operation->attributes.integer(Key::threads);
  if (threads == 128 && index == role.blocks[0].arguments[0]) return true;
  return threads == 32 * role.attributes.integer(Key::warps) && sites.constant(index);
}

// Whether nobody uses the barriers of the operation but itself, or others at which the same warps
// meet all together.
bool all_meet_here(const Sites& sites, const std::vector<const Site*>& barriers, const Site& site) {
  const auto range = [](const Site& of) {
    const ir::Attributes& attributes = of.operation->attributes;
    const std::int64_t first = attributes.integer(Key::first);
    return std::pair(first, first + attributes.integer_or(Key::count, 1));
  };
  const std::pair<std::int64_t, std::int64_t> own = range(site);
  for (const Site* other : barriers) {
    const std::pair<std::int64_t, std::int64_t> used = range(*other);
    if (other == &site || own.first >= used.second || used.first >= own.second) continue;
    const bool alike = meet_together(sites, site) && meet_together(sites, *other) &&
                       site.role == other->role && own == used &&
                       site.operation->operands[0] == other->operation->operands[0];
    if (!alike) return false;
  }
  return true;
}

}  // namespace

std::vector<Mutant> seed_first_parity(const Sites& sites) {
  std::vector<Mutant> mutants;
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::string>> starts;
  for (const Site* wait : sites.of(Op::mbarrier_wait)) {
    for (const Use& use : starts_of(sites, wait->operation->operands[2])) {
      const auto start = sites.constant(sites.operand(use));
      if (start != 0 && start != 1) continue;
      starts[{use.site, use.operand}].insert(sites.name(wait->operation->operands[0]));
    }
  }
  for (const auto& [slot, names] : starts) {
    const Site& site = sites.at(slot.first);
    const std::size_t operand = slot.second;
    const std::int64_t start = *sites.constant(site.operation->operands[operand]);
    Mutant mutant =
        mutant_at(sites, site, fmt::format("begins with the other phase of {}", *names.begin()));
    mutant.edit = [number = site.number, operand, start](ir::Kernel& kernel) {
      const ValueId other = insert_constant(kernel, number, 1 - start);
      operation_at(kernel, number + 1).operands[operand] = other;
    };
    mutants.push_back(std::move(mutant));
  }
  const Site* sync = publishing_sync(sites);
  for (const Site* init : sites.of(Op::mbarrier_init)) {
    if (sync && is_empty_barrier(sites, init->operation->operands[0])) {
      mutants.push_back(primed(sites, *init, *sync));
    }
  }
  return mutants;
}

std::vector<Mutant> seed_full_parity(const Sites& sites) { return flipped_waits(sites, false); }

std::vector<Mutant> seed_empty_parity(const Sites& sites) { return flipped_waits(sites, true); }

std::vector<Mutant> seed_arrivals(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* init : sites.of(Op::mbarrier_init)) {
    const std::int64_t arrivals = init->operation->attributes.integer(Key::arrivals);
    for (const int more : {1, -1}) {
      Mutant mutant =
          mutant_at(sites, *init,
                    fmt::format("expects {} arrivals instead of {}", arrivals + more, arrivals));
      const std::size_t place = sites.definition(init->operation->operands[0])->number;
      mutant.edit = [=, number = init->number](ir::Kernel& kernel) {
        for (const std::size_t at : {place, number}) {
          operation_at(kernel, at).attributes.set(Key::arrivals, arrivals + more);
        }
      };
      mutants.push_back(std::move(mutant));
    }
  }
  for (const Site* arrive : sites.of(Op::mbarrier_arrive)) {
    for (Mutant mutant : {left_out(sites, *arrive), twice(sites, *arrive)}) {
      mutant.equivalent = ends_with_arrival(sites, *arrive);
      mutants.push_back(std::move(mutant));
    }
  }
  return mutants;
}

std::vector<Mutant> seed_bytes(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::mbarrier_expect_tx)) {
    const std::int64_t bytes = site->operation->attributes.integer(Key::bytes);
    for (const std::int64_t wrong : {bytes + 16, bytes - 16}) {
      mutants.push_back(
          with_attribute(sites, *site, Key::bytes, wrong,
                         fmt::format("expects {} bytes instead of {}", wrong, bytes)));
    }
    mutants.push_back(left_out(sites, *site));
  }
  for (const Site* site : sites.of(Op::cluster_copy)) {
    const std::int64_t bytes = site->operation->attributes.integer(Key::bytes);
    mutants.push_back(
        with_attribute(sites, *site, Key::bytes, bytes - 16,
                       fmt::format("copies {} bytes instead of {}", bytes - 16, bytes)));
  }
  return mutants;
}

std::vector<Mutant> seed_unpublished_barriers(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* fence : sites.of(Op::fence_barrier_init)) {
    mutants.push_back(left_out(sites, *fence));
  }
  if (const Site* sync = publishing_sync(sites)) mutants.push_back(left_out(sites, *sync));
  return mutants;
}

std::vector<Mutant> seed_named_barriers(const Sites& sites) {
  std::vector<Mutant> mutants;
  std::set<std::int64_t> used;
  std::vector<const Site*> barriers = sites.of(Op::named_sync);
  for (const Site* site : sites.of(Op::named_arrive)) barriers.push_back(site);
  for (const Site* site : barriers) {
    const ir::Attributes& attributes = site->operation->attributes;
    for (std::int64_t i = 0; i < attributes.integer_or(Key::count, 1); ++i) {
      used.insert(attributes.integer(Key::first) + i);
    }
  }
  std::int64_t other = 1;
  while (used.count(other) != 0) ++other;
  for (const Site* site : barriers) {
    const ir::Attributes& attributes = site->operation->attributes;
    const std::int64_t threads = attributes.integer(Key::threads);
    const std::int64_t wrong = threads + 32 <= sites.kernel().threads ? threads + 32 : threads - 32;
    mutants.push_back(
        with_attribute(sites, *site, Key::threads, wrong,
                       fmt::format("counts {} threads instead of {}", wrong, threads)));
    // Where all who meet there do so at another number too, that is another name.
    const bool fits = other + attributes.integer_or(Key::count, 1) - 1 <= 15;
    if (fits && !all_meet_here(sites, barriers, *site)) {
      mutants.push_back(with_attribute(
          sites, *site, Key::first, other,
          fmt::format("meets at barrier {} instead of {}", other, attributes.integer(Key::first))));
    }
    if (site->op() == Op::named_sync) mutants.push_back(left_out(sites, *site));
  }
  return mutants;
}

}  // namespace tilewright::simulator
