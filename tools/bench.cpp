#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "bench_link.h"
#include "command.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/timing.h"
#include "support/counted.h"
#include "support/diagnostic.h"
#include "workload.h"

namespace tilewright::tools {

int bench(const Request& request) {
  if (request.kernel == "link") return bench_link(request);
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  const compiler::Target target = target_of(request);
  if (target.kind == compiler::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is compiled for and not run on", target.name),
               ErrorKind::unavailable)
        .fix("use cuda (the GPU that is here), cpu or interpreter")
        .raise();
  }
  library::Workload workload = workload_of(request, entry);
  const Runnable launch = runnable_of(request, source, workload.options, target);
  const library::Timing timing =
      target.kind == compiler::Target::Kind::cuda
          ? library::time_on_gpu(launch, compiler::DeviceTensors(workload.tensors))
          : library::time_on_host(launch, workload.tensors);
  const double rate =
      entry.floating_operations(workload.options, workload.inputs()) / timing.median();

  if (request.json) {
    nlohmann::ordered_json json = {{"ok", true},
                                   {"kernel", entry.name},
                                   {"target", target.name},
                                   {"options", workload.options.all()},
                                   {"runs", timing.seconds.size()},
                                   {"seconds", timing.median()},
                                   {"minimum_seconds", timing.seconds.front()},
                                   {"maximum_seconds", timing.seconds.back()},
                                   {"tflops", nullptr}};
    if (!source.is_file()) json["tflops"] = rate / 1e12;
    fmt::print("{}\n", json_text(json));
    return 0;
  }
  // How much arithmetic a file's kernel does nobody has said.
  fmt::print("{} on {}: median {:.4g} ms of {} ({:.4g} to {:.4g}){}\n", entry.name, target.name,
             timing.median() * 1e3, counted(timing.seconds.size(), "run"),
             timing.seconds.front() * 1e3, timing.seconds.back() * 1e3,
             source.is_file() ? "" : fmt::format(", {:.4g} TFLOP/s", rate / 1e12));
  return 0;
}

}  // namespace tilewright::tools
