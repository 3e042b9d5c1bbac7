#pragma once

#include <functional>
#include <optional>
#include <string>

#include "codegen/cuda/cuda_printer.h"
#include "ir/ir.h"
#include "runtime/cuda_api.h"
#include "runtime/device.h"

namespace tilewright::compiler {

// How long a wait may last before it is reported, in seconds, by TILEWRIGHT_WATCH; nothing where
// that is not set. Raises a usage error where it is no such time.
std::optional<double> watch_seconds();

// Who writes a parameter's words, beside the kernel itself: as lines of text, each after a line
// break.
using WordWriters = std::function<std::string(const std::string& parameter)>;

// What the waits of a kernel that stands still have reported: which wait for what, and who writes
// it. Empty where none has.
std::string standstill(const codegen::WatchReport& report, const ir::Kernel& machine, int rank,
                       const WordWriters& writers);

// Where the waits of a kernel on a device report themselves, as CheckReports has it of checks. What
// is raised says what those of all kernels of the process have reported: a rank may wait for one
// that stands still itself.
class WatchReports {
 public:
  // The kernel must outlive it.
  WatchReports(const runtime::Device& device, const ir::Kernel& machine, double seconds);
  ~WatchReports();
  WatchReports(const WatchReports&) = delete;
  WatchReports& operator=(const WatchReports&) = delete;

  // For the launch.
  codegen::WatchReport* address() const;
  // What is said of the kernel: -1 where it is of no rank.
  void describe(int rank, WordWriters writers) {
    rank_ = rank;
    writers_ = std::move(writers);
  }

 private:
  std::string text() const { return standstill(*address(), machine_, rank_, writers_); }
  void raise() const;

  const ir::Kernel& machine_;
  const runtime::PinnedBuffer memory_;
  int rank_ = -1;
  WordWriters writers_;
  const runtime::FaultReporter reporter_;
};

}  // namespace tilewright::compiler
