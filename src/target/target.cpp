#include "target/target.h"

#include <algorithm>
#include <memory>

#include "support/diagnostic.h"
#include "target/cpu.h"
#include "target/incore.h"
#include "target/sm_100a.h"
#include "target/sm_90a.h"

namespace tilewright::target {
namespace {

using ir::Memory;

std::vector<std::unique_ptr<const Target>>& records() {
  static std::vector<std::unique_ptr<const Target>> all = [] {
    std::vector<std::unique_ptr<const Target>> first;
    for (Target record :
         {sm_90a(), sm_100a(), sm_110a(), incore(), incore_unified(), incore_partitions()}) {
      first.push_back(std::make_unique<const Target>(std::move(record)));
    }
    return first;
  }();
  return all;
}

}  // namespace

bool Target::has(const ir::OpInfo& operation) const {
  const auto is_lacked = [&](ir::Op op) { return &ir::info(op) == &operation; };
  return std::find(operations.begin(), operations.end(), operation.family) != operations.end() &&
         std::none_of(without.begin(), without.end(), is_lacked);
}

bool Target::has(Move move) const {
  return std::find(moves.begin(), moves.end(), move) != moves.end();
}

std::optional<Move> Target::missing_move(const ir::OpInfo& operation) const {
  constexpr Memory kMemories[] = {Memory::global, Memory::shared, Memory::registers,
                                  Memory::tensor};
  const auto has_tile = [](const auto& kinds) {
    return std::any_of(kinds.begin(), kinds.end(), [](const ir::OperandKind& each) {
      return each.kind == ir::OperandKind::Kind::tile;
    });
  };
  // A tile of the scheduled form is in registers.
  const auto from = [&](Memory memory) {
    return operation.reads(memory) || (memory == Memory::registers && has_tile(operation.operands));
  };
  const auto to = [&](Memory memory) {
    return operation.writes(memory) || (memory == Memory::registers && has_tile(operation.results));
  };
  for (const Memory source : kMemories) {
    for (const Memory destination : kMemories) {
      const Move move{source, destination};
      if (source != destination && from(source) && to(destination) && !has(move)) return move;
    }
  }
  return std::nullopt;
}

const Space& Target::space(ir::Memory memory) const {
  for (const Space& space : spaces) {
    if (space.memory == memory) return space;
  }
  static const Space none;
  return none;
}

const Unit& Target::unit_of(ir::Family family) const {
  static const Unit none;
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) {
    return std::find(unit.families.begin(), unit.families.end(), family) != unit.families.end();
  });
  return found == units.end() ? none : *found;
}

const Unit& Target::unit_of(const ir::Operation& instruction) const {
  if (instruction.attributes.has(ir::Key::unit)) {
    const std::string& name = instruction.attributes.text(ir::Key::unit);
    for (const Unit& unit : units) {
      if (unit.name == name) return unit;
    }
  }
  const bool combines = instruction.attributes.has(ir::Key::function) &&
                        ir::info(instruction.op).family == ir::Family::computation;
  const ir::OpInfo& record =
      ir::info(combines ? instruction.attributes.function() : instruction.op);
  const auto found = std::find_if(units.begin(), units.end(), [&](const Unit& unit) {
    return record.elementwise() &&
           std::find(unit.pipes.begin(), unit.pipes.end(), record.pipe) != unit.pipes.end();
  });
  return found == units.end() ? unit_of(record.family) : *found;
}

bool Target::multiplies(DType operand) const {
  return std::find(product_dtypes.begin(), product_dtypes.end(), operand) != product_dtypes.end();
}

std::string Target::product_dtype_list() const {
  std::string list;
  for (std::size_t i = 0; i < product_dtypes.size(); ++i) {
    if (i != 0) list += i + 1 == product_dtypes.size() ? " or " : ", ";
    list += name_of(product_dtypes[i]);
  }
  return list;
}

AddedTarget::AddedTarget(Target target) : name_(target.name) {
  records().push_back(std::make_unique<const Target>(std::move(target)));
}

AddedTarget::~AddedTarget() {
  auto& all = records();
  all.erase(std::remove_if(all.begin(), all.end(),
                           [this](const auto& record) { return record->name == name_; }),
            all.end());
}

std::vector<const Target*> targets() {
  std::vector<const Target*> all;
  for (const auto& record : records()) all.push_back(record.get());
  return all;
}

const Target& find_target(std::string_view name, SourceLocation where) {
  static const Target host = cpu();
  if (name == host.name) return host;
  std::string known;
  for (const auto& record : records()) {
    if (record->name == name) return *record;
    known += (known.empty() ? "" : ", ") + record->name;
  }
  Diagnostic(where, "there is no target '" + std::string(name) + "'")
      .token(std::string(name))
      .fix("use one of: " + known)
      .raise();
}

bool takes_kernels(std::string_view target, std::string_view written_for) {
  if (target == written_for) return true;
  const auto& all = records();
  return std::any_of(all.begin(), all.end(), [&](const auto& record) {
    return record->name == target && record->takes_kernels_of == written_for;
  });
}

const Target& target_of(const ir::Kernel& kernel) {
  return find_target(kernel.target, kernel.where);
}

std::int64_t resident_ctas(const ir::Kernel& machine) {
  const TargetLimits& limits = target_of(machine).limits;
  const std::int64_t threads = std::max(machine.threads, limits.lanes);
  const std::int64_t registers = std::min<std::int64_t>(
      limits.thread_registers, launch_registers(limits, machine.resident * threads));
  const std::int64_t by_registers = limits.registers / (registers * threads);
  const std::int64_t by_shared =
      limits.multiprocessor_shared_bytes / (machine.shared_bytes + limits.reserved_shared_bytes);
  const std::int64_t by_threads = limits.multiprocessor_threads / threads;
  return std::max<std::int64_t>(1, std::min({by_registers, by_shared, by_threads}));
}

}  // namespace tilewright::target

namespace tilewright {

const TargetLimits& target_limits(std::string_view target, SourceLocation where) {
  return target::find_target(target, where).limits;
}

int launch_registers(const TargetLimits& limits, std::int64_t threads) {
  const std::int64_t share =
      limits.registers / std::max<std::int64_t>(threads, 1) / limits.register_unit;
  return static_cast<int>(std::min(share * limits.register_unit, limits.most_role_registers));
}

RoleRegisters role_registers(const TargetLimits& limits, std::int64_t computing_groups,
                             std::int64_t ctas) {
  const std::int64_t groups = std::max<std::int64_t>(computing_groups, ctas == 1 ? 2 : 1);
  const std::int64_t all =
      (groups + 1) * launch_registers(limits, ctas * (groups + 1) * limits.group_threads());
  // Where results have a memory of their own, what loads gets some of the registers: ptxas for
  // sm_100a keeps more of its numbers there, and spilled with 24.
  const std::int64_t least =
      limits.tensor_columns > 0 ? 4 * limits.register_unit : limits.least_role_registers;
  const std::int64_t computing =
      (all - least) / groups / limits.register_unit * limits.register_unit;
  return {static_cast<int>(all - groups * computing), static_cast<int>(computing)};
}

}  // namespace tilewright
