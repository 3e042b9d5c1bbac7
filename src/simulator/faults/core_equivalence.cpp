#include "simulator/faults/core_faults.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "simulator/faults/sites.h"
#include "target/core.h"
#include "target/target.h"

// Kernels that show by a run of theirs whether a mutant of a core can make a difference.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

// Whether two windows are one part of one memory.
bool are_one_window(const Sites& sites, ValueId a, ValueId b) {
  const Site *first = sites.definition(a), *second = sites.definition(b);
  if (first == nullptr || second == nullptr || first->op() != Op::window) return false;
  const Operation &one = *first->operation, &other = *second->operation;
  return second->op() == Op::window && one.operands == other.operands &&
         one.attributes == other.attributes && sites.kernel().type(a) == sites.kernel().type(b);
}

namespace {

// A window of a memory that nobody has written, like that of an operand of the instruction, which
// then stands two further.
ValueId insert_nothing(ir::Kernel& kernel, const Sites& sites, ValueId like, std::size_t number) {
  const Site& window = *sites.definition(like);
  const Site& memory = *sites.definition(window.operation->operands[0]);
  const auto again = [&](const Operation& o) {
    Operation copy = o;
    copy.results = {kernel.add_value(sites.kernel().type(o.results[0]))};
    return copy;
  };
  Operation nothing = again(*memory.operation);
  const target::Core& core = *target::target_of(sites.kernel()).core;
  nothing.attributes.set(Key::offset, core.space(nothing.attributes.text(Key::space))->bytes);
  Operation of_nothing = again(*window.operation);
  of_nothing.operands[0] = nothing.results[0];
  insert(kernel, memory.number, Side::after, nothing);
  insert(kernel, number + 1, Side::before, of_nothing);
  return of_nothing.results[0];
}

// The only instruction that writes the window of a site; null where it is not so.
const Site* only_writer(const Sites& sites, std::size_t number) {
  const std::vector<Use> uses = sites.uses(sites.at(number).operation->results[0]);
  const bool writes = uses.size() == 1 && uses[0].operand == 0;
  return writes ? &sites.at(uses[0].site) : nullptr;
}

// A number that nobody's sums are made of, of the window's dtype.
ValueId insert_other_number(ir::Kernel& kernel, ValueId window, std::size_t before) {
  const DType dtype = kernel.type(window).dtype;
  constexpr std::int64_t kOther = 96;  // which every dtype has
  const ValueId value = kernel.add_value(ir::Type::scalar(dtype));
  ir::Attributes attributes{{Key::value, kOther}};
  if (is_float(dtype)) attributes = {{Key::value, static_cast<double>(kOther)}};
  if (dtype == DType::boolean) attributes = {{Key::value, std::int64_t{1}}};
  insert(kernel, before, Side::before,
         {Op::constant, {}, {value}, attributes, {}, operation_at(kernel, before).where});
  return value;
}

}  // namespace

ir::Kernel without_result(const ir::Kernel& kernel, const FaultKind& kind, std::size_t number) {
  const Sites sites(kernel);
  const Site* instruction = &sites.at(number);
  if (kind.number == kStageKind) {
    instruction = only_writer(sites, number);
  } else if (kind.number != kInstructionKind) {
    instruction = nullptr;
  }
  const bool computes = instruction != nullptr &&
                        ir::info(instruction->op()).family == ir::Family::core_compute &&
                        instruction->op() != Op::core_matmul;
  if (!computes) return {};
  const Operation& own = *instruction->operation;
  ir::Kernel changed = kernel;
  const ValueId from = insert_nothing(changed, sites, own.operands[0], instruction->number);
  operation_at(changed, instruction->number + 2) = {
      Op::core_vector,
      {own.operands[0], from},
      {},
      {{Key::unit, own.attributes.text(Key::unit)}, {Key::function, Op::cast}},
      {},
      own.where};
  return changed;
}

