#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "simulator/faults/fault_kinds.h"
#include "target/verify.h"
#include "tilewright/program.h"

namespace tilewright::checks {

// A program of ranks into whose first kernel faults are seeded.
struct RanksSubject {
  RanksSubject(const Kernel& kernel, int ranks, DType dtype,
               const std::vector<std::vector<Dim>>& shapes)
      : program("faults", ranks) {
    std::vector<Part> parts;
    for (const auto& shape : shapes) {
      parts.push_back(program.buffer("t" + std::to_string(parts.size()), dtype, shape));
    }
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, parts); });
    compile();
  }
  // On devices that execute so many CTAs at a time.
  RanksSubject(const Program& recorded, DimValues sizes, int ctas)
      : program(recorded), sizes(std::move(sizes)), ctas(ctas) {
    compile();
  }
  void compile() {
    for (const auto& kernel : program.finish().kernels) {
      kernels.push_back(compiler::compile_to_machine(*kernel, ir::default_target()).kernel);
    }
  }
  const ir::Kernel& machine() const { return kernels.front(); }

  // The kind of fault that shows in one schedule of some runs; "" for none.
  std::string symptom(const ir::Kernel& mutant, std::uint64_t seed, int runs) const {
    return symptom_in(sizes, mutant, seed, runs);
  }
  std::string symptom_in(const DimValues& sizes, const ir::Kernel& mutant, std::uint64_t seed,
                         int runs) const {
    simulator::MachineOptions options;
    options.seed = seed;
    options.multiprocessors = options.resident = ctas;
    options.strict = strict;
    std::vector<ir::Kernel> changed = kernels;
    changed.front() = mutant;
    ir::Program bound = ir::bind_program(program.finish(), sizes, ctas);
    if (has_callers) bound = library::with_callers(std::move(bound));
    const simulator::MachineReport report = library::simulate_program(
        bound, changed, ProgramMemory(program, sizes).tensors, nullptr, options, runs);
    return report.ok() ? "" : report.faults[0].kind;
  }

  // Every mutant of the kind is refused, equivalent by a rule, or found as what it is in some
  // schedule.
  int expect_found(int number, int runs) const {
    const std::vector<simulator::FaultKind>& kinds = simulator::fault_kinds();
    const auto kind = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& each) { return each.number == number; });
    int found = 0;
    for (const simulator::Mutant& mutant : simulator::mutants_of(*kind, machine())) {
      SCOPED_TRACE(mutant.operation + " " + mutant.change);
      const ir::Kernel changed = mutant.apply(machine());
      try {
        target::verify(changed);
      } catch (const Error&) {
        continue;
      }
      if (!mutant.equivalent.empty()) continue;
      std::string symptom;
      for (std::uint64_t seed = 0; seed < 12 && symptom.empty(); ++seed) {
        symptom = this->symptom(changed, seed, runs);
        if (symptom.empty() && further_sizes) {
          symptom = symptom_in(*further_sizes, changed, seed, runs);
        }
      }
      EXPECT_NE(std::find(kind->classes.begin(), kind->classes.end(), symptom), kind->classes.end())
          << "found as '" << symptom << "'";
      ++found;
    }
    return found;
  }

  Program program;
  DimValues sizes;
  std::optional<DimValues> further_sizes;  // in which faults are looked for too
  int ctas = 8;
  bool has_callers = false;         // who use the results behind each run
  bool strict = false;              // also proxy fences between reads and asynchronous writes
  std::vector<ir::Kernel> kernels;  // in the order of the program's
};

}  // namespace tilewright::checks
