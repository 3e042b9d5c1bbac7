#include <fmt/core.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "accuracy_report.h"
#include "command.h"
#include "compiler/device_tensors.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/kernel_source.h"
#include "library/tensor_file.h"
#include "support/diagnostic.h"
#include "support/escape.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

using Clock = std::chrono::steady_clock;

// The same of an operation over ranks, each of which has a GPU.
double execute_on_gpus(const LibraryExecutable& executable, library::Workload& workload) {
  const std::size_t of_rank = workload.tensors.size() / static_cast<std::size_t>(workload.ranks);
  std::vector<compiler::DeviceTensors> on_devices;
  std::vector<TensorRef> tensors;
  for (int rank = 0; rank < workload.ranks; ++rank) {
    const auto first = workload.tensors.begin() + static_cast<std::ptrdiff_t>(rank * of_rank);
    on_devices.emplace_back(
        std::vector<HostTensor>(first, first + static_cast<std::ptrdiff_t>(of_rank)), rank);
    const std::vector<TensorRef> own = on_devices.back().refs();
    tensors.insert(tensors.end(), own.begin(), own.end());
  }
  const auto start = Clock::now();
  executable.run_on_gpus(tensors);
  for (const compiler::DeviceTensors& each : on_devices) each.synchronize();
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    on_devices[i / of_rank].download(i % of_rank, workload.tensors[i]);
  }
  return seconds;
}

// Two outputs in one file would leave only the later one.
void check_outputs(const LibraryKernel& entry, const std::map<std::string, std::string>& outputs) {
  namespace fs = std::filesystem;
  std::map<std::string, std::string> names;  // by file
  for (const auto& [name, path] : outputs) {
    library::find_tensor(entry, name, true);
    library::check_writable(path, name);
    std::error_code ignored;  // of a path that cannot be, who writes says so
    if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored)) continue;
    const fs::path real = fs::weakly_canonical(path, ignored);
    const auto [other, is_new] = names.emplace(real.empty() ? path : real.string(), name);
    if (is_new) continue;
    Diagnostic({},
               fmt::format("{}: both {} and {} would be written there", path, other->second, name))
        .fix("name a file for each")
        .raise();
  }
}

// The interpreter takes more than a GPU does: what the compiler would refuse is said on stderr, of
// a file with the line that its author wrote.
void warn_of_refusals(const Request& request, const library::KernelSource& source,
                      const OptionValues& options) {
  const LibraryKernel& entry = source.entry();
  if (entry.is_program()) return;
  const std::string arch = compiler::default_arch();
  const compiler::Target target = compiler::parse_target(arch);
  try {
    compiler::simulated_forms(source.traced(options, target), arch, compilation_of(request));
  } catch (const Error& error) {
    const std::string problem =
        source.is_file() ? std::string("\n") + error.what() : error.message();
    std::fprintf(stderr, "warning: %s does not compile for %s: %s\n", entry.name.c_str(),
                 arch.c_str(), problem.c_str());
  }
}

// Only an inout tensor may be written to where it was read.
void check_files_differ(const Request& request, const std::map<std::string, std::string>& outputs) {
  for (const auto& [input, read] : parse_files(request.inputs, "--in")) {
    for (const auto& [output, written] : outputs) {
      std::error_code missing;
      if (input == output || !std::filesystem::equivalent(read, written, missing)) continue;
      Diagnostic({},
                 fmt::format("--out {}={}: it is the file of the input {}", output, written, input))
          .fix("write the output to a file of its own")
          .raise();
    }
  }
}

}  // namespace

int run(const Request& request) {
  const library::KernelSource source = open_kernel(request.kernel);
  const LibraryKernel& entry = source.entry();
  const compiler::Target target = runnable_target(request);
  const std::map<std::string, std::string> outputs = parse_files(request.outputs, "--out");
  check_outputs(entry, outputs);
  check_files_differ(request, outputs);
  library::Workload workload = workload_of(request, entry);
  const bool on_gpus = entry.over_ranks && target.kind == compiler::Target::Kind::cuda;
  if (target.kind == compiler::Target::Kind::interpreter) {
    warn_of_refusals(request, source, workload.options);
  }
  const double seconds =
      on_gpus ? execute_on_gpus(executable_of(request, entry, workload.options, target), workload)
              : execute(runnable_of(request, source, workload.options, target), target, workload);
  for (const auto& [name, path] : outputs) {
    library::write_tensor(path, workload.output(name, path));
  }

  library::Comparison comparison;
  std::vector<std::string> weak;
  if (request.check) {
    const bool is_gpu = target.kind == compiler::Target::Kind::cuda;
    const library::Reference reference = library::reference_of(
        workload, is_gpu ? library::Executed::by_hardware : library::Executed::by_simulator);
    comparison = library::compare(workload, reference);
    WeakData weak_data;
    weak_data.add(workload, reference);
    weak = weak_data.texts();
  }
  const bool ok = comparison.ok();

  if (request.json) {
    nlohmann::ordered_json json = {
        {"ok", ok}, {"kernel", entry.name}, {"target", target.name}, {"seconds", seconds}};
    if (request.check) {
      json["outputs"] = json_of(comparison);
      json["weak"] = weak;
    }
    fmt::print("{}\n", json_text(json));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  fmt::print("{} on {}: {:.3f} ms\n", entry.name, target.name, seconds * 1e3);
  for (const auto& [name, path] : outputs) {
    fmt::print("{} is in {}\n", name, escaped_lines(path));
  }
  if (!request.check) return 0;
  print_comparison(comparison);
  warn_of(weak);
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace tilewright::tools
