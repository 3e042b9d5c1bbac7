#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "ir/program.h"
#include "simulator/faults/fault_kinds.h"

// Faults that the author of a Program may make, seeded one at a time into what it records.
namespace tilewright::simulator {

// One change to a program.
struct ProgramMutant {
  const FaultKind* kind = nullptr;
  SourceLocation where;   // of the operation that is changed
  std::size_t site = 0;   // its number
  std::string operation;  // "wait for made of rank 1 in stream pull of rank 0"
  std::string change;     // "left out"
  // The order that a wait makes may be that of other waits too.
  bool is_wait = false;
  std::function<void(ir::ProgramOperation&)> edit;
  std::ptrdiff_t before = -1;  // the operation before which it is moved. No edit either: left out

  ir::Program apply(const ir::Program& program) const;
};

// Behind those of kernels (fault_kinds.h), which have other numbers.
const std::vector<FaultKind>& program_fault_kinds();
std::vector<ProgramMutant> program_mutants(const ir::Program& program);

}  // namespace tilewright::simulator
