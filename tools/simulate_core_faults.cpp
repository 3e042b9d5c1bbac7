#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "check/core_proof.h"
#include "compiler/rewrites.h"
#include "fault_table.h"
#include "json_text.h"
#include "library/accuracy.h"
#include "operation.h"
#include "simulate_faults.h"
#include "support/counted.h"
#include "support/progress.h"
#include "workload.h"

// `simulate --faults` of a core with explicit memories.
namespace tilewright::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kCores = 2;

// The kernels, and what they are run on.
struct CoreSubject {
  std::string name;
  std::vector<ir::Kernel> kernels;
  std::vector<checks::CoreCase> cases;
  std::vector<std::string> sizes;  // of each case
};

checks::CoreRun held_against(const library::Workload& workload, simulator::MachineReport report,
                             const library::Reference& reference) {
  checks::CoreRun run;
  run.report = std::move(report);
  run.bits = checks::bits_of(workload.tensors);
  const library::Comparison compared = compare(workload, reference);
  if (!compared.ok()) run.mismatch = compared.text();
  return run;
}

// Lengths that are not set: of several of the largest blocks that the kernels load, with a tail,
// and of a part of one. Those whose standards are less stay as they are.
std::vector<std::vector<std::string>> core_sizes(const Request& request, const LibraryKernel& entry,
                                                 const std::vector<ir::Kernel>& kernels) {
  std::int64_t largest = 1;
  for (const ir::Kernel& kernel : kernels) {
    ir::for_each(kernel.body, [&](const ir::Operation& o) {
      if (o.op != ir::Op::core_load) return;
      for (const std::int64_t size : o.attributes.integers(ir::Key::sizes)) {
        largest = std::max(largest, size);
      }
    });
  }
  const OptionValues options = resolve_options(entry, request.settings);
  std::vector<std::vector<std::string>> choices;
  for (const std::int64_t length : {2 * largest + largest / 2 + 3, largest / 4 + 1}) {
    std::vector<std::string>& sizes = choices.emplace_back();
    for (const KernelOption& option : entry.options) {
      const bool is_set = std::any_of(
          request.settings.begin(), request.settings.end(),
          [&](const auto& each) { return each.substr(0, each.find('=')) == option.name; });
      const bool is_number = option.kind == KernelOption::Kind::integer && option.is_length;
      if (is_set || !is_number || options.integer(option.name) <= length) continue;
      sizes.push_back(fmt::format("{}={}", option.name, length));
    }
  }
  if (choices.front() == choices.back()) choices.pop_back();
  return choices;
}

CoreSubject subject_of_kernel(const Request& request, const library::KernelSource& source,
                              const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  CoreSubject subject;
  subject.kernels =
      compiler::simulated_forms(source.traced(resolve_options(entry, request.settings), target),
                                target.arch, compilation_of(request));
  subject.name = subject.kernels.front().name;
  if (request.list_mutants) return subject;
  for (const std::vector<std::string>& sizes : core_sizes(request, entry, subject.kernels)) {
    std::vector<std::string> all = request.settings;
    all.insert(all.end(), sizes.begin(), sizes.end());
    const auto workload = std::make_shared<const library::Workload>(
        library::make_workload(entry, all, parse_files(request.inputs, "--in"),
                               request.input_seed.value_or(request.seed)));
    subject.sizes.push_back(fmt::format("{}", fmt::join(sizes, " ")));
    subject.cases.push_back(
        [workload, reference = library::reference_of(*workload)](
            const std::vector<ir::Kernel>& kernels, simulator::MachineOptions options) {
          library::Workload own = *workload;
          own.poison_outputs();
          options.multiprocessors = kCores;
          simulator::MachineReport report =
              compiler::simulate(kernels.front(), own.arguments(), options);
          return held_against(own, std::move(report), reference);
        });
  }
  return subject;
}

