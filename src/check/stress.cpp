#include "check/stress.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "check/shrunken_sizes.h"
#include "codegen/cuda/delays.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "compiler/launch_plan.h"
#include "compiler/simulation.h"
#include "support/diagnostic.h"
#include "target/verify.h"

namespace tilewright::checks {
namespace {

compiler::GpuProgram plain(const ir::Kernel& machine) {
  return {machine, codegen::print_cuda(machine)};
}
compiler::GpuProgram delayed(const ir::Kernel& machine, std::uint64_t seed) {
  return {machine, codegen::print_cuda_with_delays(machine, seed)};
}

// Calls `late` from a thread of its own when something that is watched takes too long.
class Watchdog {
 public:
  Watchdog(std::chrono::milliseconds patience, std::function<void()> late)
      : patience_(patience), late_(std::move(late)), thread_([this] { watch(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Watchdog(const Watchdog&) = delete;

  void start() { set(true); }
  void stop() { set(false); }

 private:
  void set(bool watched) {
    const std::lock_guard lock(mutex_);
    watched_ = watched;
    ++number_;
    changed_.notify_all();
  }
  void watch() {
    std::unique_lock lock(mutex_);
    while (!ends_) {
      if (!watched_) {
        changed_.wait(lock);
        continue;
      }
      const std::int64_t number = number_;
      const auto over = [&] { return ends_ || number_ != number; };
      if (!changed_.wait_for(lock, patience_, over)) {
        watched_ = false;
        late_();
      }
    }
  }

  const std::chrono::milliseconds patience_;
  const std::function<void()> late_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool watched_ = false, ends_ = false;
  std::int64_t number_ = 0;
  std::thread thread_;
};

// One build of a kernel, launched with a grid for any number of multiprocessors.
class Subject {
 public:
  Subject(compiler::GpuProgram program, const runtime::Device& device,
          const runtime::Stream& stream)
      : program_(std::move(program)),
        kernel_(device, build(program_, device.info().arch()).kernel.cubin, program_.source.entry) {
    kernel_.reserve_shared(static_cast<std::size_t>(program_.machine.shared_bytes));
    if (program_.machine.cluster > 8) kernel_.allow_large_clusters();
    for (const ir::Parameter& parameter : program_.machine.parameters) {
      if (!parameter.is_owned()) continue;
      const std::int64_t count = parameter.element_count();
      workspaces_.emplace_back(device, static_cast<std::size_t>(count) * sizeof(std::int32_t),
                               "workspace");
      workspaces_.back().fill(0, stream);
    }
  }

  void launch(const compiler::DeviceTensors& tensors, std::int64_t multiprocessors) const {
    std::vector<TensorRef> refs = tensors.refs();
    auto workspace = workspaces_.begin();
    for (const ir::Parameter& parameter : program_.machine.parameters) {
      if (!parameter.is_owned()) continue;
      refs.push_back({workspace->data(), parameter.dtype, parameter.constant_shape(), {}});
      ++workspace;
    }
    compiler::LaunchPlan plan = compiler::plan_launch(
        program_.machine, program_.source.parameters,
        compiler::make_arguments(program_.machine, refs, {}), multiprocessors);
    if (plan.empty) return;
    for (const compiler::LaunchPlan::Map& map : plan.maps) {
      plan.parameters.set(map.offset, runtime::encode(map.spec));
    }
    kernel_.launch(plan.shape, tensors.stream(), plan.parameters.pointers().data());
  }

 private:
  const compiler::GpuProgram program_;
  runtime::LoadedKernel kernel_;
  std::vector<runtime::DeviceBuffer> workspaces_;
};

bool same_outputs(const library::Workload& a, const library::Workload& b) {
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    if (!a.kernel->tensors[i].is_output || a.tensors[i].size_bytes() == 0) continue;
    if (std::memcmp(a.tensors[i].data(), b.tensors[i].data(), a.tensors[i].size_bytes()) != 0) {
      return false;
    }
  }
  return true;
}

bool within_tolerance(const library::Comparison& comparison, const library::Workload& workload) {
  return comparison.max_relative_error <= workload.kernel->tolerance(workload.options);
}

class Stress {
 public:
  Stress(const StressOptions& options,
         const std::function<void(const StressReport&, bool delayed)>& hung)
      : options_(options),
        watchdog_(options.patience, [this, &hung] { hung(report_, delayed_); }) {}

  void run(const ir::Kernel& original, const ir::Kernel& machine,
           std::vector<library::Workload>& workloads) {
    const runtime::Device& device = runtime::Device::get();
    const runtime::Stream stream = runtime::Stream::borrow(device, nullptr);
    const Subject reference(plain(original), device, stream);
    const Subject with(delayed(machine, options_.seed), device, stream);
    const Subject without(plain(machine), device, stream);
    for (library::Workload& workload : workloads) {
      const compiler::DeviceTensors tensors(workload.tensors);
      const std::vector<std::vector<double>> wanted = reference_of(workload);
      for (const std::int64_t grid : {static_cast<std::int64_t>(device.info().multiprocessors),
                                      shrunken_multiprocessors(machine)}) {
        launch(reference, tensors, workload, grid);
        const library::Workload first = workload;
        const bool is_right = within_tolerance(compare(workload, wanted), workload);
        const auto differs = [&] {
          if (is_right && same_outputs(workload, first)) return false;
          if (report_.first_mismatch.empty()) {
            const library::Comparison comparison = compare(workload, wanted);
            report_.first_mismatch = within_tolerance(comparison, workload)
                                         ? "not bit by bit the first run's outputs"
                                         : comparison.worst;
          }
          return true;
        };
        repeat(without, tensors, workload, grid, false, differs);
        repeat(with, tensors, workload, grid, true, differs);
      }
    }
  }
  StressReport& report() { return report_; }

 private:
  void launch(const Subject& subject, const compiler::DeviceTensors& tensors,
              library::Workload& workload, std::int64_t grid) {
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.kernel->tensors[i].is_output) tensors.poison(i);
    }
    watchdog_.start();
    subject.launch(tensors, grid);
    tensors.synchronize();
    watchdog_.stop();
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.kernel->tensors[i].is_output) tensors.download(i, workload.tensors[i]);
    }
  }
  template <typename Differs>
  void repeat(const Subject& subject, const compiler::DeviceTensors& tensors,
              library::Workload& workload, std::int64_t grid, bool delayed,
              const Differs& differs) {
    delayed_ = delayed;
    const std::int64_t runs = delayed ? options_.runs : std::min<std::int64_t>(options_.runs, 2);
    for (std::int64_t i = 0; i < runs; ++i) {
      launch(subject, tensors, workload, grid);
      const bool mismatch = differs();
      (delayed ? report_.delayed_runs : report_.plain_runs) += 1;
      (delayed ? report_.delayed_mismatches : report_.plain_mismatches) += mismatch;
    }
  }

