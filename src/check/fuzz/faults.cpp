#include "check/fuzz/faults.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>

#include "check/fuzz/oracle.h"
#include "check/fuzz/recipe.h"
#include "simulator/faults/sites.h"

namespace tilewright::checks::fuzz {
namespace {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;
using simulator::Mutant;
using simulator::Site;
using simulator::Sites;
using Mutants = std::vector<Mutant>;
using Fits = std::function<bool(const Operation&)>;

// `edit` changes the operation of this number, wherever one fits.
Mutants at_sites(const Sites& sites, const Fits& fits,
                 const std::function<void(ir::Kernel&, std::size_t number)>& edit) {
  Mutants mutants;
  for (const Site& site : sites.all()) {
    if (!fits(*site.operation)) continue;
    mutants.push_back(simulator::mutant_at(sites, site, {}));
    mutants.back().edit = [edit, number = site.number](ir::Kernel& kernel) {
      edit(kernel, number);
    };
  }
  return mutants;
}

Mutants change(const Sites& sites, const Fits& fits, const std::function<void(Operation&)>& how) {
  return at_sites(sites, fits, [how](ir::Kernel& kernel, std::size_t number) {
    how(simulator::operation_at(kernel, number));
  });
}

Fits is(Op op) {
  return [op](const Operation& o) { return o.op == op; };
}

// The operand, counted from the last one where it is negative, becomes what `op` makes of it and 1.
Mutants offset(const Sites& sites, Op where, int operand, Op op) {
  return at_sites(sites, is(where), [operand, op](ir::Kernel& kernel, std::size_t number) {
    const ValueId one = simulator::insert_constant(kernel, number++, 1);
    const auto value = [&]() -> ValueId& {
      std::vector<ValueId>& operands = simulator::operation_at(kernel, number).operands;
      return operand < 0 ? operands.back() : operands[operand];
    };
    const ValueId moved = simulator::insert_scalar(kernel, number, op, {value(), one});
    ++number;
    value() = moved;
  });
}

// What uses its result uses its operand instead.
Mutants bypass(const Sites& sites, const Fits& fits, std::size_t operand) {
  return at_sites(sites, fits, [operand](ir::Kernel& kernel, std::size_t number) {
    const Operation& o = simulator::operation_at(kernel, number);
    const ValueId of = o.results[0], by = o.operands[operand];
    ir::for_each(kernel.body, [&](Operation& user) {
      std::replace(user.operands.begin(), user.operands.end(), of, by);
    });
  });
}

Mutants swap_operands(const Sites& sites, const Fits& fits, std::size_t first) {
  return change(sites, fits,
                [first](Operation& o) { std::swap(o.operands[first], o.operands[first + 1]); });
}

// Selects that keep out what does not exist: of a comparison of coordinates, against a number.
bool is_tail_mask(const Sites& sites, const Operation& o) {
  if (o.op != Op::select || !sites.kernel().type(o.operands[2]).is_scalar()) return false;
  const Site* condition = sites.definition(o.operands[0]);
  if (!condition || condition->op() != Op::lt) return false;
  const Site* place = sites.definition(condition->operation->operands[0]);
  return place && place->op() == Op::iota;
}

Mutants wrong_neutral(const Sites& sites) {
  const Fits fits = [&](const Operation& o) {
    return is_tail_mask(sites, o) && is_float(sites.kernel().type(o.results[0]).dtype);
  };
  return at_sites(sites, fits, [](ir::Kernel& kernel, std::size_t number) {
    const ValueId old = simulator::operation_at(kernel, number).operands[2];
    const ValueId seven = simulator::insert_scalar(kernel, number, Op::constant, {},
                                                   kernel.type(old).dtype, {{Key::value, 7.0}});
    simulator::operation_at(kernel, number + 1).operands[2] = seven;
  });
}

Mutants dropped_mask(const Sites& sites) {
  return bypass(
      sites, [&](const Operation& o) { return is_tail_mask(sites, o); }, 1);
}

Mutants short_loop(const Sites& sites) { return offset(sites, Op::for_loop, 1, Op::sub); }
Mutants late_loop(const Sites& sites) { return offset(sites, Op::for_loop, 0, Op::add); }
Mutants short_store(const Sites& sites) { return offset(sites, Op::store, -1, Op::sub); }
Mutants moved_load(const Sites& sites) { return offset(sites, Op::load, 1, Op::add); }

Mutants lost_transposition(const Sites& sites) {
  const ir::Kernel& k = sites.kernel();
  const Fits fits = [&](const Operation& o) {
    return o.op == Op::transpose && k.type(o.results[0]) == k.type(o.operands[0]);
  };
  return bypass(sites, fits, 0);
}

Mutants swapped_select(const Sites& sites) {
  const ir::Kernel& k = sites.kernel();
  const Fits fits = [&](const Operation& o) {
    return o.op == Op::select && k.type(o.results[0]).is_tile() &&
           k.type(o.operands[1]) == k.type(o.operands[2]);
  };
  return swap_operands(sites, fits, 1);
}

Mutants swapped_difference(const Sites& sites) {
  const Fits fits = [&](const Operation& o) {
    return (o.op == Op::sub || o.op == Op::div) && sites.kernel().type(o.results[0]).is_tile();
  };
  return swap_operands(sites, fits, 0);
}

Mutants wrong_reduction(const Sites& sites) {
  return change(sites, is(Op::reduce), [](Operation& o) {
    const Op function = o.attributes.function();
    o.attributes.set(Key::function, function == Op::max ? Op::add : Op::max);
  });
}

Mutants wrong_beginning(const Sites& sites) {
  const ir::Kernel& k = sites.kernel();
  const Fits fits = [&](const Operation& o) {
    return o.op == Op::for_loop && o.operands.size() > 4 &&
           k.type(o.operands[3]) == k.type(o.operands[4]);
  };
  return swap_operands(sites, fits, 3);
}

Mutants wrong_axis(const Sites& sites) {
  return change(sites, is(Op::coordinate), [](Operation& o) {
    o.attributes.set(Key::axis, 1 - o.attributes.integer(Key::axis));
  });
}

// Whether operand i of the function stretches over the result.
bool stretches(const ir::Kernel& kernel, const Operation& o, std::size_t i) {
  const std::vector<ir::IndexMap>& maps = o.attributes.maps();
  if (i + 1 >= o.operands.size() || i >= maps.size() || maps[i].empty()) return false;
  const std::int64_t has = kernel.type(o.operands[i + 1]).shape[0];
  return has > 1 && has < kernel.type(o.operands[0]).shape[0];
}

// It is read as if it were as large as the result.
Mutants wrong_broadcast(const Sites& sites) {
  const Fits fits = [&](const Operation& o) {
    const auto operand = [&](std::size_t i) { return stretches(sites.kernel(), o, i); };
    return o.op == Op::compute && (operand(0) || operand(1) || operand(2));
  };
  return at_sites(sites, fits, [](ir::Kernel& kernel, std::size_t number) {
    Operation& o = simulator::operation_at(kernel, number);
    std::vector<ir::IndexMap> maps = o.attributes.maps();
    for (std::size_t i = 0; i < maps.size(); ++i) {
      if (!stretches(kernel, o, i)) continue;
      maps[i] = {{1, kernel.type(o.operands[i + 1]).shape[0], 1}};
    }
    o.attributes.set(Key::maps, maps);
  });
}

Mutants lost_shuffle(const Sites& sites) {
  return change(sites, is(Op::reduce_lanes), [](Operation& o) {
    std::vector<std::int64_t> masks = o.attributes.integers(Key::masks);
    masks.pop_back();
    o.attributes.set(Key::masks, masks);
  });
}

Mutants early_wait(const Sites& sites) {
  return change(sites, is(Op::wgmma_wait), [](Operation& o) {
    o.attributes.set(Key::count, o.attributes.integer(Key::count) + 1);
  });
}

bool is_product(const Operation& o) { return o.op == Op::wgmma_ss || o.op == Op::wgmma_rs; }

Mutants wrong_step(const Sites& sites) {
  return change(sites, is_product, [](Operation& o) {
    o.attributes.set(Key::step_b, o.attributes.integer_or(Key::step_b, 0) + 32);
  });
}

Mutants flipped_transposition(const Sites& sites) {
  return change(sites, is_product, [](Operation& o) {
    o.attributes.set(Key::transpose_b, 1 - o.attributes.integer_or(Key::transpose_b, 0));
  });
}

Mutants overlapping_places(const Sites& sites) {
  const Fits fits = [](const Operation& o) {
    return o.op == Op::shared && o.attributes.integer_or(Key::offset, 0) > 0;
  };
  return change(sites, fits, [](Operation& o) { o.attributes.set(Key::offset, std::int64_t{0}); });
}

template <Op op>
Mutants without(const Sites& sites) {
  Mutants mutants;
  for (const Site* site : sites.of(op)) mutants.push_back(simulator::left_out(sites, *site));
  return mutants;
}

}  // namespace

bool SeededFault::plant(ir::Kernel& kernel, Random& random) const {
  const Mutants mutants = seed(Sites(kernel));
  if (!mutants.empty()) mutants[random.below(mutants.size())].edit(kernel);
  return !mutants.empty();
}

const std::vector<SeededFault>& seeded_faults() {
  constexpr ir::Form tile = ir::Form::tile, machine = ir::Form::machine;
  static const std::vector<SeededFault> faults = {
      {"wrong_neutral", "what does not exist enters a reduction as 7", tile, wrong_neutral},
      {"dropped_mask", "a tail is not masked", tile, dropped_mask},
      {"short_loop", "a loop ends one turn early", tile, short_loop},
      {"late_loop", "a loop begins one turn late", tile, late_loop},
      {"short_store", "a store ends one element early", tile, short_store},
      {"moved_load", "a load begins one element late", tile, moved_load},
      {"lost_transposition", "a square tile is not transposed", tile, lost_transposition},
      {"swapped_select", "a select takes the other operand", tile, swapped_select},
      {"swapped_difference", "the operands of - or / change places", tile, swapped_difference},
      {"wrong_reduction", "a sum for a maximum, or the reverse", tile, wrong_reduction},
      {"wrong_beginning", "two variables of a loop begin with each other's value", tile,
       wrong_beginning},
      {"wrong_axis", "coordinates of the other axis", machine, wrong_axis},
      {"wrong_broadcast", "a vector stretches along the other axis", machine, wrong_broadcast},
      {"lost_shuffle", "a reduction over lanes leaves out one distance", machine, lost_shuffle},
      {"early_wait", "a product is read while it is in flight", machine, early_wait},
      {"wrong_step", "a product reads 32 bytes further", machine, wrong_step},
      {"flipped_transposition", "a product reads b transposed", machine, flipped_transposition},
      {"overlapping_places", "two places share memory", machine, overlapping_places},
      {"no_mbarrier_wait", "nobody waits for a copy, or for a stage", machine,
       without<Op::mbarrier_wait>},
      {"no_mbarrier_arrive", "a stage is not released", machine, without<Op::mbarrier_arrive>},
      {"no_named_sync", "warps do not meet", machine, without<Op::named_sync>},
      {"no_wgmma_fence", "registers of a product are not fenced", machine,
       without<Op::wgmma_fence>},
      {"no_proxy_fence", "the asynchronous proxy is not told of what threads wrote or read",
       machine, without<Op::fence_proxy_async>},
  };
  return faults;
}

std::vector<TimeToKill> time_to_kill(std::uint64_t seed, std::int64_t patience,
                                     std::string_view machine) {
  using Clock = std::chrono::steady_clock;
  std::vector<TimeToKill> result;
  for (const SeededFault& fault : seeded_faults()) {
    TimeToKill found;
    found.fault = &fault;
    const Clock::time_point start = Clock::now();
    // Faults that few kernels have a place for end too.
    for (std::uint64_t next = seed;
         !found.killed && found.planted < patience && found.kernels < 20 * patience; ++next) {
      ++found.kernels;
      const std::optional<Verdict> verdict = judge_fault(random_recipe(next), fault, machine);
      if (!verdict) continue;
      ++found.planted;
      if (!verdict->failed()) continue;
      found.killed = true;
      found.seed = next;
      found.how = verdict->stage + ": " + verdict->text.substr(0, verdict->text.find('\n'));
    }
    found.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    result.push_back(std::move(found));
  }
  return result;
}

}  // namespace tilewright::checks::fuzz
