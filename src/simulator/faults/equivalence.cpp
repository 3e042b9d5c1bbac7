#include "simulator/faults/equivalence.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>

namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

namespace {

bool is_product(Op op) { return ir::info(op).completion == ir::Completion::products; }

bool is_array(const Sites& sites, ValueId value) {
  return sites.kernel().type(value).is(ir::Type::Kind::registers);
}

// A use of a register array since the last wgmma_fence: by a product, which n and k tell apart, or
// by another instruction.
struct ArrayUse {
  ValueId array = ir::kNoValue;
  std::int64_t shape = 0;  // 0: no product

  bool operator<(const ArrayUse& other) const {
    return std::tie(array, shape) < std::tie(other.array, other.shape);
  }
};

// Follows the uses of register arrays since the last wgmma_fence, with one fence left out: whether
// a product meets another instruction's, or that of a product of another shape.
class TouchedArrays {
 public:
  using Arrays = std::set<ArrayUse>;

  // `once` is a loop that is taken to have one turn at most.
  TouchedArrays(const Sites& sites, std::size_t without, std::size_t once)
      : sites_(sites), without_(without), once_(once) {}

  bool product_meets_one() {
    walk(sites_.kernel().body, 0, {});
    return met_;
  }

 private:
  // The state behind the operations of a block, the first of which has the number.
  Arrays walk(const ir::Block& block, std::size_t number, Arrays touched) {
    for (const ir::Operation& operation : block.body) {
      const Site& site = sites_.at(number);
      touched = visit(operation, site, std::move(touched));
      number = site.end;
    }
    return touched;
  }

  Arrays visit(const ir::Operation& operation, const Site& site, Arrays touched) {
    if (!operation.blocks.empty()) return enter(operation, site, touched);
    if (operation.op == Op::wgmma_fence) {
      return site.number == without_ ? touched : Arrays{};
    }
    const bool asynchronous = is_product(operation.op) || operation.op == Op::wgmma_wait;
    for (const auto* values : {&operation.operands, &operation.results}) {
      for (const ValueId value : *values) {
        if (!is_array(sites_, value)) continue;
        if (!asynchronous) touched.insert({value, 0});
        if (is_product(operation.op)) meet(operation, value, touched);
      }
    }
    return touched;
  }

  void meet(const ir::Operation& product, ValueId array, Arrays& touched) {
    met_ = met_ || touched.count({array, 0}) != 0;
    if (array != ir::accumulator_of(product)) return;
    const std::int64_t shape =
        product.attributes.integer(ir::Key::n) << 8 | product.attributes.integer(ir::Key::k);
    met_ = met_ || std::any_of(touched.begin(), touched.end(), [&](const ArrayUse& use) {
             return use.array == array && use.shape != shape;
           });
    touched.insert({array, shape});
  }

  Arrays enter(const ir::Operation& operation, const Site& site, const Arrays& before) {
    const bool loops =
        (operation.op == Op::for_loop || operation.op == Op::while_loop) && site.number != once_;
    Arrays behind = operation.op == Op::if_then ? Arrays{} : before;
    Arrays at_start = before;
    for (std::size_t size = SIZE_MAX; size != at_start.size();) {
      size = at_start.size();
      std::size_t number = site.number + 1;
      for (const ir::Block& block : operation.blocks) {
        const Arrays out = walk(block, number, at_start);
        behind.insert(out.begin(), out.end());
        for (const ir::Operation& inside : block.body) {
          static_cast<void>(inside);
          number = sites_.at(number).end;
        }
      }
      if (loops) at_start.insert(behind.begin(), behind.end());
    }
    return behind;
  }

