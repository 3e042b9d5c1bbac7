#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "simulator/faults/fault_kinds.h"

// Faults that the author of a Program may make, seeded one at a time into what it records.
namespace tilewright::simulator {

// The program of a run, once the recorded one was changed.
using Rebind = std::function<ir::Program(const std::function<void(ir::Program& recorded)>& change)>;

// One change to a program.
struct ProgramMutant {
  const FaultKind* kind = nullptr;
  SourceLocation where;  // of the operation that is changed
  std::size_t site = 0;  // its number
  // The operation is one of the recorded program, which a run may do several times.
  bool is_recorded = false;
  std::string operation;  // "wait for made of rank 1 in stream pull of rank 0"
  std::string change;     // "left out"
  // The order that a wait makes may be that of other waits too.
  bool is_wait = false;
  std::function<void(ir::ProgramOperation&)> edit;
  // Of what is recorded, which says what runs do: `site` is the number of the read, or scope.
  std::function<void(ir::Program& recorded)> record;
  std::ptrdiff_t before = -1;  // the operation before which it is moved. No edit either: left out

  // A wait that is then over too early, for a word of which streams alone write numbers that grow.
  bool waits_for_less = false;

  // The same operation, left out.
  ProgramMutant left_out() const;
  bool is_of_recorded() const { return is_recorded || record; }
  // `rebind` is for changes of what is recorded: it raises where the run is refused then.
  ir::Program apply(const ir::Program& program, const Rebind& rebind = {}) const;

 private:
  void apply_to(ir::Program& program) const;
};

// Behind those of kernels (fault_kinds.h), which have other numbers.
const std::vector<FaultKind>& program_fault_kinds();
// Of a bound program. Where what was recorded says what runs do, of that instead, and of what it
// reads, repeats and chooses.
std::vector<ProgramMutant> program_mutants(const ir::Program& program,
                                           const ir::Program& recorded = {});

}  // namespace tilewright::simulator
