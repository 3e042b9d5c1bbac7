#include "check/fuzz/faults.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <set>

#include "analysis/definitions.h"
#include "check/fuzz/oracle.h"
#include "check/fuzz/recipe.h"

namespace tilewright::checks::fuzz {
namespace {

using ir::Kernel;
using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

struct Site {
  ir::Block* block;
  std::size_t index;
  Operation& operation() const { return block->body[index]; }
  auto position() const { return block->body.begin() + static_cast<std::ptrdiff_t>(index); }
};
using Fits = std::function<bool(const Kernel&, const Operation&)>;

void collect(Kernel& kernel, ir::Block& block, const Fits& fits, std::vector<Site>& sites) {
  for (std::size_t i = 0; i < block.body.size(); ++i) {
    if (fits(kernel, block.body[i])) sites.push_back({&block, i});
    for (ir::Block& inner : block.body[i].blocks) collect(kernel, inner, fits, sites);
  }
}

std::optional<Site> draw(Kernel& kernel, Random& random, const Fits& fits) {
  std::vector<Site> sites;
  collect(kernel, kernel.body, fits, sites);
  if (sites.empty()) return {};
  return sites[static_cast<std::size_t>(random.below(static_cast<int>(sites.size())))];
}

// Does it where an operation is drawn from those that fit; false where none does.
bool at_site(Kernel& kernel, Random& random, const Fits& fits,
             const std::function<void(const Site&)>& how) {
  const std::optional<Site> site = draw(kernel, random, fits);
  if (site) how(*site);
  return site.has_value();
}

bool change(Kernel& kernel, Random& random, const Fits& fits,
            const std::function<void(Operation&)>& how) {
  return at_site(kernel, random, fits, [&](const Site& site) { how(site.operation()); });
}

Fits is(Op op) {
  return [op](const Kernel&, const Operation& o) { return o.op == op; };
}

void replace_uses(Kernel& kernel, ValueId of, ValueId by) {
  ir::for_each(kernel.body,
               [&](Operation& o) { std::replace(o.operands.begin(), o.operands.end(), of, by); });
}

// The operand becomes what `op` makes of it and 1.
void offset_operand(Kernel& kernel, const Site& site, std::size_t operand, Op op) {
  const ValueId one = kernel.add_value(ir::Type::scalar(DType::i32));
  const ValueId moved = kernel.add_value(ir::Type::scalar(DType::i32));
  Operation& o = site.operation();
  Operation constant{Op::constant, {}, {one}, {{Key::value, std::int64_t{1}}}, {}, o.where};
  Operation sum{op, {o.operands[operand], one}, {moved}, {}, {}, o.where};
  o.operands[operand] = moved;
  site.block->body.insert(site.block->body.insert(site.position(), std::move(constant)) + 1,
                          std::move(sum));
}

bool offset(Kernel& kernel, Random& random, Op where, std::size_t operand, Op op) {
  return at_site(kernel, random, is(where),
                 [&](const Site& site) { offset_operand(kernel, site, operand, op); });
}

// What uses its result uses its operand instead.
bool bypass(Kernel& kernel, Random& random, const Fits& fits, std::size_t operand) {
  return change(kernel, random, fits,
                [&](Operation& o) { replace_uses(kernel, o.results[0], o.operands[operand]); });
}

bool swap_operands(Kernel& kernel, Random& random, const Fits& fits, std::size_t first) {
  return change(kernel, random, fits,
                [first](Operation& o) { std::swap(o.operands[first], o.operands[first + 1]); });
}

// Selects that keep out what does not exist: of a comparison of coordinates, against a number.
std::set<ValueId> tail_masks(Kernel& kernel) {
  const std::vector<const Operation*> made = analysis::definitions(kernel);
  std::set<ValueId> masks;
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op != Op::select || !kernel.type(o.operands[2]).is_scalar()) return;
    const Operation* condition = made[o.operands[0]];
    if (!condition || condition->op != Op::lt) return;
    const Operation* place = made[condition->operands[0]];
    if (place && place->op == Op::iota) masks.insert(o.results[0]);
  });
  return masks;
}

bool wrong_neutral(Kernel& kernel, Random& random) {
  const std::set<ValueId> masks = tail_masks(kernel);
  const Fits fits = [&](const Kernel& k, const Operation& o) {
    return o.op == Op::select && masks.count(o.results[0]) != 0 &&
           is_float(k.type(o.results[0]).dtype);
  };
  return at_site(kernel, random, fits, [&](const Site& site) {
    Operation& o = site.operation();
    const ValueId seven = kernel.add_value(kernel.type(o.operands[2]));
    Operation constant{Op::constant, {}, {seven}, {{Key::value, 7.0}}, {}, o.where};
    o.operands[2] = seven;
    site.block->body.insert(site.position(), std::move(constant));
  });
}

bool dropped_mask(Kernel& kernel, Random& random) {
  const std::set<ValueId> masks = tail_masks(kernel);
  const Fits fits = [&](const Kernel&, const Operation& o) {
    return o.op == Op::select && masks.count(o.results[0]) != 0;
  };
  return bypass(kernel, random, fits, 1);
}

bool short_loop(Kernel& kernel, Random& random) {
  return offset(kernel, random, Op::for_loop, 1, Op::sub);
}

bool late_loop(Kernel& kernel, Random& random) {
  return offset(kernel, random, Op::for_loop, 0, Op::add);
}