  const Sites& sites_;
  std::size_t without_, once_;
  bool met_ = false;
};

// The registers that the products use which the wgmma_wait waits for, or that the wgmma_commit
// makes a group of; empty where the operation does not tell.
std::set<ValueId> arrays_under_way(const Sites& sites, const Site& site) {
  std::set<ValueId> arrays;
  const auto add = [&](const ir::Operation& operation) {
    for (const ValueId value : operation.operands) {
      if (is_array(sites, value)) arrays.insert(value);
    }
  };
  if (site.op() == Op::wgmma_wait) {
    add(*site.operation);
    return arrays;
  }
  for (const Site* at = sites.previous(site); at && is_product(at->op());
       at = sites.previous(*at)) {
    add(*at->operation);
  }
  return arrays;
}

bool touches_bulk_groups(const ir::Operation& operation) {
  if (operation.op == Op::bulk_commit || operation.op == Op::bulk_wait) return true;
  return std::any_of(operation.blocks.begin(), operation.blocks.end(), [](const ir::Block& block) {
    return std::any_of(block.body.begin(), block.body.end(), touches_bulk_groups);
  });
}

// Shows what stands before the site in its block, the last one first, until `is_found`: also what
// stands under the condition, which then holds. Whether no other condition or loop commits or waits
// on the way.
bool walk_back(const Sites& sites, const Site& from, ValueId condition,
               const std::function<bool(const Site&)>& is_found) {
  for (const Site* at = sites.previous(from); at; at = sites.previous(*at)) {
    const ir::Operation& operation = *at->operation;
    if (operation.blocks.empty()) {
      if (is_found(*at)) return true;
    } else if (operation.op == Op::if_then && operation.operands[0] == condition) {
      for (std::size_t i = at->end; i-- > at->number + 1;) {
        const Site& inside = sites.at(i);
        if (inside.parent != at->number || inside.block != 0) continue;
        if (!inside.operation->blocks.empty() && touches_bulk_groups(*inside.operation)) {
          return false;
        }
        if (is_found(inside)) return true;
      }
    } else if (touches_bulk_groups(operation)) {
      return false;
    }
  }
  return true;
}

}  // namespace

ValueId tensor_behind(const Sites& sites, ValueId value) {
  const Site* made = sites.definition(value);
  const bool is_of = made && (made->op() == Op::tensor_map || made->op() == Op::peer ||
                              ir::info(made->op()).family == ir::Family::map_choice);
  return is_of ? tensor_behind(sites, made->operation->operands[0]) : value;
}

std::string never_executed(const Sites& sites, const Site& site) {
  for (const Site* outer = sites.parent(site); outer; outer = sites.parent(*outer)) {
    if (outer->op() != Op::for_loop) continue;
    const std::vector<ValueId>& bounds = outer->operation->operands;
    if (sites.not_less(bounds[0], bounds[1])) {
      return "it stands in a loop whose upper bound is never above its lower one";
    }
  }
  return {};
}

std::string nothing_reads_stores(const Sites& sites, const Site& wait) {
  std::set<ValueId> stored;
  std::string names;
  for (const Site& store : sites.all()) {
    if (ir::info(store.op()).completion != ir::Completion::bulk) continue;
    if (store.role != wait.role) continue;
    const ValueId tensor = tensor_behind(sites, store.operation->operands[0]);
    // Other ranks may read it.
    if (sites.kernel().parameter_of(tensor)->is_symmetric()) return {};
    if (stored.insert(tensor).second) names += (names.empty() ? "" : ", ") + sites.name(tensor);
  }
  for (const Site& site : sites.all()) {
    const ir::OpInfo& reader = ir::info(site.op());
    // A reduction needs no order among others.
    if (!reader.reads(ir::Memory::global) || reader.completion == ir::Completion::bulk) continue;
    for (const ValueId operand : site.operation->operands) {
      if (stored.count(tensor_behind(sites, operand)) != 0) return {};
    }
  }
  // A signal behind the wait might tell another CTA that the data is there.
  for (std::size_t i = wait.number + 1; i < sites.at(wait.role).end; ++i) {
    const ir::OpInfo& record = ir::info(sites.at(i).op());
    if (record.writes(ir::Memory::global, ir::Proxy::generic)) return {};
    if (record.writes(ir::Memory::barrier, ir::Proxy::generic)) return {};
  }
  return fmt::format(
      "no operation of the kernel reads {}, nothing is signalled behind the wait, and "
      "a kernel ends only when its copies are written",
      names);
}

