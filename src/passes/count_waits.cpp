#include "passes/count_waits.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "analysis/product_operands.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::passes {
namespace {

using ir::Key;
using ir::Operation;
using ir::ValueId;

// Groups committed after a pending product's own; complete ones agree with every count. Where paths
// disagree, only a wait makes that an error: until then the value may be dead.
constexpr int kComplete = -1;
constexpr int kDisagreeing = -2;
using Ages = std::map<ValueId, int>;

class WaitCounts {
 public:
  explicit WaitCounts(ir::Kernel& kernel)
      : kernel_(kernel), most_(target::target_of(kernel).limits.product_groups) {}

  void visit(ir::Block& block, Ages& ages) {
    for (Operation& o : block.body) {
      check_operands(o, ages);
      const ir::OpInfo& record = ir::info(o.op);
      if (record.completion == ir::Completion::products) {
        for (auto& [value, age] : ages) {
          if (age >= 0) ++age;
        }
        ages[o.results[0]] = 0;
        issued_[o.results[0]] = o.where;
      } else if (record.family == ir::Family::pending) {
        pending_tile(o, ages);
      } else if (record.family == ir::Family::control) {
        control(o, ages);
      }
    }
  }

 private:
  void pending_tile(Operation& o, Ages& ages) {
    switch (ir::as<ir::PendingOp>(o.op)) {
      case ir::PendingOp::as_pending:
        ages[o.results[0]] = kComplete;
        return;
      case ir::PendingOp::wait:
      case ir::PendingOp::retire: {
        const int age = ages.at(o.operands[0]);
        if (age == kDisagreeing) raise_disagreement(o.operands[0]);
        const std::int64_t count =
            std::min<std::int64_t>(age == kComplete ? in_flight(ages) : age, most_);
        if (recording_) o.attributes.set(Key::count, count);
        for (auto& [value, other] : ages) {
          if (other >= count) other = kComplete;
        }
        return;
      }
    }
  }

  void control(Operation& o, Ages& ages) {
    switch (ir::as<ir::ControlOp>(o.op)) {
      case ir::ControlOp::role: {
        Ages own;
        operands_.emplace(kernel_, o.blocks[0]);
        return visit(o.blocks[0], own);
      }
      case ir::ControlOp::for_loop:
        return loop(o, 3, 0, ages);
      case ir::ControlOp::while_loop:
        return loop(o, 1, 1, ages);
      case ir::ControlOp::if_then: {
        Ages then = ages, otherwise = ages;
        visit(o.blocks[0], then);
        visit(o.blocks[1], otherwise);
        for (std::size_t i = 0; i < o.results.size(); ++i) {
          if (!pending(o.results[i])) continue;
          then[o.results[i]] = then.at(passed(o.blocks[0].body.back().operands[i], o.results[i]));
          otherwise[o.results[i]] =
              otherwise.at(passed(o.blocks[1].body.back().operands[i], o.results[i]));
        }
        ages = merge(then, otherwise, o);
        return;
      }
      case ir::ControlOp::elect:
        return visit(o.blocks[0], ages);
      case ir::ControlOp::yield:
        return;
    }
  }

  bool pending(ValueId id) const { return kernel_.type(id).is(ir::Type::Kind::pending); }

  // Groups that may be under way: a wait that leaves them all waits for none, yet tells ptxas,
  // which would serialise the products otherwise, that those before are done.
  static int in_flight(const Ages& ages) {
    int groups = 0;
    for (const auto& [value, age] : ages) groups = std::max(groups, age + 1);
    return groups;
  }

  // `to` may stand for what `from` is.
  ValueId passed(ValueId from, ValueId to) {
    const auto at = issued_.find(from);
    if (at != issued_.end()) issued_.emplace(to, at->second);
    const auto parted = disagreements_.find(from);
    if (parted != disagreements_.end()) disagreements_.emplace(to, parted->second);
    return from;
  }

  int join(ValueId value, int a, int b, const Operation& o) {
    if (a == kComplete) return b;
    if (b == kComplete || a == b) return a;
    if (a != kDisagreeing && b != kDisagreeing) disagreements_[value] = {o.where, a, b};
    return kDisagreeing;
  }

