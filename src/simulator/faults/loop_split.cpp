#include <algorithm>
#include <map>
#include <vector>

#include "simulator/faults/equivalence.h"

// Where a loop ends and the next one goes on makes no difference if both do the same.
namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

namespace {

constexpr std::size_t kStart = 0, kLimit = 1, kStep = 2, kCarried = 3;  // operands of a loop

// Whether two blocks do the same, each with its own values.
class Alike {
 public:
  bool blocks(const ir::Block& a, const ir::Block& b) {
    if (a.body.size() != b.body.size() || !become(a.arguments, b.arguments)) return false;
    return std::equal(a.body.begin(), a.body.end(), b.body.begin(),
                      [&](const auto& one, const auto& other) { return operations(one, other); });
  }

 private:
  bool operations(const ir::Operation& a, const ir::Operation& b) {
    if (a.op != b.op || !(a.attributes == b.attributes)) return false;
    if (a.operands.size() != b.operands.size() || a.blocks.size() != b.blocks.size()) return false;
    for (std::size_t i = 0; i < a.operands.size(); ++i) {
      const auto own = own_.find(a.operands[i]);
      if ((own == own_.end() ? a.operands[i] : own->second) != b.operands[i]) return false;
    }
    for (std::size_t i = 0; i < a.blocks.size(); ++i) {
      if (!blocks(a.blocks[i], b.blocks[i])) return false;
    }
    return become(a.results, b.results);
  }
  bool become(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) own_[a[i]] = b[i];
    return true;
  }

  std::map<ValueId, ValueId> own_;  // of the first block, as the second one calls it
};

class LoopSplit {
 public:
  explicit LoopSplit(const Sites& sites) : sites_(sites) {}

  // Whether the value does nothing but say where one loop ends and another begins.
  bool is_all_of(ValueId value) {
    if (!follow(value) || !first_ || !second_ || !is_next()) return false;
    const std::vector<ValueId>&first = first_->operation->operands,
          &second = second_->operation->operands;
    return first[kLimit] == second[kStart] && sites_.is_constant(first[kStep], 1) &&
           sites_.is_constant(second[kStep], 1) && goes_on() &&
           lies_between(first[kLimit], first[kStart], second[kLimit]) &&
           Alike().blocks(first_->operation->blocks[0], second_->operation->blocks[0]);
  }

 private:
  static bool keeps_going(Op op) {
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::min || op == Op::max;
  }

  bool follow(ValueId value) {
    const std::vector<Use>& uses = sites_.uses(value);
    return std::all_of(uses.begin(), uses.end(), [&](const Use& use) {
      const Site& site = sites_.at(use.site);
      if (keeps_going(site.op())) return follow(site.operation->results[0]);
      if (site.op() != Op::for_loop || use.operand > kLimit) return false;
      const Site*& loop = use.operand == kLimit ? first_ : second_;
      const bool is_new = !loop || loop == &site;
      loop = &site;
      return is_new;
    });
  }

  bool is_next() const {
    const Site* next = sites_.next(*first_);
    while (next && next != second_ && ir::info(next->op()).pure()) next = sites_.next(*next);
    return next == second_;
  }
  // Whether the second loop carries on with what the first one has left, and nobody else takes it.
  bool goes_on() const {
    const std::vector<ValueId>& left = first_->operation->results;
    const std::vector<ValueId>& taken = second_->operation->operands;
    if (taken.size() != kCarried + left.size()) return false;
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (taken[kCarried + i] != left[i] || sites_.uses(left[i]).size() != 1) return false;
    }
    return true;
  }

  // max(start, min(..., end, ...)): no less than `start`, and no more than `end` unless that is
  // less.
  bool lies_between(ValueId bound, ValueId start, ValueId end) const {
    const Site* made = sites_.definition(bound);
    if (!made || made->op() != Op::max) return false;
    const std::vector<ValueId>& operands = made->operation->operands;
    return (is_same(operands[0], start) && is_limited(operands[1], end)) ||
           (is_same(operands[1], start) && is_limited(operands[0], end));
  }
  bool is_limited(ValueId value, ValueId end) const {
    if (is_same(value, end)) return true;
    const Site* made = sites_.definition(value);
    if (!made || made->op() != Op::min) return false;
    const std::vector<ValueId>& operands = made->operation->operands;
    return is_limited(operands[0], end) || is_limited(operands[1], end);
  }
  bool is_same(ValueId a, ValueId b) const {
    const auto constant = sites_.constant(a);
    return a == b || (constant && constant == sites_.constant(b));
  }

  const Sites& sites_;
  const Site* first_ = nullptr;  // loops
  const Site* second_ = nullptr;
};

}  // namespace

std::string splits_like_loops(const Sites& sites, const Site& division) {
  if (!LoopSplit(sites).is_all_of(division.operation->results[0])) return {};
  return "it says where a loop ends and the next one, which does the same, goes on";
}

}  // namespace tilewright::simulator
