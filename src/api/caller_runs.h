#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "compiler/compiled.h"
#include "compiler/target.h"
#include "cpu/compiled.h"
#include "ir/program.h"
#include "runtime/device.h"
#include "simulator/machine/machine.h"
#include "tilewright/compile.h"

// A program as an operation on the tensors of a caller: of one rank and one stream, or on the host
// of several ranks, with all tensors of the first, then all of the second, and so on.
namespace tilewright {

class CallerRuns {
 public:
  // `kernels` and `device`: for cuda those of the program, which outlive this. Raises a usage error
  // for a program that no caller's tensors fit, such as one of several ranks on GPUs.
  CallerRuns(const ir::Program& program, const compiler::Target& target,
             const compiler::MachineOptions& options, const simulator::MachineOptions& simulated,
             std::vector<const compiler::CompiledKernel*> kernels, const runtime::Device* device);
  ~CallerRuns();

  void run(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
           void* stream) const;
  // On cuda all of it but the work.
  void prepare(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars,
               void* stream) const;

 private:
  struct Prepared;
  struct ScratchPlaces;
  ScratchPlaces places_of_scratch(const ir::Program& program) const;
  ir::Program bound(const Arguments& arguments, std::int64_t multiprocessors,
                    const ir::ReadBuffer& contents) const;
  // What those hold that the program reads elements of, on the host.
  using ReadBuffers = std::map<int, std::vector<std::byte>>;
  ReadBuffers read_buffers(const runtime::Stream& stream, const Arguments& arguments) const;
  void run_on_host(const std::vector<TensorRef>& tensors, const std::vector<double>& scalars) const;
  const cpu::CompiledKernel& native(const ir::Kernel& kernel) const;
  // Both with the mutex held.
  std::shared_ptr<const Prepared> prepared(const runtime::Stream& stream,
                                           const std::vector<TensorRef>& tensors,
                                           const std::vector<double>& scalars) const;
  std::byte* scratch(const runtime::Stream& stream, std::size_t bytes) const;

  const ir::Program program_;
  const ir::Kernel signature_;
  const compiler::Target target_;
  const compiler::MachineOptions options_;
  const simulator::MachineOptions simulated_;
  std::vector<std::vector<ir::Kernel>> forms_;                      // on the simulated GPU
  std::vector<const compiler::CompiledKernel*> compiled_;           // on cuda
  const runtime::Device* const device_;                             // on cuda
  std::vector<std::shared_ptr<const cpu::CompiledKernel>> native_;  // on cpu
  std::vector<bool> is_scratch_;  // of each buffer: this class allocates it
  // Runs are queued one after the other, so that two of one stream never mix in its scratch.
  mutable std::mutex mutex_;
  // By size. They stay: a captured graph holds their addresses.
  mutable std::unordered_map<CUstream_st*, std::map<std::size_t, runtime::DeviceBuffer>> scratch_;
  mutable std::unordered_map<std::uint64_t, std::shared_ptr<const Prepared>> prepared_;
};

}  // namespace tilewright