std::string nothing_to_wait_for(const Sites& sites, const Site& wait) {
  const auto count = [](const Site& site) {
    return site.operation->attributes.integer(ir::Key::count);
  };
  std::int64_t since = 0;
  const Site* before = nullptr;  // the wait before it
  const auto is_found = [&](const Site& site) {
    since += site.op() == Op::bulk_commit;
    if (site.op() == Op::bulk_wait) before = &site;
    return before != nullptr;
  };
  bool known = walk_back(sites, wait, ir::kNoValue, is_found);
  const Site* parent = sites.parent(wait);
  if (known && !before && parent && parent->op() == Op::if_then && wait.block == 0) {
    known = walk_back(sites, *parent, parent->operation->operands[0], is_found);
  }
  if (!known || !before || count(*before) + since > count(wait)) return {};
  return fmt::format(
      "the wait before it leaves {} groups under way, {} are committed since, and it "
      "waits for none of the last {}",
      count(*before), since, count(wait));
}

std::string awaited_behind(const Sites& sites, const Site& site) {
  const auto count = [](const Site& wait) {
    return wait.operation->attributes.integer(ir::Key::count);
  };
  const bool is_wait = site.op() == Op::wgmma_wait;
  const std::set<ValueId> busy = arrays_under_way(sites, site);
  std::int64_t commits = 0;  // since the site
  for (const Site* at = sites.next(site); at; at = sites.next(*at)) {
    const Op op = at->op();
    commits += op == Op::wgmma_commit;
    // Groups are done in their order. Without a commit its products belong to the next group.
    const bool waits_for_same =
        op == Op::wgmma_wait &&
        (is_wait ? count(*at) <= count(site) + commits : count(*at) < commits);
    if (waits_for_same) {
      return "a wait behind it is for the same products too, and between the two stand further "
             "products alone";
    }
    // A product may add to what another one adds to, but not read it.
    const bool reads_other =
        op == Op::wgmma_rs && !busy.empty() && busy.count(at->operation->operands[1]) == 0;
    const bool passes = op == Op::wgmma_ss || reads_other || op == Op::wgmma_fence ||
                        op == Op::wgmma_commit || op == Op::wgmma_wait ||
                        (ir::info(op).pure() && at->operation->blocks.empty());
    if (!passes) return {};
  }
  return {};
}

std::string nothing_touched(const Sites& sites, const Site& fence) {
  if (TouchedArrays(sites, fence.number, kNoSite).product_meets_one()) return {};
  return "no register of the products behind it was used since the fence before it";
}

std::string never_in_later_turns(const Sites& sites, const Site& site) {
  const ir::Operation& loop = *sites.parent(site)->operation;
  if (!sites.is_constant(loop.operands[2], 1)) return {};
  if (!sites.not_less(loop.operands[0], loop.operands[1], 1)) return {};
  return "it tells in the second turn of its loop, which has one at most";
}

bool touched_in_later_turns_alone(const Sites& sites, const Site& fence) {
  const Site* loop = sites.parent(fence);
  if (!loop || loop->op() != Op::for_loop) return false;
  return !TouchedArrays(sites, fence.number, loop->number).product_meets_one();
}

std::string loop_ends(const Sites& sites, const std::vector<Use>& uses) {
  for (const Use& use : uses) {
    // yield of a branch of a condition that is the loop's own: the branch in which it is false.
    const Site& yield = sites.at(use.site);
    const Site* branch = sites.parent(yield);
    if (yield.op() != Op::yield || !branch || branch->op() != Op::if_then || yield.block != 1) {
      return {};
    }
    const Site* loop = sites.parent(*branch);
    if (!loop || loop->op() != Op::while_loop) return {};
    const std::size_t carried = loop->yields[0];
    const ValueId condition = branch->operation->operands[0];
    const ValueId result = branch->operation->results[use.operand];
    if (sites.at(carried).operation->operands[0] != condition) return {};
    for (const Use& inside : sites.uses(result)) {
      if (inside.site != carried || inside.operand == 0) return {};
      if (!sites.uses(loop->operation->results[inside.operand - 1]).empty()) return {};
    }
  }
  return "it is carried into the turn that the loop does not take: its condition is false here";
}