ir::Kernel without_choice(const ir::Kernel& kernel, const FaultKind& kind, std::size_t number) {
  const Sites sites(kernel);
  const Operation& own = *sites.at(number).operation;
  const bool chooses = kind.number == kInstructionKind && own.op == Op::core_vector &&
                       own.attributes.function() == Op::select;
  if (!chooses) return {};
  // The result, the condition and the two that it chooses from: one lies where the result does.
  const std::vector<ValueId>& operands = own.operands;
  const bool first = are_one_window(sites, operands[0], operands[2]);
  if (!first && !are_one_window(sites, operands[0], operands[3])) return {};
  ir::Kernel changed = kernel;
  const ValueId none = insert_nothing(changed, sites, operands[0], number);
  operation_at(changed, number + 2).operands[first ? 3 : 2] = none;
  return changed;
}

bool hides_by_zero(const ir::Kernel& kernel, const FaultKind& kind, std::size_t number) {
  const Sites sites(kernel);
  const Operation& own = *sites.at(number).operation;
  if (kind.number != kInstructionKind || own.op != Op::core_vector) return false;
  if (own.attributes.function() != Op::select) return false;
  const std::vector<ValueId>& operands = own.operands;
  const Site* other = sites.definition(operands[3]);
  if (!are_one_window(sites, operands[0], operands[2]) || other->op() != Op::constant) return false;
  const auto& value = *other->operation->attributes.find(Key::value);
  const auto* real = std::get_if<double>(&value);
  const auto* whole = std::get_if<std::int64_t>(&value);
  return real != nullptr ? *real == 0 : whole != nullptr && *whole == 0;
}

ir::Kernel with_other_rest(const ir::Kernel& kernel, const FaultKind& kind, const Mutant& mutant) {
  if (kind.number != kLimitKind || !takes_less(mutant)) return {};
  const Sites sites(kernel);
  const Operation& own = *sites.at(mutant.site).operation;
  const bool loads = own.op == Op::core_load;
  const ir::Parameter* tensor = kernel.parameter_of(own.operands[loads ? 1 : 0]);
  if (tensor->kind != ir::Parameter::Kind::scratch) return {};
  ir::Kernel changed = mutant.apply(kernel);
  std::size_t at = mutant.site + 2;  // its new end stands before it
  const ir::Attributes of_unit{{Key::unit, own.attributes.text(Key::unit)}};
  const auto insert_before = [&](const Operation& operation) {
    insert(changed, at++, Side::before, operation);
    insert(changed, at++, Side::before, {Op::unit_barrier, {}, {}, of_unit, {}, own.where});
  };
  ValueId window = own.operands[loads ? 0 : 1];
  if (!loads) {
    window = insert_nothing(changed, sites, window, at);
    at += 2;
  }
  const ValueId number = insert_other_number(changed, window, at++);
  insert_before({Op::core_fill, {window, number}, {}, of_unit, {}, own.where});
  if (!loads) {
    Operation whole = own;
    whole.operands[1] = window;
    insert_before(whole);
  }
  return changed;
}

ir::Kernel core_probe(const ir::Kernel& kernel, std::size_t site) {
  const Sites sites(kernel);
  const Site& at = sites.at(site);
  if (at.role == kNoSite || at.op() == Op::role) return {};
  const std::string& sequencer = sites.at(at.role).operation->attributes.text(Key::name);
  const target::Core& core = *target::target_of(kernel).core;
  const auto pair =
      std::find_if(core.events.begin(), core.events.end(), [&](const target::CoreEventPair& each) {
        return core.unit(each.to)->sequencer == sequencer;
      });
  ir::Kernel probed = kernel;
  constexpr std::int64_t kNoEvent = 1 << 20;
  const ValueId number = insert_constant(probed, site, kNoEvent);
  insert(probed, site + 1, Side::before,
         {Op::event_wait,
          {number},
          {},
          {{Key::from, pair->from}, {Key::to, pair->to}},
          {},
          at.operation->where});
  return probed;
}

}  // namespace tilewright::simulator