CoreSubject subject_of_program(const Request& request, const library::KernelSource& source,
                               const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  const ir::Program recorded = source.program(resolve_options(entry, request.settings), target);
  CoreSubject subject;
  subject.name = recorded.name;
  subject.kernels = library::machine_forms(recorded, target.arch, compilation_of(request)).front();
  if (request.list_mutants) return subject;
  for (const std::vector<std::string>& sizes : core_sizes(request, entry, subject.kernels)) {
    const auto made = std::make_shared<const library::ProgramWorkload>(
        operation_cut(request, entry, recorded, sizes, kCores).made);
    subject.sizes.push_back(fmt::format("{}", fmt::join(sizes, " ")));
    subject.cases.push_back(
        [made, reference = library::reference_of(made->workload)](
            const std::vector<ir::Kernel>& kernels, simulator::MachineOptions options) {
          library::ProgramWorkload own = *made;
          ir::add_owned(own.program, kernels);
          options.multiprocessors = kCores;
          library::ProgramTensors after;
          simulator::MachineReport report = library::simulate_program(
              own.program, kernels, own.before(), &after, options, /*runs=*/1);
          own.take(after);
          return held_against(own.workload, std::move(report), reference);
        });
  }
  return subject;
}

int prove(const Request& request, const CoreSubject& subject, const compiler::Target& target) {
  if (request.list_mutants) {
    return print_mutants({checks::list_core_mutants(subject.kernels)}, {subject.kernels});
  }
  checks::ProofOptions options = proof_options(request);
  options.mutants = wanted_mutants(request, {checks::list_core_mutants(subject.kernels).size()}, 0);
  // Each seed finds the same: those behind the second are for whoever asks for more.
  options.schedules = std::max<std::int64_t>(2, request.schedules);
  std::unique_ptr<ProgressBar> progress;
  const std::vector<checks::MutantResult> results = checks::prove_cores(
      subject.kernels, subject.cases, options,
      [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
      [&] { progress->advance(); });
  progress.reset();
  const Kinds kinds = checks::core_kinds();
  const bool ok = is_proven(results);
  if (request.json) {
    Json json = {{"ok", ok},
                 {"kernel", subject.name},
                 {"target", target.name},
                 {"sizes", subject.sizes},
                 {"schedules", options.schedules},
                 {"launches", 1}};
    json.update(table_json(kinds, results, subject.sizes));
    fmt::print("{}\n", json_text(json));
    return ok ? 0 : static_cast<int>(ErrorKind::result);
  }
  fmt::print("{} on simulated {}: {}, each under up to {}\n", subject.name, target.name,
             counted(results.size(), "mutant"), counted(options.schedules, "schedule"));
  for (const std::string& each : subject.sizes) {
    if (!each.empty()) fmt::print("  sizes: {}\n", each);
  }
  print_table(kinds, results);
  return ok ? 0 : static_cast<int>(ErrorKind::result);
}

}  // namespace

int simulate_core_faults(const Request& request, const library::KernelSource& source,
                         const compiler::Target& target) {
  return prove(request,
               source.entry().is_program() ? subject_of_program(request, source, target)
                                           : subject_of_kernel(request, source, target),
               target);
}

int simulate_core_faults(const Request& request, const ir::Program& program,
                         const library::ProgramTensors& before,
                         const std::vector<ir::Kernel>& kernels, const compiler::Target& target) {
  CoreSubject subject{program.name, kernels, {}, {""}};
  const auto run = [&program, &before](const std::vector<ir::Kernel>& forms,
                                       simulator::MachineOptions options,
                                       library::ProgramTensors& after) {
    ir::Program own = program;
    ir::add_owned(own, forms);
    options.multiprocessors = kCores;
    return library::simulate_program(own, forms, before, &after, options, /*runs=*/1);
  };
  library::ProgramTensors wanted;
  if (!request.list_mutants) run(kernels, {}, wanted);
  subject.cases.push_back(
      [&](const std::vector<ir::Kernel>& forms, const simulator::MachineOptions& options) {
        library::ProgramTensors after;
        checks::CoreRun made;
        made.report = run(forms, options, after);
        made.bits = checks::bits_of(after.front());
        const library::Comparison compared = library::compare_buffers(program, after, wanted);
        if (!compared.ok()) made.mismatch = compared.text();
        return made;
      });
  return prove(request, subject, target);
}

}  // namespace tilewright::tools
