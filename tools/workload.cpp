#include "workload.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>
#include <optional>

#include "compiler/compile_traced.h"
#include "compiler/device_tensors.h"
#include "compiler/rewrites.h"
#include "support/diagnostic.h"
#include "support/nearest_name.h"

namespace tilewright::tools {

std::map<std::string, std::string> parse_files(const std::vector<std::string>& words,
                                               const char* option) {
  std::map<std::string, std::string> files;
  for (const std::string& word : words) {
    const std::size_t at = word.find('=');
    if (at == std::string::npos || at == 0 || at + 1 == word.size()) {
      Diagnostic({}, fmt::format("{} {}: no tensor and file", option, word))
          .fix(fmt::format("write {} NAME=file.npy", option))
          .raise();
    }
    const std::string name = word.substr(0, at);
    if (files.emplace(name, word.substr(at + 1)).second) continue;
    Diagnostic({}, fmt::format("{} {}: tensor {} is already {}", option, word, name, files[name]))
        .fix("name each tensor once")
        .raise();
  }
  return files;
}

compiler::Target target_of(const Request& request) {
  return compiler::parse_target(request.target.empty() ? compiler::target_of_machine()
                                                       : std::string_view(request.target));
}

library::KernelSource open_kernel(const std::string& name) {
  if (name.ends_with(".tw")) return library::KernelSource::of_file(name);
  if (name.ends_with(".twp")) {
    Diagnostic({}, fmt::format("{}: a program's file is simulated alone", name))
        .fix(fmt::format("tilewright simulate {} --target sm_90a", name))
        .raise();
  }
  std::vector<std::string> known;
  for (const LibraryKernel& kernel : kernel_library()) {
    if (kernel.name == name) return library::KernelSource(kernel);
    known.push_back(kernel.name);
  }
  Diagnostic({}, fmt::format("there is no kernel '{}'{}", name, nearest_text(name, known)))
      .fix(fmt::format("name one of: {}, or a file that a program writes with TILEWRIGHT_DUMP=DIR "
                       "in its environment: NAME.tw of a kernel, NAME.twp of a Program",
                       fmt::join(known, ", ")))
      .raise();
}

namespace {

CompileOptions compile_options_of(const Request& request) {
  return {.numerics = compiler::parse_numerics(request.numerics), .checked = request.checked};
}

}  // namespace

LibraryExecutable executable_of(const Request& request, const LibraryKernel& entry,
                                const OptionValues& options, const compiler::Target& target) {
  return compile(entry, options, target.name, compile_options_of(request));
}

Runnable runnable_of(const Request& request, const library::KernelSource& source,
                     const OptionValues& options, const compiler::Target& target) {
  const CompileOptions how = compile_options_of(request);
  if (source.reaches_ranks()) {
    Diagnostic(
        {}, fmt::format("{} reaches other ranks, and runs as a program alone", source.entry().name))
        .fix(fmt::format("tilewright simulate {} --target sm_90a", request.kernel))
        .raise();
  }
  if (source.is_compiled()) {
    Diagnostic({}, fmt::format("{} is in the machine form, which is simulated and not run",
                               request.kernel))
        .fix("name the file of the kernel as it was traced: 01-trace.tw of a dump")
        .raise();
  }
  if (source.is_file()) {
    const auto executable = std::make_shared<Executable>(
        compile_traced(source.traced(options, target), target.name, how));
    const std::vector<double> scalars = library::scalars_of(source.entry(), options);
    return [executable, scalars](const std::vector<TensorRef>& tensors) {
      executable->run(tensors, scalars);
    };
  }
  const auto executable =
      std::make_shared<LibraryExecutable>(executable_of(request, source.entry(), options, target));
  return [executable](const std::vector<TensorRef>& tensors) { executable->run(tensors); };
}

compiler::Target runnable_target(const Request& request) {
  compiler::Target target = target_of(request);
  if (target.kind != compiler::Target::Kind::architecture) return target;
  Diagnostic({}, fmt::format("target {} is compiled for and not run on", target.name),
             ErrorKind::unavailable)
      .fix(
          "use cuda (the GPU that is here), cpu or interpreter; or tilewright simulate, or "
          "explain")
      .raise();
}

double execute(const Runnable& run, const compiler::Target& target, library::Workload& workload) {
  std::optional<compiler::DeviceTensors> on_device;
  std::vector<TensorRef> tensors;
  if (target.kind == compiler::Target::Kind::cuda) {
    on_device.emplace(workload.tensors);
    tensors = on_device->refs();
  } else {
    for (HostTensor& tensor : workload.tensors) tensors.push_back(ref(tensor));
  }
  const auto start = std::chrono::steady_clock::now();
  run(tensors);
  if (on_device) on_device->synchronize();
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (on_device) on_device->download(workload.tensors);
  return seconds;
}

void check_numerics(const Request& request, const library::KernelSource& source) {
  if (request.numerics.empty() || !source.is_compiled()) return;
  Diagnostic({}, fmt::format("--numerics {}: {} is in the machine form, behind every rewrite",
                             request.numerics.front(), request.kernel))
      .fix(
          "leave --numerics out, or name the file of the kernel as it was traced: 01-trace.tw of a "
          "dump")
      .raise();
}

compiler::MachineOptions compilation_of(const Request& request) {
  compiler::MachineOptions options;
  options.numerics = compiler::parse_numerics(request.numerics);
  options.checked = request.checked;
  return options;
}

library::Workload workload_of(const Request& request, const LibraryKernel& kernel) {
  return library::make_workload(kernel, request.settings, parse_files(request.inputs, "--in"),
                                request.input_seed.value_or(request.seed));
}

}  // namespace tilewright::tools
