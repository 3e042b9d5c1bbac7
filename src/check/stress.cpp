#include "check/stress.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "check/any_order.h"
#include "check/shrunken_sizes.h"
#include "codegen/cuda/delays.h"
#include "compiler/build.h"
#include "compiler/compiled.h"
#include "compiler/device_tensors.h"
#include "compiler/launch_plan.h"
#include "compiler/simulation.h"
#include "library/accuracy.h"
#include "library/differences.h"
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
class LoadedForm {
 public:
  LoadedForm(compiler::GpuProgram program, const runtime::Device& device)
      : program_(std::move(program)),
        kernel_(device, build(program_, device.info().arch()).kernel.cubin, program_.source.entry) {
    kernel_.reserve_shared(static_cast<std::size_t>(program_.machine.shared_bytes));
    if (program_.machine.cluster > 8) kernel_.allow_large_clusters();
  }
  const ir::Kernel& machine() const { return program_.machine; }

  // `arguments`: also of what no caller passes.
  void launch(const Arguments& arguments, std::int64_t multiprocessors,
              const runtime::Stream& stream) const {
    compiler::LaunchPlan plan = compiler::plan_launch(program_.machine, program_.source.parameters,
                                                      arguments, multiprocessors);
    if (plan.empty) return;
    for (const compiler::LaunchPlan::Map& map : plan.maps) {
      plan.parameters.set(map.offset, runtime::encode(map.spec));
    }
    kernel_.launch(plan.shape, stream, plan.parameters.pointers().data());
  }

 private:
  const compiler::GpuProgram program_;
  runtime::LoadedKernel kernel_;
};

// What is run, on tensors that lie on the GPU.
using Queue = std::function<void(const compiler::DeviceTensors&)>;

// A kernel with the workspaces that it leaves zero.
class LoadedKernel {
 public:
  LoadedKernel(compiler::GpuProgram program, const runtime::Device& device,
               const runtime::Stream& stream)
      : form_(std::move(program), device) {
    for (const ir::Parameter& parameter : form_.machine().parameters) {
      if (!parameter.is_owned()) continue;
      const std::int64_t count = parameter.element_count();
      workspaces_.emplace_back(device, static_cast<std::size_t>(count) * sizeof(std::int32_t),
                               "workspace");
      workspaces_.back().fill(0, stream);
    }
  }

  Queue queue(std::int64_t multiprocessors, const std::vector<double>& scalars) const {
    return [this, multiprocessors, scalars](const compiler::DeviceTensors& tensors) {
      std::vector<TensorRef> refs = tensors.refs();
      auto workspace = workspaces_.begin();
      for (const ir::Parameter& parameter : form_.machine().parameters) {
        if (!parameter.is_owned()) continue;
        refs.push_back({workspace->data(), parameter.dtype, parameter.constant_shape(), {}});
        ++workspace;
      }
      form_.launch(compiler::make_arguments(form_.machine(), refs, scalars), multiprocessors,
                   tensors.stream());
    };
  }

 private:
  LoadedForm form_;
  std::vector<runtime::DeviceBuffer> workspaces_;
};

// A program of one stream.
class LoadedProgram {
 public:
  LoadedProgram(const std::vector<ir::Kernel>& machine, const runtime::Device& device,
                const std::function<compiler::GpuProgram(const ir::Kernel&)>& print)
      : device_(device), machine_(machine) {
    for (const ir::Kernel& each : machine) {
      forms_.push_back(std::make_unique<LoadedForm>(print(each), device));
    }
  }

  // `bound`: to so many multiprocessors.
  Queue queue(const ir::Program& bound, std::int64_t multiprocessors,
              const runtime::Stream& stream) const {
    const auto run = std::make_shared<Run>(Run{bound, {}});
    ir::add_owned(run->program, machine_);
    for (const ir::ProgramBuffer& buffer : run->program.buffers) {
      const std::int64_t bytes = buffer.is_passed() ? 0 : buffer.bytes();
      run->own.emplace_back(device_, static_cast<std::size_t>(bytes), buffer.name);
      run->own.back().fill(0, stream);
    }
    return [this, run, multiprocessors](const compiler::DeviceTensors& tensors) {
      execute(*run, multiprocessors, tensors);
    };
  }

 private:
  using Kind = ir::ProgramOperation::Kind;
  struct Run {
    ir::Program program;
    std::vector<runtime::DeviceBuffer> own;  // of each buffer; empty where a caller passes it
  };

