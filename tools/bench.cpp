#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "driver/rewrites.h"
#include "driver/target.h"
#include "driver/timing.h"
#include "support/diagnostic.h"
#include "tilewright/library_executable.h"
#include "workload.h"

namespace tilewright::tools {

int bench(const Request& request) {
  const LibraryKernel& entry = find_kernel(request.kernel);
  const driver::Target target = driver::parse_target(request.target);
  if (target.kind == driver::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is compiled for and not run on", target.name),
               ErrorKind::unavailable)
        .fix("use cuda (the GPU that is here) or interpreter")
        .raise();
  }
  driver::Workload workload = workload_of(request, entry);
  const LibraryExecutable executable = compile(
      entry, workload.options, target.name, {.numerics = driver::parse_numerics(request.numerics)});
  const auto launch = [&](const std::vector<TensorRef>& tensors) { executable.run(tensors); };
  const driver::Timing timing =
      target.kind == driver::Target::Kind::cuda
          ? driver::time_on_gpu(launch, driver::DeviceTensors(workload.tensors))
          : driver::time_on_host(launch, workload.tensors);
  const double rate =
      entry.floating_operations(workload.options, workload.inputs()) / timing.median();

  if (request.json) {
    const nlohmann::ordered_json json = {{"ok", true},
                                         {"kernel", entry.name},
                                         {"target", target.name},
                                         {"options", workload.options.all()},
                                         {"runs", timing.seconds.size()},
                                         {"seconds", timing.median()},
                                         {"minimum_seconds", timing.seconds.front()},
                                         {"maximum_seconds", timing.seconds.back()},
                                         {"tflops", rate / 1e12}};
    fmt::print("{}\n", json.dump(2));
    return 0;
  }
  fmt::print("{} on {}: median {:.4g} ms of {} runs ({:.4g} to {:.4g}), {:.4g} TFLOP/s\n",
             entry.name, target.name, timing.median() * 1e3, timing.seconds.size(),
             timing.seconds.front() * 1e3, timing.seconds.back() * 1e3, rate / 1e12);
  return 0;
}

}  // namespace tilewright::tools
