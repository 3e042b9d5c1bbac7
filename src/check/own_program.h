#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check/fault_proof.h"
#include "check/program_proof.h"
#include "ir/program.h"
#include "library/program_simulation.h"
#include "simulator/machine/machine.h"

namespace tilewright::checks {

// The case's program, or a change of it, as it is executed.
ir::Program executed(const ProgramCase& of, ir::Program program);
bool draws_conditions(const std::vector<ir::Kernel>& kernels);
// Numbers of the cases: whose tensors are smallest comes first.
std::vector<std::size_t> cheapest_first(const std::vector<ProgramCase>& cases);

// What a program does without a change, in each of its cases, once it is asked for: all mutants
// share it. Where the program has a fault, OwnFault is raised.
class OwnProgram {
 public:
  OwnProgram(const std::vector<ProgramCase>& cases, const std::vector<ir::Kernel>& kernels,
             const ProofOptions& options);

  const ir::Program& program(std::size_t number) const { return programs_[number]; }
  const library::ProgramTensors& before(std::size_t number, bool values) const;
  // How many it executes, of warps.
  std::int64_t operations(std::size_t number) const;
  const library::ProgramTensors& wanted(std::size_t number) const;
  // Whether warps come to an operation of a kernel, by its number there, parents first. Nothing is
  // known of what is no instruction, and where conditions are drawn.
  std::optional<bool> comes_to(std::size_t number, std::size_t kernel, std::size_t site) const;
  // Whether somebody may read, or add to, the zeros that are put into this buffer of this rank
  // before they are written over.
  bool reads_zeros(std::size_t number, int buffer, int rank) const;
  struct Unusual {
    std::string how;
    library::ProgramTensors before, wanted;
  };
  // Inputs that are not drawn as usual, but for those on which another order of the work alone
  // makes the program itself differ.
  const std::vector<Unusual>& unusual(std::size_t number) const;

  // How a mutant is run without checks of order.
  simulator::MachineOptions without_order(std::size_t number) const;
  // With values of each case, where something depends on the order of the work. Several sizes make
  // up for several schedules of one.
  std::int64_t schedules() const { return cases_.size() == 1 ? options_.schedules : 1; }

 private:
  // `after` gets the values.
  simulator::MachineReport run(std::size_t number, std::uint64_t seed,
                               library::ProgramTensors* after,
                               simulator::Recorder* recorder = nullptr) const;
  void order(std::size_t number) const;

  const std::vector<ProgramCase>& cases_;
  const std::vector<ir::Kernel>& kernels_;
  const ProofOptions& options_;
  std::vector<ir::Program> programs_;
  struct Known {
    std::once_flag ordered, drawn, valued, unusually, zeroed;
    std::int64_t operations = 0;
    // Of each kernel and each of its operations: whether it is an instruction, whether warps come
    // to it.
    std::vector<std::vector<bool>> executable, executed;
    library::ProgramTensors before, wanted;
    std::vector<Unusual> unusual;
    // Of a schedule that stands for all of them; none is found: any may be read.
    std::optional<std::set<std::pair<int, int>>> zeros_read;
  };
  mutable std::vector<Known> known_;
};

}  // namespace tilewright::checks