  [[noreturn]] void raise_disagreement(ValueId value) {
    const Disagreement& paths = disagreements_.at(value);
    Diagnostic(paths.where, "a product in flight is followed by " + std::to_string(paths.first) +
                                " others on one path and by " + std::to_string(paths.second) +
                                " on another, so that no static wait fits")
        .note(issued_.count(value) ? issued_[value] : SourceLocation{}, "it is issued")
        .fix("issue the same products on both paths, or wait for it before they part")
        .raise();
  }

  // A product in flight reads its A from registers: nothing else may read or write them.
  void check_operands(const Operation& o, const Ages& ages) {
    if (!operands_ || ir::info(o.op).family == ir::Family::control) return;
    const auto check = [&](ValueId tile, const char* how) {
      if (!kernel_.type(tile).is_tile()) return;
      for (const auto& [product, age] : ages) {
        if (age < 0 || operands_->of(product).count(tile) == 0) continue;
        Diagnostic(o.where, std::string(ir::info(o.op).name) + how +
                                " a tile in registers that a product in flight reads as its A")
            .note(issued_.count(product) ? issued_[product] : SourceLocation{}, "it is issued")
            .fix("wait for the product first")
            .raise();
      }
    };
    for (std::size_t i = 0; i < o.operands.size(); ++i) {
      if (!ir::is_read_in_flight(kernel_, o, i)) check(o.operands[i], " reads");
    }
    for (const ValueId result : o.results) check(result, " writes");
  }

  Ages merge(const Ages& a, const Ages& b, const Operation& o) {
    Ages both;
    for (const auto& [value, age] : a) {
      const auto at = b.find(value);
      if (at != b.end()) both[value] = join(value, age, at->second, o);
    }
    return both;
  }

  // The ages at the head of the loop's body, in every turn, from those of the first.
  Ages settled(Operation& o, const Ages& entry, std::size_t first, std::size_t extra) {
    // Without what is known already, loops inside each other are visited 2^depth times.
    std::map<Ages, Ages>& known = settled_[&o];
    if (const auto found = known.find(entry); found != known.end()) return found->second;
    ir::Block& body = o.blocks[0];
    const bool outer = std::exchange(recording_, false);
    Ages ages = entry;
    for (;;) {
      Ages after = ages;
      visit(body, after);
      Ages next = after;
      for (std::size_t i = 0; i < o.results.size(); ++i) {
        const ValueId argument = body.arguments[first + i];
        if (!pending(argument)) continue;
        next[argument] = after.at(passed(body.body.back().operands[extra + i], argument));
      }
      Ages merged = merge(ages, next, o);
      if (merged == ages) break;
      ages = std::move(merged);
    }
    recording_ = outer;
    return known[entry] = ages;
  }

  void loop(Operation& o, std::size_t leading, std::size_t extra, Ages& ages) {
    ir::Block& body = o.blocks[0];
    const std::size_t first = body.arguments.size() - o.results.size();
    Ages entry = ages;
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId argument = body.arguments[first + i];
      if (pending(argument)) entry[argument] = ages.at(passed(o.operands[leading + i], argument));
    }
    entry = settled(o, std::move(entry), first, extra);
    if (recording_) {
      Ages after = entry;
      visit(body, after);
    }
    for (std::size_t i = 0; i < o.results.size(); ++i) {
      const ValueId argument = body.arguments[first + i];
      if (pending(argument)) entry[o.results[i]] = entry[passed(argument, o.results[i])];
    }
    ages = std::move(entry);
  }

  struct Disagreement {
    SourceLocation where;
    int first, second;
  };

  ir::Kernel& kernel_;
  const std::int64_t most_;                            // groups that a wait can leave in flight
  std::optional<analysis::ProductOperands> operands_;  // of the role
  std::map<ValueId, SourceLocation> issued_;
  std::map<ValueId, Disagreement> disagreements_;
  // Of each loop: by the ages where it is entered, those at the head of its body.
  std::map<const Operation*, std::map<Ages, Ages>> settled_;
  bool recording_ = true;
};

}  // namespace

void count_waits(ir::Kernel& kernel) {
  Ages ages;
  WaitCounts(kernel).visit(kernel.body, ages);
}

}  // namespace tilewright::passes
