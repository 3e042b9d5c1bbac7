#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "check/gradients.h"
#include "command.h"
#include "compiler/compile_traced.h"
#include "compiler/device_tensors.h"
#include "compiler/target.h"
#include "json_text.h"
#include "library/decided_options.h"
#include "library/kernel_source.h"
#include "support/diagnostic.h"
#include "tilewright/check_gradients.h"
#include "tilewright/compile.h"
#include "tilewright/library_executable.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

// A length that is not set: several blocks of rows, and a tail.
constexpr std::int64_t kLength = 70;

struct Pair {
  const LibraryKernel* forward = nullptr;
  const LibraryKernel* backward = nullptr;
};

// Either of them names both.
Pair find_pair(const std::string& name) {
  const LibraryKernel& named = find_kernel(name);
  if (!named.backward_of.empty()) return {&find_kernel(named.backward_of), &named};
  std::string known;
  for (const LibraryKernel& kernel : kernel_library()) {
    if (kernel.backward_of == name) return {&named, &kernel};
    if (!kernel.backward_of.empty()) known += (known.empty() ? "" : ", ") + kernel.name;
  }
  Diagnostic({}, fmt::format("{} has no kernel that computes its gradients", name))
      .fix("name one of: " + known +
           "; or, of your own two files, that of the gradients by --backward")
      .raise();
}

// What is set, and lengths that take a moment in float64.
std::vector<std::string> small_settings(const LibraryKernel& kernel,
                                        std::vector<std::string> settings) {
  const std::set<std::string> decided = library::decided_options(kernel, settings);
  for (const KernelOption& option : kernel.options) {
    if (!option.is_length || option.kind != KernelOption::Kind::integer) continue;
    if (decided.count(option.name) != 0) continue;
    const bool is_number = option.standard.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || std::stoll(option.standard) <= kLength) continue;
    settings.push_back(fmt::format("{}={}", option.name, kLength));
  }
  return settings;
}

// Those of the backward pass that the forward pass has.
std::vector<std::string> settings_of(const LibraryKernel& kernel, const OptionValues& options) {
  std::vector<std::string> settings;
  for (const KernelOption& option : kernel.options) {
    settings.push_back(option.name + "=" + options.text(option.name));
  }
  return settings;
}

// The tile level of a kernel, whatever schedule is set.
struct Meaning {
  Meaning(const LibraryKernel& kernel, OptionValues options)
      : Meaning(library::KernelSource(kernel), kernel, tile_level(std::move(options))) {}
  checks::GradientPass pass() const {
    return is_program ? checks::GradientPass(program) : checks::GradientPass(kernel);
  }
  bool is_program;
  ir::Kernel kernel;
  ir::Program program;

 private:
  Meaning(const library::KernelSource& source, const LibraryKernel& entry,
          const OptionValues& options)
      : is_program(entry.is_program()) {
    const compiler::Target target = compiler::parse_target("interpreter");
    if (is_program) {
      program = source.program(options, target);
    } else {
      kernel = source.traced(options, target);
    }
  }
  static OptionValues tile_level(OptionValues options) {
    if (options.has("schedule")) options.set("schedule", "tile");
    return options;
  }
};

// `run` takes references to the tensors and a stream.
template <typename Run>
void run_on(const Run& run, const compiler::Target& target, std::vector<HostTensor>& tensors) {
  if (target.kind == compiler::Target::Kind::cuda) {
    const compiler::DeviceTensors on_device(tensors);
    run(on_device.refs(), on_device.stream().handle());
    on_device.synchronize();
    on_device.download(tensors);
    return;
  }
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  run(refs, nullptr);
}

nlohmann::ordered_json json_of(const GradientCheck& check) {
  return {{"gradient", check.gradient},
          {"of", check.of},
          {"ok", check.ok()},
          {"error", check.error},
          {"allowed", check.allowed},
          {"by_differences", check.by_differences},
          {"by_gradient", check.by_gradient},
          {"own_error", check.own_error},
          {"own_allowed", check.own_allowed}};
}

