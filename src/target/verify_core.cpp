#include "target/verify_core.h"

#include "target/core.h"
#include "target/core_operands.h"
#include "target/core_rules.h"

namespace tilewright::target {
namespace {

using ir::Key;
using ir::Operation;

class CoreVerifier {
 public:
  CoreVerifier(ir::VerifierContext& context, const Target& target)
      : context_(context), target_(target), core_(*target.core) {}

  void run() {
    const ir::Kernel& kernel = context_.kernel();
    context_.require(kernel.threads == target_.limits.threads && kernel.cluster == 1,
                     "{} sequencers in clusters of {}, expected {} alone", kernel.threads,
                     kernel.cluster, target_.limits.threads);
    // Memories stand first: what follows asks their spaces.
    for (const Operation& o : kernel.body.body) {
      if (o.op == ir::Op::memory) memory(o);
    }
    capacities();
    operands_.emplace(kernel, core_);
    block(kernel.body);
  }

 private:
  void hold(const CoreProblem& problem) const {
    if (!problem.none()) context_.fail("{}: {}", problem.problem, problem.fix);
  }

  void memory(const Operation& o) {
    context_.enter(o);
    const ir::Type& type = context_.result();
    hold(check_memory(core_, o.attributes.text(Key::space),
                      {type.shape[1], type.shape[2], type.dtype}));
  }

  // Once memories are placed.
  void capacities() {
    for (const Operation& o : context_.kernel().body.body) {
      if (o.op != ir::Op::memory || !o.attributes.has(Key::offset)) continue;
      context_.enter(o);
      const CoreSpace& space = *core_.space(o.attributes.text(Key::space));
      const ir::Type& type = context_.result();
      const std::int64_t begin = context_.integer(Key::offset);
      const std::int64_t end =
          begin + type.shape[0] * matrix_bytes(space, {type.shape[1], type.shape[2], type.dtype});
      context_.require(begin >= 0 && begin % space.granule == 0,
                       "begins at byte {} of {}, expected a multiple of {}", begin, space.name,
                       space.granule);
      context_.require(end <= space.bytes, "ends at byte {} of {}, which has {}", end, space.name,
                       space.bytes);
    }
  }

  void block(const ir::Block& block) {
    for (const Operation& o : block.body) {
      context_.enter(o);
      context_.require(target_.has(ir::info(o.op)), "{} has no such operation", target_.name);
      operation(o);
      for (const ir::ValueId result : o.results) context_.define(result, o);
      if (o.op == ir::Op::role) role(o);
      for (const ir::Block& inner : o.blocks) this->block(inner);
      if (o.op == ir::Op::role) sequencer_.clear();
    }
  }

  void role(const Operation& o) {
    sequencer_ = o.attributes.text(Key::name);
    const CoreSequencer* found = core_.sequencer(sequencer_);
    if (found == nullptr) context_.fail("{} has no sequencer {}", target_.name, sequencer_);
    context_.require(context_.integer(Key::warps) == found->count, "{} of {}, expected {}",
                     context_.integer(Key::warps), sequencer_, found->count);
  }

  // Whether memory belongs to who uses it.
  void reachable(const CoreOperand& operand) const {
    if (operand.space == nullptr || operand.space->sequencer.empty()) return;
    context_.require(operand.space->sequencer == sequencer_, "{} is a memory of {}, and not of {}",
                     operand.space->name, operand.space->sequencer, sequencer_);
  }

  CoreOperand window(std::size_t operand) const {
    const CoreOperand made = operands_->window(context_.operation().operands[operand]);
    reachable(made);
    return made;
  }

  void operation(const Operation& o) {
    const ir::OpInfo& record = ir::info(o.op);
    if (record.family == ir::Family::core_window) return start(o);
    if (record.family == ir::Family::core_copy) return copy(o);
    if (record.family == ir::Family::core_compute) return compute(o);
    if (record.family == ir::Family::core_event) return event(o);
  }

  void start(const Operation& o) const {
    const auto row = context_.constant_operand(2), column = context_.constant_operand(3);
    if (!row || !column) return;
    hold(check_start(operands_->space_of(o.operands[0]), operands_->matrix_of(o.operands[0]), *row,
                     *column));
  }

  void copy(const Operation& o) const {
    CoreOperand to, from;
    switch (ir::as<ir::CoreCopyOp>(o.op)) {
      case ir::CoreCopyOp::core_load:
        to = window(0);
        from = operands_->part(context_.tensor_of(o.operands[1]), o);
        break;
      case ir::CoreCopyOp::core_store:
        to = operands_->part(context_.tensor_of(o.operands[0]), o);
        from = window(1);
        break;
      case ir::CoreCopyOp::core_move:
        to = window(0);
        from = window(1);
        break;
    }
    const CoreMove* found = nullptr;
    hold(find_move(core_, to, from, sequencer_, o.attributes.text(Key::unit), found));
  }

  void compute(const Operation& o) const {
    if (o.op == ir::Op::core_matmul) {
      const CoreProduct* found = nullptr;
      return hold(find_product(core_, window(0), window(1), window(2), sequencer_, found));
    }
    std::vector<CoreOperand> from;
    for (std::size_t i = 1; i < o.operands.size(); ++i) {
      if (!context_.operand(i).is_scalar()) from.push_back(window(i));
    }
    const CoreFunctions* found = nullptr;
    const std::string_view function =
        o.op == ir::Op::core_vector ? ir::info(o.attributes.function()).name : "";
    hold(find_functions(core_, window(0), from, function, o.op == ir::Op::core_fill, sequencer_,
                        o.attributes.text(Key::unit), found));
  }

  void event(const Operation& o) const {
    if (o.op == ir::Op::unit_barrier) {
      return hold(check_unit(core_, o.attributes.text(Key::unit), sequencer_));
    }
    const std::string &from = o.attributes.text(Key::from), &to = o.attributes.text(Key::to);
    hold(check_event(core_, from, to, o.op == ir::Op::event_set, sequencer_));
    const int ids = core_.event(from, to)->ids;
    const std::int64_t id = context_.constant_operand(0).value_or(0);
    context_.require(id >= 0 && id < ids, "event {} from {} to {}, expected 0 to {}", id, from, to,
                     ids - 1);
  }

  ir::VerifierContext& context_;
  const Target& target_;
  const Core& core_;
  std::optional<CoreOperands> operands_;
  std::string sequencer_;  // of the role
};

}  // namespace

void verify_core(ir::VerifierContext& context, const Target& target) {
  CoreVerifier(context, target).run();
}

}  // namespace tilewright::target
