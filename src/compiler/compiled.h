#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/build.h"
#include "compiler/check_report.h"
#include "compiler/launch_plan.h"
#include "compiler/watch_report.h"
#include "runtime/device.h"
#include "runtime/module.h"
#include "support/arguments.h"
#include "tilewright/tensor_ref.h"

namespace tilewright::compiler {

// A kernel built and loaded on one device. It may be launched from several threads at once.
class CompiledKernel {
 public:
  CompiledKernel(GpuProgram program, runtime::Build build, const runtime::Device& device);
  ~CompiledKernel();
  CompiledKernel(const CompiledKernel&) = delete;

  const runtime::Device& device() const { return device_; }
  const runtime::Build& build() const { return build_; }

  // Queues one launch; of a checked kernel it ends with it, but in a capture, so that its checks
  // speak. A launch with the addresses, sizes and strides of an earlier one costs a
  // lookup beside the driver's own launch.
  void launch(const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
              const std::vector<double>& scalars) const;
  // All of a launch but the launch: what it needs for the first time is then there.
  void prepare(const runtime::Stream& stream, const std::vector<TensorRef>& tensors,
               const std::vector<double>& scalars) const;
  // One launch on a rank, with all that the kernel takes: also workspaces, signals and the epoch.
  void launch(const runtime::Stream& stream, const Arguments& arguments) const;
  // Such a launch with all in place but its epoch. Raises what it would raise before anything is
  // queued.
  struct Ready {
    LaunchPlan plan;
    std::vector<void*> parameters;  // of the plan
  };
  Ready ready(const Arguments& arguments) const;
  void launch(const runtime::Stream& stream, Ready& ready, std::int32_t epoch) const;
  // The same of a kernel that was built with epoch_words, which is not waited for.
  void launch(const runtime::Stream& stream, Ready& ready, const std::int32_t* epoch) const;
  // What is said of its waits where they are watched.
  void describe_waits(int rank, WordWriters writers) const;

 private:
  LaunchPlan plan(const Arguments& arguments) const;
  void finish_checked(const runtime::Stream& stream) const;
  struct Prepared;
  std::shared_ptr<const Prepared> prepared(const runtime::Stream& stream,
                                           const std::vector<TensorRef>& tensors,
                                           const std::vector<double>& scalars) const;
  // Zeros for the kernel's workspaces and signals, apart for every stream.
  const runtime::DeviceBuffer& workspace(const runtime::Stream& stream, std::size_t bytes) const;

  const GpuProgram program_;
  const runtime::Build build_;
  const runtime::Device& device_;
  runtime::LoadedKernel kernel_;
  const std::unique_ptr<const CheckReports> reports_;  // null: it has no checks
  const std::unique_ptr<WatchReports> watch_;          // null: its waits are not watched
  mutable std::mutex mutex_;
  mutable std::unordered_map<CUstream_st*, runtime::DeviceBuffer> workspaces_;
  mutable std::unordered_map<CUstream_st*, std::int32_t> epochs_;  // of the last launch
  mutable std::unordered_map<std::uint64_t, std::shared_ptr<const Prepared>> prepared_;
};

// Lowers, prints and builds a traced kernel, and loads it on the device, whose architecture it is
// built for.
std::unique_ptr<CompiledKernel> compile_for_device(const ir::Kernel& traced,
                                                   const runtime::Device& device,
                                                   const BuildOptions& options = {});

// Names, default strides and checked ranks for what a launch was given.
Arguments make_arguments(const ir::Kernel& kernel, const std::vector<TensorRef>& tensors,
                         const std::vector<double>& scalars);

}  // namespace tilewright::compiler
