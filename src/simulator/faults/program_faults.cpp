#include "simulator/faults/program_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

namespace tilewright::simulator {
namespace {

using ir::ProgramOperation;
using Kind = ProgramOperation::Kind;

enum KindNumber : std::size_t { kEventWait, kWordWait, kEarlyWrite, kNoReset, kSameWord, kNotZero };

std::string describe(const ir::Program& program, const ProgramOperation& operation) {
  const std::string stream = " in " + name_of(program, program.streams[operation.stream]);
  if (operation.kind == Kind::wait_event) {
    return fmt::format("wait for event {}{}", operation.event, stream);
  }
  const std::string to = name_of(program, operation.to.buffer, operation.to.rank);
  if (operation.kind == Kind::zero) return fmt::format("zeros of {}{}", to, stream);
  return fmt::format("{} {}[{}]{}", operation.kind == Kind::wait ? "wait for" : "write of", to,
                     ir::constant(operation.to.starts.front()), stream);
}

// The operation before it in its stream that a word may announce, behind no wait: -1: none.
std::ptrdiff_t announced_by(const ir::Program& program, std::size_t write) {
  for (std::size_t i = write; i-- > 0;) {
    const ProgramOperation& before = program.operations[i];
    if (before.stream != program.operations[write].stream) continue;
    if (before.kind == Kind::launch || before.kind == Kind::copy) {
      return static_cast<std::ptrdiff_t>(i);
    }
    if (before.kind != Kind::write) return -1;
  }
  return -1;
}

}  // namespace

ir::Program ProgramMutant::apply(const ir::Program& program) const {
  ir::Program changed = program;
  const auto at = changed.operations.begin() + static_cast<std::ptrdiff_t>(site);
  if (edit) {
    edit(*at);
  } else if (before >= 0) {
    std::rotate(changed.operations.begin() + before, at, at + 1);
  } else {
    changed.operations.erase(at);
  }
  return changed;
}

const std::vector<FaultKind>& program_fault_kinds() {
  static const std::vector<FaultKind> kinds = {
      {26, "an event that is not waited for", {"race", "mismatch"}, nullptr, "no waits for events"},
      {27, "a word that is not waited for", {"race", "mismatch"}, nullptr, "no waits for words"},
      {28,
       "a word that announces what follows it",
       {"race", "mismatch"},
       nullptr,
       "no word is written behind a launch or a copy"},
      {29,
       "a word that is not written, or not reset",
       {"deadlock", "race", "mismatch"},
       nullptr,
       "no words are written"},
      {30,
       "a word that does not count up with the runs",
       {"deadlock", "race", "mismatch"},
       nullptr,
       "no words count up with the runs"},
      {31, "memory that is not set to zero", {"mismatch"}, nullptr, "nothing is set to zero"},
  };
  return kinds;
}

std::vector<ProgramMutant> program_mutants(const ir::Program& program) {
  const std::vector<FaultKind>& kinds = program_fault_kinds();
  std::vector<ProgramMutant> mutants;
  for (std::size_t i = 0; i < program.operations.size(); ++i) {
    const ProgramOperation& operation = program.operations[i];
    const auto add = [&](KindNumber kind, std::string change) -> ProgramMutant& {
      ProgramMutant& mutant = mutants.emplace_back();
      mutant.kind = &kinds[kind];
      mutant.where = operation.where;
      mutant.site = i;
      mutant.operation = describe(program, operation);
      mutant.change = std::move(change);
      return mutant;
    };
    const bool waits = operation.kind == Kind::wait;
    if (operation.kind == Kind::wait_event) add(kEventWait, "left out").is_wait = true;
    if (operation.kind == Kind::zero) add(kNotZero, "left out");
    if (waits) add(kWordWait, "left out").is_wait = true;
    if (operation.kind == Kind::write) {
      add(kNoReset, "left out");
      if (const std::ptrdiff_t before = announced_by(program, i); before >= 0) {
        add(kEarlyWrite, "moved before the launch or copy that it announces").before = before;
      }
    }
    if ((waits || operation.kind == Kind::write) && operation.value.per_run != 0) {
      ProgramMutant& mutant = add(kSameWord, fmt::format("{} in every run", operation.value.at(1)));
      mutant.is_wait = waits;
      mutant.edit = [](ProgramOperation& changed) { changed.value = changed.value.at(1); };
    }
  }
  return mutants;
}

}  // namespace tilewright::simulator
