#include "simulator/faults/program_faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "ir/memory_order.h"
#include "support/same_line.h"

namespace tilewright::simulator {
namespace {

using ir::ProgramOperation;
using Kind = ProgramOperation::Kind;

enum KindNumber : std::size_t {
  kEventWait,
  kWordWait,
  kEarlyWrite,
  kNoReset,
  kSameWord,
  kNotZero,
  kRead,
  kRepeat,
  kWhen
};

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

// Whether all that is done to the buffer is that streams write words, which grow with the runs.
bool counts_up(const ir::Program& program, int buffer) {
  const auto is_it = [&](const ir::ProgramPart& part) { return part.buffer == buffer; };
  return std::all_of(program.operations.begin(), program.operations.end(),
                     [&](const ProgramOperation& each) {
                       if (std::any_of(each.tensors.begin(), each.tensors.end(), is_it))
                         return false;
                       switch (each.kind) {
                         case Kind::write:
                           return !is_it(each.to) || each.value.per_run > 0;
                         case Kind::copy:
                         case Kind::zero:
                           return !is_it(each.to);
                         case Kind::launch:
                         case Kind::wait:
                         case Kind::record:
                         case Kind::wait_event:
                           break;
                       }
                       return true;
                     });
}

// At the edge, and the other way round.
std::vector<Compare> other_comparisons(Compare compare) {
  switch (compare) {
    case Compare::eq:
      return {Compare::ne};
    case Compare::ne:
      return {Compare::eq};
    case Compare::lt:
      return {Compare::le, Compare::ge};
    case Compare::le:
      return {Compare::lt, Compare::gt};
    case Compare::gt:
      return {Compare::ge, Compare::le};
    case Compare::ge:
      break;
  }
  return {Compare::gt, Compare::lt};
}
Compare inverse_of(Compare compare) { return other_comparisons(compare).back(); }

}  // namespace

ir::Program ProgramMutant::apply(const ir::Program& program, const Rebind& rebind) const {
  if (record) return rebind(record);
  if (is_recorded) return rebind([this](ir::Program& recorded) { apply_to(recorded); });
  ir::Program changed = program;
  apply_to(changed);
  return changed;
}

ProgramMutant ProgramMutant::left_out() const {
  ProgramMutant without = *this;
  without.edit = nullptr;
  without.before = -1;
  without.waits_for_less = false;
  return without;
}

void ProgramMutant::apply_to(ir::Program& changed) const {
  const auto at = changed.operations.begin() + static_cast<std::ptrdiff_t>(site);
  if (edit) {
    edit(*at);
  } else if (before >= 0) {
    std::rotate(changed.operations.begin() + before, at, at + 1);
  } else {
    changed.operations.erase(at);
  }
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
      {58,
       "a neighbour of an element that the program reads",
       {"out_of_bounds", "mismatch", "race"},
       nullptr,
       "the program reads no elements"},
      {59,
       "a repeat once too often, or once too little",
       {"out_of_bounds", "mismatch", "race"},
       nullptr,
       "the program repeats nothing"},
      {60,
       "a condition of the program that holds elsewhere",
       {"out_of_bounds", "mismatch", "race"},
       nullptr,
       "the program has no conditions"},
  };
  return kinds;
}

namespace {

std::vector<ProgramMutant> operation_mutants(const ir::Program& program) {
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
      mutant.waits_for_less = waits && operation.compare == Compare::ge &&
                              operation.value.per_run > 0 &&
                              counts_up(program, operation.to.buffer);
      mutant.edit = [](ProgramOperation& changed) { changed.value = changed.value.at(1); };
    }
  }
  return mutants;
}

// Of a condition what is done otherwise; none: -1.
std::ptrdiff_t otherwise_of(const std::vector<ir::ProgramScope>& scopes, std::size_t when) {
  const ir::ProgramScope& scope = scopes[when];
  for (std::size_t i = when + 1; i < scopes.size(); ++i) {
    const ir::ProgramScope& other = scopes[i];
    if (other.kind != scope.kind || other.parent != scope.parent) continue;
    const bool is_it = same_line(other.where, scope.where) && other.left == scope.left &&
                       other.right == scope.right && other.compare == inverse_of(scope.compare);
    return is_it ? static_cast<std::ptrdiff_t>(i) : -1;
  }
  return -1;
}

void add_recorded(const ir::Program& recorded, std::vector<ProgramMutant>& mutants) {
  const std::vector<FaultKind>& kinds = program_fault_kinds();
  const auto add = [&](KindNumber kind, std::size_t site, SourceLocation where,
                       std::string operation, std::string change,
                       std::function<void(ir::Program&)> record) {
    ProgramMutant& mutant = mutants.emplace_back();
    mutant.kind = &kinds[kind];
    mutant.where = where;
    mutant.site = site;
    mutant.operation = std::move(operation);
    mutant.change = std::move(change);
    mutant.record = std::move(record);
  };
  for (std::size_t i = 0; i < recorded.reads.size(); ++i) {
    const ir::ProgramRead& read = recorded.reads[i];
    const std::string text = "read of " + read.name;
    const Dim extent = recorded.buffers[read.buffer].shape.back();
    for (const int by : {1, -1}) {
      add(kRead, i, read.where, text, by > 0 ? "of the next element" : "of the one before",
          [i, by](ir::Program& changed) {
            Dim& last = changed.reads[i].element.back();
            last = last + by;
          });
    }
    // Where there is one: a bound does not show it.
    if (extent.is_constant() && extent.constant() < 2) continue;
    add(kRead, i, read.where, text, "of the next element, or the last one",
        [i, extent](ir::Program& changed) {
          Dim& last = changed.reads[i].element.back();
          last = min(last + 1, extent - 1);
        });
  }
  std::vector<bool> is_otherwise(recorded.scopes.size());
  for (std::size_t i = 0; i < recorded.scopes.size(); ++i) {
    const ir::ProgramScope& scope = recorded.scopes[i];
    if (scope.kind == ir::ProgramScope::Kind::repeat) {
      const std::string text = "repeat of " + scope.turn;
      add(kRepeat, i, scope.where, text, "once more",
          [i](ir::Program& changed) { changed.scopes[i].count = changed.scopes[i].count + 1; });
      add(kRepeat, i, scope.where, text, "once less", [i](ir::Program& changed) {
        changed.scopes[i].count = max(changed.scopes[i].count - 1, 0);
      });
      continue;
    }
    if (is_otherwise[i]) continue;
    const std::ptrdiff_t otherwise = otherwise_of(recorded.scopes, i);
    if (otherwise >= 0) is_otherwise[static_cast<std::size_t>(otherwise)] = true;
    for (const Compare other : other_comparisons(scope.compare)) {
      add(kWhen, i, scope.where,
          fmt::format("when {} {} {}", scope.left.to_string(), ir::name_of(scope.compare),
                      scope.right.to_string()),
          fmt::format("where it is {}", ir::name_of(other)),
          [i, otherwise, other](ir::Program& changed) {
            changed.scopes[i].compare = other;
            if (otherwise < 0) return;
            changed.scopes[static_cast<std::size_t>(otherwise)].compare = inverse_of(other);
          });
    }
  }
}

}  // namespace

std::vector<ProgramMutant> program_mutants(const ir::Program& program,
                                           const ir::Program& recorded) {
  if (recorded.scopes.empty() && recorded.reads.empty()) return operation_mutants(program);
  std::vector<ProgramMutant> mutants = operation_mutants(recorded);
  for (ProgramMutant& mutant : mutants) mutant.is_recorded = true;
  add_recorded(recorded, mutants);
  return mutants;
}

}  // namespace tilewright::simulator