bool short_store(Kernel& kernel, Random& random) {
  return at_site(kernel, random, is(Op::store), [&](const Site& site) {
    offset_operand(kernel, site, site.operation().operands.size() - 1, Op::sub);
  });
}

bool moved_load(Kernel& kernel, Random& random) {
  return offset(kernel, random, Op::load, 1, Op::add);
}

bool lost_transposition(Kernel& kernel, Random& random) {
  const Fits fits = [](const Kernel& k, const Operation& o) {
    return o.op == Op::transpose && k.type(o.results[0]) == k.type(o.operands[0]);
  };
  return bypass(kernel, random, fits, 0);
}

bool swapped_select(Kernel& kernel, Random& random) {
  const Fits fits = [](const Kernel& k, const Operation& o) {
    return o.op == Op::select && k.type(o.results[0]).is_tile() &&
           k.type(o.operands[1]) == k.type(o.operands[2]);
  };
  return swap_operands(kernel, random, fits, 1);
}

bool swapped_difference(Kernel& kernel, Random& random) {
  const Fits fits = [](const Kernel& k, const Operation& o) {
    return (o.op == Op::sub || o.op == Op::div) && k.type(o.results[0]).is_tile();
  };
  return swap_operands(kernel, random, fits, 0);
}

bool wrong_reduction(Kernel& kernel, Random& random) {
  return change(kernel, random, is(Op::reduce), [](Operation& o) {
    const Op function = o.attributes.function();
    o.attributes.set(Key::function, function == Op::max ? Op::add : Op::max);
  });
}

bool wrong_beginning(Kernel& kernel, Random& random) {
  const Fits fits = [](const Kernel& k, const Operation& o) {
    return o.op == Op::for_loop && o.operands.size() > 4 &&
           k.type(o.operands[3]) == k.type(o.operands[4]);
  };
  return swap_operands(kernel, random, fits, 3);
}

bool wrong_axis(Kernel& kernel, Random& random) {
  return change(kernel, random, is(Op::coordinate), [](Operation& o) {
    o.attributes.set(Key::axis, 1 - o.attributes.integer(Key::axis));
  });
}

// An operand that stretches is read as if it were as large as the result.
bool wrong_broadcast(Kernel& kernel, Random& random) {
  const auto stretches = [](const Kernel& k, const Operation& o, std::size_t i) {
    const std::vector<ir::IndexMap>& maps = o.attributes.maps();
    if (i + 1 >= o.operands.size() || i >= maps.size() || maps[i].empty()) return false;
    const std::int64_t has = k.type(o.operands[i + 1]).shape[0];
    return has > 1 && has < k.type(o.operands[0]).shape[0];
  };
  std::size_t which = 0;
  const Fits fits = [&](const Kernel& k, const Operation& o) {
    if (o.op != Op::compute) return false;
    for (which = 0; which < 3; ++which) {
      if (stretches(k, o, which)) return true;
    }
    return false;
  };
  return change(kernel, random, fits, [&](Operation& o) {
    std::vector<ir::IndexMap> maps = o.attributes.maps();
    for (std::size_t i = 0; i < maps.size(); ++i) {
      if (!stretches(kernel, o, i)) continue;
      maps[i] = {{1, kernel.type(o.operands[i + 1]).shape[0], 1}};
    }
    o.attributes.set(Key::maps, maps);
  });
}

bool lost_shuffle(Kernel& kernel, Random& random) {
  return change(kernel, random, is(Op::reduce_lanes), [](Operation& o) {
    std::vector<std::int64_t> masks = o.attributes.integers(Key::masks);
    masks.pop_back();
    o.attributes.set(Key::masks, masks);
  });
}

bool early_wait(Kernel& kernel, Random& random) {
  return change(kernel, random, is(Op::wgmma_wait), [](Operation& o) {
    o.attributes.set(Key::count, o.attributes.integer(Key::count) + 1);
  });
}

bool is_product(const Kernel&, const Operation& o) {
  return o.op == Op::wgmma_ss || o.op == Op::wgmma_rs;
}

bool wrong_step(Kernel& kernel, Random& random) {
  return change(kernel, random, is_product, [](Operation& o) {
    o.attributes.set(Key::step_b, o.attributes.integer_or(Key::step_b, 0) + 32);
  });
}

bool flipped_transposition(Kernel& kernel, Random& random) {
  return change(kernel, random, is_product, [](Operation& o) {
    o.attributes.set(Key::transpose_b, 1 - o.attributes.integer_or(Key::transpose_b, 0));
  });
}

bool overlapping_places(Kernel& kernel, Random& random) {
  const Fits fits = [](const Kernel&, const Operation& o) {
    return o.op == Op::shared && o.attributes.integer_or(Key::offset, 0) > 0;
  };
  return change(kernel, random, fits,
                [](Operation& o) { o.attributes.set(Key::offset, std::int64_t{0}); });
}

template <Op op>
bool without(Kernel& kernel, Random& random) {
  return at_site(kernel, random, is(op),
                 [](const Site& site) { site.block->body.erase(site.position()); });
}

}  // namespace

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

std::vector<TimeToKill> time_to_kill(std::uint64_t seed, std::int64_t patience) {
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
      const std::optional<Verdict> verdict = judge_fault(random_recipe(next), fault);
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
