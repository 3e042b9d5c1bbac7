#include <fmt/format.h>

#include <utility>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/families.h"

// Groups of asynchronous operations: committed, and waited for far enough.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;

namespace {

Mutant leaves_one_more(const Sites& sites, const Site& wait, std::int64_t count) {
  Mutant mutant =
      mutant_at(sites, wait, fmt::format("leaves {} groups instead of {}", count + 1, count));
  mutant.edit = [number = wait.number, count](ir::Kernel& kernel) {
    operation_at(kernel, number).attributes.set(Key::count, count + 1);
  };
  return mutant;
}

// The wait for an mbarrier from which it is the first load in its block.
const Site* wait_before_load(const Sites& sites, const Site& load) {
  for (const Site* before = sites.previous(load); before; before = sites.previous(*before)) {
    if (before->op() == Op::tcgen05_ld) return nullptr;
    if (before->op() == Op::mbarrier_wait) return before;
  }
  return nullptr;
}

}  // namespace

std::vector<Mutant> seed_commit(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Op op : {Op::wgmma_commit, Op::bulk_commit}) {
    for (const Site* commit : sites.of(op)) {
      mutants.push_back(left_out(sites, *commit));
      if (op == Op::wgmma_commit) mutants.back().equivalent = awaited_behind(sites, *commit);
    }
  }
  return mutants;
}

std::vector<Mutant> seed_product_wait(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* wait : sites.of(Op::wgmma_wait)) {
    const std::int64_t count = wait->operation->attributes.integer(Key::count);
    for (Mutant mutant : {left_out(sites, *wait), leaves_one_more(sites, *wait, count)}) {
      mutant.equivalent = awaited_behind(sites, *wait);
      mutants.push_back(std::move(mutant));
    }
  }
  for (const Site* load : sites.of(Op::tcgen05_ld)) {
    const Site* wait = wait_before_load(sites, *load);
    if (wait) mutants.push_back(left_out(sites, *wait));
  }
  return mutants;
}

// Left out, or a plain arrival in its place, as of a thread that has issued nothing.
std::vector<Mutant> seed_tensor_commit(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* commit : sites.of(Op::tcgen05_commit)) {
    mutants.push_back(left_out(sites, *commit));
    mutants.push_back(mutant_at(sites, *commit, "arrives at once"));
    mutants.back().edit = [number = commit->number](ir::Kernel& kernel) {
      ir::Operation& arrival = operation_at(kernel, number);
      arrival.op = Op::mbarrier_arrive;
      arrival.attributes = {};
    };
  }
  return mutants;
}

std::vector<Mutant> seed_tensor_load_wait(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* wait : sites.of(Op::tcgen05_wait_ld)) {
    mutants.push_back(left_out(sites, *wait));
  }
  return mutants;
}

std::vector<Mutant> seed_read_wait(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* wait : sites.of(Op::bulk_wait)) {
    const ir::Attributes& attributes = wait->operation->attributes;
    if (attributes.integer(Key::read) == 0) continue;
    mutants.push_back(left_out(sites, *wait));
    mutants.back().equivalent = nothing_to_wait_for(sites, *wait);
    Mutant mutant = leaves_one_more(sites, *wait, attributes.integer(Key::count));
    mutant.equivalent = mutants.back().equivalent;
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

std::vector<Mutant> seed_full_wait(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* wait : sites.of(Op::bulk_wait)) {
    if (wait->operation->attributes.integer(Key::read) != 0) continue;
    Mutant mutant = mutant_at(sites, *wait, "waits for the reads alone");
    mutant.edit = [number = wait->number](ir::Kernel& kernel) {
      operation_at(kernel, number).attributes.set(Key::read, std::int64_t{1});
    };
    mutant.equivalent = nothing_reads_stores(sites, *wait);
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
