#include "passes/drop_branches.h"

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/definitions.h"
#include "analysis/not_less.h"
#include "ir/replace.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Branches {
 public:
  explicit Branches(ir::Kernel& kernel)
      : kernel_(kernel), definitions_(analysis::definitions(kernel)), not_less_(kernel) {
    decide(kernel.body);
    if (!taken_.empty()) ir::replace(kernel, [&](Operation& o) { return branch(o); });
  }

 private:
  // Before anything is moved, since proofs read the operations where they are.
  void decide(const ir::Block& block) {
    for (const Operation& o : block.body) {
      const bool chooses = o.op == Op::if_then;
      if (chooses) {
        if (const std::optional<bool> known = outcome(o.operands[0])) taken_[&o] = *known ? 0 : 1;
      }
      for (const ir::Block& inner : o.blocks) {
        const bool holds = chooses && &inner == &o.blocks[0];
        if (holds) not_less_.enter(o.operands[0]);
        decide(inner);
        if (holds) not_less_.leave();
      }
    }
  }

  std::optional<bool> outcome(ValueId condition) {
    const Operation* o = definitions_[condition];
    if (o == nullptr) return {};
    if (const auto constant = analysis::integer_constant(o)) return *constant != 0;
    if (o->op == Op::lt && kernel_.type(o->operands[0]) == ir::Type::scalar(i32)) {
      if (not_less_.proves(o->operands[0], o->operands[1])) return false;
      if (not_less_.proves(o->operands[1], o->operands[0], -1)) return true;
    }
    if (o->op != Op::logical_or && o->op != Op::logical_and) return {};
    const std::optional<bool> a = outcome(o->operands[0]), b = outcome(o->operands[1]);
    const bool decides = o->op == Op::logical_or;
    if (a == decides || b == decides) return decides;
    if (a && b) return !decides;
    return {};
  }

  std::optional<ir::Replacement> branch(Operation& operation) const {
    const auto taken = taken_.find(&operation);
    if (taken == taken_.end()) return {};
    std::vector<Operation>& body = operation.blocks[taken->second].body;
    ir::Replacement made{std::move(body.back().operands), std::move(body)};
    made.body.pop_back();
    return made;
  }

  ir::Kernel& kernel_;
  const std::vector<const Operation*> definitions_;
  analysis::NotLess not_less_;
  std::map<const Operation*, std::size_t> taken_;  // the block of each that is decided
};

}  // namespace

void drop_branches(ir::Kernel& kernel) { Branches branches(kernel); }

}  // namespace tilewright::passes
