#include "library/program_timing.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "compiler/simulation.h"
#include "simulator/machine/streams.h"
#include "simulator/machine/trace_recorder.h"
#include "support/diagnostic.h"

namespace tilewright::library {
namespace {

// Zeros, of which the machine has only what is written.
class LazyMemory {
 public:
  explicit LazyMemory(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    void* const mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      Diagnostic({}, "no address space for " + std::to_string(bytes_) + " bytes")
          .fix("set smaller sizes")
          .raise();
    }
    first_ = static_cast<std::byte*>(mapped);
  }
  LazyMemory(LazyMemory&& other) noexcept
      : first_(std::exchange(other.first_, nullptr)), bytes_(other.bytes_) {}
  LazyMemory(const LazyMemory&) = delete;
  LazyMemory& operator=(const LazyMemory&) = delete;
  LazyMemory& operator=(LazyMemory&&) = delete;
  ~LazyMemory() {
    if (first_) munmap(first_, bytes_);
  }
  std::byte* data() const { return first_; }

 private:
  std::byte* first_ = nullptr;
  std::size_t bytes_;
};

simulator::MachineOptions by_time(simulator::MachineOptions options,
                                  simulator::TraceRecorder& recorder) {
  options.recorder = &recorder;
  options.timekeeper = &recorder;
  options.control_only = true;
  options.check_order = false;
  return options;
}

}  // namespace

PredictedTime time_program(const ir::Program& bound, const std::vector<ir::Kernel>& machine,
                           const std::vector<HostTensor>& passed,
                           const simulator::MachineOptions& options, std::int64_t runs) {
  ir::Program program = bound;
  ir::add_owned(program, machine);
  std::vector<std::vector<LazyMemory>> memory(static_cast<std::size_t>(program.ranks));
  std::size_t next = 0;
  for (std::vector<LazyMemory>& of_rank : memory) {
    for (const ir::ProgramBuffer& buffer : program.buffers) {
      of_rank.emplace_back(buffer.bytes());
      if (!buffer.is_passed() || passed.empty()) continue;
      const HostTensor& tensor = passed[next++];
      if (is_float(tensor.dtype())) continue;
      std::memcpy(of_rank.back().data(), tensor.data(), tensor.size_bytes());
    }
  }
  simulator::TraceRecorder recorder(simulator::TraceRecorder::Keeps::clocks);
  const simulator::MachineReport report = simulator::run_program(
      program, machine,
      [&](int buffer, int rank) { return memory[rank][static_cast<std::size_t>(buffer)].data(); },
      by_time(options, recorder), runs);
  PredictedTime timing;
  timing.faults = report.faults;
  const simulator::LinkTimes& links = recorder.links();
  timing.seconds = links.seconds(recorder.take().end) / static_cast<double>(runs);
  for (int rank = 0; rank < program.ranks; ++rank) {
    timing.sent = std::max(timing.sent, links.sent(rank) / runs);
  }
  timing.wire = static_cast<double>(timing.sent) / links.link().copied;
  return timing;
}

PredictedTime time_kernel(const ir::Kernel& machine, Workload& workload,
                          const simulator::MachineOptions& options) {
  simulator::TraceRecorder recorder(simulator::TraceRecorder::Keeps::clocks);
  PredictedTime timing;
  timing.faults =
      compiler::simulate(machine, workload.arguments(), by_time(options, recorder)).faults;
  const target::Device& device = target::device_of(machine.target);
  timing.seconds =
      static_cast<double>(recorder.take().end) / device.reached.product_clock + device.link.launch;
  return timing;
}

}  // namespace tilewright::library