  void execute(const Run& run, std::int64_t multiprocessors,
               const compiler::DeviceTensors& tensors) const {
    const runtime::Stream& stream = tensors.stream();
    const std::vector<TensorRef> refs = tensors.refs();
    std::vector<std::byte*> addresses;
    std::size_t next = 0;
    for (std::size_t i = 0; i < run.own.size(); ++i) {
      const ir::ProgramBuffer& buffer = run.program.buffers[i];
      addresses.push_back(
          static_cast<std::byte*>(buffer.is_passed() ? refs[next++].data : run.own[i].data()));
      // Else a run could find what it should have waited for, as the run before has left it.
      const bool is_scratch = buffer.kind == ir::ProgramBuffer::Kind::scratch ||
                              buffer.kind == ir::ProgramBuffer::Kind::zeroed;
      if (is_scratch) run.own[i].fill(0xFF, stream);
    }
    const auto address = [&](int buffer, int) { return addresses[buffer]; };
    for (const ir::ProgramOperation& operation : run.program.operations) {
      switch (operation.kind) {
        case Kind::launch:
          forms_[operation.kernel]->launch(arguments_of(run.program, operation, 1, address),
                                           multiprocessors, stream);
          break;
        case Kind::copy:
          ir::for_each_rows(
              argument_of(run.program, operation.to, address),
              argument_of(run.program, operation.from, address), [&](const ir::CopiedRows& rows) {
                runtime::copy_rows_async(rows.to, rows.to_pitch, rows.from, rows.from_pitch,
                                         rows.bytes, rows.rows, stream);
              });
          break;
        case Kind::zero: {
          const TensorArgument to = argument_of(run.program, operation.to, address);
          ir::for_each_rows(to, to, [&](const ir::CopiedRows& rows) {
            runtime::zero_rows_async(rows.to, rows.to_pitch, rows.bytes, rows.rows, stream);
          });
          break;
        }
        case Kind::write:
        case Kind::wait:
        case Kind::record:
        case Kind::wait_event:
          break;  // of one stream, whose order is that of the operations
      }
    }
  }

  const runtime::Device& device_;
  const std::vector<ir::Kernel>& machine_;
  std::vector<std::unique_ptr<LoadedForm>> forms_;
};

class Stress {
 public:
  Stress(const StressOptions& options,
         const std::function<void(const StressReport&, bool delayed)>& hung)
      : options_(options),
        watchdog_(options.patience, [this, &hung] { hung(report_, delayed_); }) {}

  // One workload: first as `reference` has it, then without delays and with them. Bits may differ
  // of the outputs that `in_any_order` names.
  void run(library::Workload& workload, const compiler::DeviceTensors& tensors,
           const std::set<std::string>& in_any_order, const Queue& reference, const Queue& without,
           const Queue& with) {
    const library::Reference wanted = reference_of(workload, library::Executed::by_hardware);
    if (options_.told) options_.told(workload, wanted);
    launch(reference, tensors, workload);
    const library::Workload first = workload;
    const bool is_right = compare(workload, wanted).ok();
    const auto differs = [&] {
      const std::string difference =
          library::first_difference(workload, first, "in the first run", in_any_order);
      if (is_right && difference.empty()) return false;
      if (report_.first_mismatch.empty()) {
        const library::Comparison comparison = compare(workload, wanted);
        report_.first_mismatch =
            comparison.ok() ? "not as in the first run: " + difference : comparison.text();
      }
      return true;
    };
    repeat(without, tensors, workload, false, differs);
    repeat(with, tensors, workload, true, differs);
  }
  StressReport& report() { return report_; }

 private:
  void launch(const Queue& queue, const compiler::DeviceTensors& tensors,
              library::Workload& workload) {
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (const auto own = workload.given.find(i); own != workload.given.end()) {
        tensors.upload(i, own->second);
      } else if (workload.parameters[i]->is_output) {
        tensors.poison(i);
      }
    }
    watchdog_.start();
    queue(tensors);
    tensors.synchronize();
    watchdog_.stop();
    for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
      if (workload.parameters[i]->is_output) tensors.download(i, workload.tensors[i]);
    }
  }
  template <typename Differs>
  void repeat(const Queue& queue, const compiler::DeviceTensors& tensors,
              library::Workload& workload, bool delayed, const Differs& differs) {
    delayed_ = delayed;
    const std::int64_t runs = delayed ? options_.runs : std::min<std::int64_t>(options_.runs, 2);
    for (std::int64_t i = 0; i < runs; ++i) {
      launch(queue, tensors, workload);
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
    const library::Reference reference = reference_of(workload);
    if (options.told) options.told(workload, reference);
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
      if (!comparison.ok()) {
        return {"mismatch", {}, {}, "mismatch: " + comparison.text(), {}};
      }
    }
  }
  return {};
}