std::string ends_with_arrival(const Sites& sites, const Site& arrive) {
  const Site* branch = sites.parent(arrive);
  const Site* loop = branch ? sites.parent(*branch) : nullptr;
  if (!loop || branch->op() != Op::if_then || loop->op() != Op::while_loop) return {};
  // Each role comes to its own loop once; another CTA's barrier has other waits.
  if (loop->parent != arrive.role || arrive.operation->operands.size() > 2) return {};
  const std::size_t given = branch->yields[arrive.block], carried = loop->yields[0];
  if (given == kNoSite || carried == kNoSite) return {};
  const ValueId goes_on = sites.at(carried).operation->operands[0];
  const std::vector<ValueId>& results = branch->operation->results;
  const auto result = std::find(results.begin(), results.end(), goes_on);
  if (result == results.end()) return {};
  const auto place = static_cast<std::size_t>(result - results.begin());
  if (!sites.is_constant(sites.at(given).operation->operands[place], 0)) return {};
  for (std::size_t i = arrive.number + 1; i < sites.at(arrive.role).end; ++i) {
    const Site& other = sites.at(i);
    const bool is_in_other_block = i < branch->end && other.block != arrive.block;
    const std::vector<ValueId>& operands = other.operation->operands;
    const bool touches = !operands.empty() && operands[0] == arrive.operation->operands[0] &&
                         other.operation->blocks.empty();
    if (touches && !is_in_other_block) return {};
  }
  return "it is the last that its role does to the barrier, behind the last that the role reads";
}

std::string peers_are_awaited(const Sites& sites) {
  const auto arrives_at_peer = [](const Site& site) {
    return site.op() == Op::mbarrier_arrive && site.operation->operands.size() > 2;
  };
  // CTAs run the same code, so that what one does behind an operation, its peers do too.
  const auto followed = [&](const Site& site, const auto& wanted) {
    for (const Site* at = sites.next(site); at; at = sites.next(*at)) {
      if (wanted(*at)) return true;
    }
    return false;
  };
  for (const Site& site : sites.all()) {
    if (site.op() == Op::cluster_copy) return {};
    if (site.op() == Op::tma_load && site.operation->attributes.integer_or(ir::Key::multicast, 0)) {
      return {};
    }
    if (arrives_at_peer(site)) {
      const ValueId barriers = site.operation->operands[0];
      const bool awaited = followed(site, [&](const Site& other) {
        return other.op() == Op::mbarrier_wait && other.operation->operands[0] == barriers;
      });
      if (!awaited) return {};
    }
    const bool reads_peer = site.op() == Op::load_words && site.operation->operands.size() > 3;
    if (reads_peer && !followed(site, arrives_at_peer)) return {};
  }
  return "each access to a peer's shared memory is followed by an arrival at a barrier of that "
         "peer, "
         "for which it waits before it ends";
}

std::string below_divisor(const Sites& sites, const Site& division) {
  const std::vector<ValueId>& operands = division.operation->operands;
  const Site* dividend = sites.definition(operands[0]);
  const bool is_rest = dividend && dividend->op() == Op::mod &&
                       sites.not_less(operands[1], dividend->operation->operands[1]);
  if (!is_rest && !sites.not_less(operands[1], operands[0], -1)) return {};
  return "the dividend is never as large as the divisor";
}

std::string divides_evenly(const Sites& sites, const Site& division, ValueId dividend) {
  const std::int64_t divisor = *sites.constant(division.operation->operands[1]);
  const auto is_multiple = [&](const auto& self, ValueId value) -> bool {
    if (const auto number = sites.constant(value)) return *number % divisor == 0;
    const Site* made = sites.definition(value);
    if (made && made->op() == Op::dim) {
      const Dim dim = made->operation->attributes.dim();
      return dim.kind() == Dim::Kind::symbol && dim.facts().multiple % divisor == 0;
    }
    if (!made || made->operation->operands.size() != 2) return false;
    const std::vector<ValueId>& operands = made->operation->operands;
    if (made->op() == Op::mul) return self(self, operands[0]) || self(self, operands[1]);
    const bool sums = made->op() == Op::add || made->op() == Op::sub;
    return sums && self(self, operands[0]) && self(self, operands[1]);
  };
  if (!is_multiple(is_multiple, dividend)) return {};
  return fmt::format("the dividend is a multiple of {}", divisor);
}

}  // namespace tilewright::simulator
