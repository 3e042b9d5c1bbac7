#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"
#include "simulator/faults/signals.h"
#include "target/target.h"

// Budgets, and what outlives whom: CTAs of a cluster, signals, launches.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

// Registers of a thread with which the role alone, or all of them together, ask for too many.
std::int64_t too_many(const Sites& sites, const Site& site) {
  const TargetLimits& limits = target::target_of(sites.kernel()).limits;
  std::int64_t others = 0, own = 0;
  for (const Site* other : sites.of(Op::set_max_registers)) {
    // Of the role's threads, or of the warpgroup's that roles share.
    const std::int64_t warps =
        other->role == kNoSite ? limits.group_warps
                               : sites.at(other->role).operation->attributes.integer(Key::warps);
    const std::int64_t threads = warps * limits.lanes;
    if (other == &site) {
      own = threads;
    } else {
      others += threads * other->operation->attributes.integer(Key::count);
    }
  }
  const std::int64_t unit = limits.register_unit;
  const std::int64_t fits = (limits.registers - others) / own / unit * unit;
  return fits + unit;
}

bool writes_shared(const Site& site) {
  return ir::info(site.op()).writes(ir::Memory::shared, ir::Proxy::generic);
}

}  // namespace

std::vector<Mutant> seed_budget(const Sites& sites) {
  const std::int64_t limit = target::target_of(sites.kernel()).limits.shared_bytes;
  std::vector<Mutant> mutants;
  for (const Site* shared : sites.of(Op::shared)) {
    const ir::Attributes& attributes = shared->operation->attributes;
    const std::int64_t stage = attributes.shared_layout().size_bytes();
    const std::int64_t stages = (limit - attributes.integer(Key::offset)) / stage + 1;
    Mutant mutant = mutant_at(
        sites, *shared, fmt::format("has {} stages: more than a CTA's shared memory", stages));
    mutant.edit = [=, number = shared->number](ir::Kernel& kernel) {
      ir::Operation& operation = operation_at(kernel, number);
      operation.attributes.set(Key::stages, stages);
      kernel.types[operation.results[0]].shape[0] = stages;
      kernel.shared_bytes =
          std::max(kernel.shared_bytes, operation.attributes.integer(Key::offset) + stages * stage);
    };
    mutants.push_back(std::move(mutant));
  }
  for (const Site* site : sites.of(Op::set_max_registers)) {
    const std::int64_t count = too_many(sites, *site);
    Mutant mutant = mutant_at(
        sites, *site,
        fmt::format("asks for {} registers instead of {}: more than the CTA's threads hold", count,
                    site->operation->attributes.integer(Key::count)));
    mutant.edit = [=, number = site->number, role = site->role](ir::Kernel& kernel) {
      operation_at(kernel, number).attributes.set(Key::count, count);
      if (role != kNoSite) operation_at(kernel, role).attributes.set(Key::registers, count);
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

std::vector<Mutant> seed_early_exit(const Sites& sites) {
  std::vector<Mutant> mutants;
  if (sites.kernel().cluster == 1) return mutants;
  const std::vector<const Site*> roles = sites.of(Op::role);
  for (const Site* sync : sites.of(Op::cluster_sync)) {
    if (!roles.empty() && sync->number < roles.back()->number) continue;
    mutants.push_back(left_out(sites, *sync));
    mutants.back().equivalent = peers_are_awaited(sites);
  }
  return mutants;
}

std::vector<Mutant> seed_signal(const Sites& sites) {
  std::vector<Mutant> mutants = seed_rank_signal(sites);
  for (const Site* fence : sites.of(Op::fence_cluster)) mutants.push_back(left_out(sites, *fence));
  for (const Site& site : sites.all()) {
    if (site.op() != Op::mbarrier_arrive && site.op() != Op::mbarrier_expect_tx) continue;
    // A release announces no data: that it comes too early is kind 10.
    if (is_empty_barrier(sites, site.operation->operands[0])) continue;
    const Site* data = nullptr;
    for (const Site* at = sites.previous(site); at; at = sites.previous(*at)) {
      if (at->op() == Op::mbarrier_wait) break;
      if (writes_shared(*at)) data = at;
    }
    if (!data) continue;
    Mutant mutant = mutant_at(sites, site, "moved before the data that it announces");
    mutant.edit = [number = site.number, to = data->number](ir::Kernel& kernel) {
      move(kernel, number, to, Side::before);
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

namespace {

// What sets a workspace back: additions of which nobody reads what was there.
std::vector<const Site*> resets(const Sites& sites) {
  std::vector<const Site*> found;
  for (const Site* site : sites.of(Op::atomic_add)) {
    const ir::Parameter* tensor = sites.kernel().parameter_of(site->operation->operands[0]);
    const std::vector<ValueId>& results = site->operation->results;
    const bool used = std::any_of(results.begin(), results.end(),
                                  [&](ValueId value) { return !sites.uses(value).empty(); });
    if (tensor && tensor->is_workspace() && !used) found.push_back(site);
  }
  return found;
}

}  // namespace

std::vector<Mutant> seed_unreset_signal(const Sites& sites) {
  std::vector<Mutant> mutants = seed_same_epoch(sites);
  for (const Site* site : resets(sites)) mutants.push_back(left_out(sites, *site));
  return mutants;
}

std::vector<Mutant> seed_wrong_reset(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : resets(sites)) {
    Mutant mutant = mutant_at(sites, *site, "leaves 1 for the next launch");
    mutant.edit = [number = site->number](ir::Kernel& kernel) {
      const ValueId was = operation_at(kernel, number).operands.back();
      const ValueId one = insert_constant(kernel, number, 1);
      const ValueId more = insert_scalar(kernel, number + 1, Op::add, {was, one});
      operation_at(kernel, number + 2).operands.back() = more;
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
