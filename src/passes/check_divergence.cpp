#include "passes/check_divergence.h"

#include <string>
#include <vector>

#include "analysis/carried.h"
#include "support/diagnostic.h"

namespace tilewright::passes {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

class Divergence {
 public:
  explicit Divergence(const ir::Kernel& kernel) : source_(kernel.types.size(), nullptr) {
    do {
      changed_ = false;
      visit(kernel.body);
    } while (changed_);
  }

  // `around`: why the warps may not all be here; null where they are.
  void check(const ir::Block& block, const Operation* around) const {
    for (const Operation& o : block.body) {
      const Operation* const decided = decided_by(o);
      for (const ir::Block& inner : o.blocks) check(inner, decided ? decided : around);
      // A reduction that crosses warps has shared memory for it.
      const bool reduction = (o.op == Op::reduce || o.op == Op::complete) && o.operands.size() > 1;
      const bool conversion = o.op == Op::convert && o.attributes.has(ir::Key::first);
      const ir::OpInfo& record = ir::info(o.op);
      const bool product = record.is_asynchronous_product() && record.agent == ir::Agent::warpgroup;
      if (!(product || reduction || conversion) || !around) continue;
      const std::string name(conversion  ? "a tile changes places between warps"
                             : reduction ? "reduce"
                                         : record.name);
      Diagnostic(o.where, name +
                              ": inside a loop or condition that the warps of a warpgroup may "
                              "decide differently")
          .token(name)
          .note(around->where, "its warps may differ in " + std::string(ir::info(around->op).name))
          .fix(
              "a warpgroup multiplies and reduces together: decide by what all its warps share, "
              "such as "
              "Slot::number or SharedIntegers")
          .raise();
    }
  }

 private:
  // What the warps of a warpgroup may see differently: the operation that makes it so.
  const Operation* source_of(const std::vector<ValueId>& values) const {
    for (const ValueId value : values) {
      if (source_[value]) return source_[value];
    }
    return nullptr;
  }
  void mark(ValueId value, const Operation* source) {
    if (!source || source_[value]) return;
    source_[value] = source;
    changed_ = true;
  }

  static bool is_loop(const Operation& o) { return o.op == Op::for_loop || o.op == Op::while_loop; }
  // Why the warps may run the blocks of `o` differently often.
  const Operation* decided_by(const Operation& o) const {
    if (o.op == Op::if_then) return source_[o.operands[0]];
    if (o.op == Op::while_loop) {
      return source_of({o.operands[0], o.blocks[0].body.back().operands[0]});
    }
    if (o.op == Op::for_loop) return source_of({o.operands[0], o.operands[1], o.operands[2]});
    return nullptr;
  }

  void visit(const ir::Block& block) {
    for (const Operation& o : block.body) {
      // What is read while others write it is the same in the lanes of a warp alone.
      const bool origin = o.op == Op::warp_index || o.op == Op::any || o.op == Op::atomic_add ||
                          (o.op == Op::load_index && o.attributes.has(ir::Key::semantics));
      if (origin) mark(o.results[0], &o);
      for (const ir::Block& inner : o.blocks) visit(inner);
      if (o.op == Op::if_then || is_loop(o)) {
        carry(o);
      } else if (const Operation* source = source_of(o.operands)) {
        for (const ValueId result : o.results) mark(result, source);
      }
    }
  }

  void carry(const Operation& o) {
    const Operation* const decided = decided_by(o);
    if (o.op == Op::for_loop) mark(o.blocks[0].arguments[0], decided);
    for (const ValueId result : o.results) mark(result, decided);
    analysis::for_each_carried(o, [this](ValueId from, ValueId to) { mark(to, source_[from]); });
  }

  std::vector<const Operation*> source_;
  bool changed_ = false;
};

}  // namespace

void check_divergence(ir::Kernel& kernel) { Divergence(kernel).check(kernel.body, nullptr); }

}  // namespace tilewright::passes
