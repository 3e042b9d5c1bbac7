#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "command.h"
#include "compiler/rewrites.h"
#include "compiler/target.h"
#include "library/timing.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "tilewright/library_executable.h"
#include "workload.h"

namespace tilewright::tools {

int bench(const Request& request) {
  const LibraryKernel& entry = find_kernel(request.kernel);
  const compiler::Target target = compiler::parse_target(request.target);
  if (target.kind == compiler::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is compiled for and not run on", target.name),
               ErrorKind::unavailable)
        .fix("use cuda (the GPU that is here) or interpreter")
        .raise();
  }
  library::Workload workload = workload_of(request, entry);
  const LibraryExecutable executable =
      compile(entry, workload.options, target.name,
              {.numerics = compiler::parse_numerics(request.numerics)});
  const auto launch = [&](const std::vector<TensorRef>& tensors) { executable.run(tensors); };
  const library::Timing timing =
      target.kind == compiler::Target::Kind::cuda
          ? library::time_on_gpu(launch, compiler::DeviceTensors(workload.tensors))
          : library::time_on_host(launch, workload.tensors);
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
  fmt::print("{} on {}: median {:.4g} ms of {} ({:.4g} to {:.4g}), {:.4g} TFLOP/s\n", entry.name,
             target.name, timing.median() * 1e3, counted(timing.seconds.size(), "run"),
             timing.seconds.front() * 1e3, timing.seconds.back() * 1e3, rate / 1e12);
  return 0;
}

}  // namespace tilewright::tools
