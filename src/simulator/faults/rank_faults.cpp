#include <algorithm>
#include <string>

#include "ir/memory_order.h"
#include "simulator/faults/families.h"

// Signals between ranks: too weak, too early, not waited for, or the same at every launch.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

bool is_signal(const Site& site) {
  return site.op() == Op::store_index || site.op() == Op::reduce_add;
}

bool writes_global(const ir::Operation& operation) {
  const ir::OpInfo& record = ir::info(operation.op);
  if (record.writes(ir::Memory::global, ir::Proxy::async) || operation.op == Op::store_registers)
    return true;
  return std::any_of(operation.blocks.begin(), operation.blocks.end(), [](const ir::Block& block) {
    return std::any_of(block.body.begin(), block.body.end(), writes_global);
  });
}

Mutant with_attribute(const Sites& sites, const Site& site, Key key, const std::string& value) {
  const std::string& was = site.operation->attributes.text(key);
  Mutant mutant = mutant_at(sites, site, value + " instead of " + was);
  mutant.edit = [number = site.number, key, value](ir::Kernel& kernel) {
    operation_at(kernel, number).attributes.set(key, value);
  };
  return mutant;
}

void add_weaker(const Sites& sites, const Site& site, std::vector<Mutant>& mutants) {
  const MemoryOrder order = ir::order_of(*site.operation);
  if (order.semantics == Semantics::release || order.semantics == Semantics::acquire) {
    mutants.push_back(with_attribute(sites, site, Key::semantics, "relaxed"));
    if (order.scope == Scope::system) {
      mutants.push_back(with_attribute(sites, site, Key::scope, "gpu"));
    }
  }
}

// The signal, with the loops and conditions around it that hold no data, before what it announces:
// what has effects between the two goes behind it.
void add_early(const Sites& sites, const Site& signal, std::vector<Mutant>& mutants) {
  for (const Site* moved = &signal; moved && moved->op() != Op::role;
       moved = sites.parent(*moved)) {
    std::vector<Site> behind, passed;
    for (const Site* at = sites.previous(*moved); at; at = sites.previous(*at)) {
      if (at->op() == Op::wait_flag) break;
      if (!ir::info(at->op()).pure()) passed.push_back(*at);
      if (writes_global(*at->operation)) behind = passed;
    }
    if (behind.empty()) continue;
    Mutant mutant = mutant_at(sites, signal, "moved before the data that it announces");
    mutant.edit = [behind, to = moved->number](ir::Kernel& kernel) {
      std::size_t target = to;
      for (const Site& site : behind) {  // the last one first
        move(kernel, site.number, target, Side::after);
        target -= site.end - site.number;
      }
    };
    mutants.push_back(std::move(mutant));
    return;
  }
}

}  // namespace

std::vector<Mutant> seed_rank_signal(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site& site : sites.all()) {
    const bool waits = site.op() == Op::wait_flag;
    if (waits || is_signal(site)) add_weaker(sites, site, mutants);
    if (is_signal(site)) add_early(sites, site, mutants);
    if (waits || site.op() == Op::fence || site.op() == Op::fence_proxy_async_global) {
      mutants.push_back(left_out(sites, site));
    }
  }
  return mutants;
}

std::vector<Mutant> seed_relaxed_atomic(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::atomic_add)) {
    const MemoryOrder order = ir::order_of(*site->operation);
    if (order.semantics != Semantics::relaxed) {
      mutants.push_back(with_attribute(sites, *site, Key::semantics, "relaxed"));
    }
  }
  return mutants;
}

std::vector<Mutant> seed_same_epoch(const Sites& sites) {
  std::vector<Mutant> mutants;
  for (const Site* site : sites.of(Op::epoch)) {
    Mutant mutant =
        mutant_at(sites, *site, "1 at every launch: what was signalled is not counted up");
    mutant.edit = [number = site->number](ir::Kernel& kernel) {
      ir::Operation& operation = operation_at(kernel, number);
      operation.op = Op::constant;
      operation.attributes.set(Key::value, std::int64_t{1});
    };
    mutants.push_back(std::move(mutant));
  }
  return mutants;
}

}  // namespace tilewright::simulator
