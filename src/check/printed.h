#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/cuda/cuda_printer.h"
#include "ir/ir.h"
#include "ir/program.h"
#include "ptx/launch.h"
#include "ptx/module.h"
#include "support/arguments.h"
#include "tilewright/host_tensor.h"

// Whether the printed kernel does what its machine form does: the PTX that NVRTC makes of the text
// is executed beside the machine form, on the same tensors.
namespace tilewright::checks {

struct PrintedOptions {
  std::uint64_t seed = 0;  // of the schedule of the virtual GPU
  std::int64_t multiprocessors = 1;
  // Also with bulk copies that end as late as they may; else they end at once.
  bool late = true;
  // Also races of the PTX's warps in shared memory; takes four times as long. The machine form's
  // are found on the virtual GPU.
  bool check_order = false;
};

// Where the two differ; no kind: nowhere.
struct PrintedDifference {
  // fault (of the PTX's execution), machine (of the virtual GPU), result, order
  std::string kind;
  int line = 0;  // of the PTX
  std::string message;
  bool none() const { return kind.empty(); }
};

// Executes both and compares each element that the kernel writes, bit by bit, and each warp's
// synchronising instructions: their order, their constants, and how many lanes execute them. The
// tensors hold the PTX's results afterwards. `parameters` are those that the text was printed with.
// Raises a usage error for PTX that is not understood. Kernels of several ranks are refused.
PrintedDifference compare_printed(const ir::Kernel& machine,
                                  const std::vector<codegen::LaunchParameter>& parameters,
                                  const ptx::Module& module, const Arguments& arguments,
                                  const PrintedOptions& options);

// The same of each launch of a program of one rank, one after the other, for what the buffers hold
// then; `before` has those that callers pass, and is what the PTX leaves afterwards. The program is
// bound, and `machine` has its kernels' machine forms.
PrintedDifference compare_printed(const ir::Program& program,
                                  const std::vector<ir::Kernel>& machine,
                                  std::vector<HostTensor>& before, const PrintedOptions& options);

// The PTX that NVRTC makes of the printed kernel.
codegen::CudaSource printed_source(const ir::Kernel& machine);
ptx::Module printed_ptx(const ir::Kernel& machine, const codegen::CudaSource& source);
std::string printed_ptx_text(const ir::Kernel& machine, const codegen::CudaSource& source);

}  // namespace tilewright::checks
