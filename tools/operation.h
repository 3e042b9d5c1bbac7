#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "library/kernel_source.h"
#include "library/program_simulation.h"

// The operations of the library that are programs.
namespace tilewright::tools {

// One at one choice of sizes.
struct OperationCut {
  library::ProgramWorkload made;
  // What its buffers hold before it runs, where `made` has zeros since that takes time to make.
  std::function<library::ProgramTensors()> valued = {};
  simulator::MachineOptions options;
  std::string sizes;         // empty: as the command says
  bool one_cluster = false;  // at a time executes each launch
  bool further = false;      // for what the others do not come to
};

struct Operation {
  ir::Program recorded;
  // Of its kernels, in their order: all that may ship. On cuda the one that does.
  std::vector<std::vector<ir::Kernel>> forms;
  std::vector<OperationCut> cuts;
  // Of OperationSizes::further: what else there is, shortest first.
  std::vector<std::pair<std::string, std::function<OperationCut()>>> candidates;
};

enum class OperationSizes : std::uint8_t {
  set,       // as the command says
  shrunken,  // where it leaves them open
  further,   // and more, for what those do not come to; inputs are made when they are asked for
};
Operation operation_of(const Request& request, const library::KernelSource& source,
                       const compiler::Target& target, OperationSizes sizes);
// Of the sizes that the command and the entry's options give.
OperationCut operation_cut(const Request& request, const LibraryKernel& entry,
                           const ir::Program& recorded, const std::vector<std::string>& sizes,
                           std::int64_t multiprocessors,
                           library::Drawn drawn = library::Drawn::normal);

// How a request has programs executed.
simulator::MachineOptions program_machine_options(const Request& request);

}  // namespace tilewright::tools
