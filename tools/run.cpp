#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "command.h"
#include "compiler/device_tensors.h"
#include "compiler/rewrites.h"
#include "compiler/target.h"
#include "library/library_build.h"
#include "library/tensor_file.h"
#include "support/diagnostic.h"
#include "tilewright/check.h"
#include "tilewright/library_executable.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Clock = std::chrono::steady_clock;

// Seconds of one run, which leaves the outputs in the workload.
double execute(const LibraryExecutable& executable, const compiler::Target& target,
               library::Workload& workload) {
  std::optional<compiler::DeviceTensors> on_device;
  std::vector<TensorRef> tensors;
  if (target.kind == compiler::Target::Kind::cuda) {
    on_device.emplace(workload.tensors);
    tensors = on_device->refs();
  } else {
    for (HostTensor& tensor : workload.tensors) tensors.push_back(ref(tensor));
  }
  const auto start = Clock::now();
  executable.run(tensors);
  if (on_device) on_device->synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (on_device) on_device->download(workload.tensors);
  return seconds;
}

// Two outputs in one file would leave only the later one.
void check_outputs(const LibraryKernel& entry, const std::map<std::string, std::string>& outputs) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> names;  // by file
  for (const auto& [name, path] : outputs) {
    library::find_tensor(entry, name, true);
    library::check_writable(path, name);
    if (fs::exists(path) && !fs::is_regular_file(path)) continue;
    const auto [other, is_new] = names.emplace(fs::weakly_canonical(path).string(), name);
    if (is_new) continue;
    Diagnostic({},
               fmt::format("{}: both {} and {} would be written there", path, other->second, name))
        .fix("name a file for each")
        .raise();
  }
}

// The interpreter takes more than a GPU does: what the compiler would refuse is said on stderr.
void warn_of_refusals(const LibraryKernel& entry, const OptionValues& options,
                      const Numerics& numerics) {
  if (entry.is_program()) return;
  const std::string arch = compiler::default_arch();
  try {
    check(library::trace_entry(entry, options, compiler::parse_target(arch)), arch,
          {.numerics = numerics});
  } catch (const Error& error) {
    std::fprintf(stderr, "warning: %s does not compile for %s: %s\n", entry.name.c_str(),
                 arch.c_str(), error.message().c_str());
  }
}

}  // namespace

int run(const Request& request) {
  const LibraryKernel& entry = find_kernel(request.kernel);
  const compiler::Target target = compiler::parse_target(request.target);
  if (target.kind == compiler::Target::Kind::architecture) {
    Diagnostic({}, fmt::format("target {} is compiled for and not run on", target.name),
               ErrorKind::unavailable)
        .fix("use cuda (the GPU that is here) or interpreter; or tilewright simulate, or explain")
        .raise();
  }
  const std::map<std::string, std::string> outputs = parse_files(request.outputs, "--out");
  check_outputs(entry, outputs);
  library::Workload workload = workload_of(request, entry);
  const LibraryExecutable executable =
      compile(entry, workload.options, target.name,
              {.numerics = compiler::parse_numerics(request.numerics)});
  if (target.kind == compiler::Target::Kind::interpreter) {
    warn_of_refusals(entry, workload.options, compiler::parse_numerics(request.numerics));
  }
  const double seconds = execute(executable, target, workload);
  for (const auto& [name, path] : outputs) {
    library::write_tensor(path, workload.tensors[library::find_tensor(entry, name, true)]);
  }

  const double tolerance = entry.tolerance(workload.options);
  library::Comparison comparison;
  if (request.check) comparison = library::compare(workload, library::reference_of(workload));
  const bool ok = comparison.max_relative_error <= tolerance;

  if (request.json) {
    nlohmann::ordered_json json = {{"ok", ok},
                                   {"kernel", entry.name},
                                   {"target", target.name},
                                   {"max_relative_error", nullptr},
                                   {"tolerance", tolerance},
                                   {"seconds", seconds}};
    // JSON has no infinity: null is also what stands there when nothing was compared.
    if (request.check) json["max_relative_error"] = comparison.max_relative_error;
    if (!ok) json["worst"] = comparison.worst;
    fmt::print("{}\n", json.dump(2));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  fmt::print("{} on {}: {:.3f} ms\n", entry.name, target.name, seconds * 1e3);
  for (const auto& [name, path] : outputs) fmt::print("{} is in {}\n", name, path);
  if (!request.check) return 0;
  fmt::print("max relative error {:.3g}, tolerance {:.3g}: {}\n", comparison.max_relative_error,
             tolerance, ok ? "ok" : "too large");
  if (!ok) fmt::print("{}\n", comparison.worst);
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