  const StressOptions& options_;
  StressReport report_;
  bool delayed_ = false;
  Watchdog watchdog_;
};

}  // namespace

std::string why_not_well_formed(const ir::Kernel& machine) {
  try {
    target::verify(machine);
    return {};
  } catch (const Error& error) {
    return error.message();
  }
}

simulator::Fault simulate_workloads(const ir::Kernel& machine,
                                    std::vector<library::Workload>& workloads,
                                    const StressOptions& options) {
  for (library::Workload& workload : workloads) {
    const std::vector<std::vector<double>> reference = reference_of(workload);
    simulator::MachineOptions how;
    how.multiprocessors = shrunken_multiprocessors(machine);
    for (std::int64_t schedule = 0; schedule < options.schedules; ++schedule) {
      how.seed = options.seed + static_cast<std::uint64_t>(schedule);
      simulator::OwnedMemory owned;
      how.owned = &owned;
      for (std::int64_t launch = 0; launch < options.launches; ++launch) {
        how.launch = static_cast<std::uint64_t>(launch);
        workload.poison_outputs();
        simulator::MachineReport report = compiler::simulate(machine, workload.arguments(), how);
        if (!report.ok()) return std::move(report.faults.front());
      }
      const library::Comparison comparison = compare(workload, reference);
      if (!within_tolerance(comparison, workload)) {
        return {"mismatch", {}, {}, "mismatch: " + comparison.worst, {}};
      }
    }
  }
  return {};
}

StressReport stress_on_gpu(const ir::Kernel& original, const ir::Kernel& machine,
                           std::vector<library::Workload>& workloads, const StressOptions& options,
                           const std::function<void(const StressReport&, bool delayed)>& hung) {
  Stress stress(options, hung);
  try {
    stress.run(original, machine, workloads);
  } catch (const Error& error) {
    stress.report().error = error.message();
  }
  return std::move(stress.report());
}

void assemble_with_delays(const ir::Kernel& machine, const std::string& arch, std::uint64_t seed) {
  build(plain(machine), arch);
  build(delayed(machine, seed), arch);
}

}  // namespace tilewright::checks
