#pragma once

#include <string>

#include "codegen/cuda/cuda_printer.h"
#include "ir/ir.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"
#include "tilewright/error.h"

namespace tilewright::compiler {

// "producer warp 0 of CTA 3".
std::string warp_text(std::int64_t cta, std::int64_t warp, const ir::Kernel& machine);

// What the check of a kernel of the machine form has reported, as the virtual GPU says it, and
// where that is.
struct FailedCheck {
  SourceLocation where;
  std::string message;
  bool exists = true;  // the kernel has such a check
};
FailedCheck failed_check(const codegen::CheckReport& report, const ir::Kernel& machine);

// Where the checks of a kernel on a device report. A trap, which ends the kernel, leaves the memory
// of the device to nobody: so this is memory of the host.
class CheckReports {
 public:
  // The kernel must outlive it.
  CheckReports(const runtime::Device& device, const ir::Kernel& machine);

  // For the launch.
  codegen::CheckReport* address() const;

 private:
  void raise() const;

  const ir::Kernel& machine_;
  const runtime::PinnedBuffer memory_;
  const runtime::FaultReporter reporter_;
};

}  // namespace tilewright::compiler