simulator::Fault simulate_programs(const std::vector<ir::Kernel>& machine,
                                   std::vector<StressedProgram>& programs,
                                   const StressOptions& options) {
  for (StressedProgram& each : programs) {
    library::Workload& workload = each.made.workload;
    const library::Reference reference = reference_of(workload);
    if (options.told) options.told(workload, reference);
    ir::Program program = each.made.program;
    ir::add_owned(program, machine);
    const library::ProgramTensors before = each.made.before();
    simulator::MachineOptions how;
    how.multiprocessors = how.resident = static_cast<int>(each.multiprocessors);
    for (std::int64_t schedule = 0; schedule < options.schedules; ++schedule) {
      how.seed = options.seed + static_cast<std::uint64_t>(schedule);
      library::ProgramTensors after;
      simulator::MachineReport report =
          library::simulate_program(program, machine, before, &after, how, options.launches);
      if (!report.ok()) return std::move(report.faults.front());
      each.made.take(after);
      const library::Comparison comparison = compare(workload, reference);
      if (!comparison.ok()) {
        return {"mismatch", {}, {}, "mismatch: " + comparison.text(), {}};
      }
    }
  }
  return {};
}

namespace {

// What ends the runs is a part of the report.
StressReport report_of(const StressOptions& options,
                       const std::function<void(const StressReport&, bool delayed)>& hung,
                       const std::function<void(Stress&)>& runs) {
  Stress stress(options, hung);
  try {
    runs(stress);
  } catch (const Error& error) {
    stress.report().error = error.message();
  }
  return std::move(stress.report());
}

}  // namespace

StressReport stress_on_gpu(const ir::Kernel& original, const ir::Kernel& machine,
                           std::vector<library::Workload>& workloads, const StressOptions& options,
                           const std::function<void(const StressReport&, bool delayed)>& hung) {
  return report_of(options, hung, [&](Stress& stress) {
    const runtime::Device& device = runtime::Device::get();
    const runtime::Stream stream = runtime::Stream::borrow(device, nullptr);
    const LoadedKernel reference(plain(original), device, stream);
    const LoadedKernel with(delayed(machine, options.seed), device, stream);
    const LoadedKernel without(plain(machine), device, stream);
    const std::set<std::string> in_any_order = left_by_any_order(original);
    for (library::Workload& workload : workloads) {
      const compiler::DeviceTensors tensors(workload.tensors);
      const std::vector<double> scalars = library::scalars_of(*workload.kernel, workload.options);
      for (const std::int64_t grid : {static_cast<std::int64_t>(device.info().multiprocessors),
                                      shrunken_multiprocessors(machine)}) {
        const auto queue = [&](const LoadedKernel& loaded) { return loaded.queue(grid, scalars); };
        stress.run(workload, tensors, in_any_order, queue(reference), queue(without), queue(with));
      }
    }
  });
}

StressReport stress_on_gpu(const ir::Program& recorded, const std::vector<ir::Kernel>& original,
                           const std::vector<ir::Kernel>& machine,
                           std::vector<StressedProgram>& programs, const StressOptions& options,
                           const std::function<void(const StressReport&, bool delayed)>& hung) {
  return report_of(options, hung, [&](Stress& stress) {
    const runtime::Device& device = runtime::Device::get();
    const runtime::Stream stream = runtime::Stream::borrow(device, nullptr);
    const LoadedProgram reference(original, device, plain);
    const LoadedProgram without(machine, device, plain);
    const LoadedProgram with(machine, device,
                             [&](const ir::Kernel& each) { return delayed(each, options.seed); });
    for (StressedProgram& each : programs) {
      library::Workload& workload = each.made.workload;
      const compiler::DeviceTensors tensors(workload.tensors);
      for (const std::int64_t count :
           {static_cast<std::int64_t>(device.info().multiprocessors), each.multiprocessors}) {
        const ir::Program bound = library::bind_workload(recorded, workload, count);
        const auto queue = [&](const LoadedProgram& loaded) {
          return loaded.queue(bound, count, stream);
        };
        stress.run(workload, tensors, left_by_any_order(bound, original), queue(reference),
                   queue(without), queue(with));
      }
    }
  });
}

void assemble_with_delays(const ir::Kernel& machine, const std::string& arch, std::uint64_t seed) {
  build(plain(machine), arch);
  build(delayed(machine, seed), arch);
}

}  // namespace tilewright::checks