// Prints it and returns the exit status.
int report_gradients(const Request& request, const std::string& backward,
                     const std::string& forward, const std::string& target,
                     const GradientReport& report) {
  const int status = report.ok() ? 0 : static_cast<int>(ErrorKind::result);
  if (!request.json) {
    fmt::print("{} against {}, on {}\n{}", backward, forward, target, report.text());
    return status;
  }
  nlohmann::ordered_json json = {{"ok", report.ok()},
                                 {"kernel", backward},
                                 {"forward", forward},
                                 {"target", target},
                                 {"gradients", nlohmann::ordered_json::array()}};
  for (const GradientCheck& check : report.gradients) json["gradients"].push_back(json_of(check));
  fmt::print("{}\n", json_text(json));
  return status;
}

GradientOptions gradient_options(const Request& request, const library::Workload& forward) {
  GradientOptions how;
  how.seed = request.seed;
  how.directions = request.directions;
  for (std::size_t i = 0; i < forward.tensors.size(); ++i) {
    if (forward.parameters[i]->is_output) continue;
    how.inputs[forward.parameters[i]->name] = forward.tensors[i];
  }
  return how;
}

// Both passes are files of kernels of the tile level.
int check_files(const Request& request, const compiler::Target& target) {
  const auto forward = library::KernelSource::of_file(request.kernel);
  const auto backward = library::KernelSource::of_file(request.backward);
  const library::Workload workload = library::make_workload(
      forward.entry(), small_settings(forward.entry(), request.settings), {}, request.seed);
  GradientOptions how = gradient_options(request, workload);
  for (const std::string& scalar : forward.entry().scalars) {
    how.scalars[scalar] = workload.options.number(scalar);
  }
  for (const KernelOption& option : forward.entry().options) {
    if (option.is_length) how.sizes[option.name] = workload.options.integer(option.name);
  }
  const compiler::Target meaning = compiler::parse_target("interpreter");
  const ir::Kernel forward_kernel = forward.traced(workload.options, meaning);
  const ir::Kernel backward_kernel = backward.traced(OptionValues(), meaning);
  const Executable executable = compile_traced(backward_kernel, target.name, {});
  const GradientReport report = checks::check_gradients(
      checks::GradientPass(forward_kernel), checks::GradientPass(backward_kernel), how,
      [&](std::vector<HostTensor>& tensors, const std::vector<double>& scalars) {
        run_on([&](const auto& refs, void* stream) { executable.run(refs, scalars, stream); },
               target, tensors);
      });
  return report_gradients(request, backward.entry().name, forward.entry().name, target.name,
                          report);
}

}  // namespace

int check_gradients(const Request& request) {
  const compiler::Target target =
      compiler::parse_target(request.target.empty() ? GradientOptions{}.target : request.target);
  if (!request.backward.empty()) return check_files(request, target);
  if (request.kernel.size() > 3 && request.kernel.substr(request.kernel.size() - 3) == ".tw") {
    Diagnostic({}, fmt::format("{} is a file, and the kernel of its gradients is not named",
                               request.kernel))
        .fix("name the file of the gradients: --backward FILE.tw")
        .raise();
  }
  const Pair pair = find_pair(request.kernel);
  const OptionValues options =
      resolve_options(*pair.backward, small_settings(*pair.backward, request.settings));
  const library::Workload workload =
      library::make_workload(*pair.forward, settings_of(*pair.forward, options), {}, request.seed);
  const LibraryExecutable executable = compile(*pair.backward, options, target.name);
  const Meaning forward(*pair.forward, workload.options), backward(*pair.backward, options);
  const GradientReport report = checks::check_gradients(
      forward.pass(), backward.pass(), gradient_options(request, workload),
      [&](std::vector<HostTensor>& tensors, const std::vector<double>&) {
        run_on([&](const auto& refs, void* stream) { executable.run(refs, stream); }, target,
               tensors);
      });
  return report_gradients(request, pair.backward->name, pair.forward->name, target.name, report);
}

}  // namespace tilewright::tools
