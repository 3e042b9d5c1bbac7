#include <fmt/format.h>
#include <fmt/ranges.h>

#include <optional>
#include <utility>

#include "accuracy_report.h"
#include "check/breakage.h"
#include "check/fault_proof.h"
#include "check/shrunken_sizes.h"
#include "command.h"
#include "compiler/claims.h"
#include "compiler/rewrites.h"
#include "compiler/simulation.h"
#include "compiler/target.h"
#include "core_sizes.h"
#include "library/kernel_source.h"
#include "library/stated_input.h"
#include "schedules.h"
#include "simulate_faults.h"
#include "simulate_printed.h"
#include "simulate_program.h"
#include "simulate_time.h"
#include "simulation_report.h"
#include "support/diagnostic.h"
#include "workload.h"

namespace tilewright::tools {
namespace {

// The second one finds what the first has left.
std::int64_t launches_of(const Request& request) { return request.launches.value_or(2); }

// What is run: one workload as the command says, or shrunken ones.
Subject simulated_subject(const Request& request, const library::KernelSource& source,
                          const compiler::Target& target) {
  Subject subject;
  if (request.shrunken && compiler::has_explicit_memories(target)) {
    const LibraryKernel& entry = source.entry();
    CoreSizes sizes = core_sizes(request, entry, [&](const std::vector<std::string>& settings) {
      return compiler::simulated_forms(source.traced(resolve_options(entry, settings), target),
                                       target.arch, compilation_of(request));
    });
    subject.forms = std::move(sizes.kernels);
    for (const std::vector<std::string>& choice : sizes.choices) {
      Request sized = request;
      sized.settings = joined(request.settings, choice);
      subject.workloads.push_back(workload_of(sized, entry));
      subject.sizes.push_back(fmt::format("{}", fmt::join(choice, " ")));
    }
    return subject;
  }
  if (request.shrunken) return subject_of(request, source, target);
  subject.workloads.push_back(workload_of(request, source.entry()));
  subject.sizes.emplace_back();
  const ir::Kernel kernel = source.traced(subject.workloads.front().options, target);
  subject.forms = compiler::simulated_forms(kernel, target.arch, compilation_of(request));
  return subject;
}

// `reference` is the workload's, of which all machine forms have one.
Simulated simulated(const Request& request, const ir::Kernel& machine, library::Workload& workload,
                    library::Reference& reference, const std::string& sizes) {
  Simulated made;
  made.sizes = sizes;
  made.launches = launches_of(request);
  made.launch = [&](const simulator::MachineOptions& options) {
    workload.poison_outputs();
    return compiler::simulate(machine, workload.arguments(), options);
  };
  for (const HostTensor& tensor : workload.tensors) {
    made.bytes += static_cast<std::int64_t>(tensor.size_bytes());
  }
  made.has_conditions = checks::draws_conditions(machine);
  if (request.control_only) return made;
  // The reference of a file in the explicit level is an execution too, and what that one finds is
  // not to stand before what the schedules find.
  made.compare = [&workload, &reference] {
    if (reference.values.empty()) reference = library::reference_of(workload);
    return library::compare(workload, reference);
  };
  return made;
}

int simulate_kernel(const Request& request, const library::KernelSource& source,
                    const compiler::Target& target) {
  refuse_program_options(request, source.entry().name);
  check_numerics(request, source);
  if (request.faults) return simulate_faults(request, source, target);
  if (request.printed) return simulate_printed(request, source, target);
  Subject subject = simulated_subject(request, source, target);
  std::optional<checks::Breakage> breakage;
  simulator::MachineOptions options = machine_options(request);
  Outcome outcome;
  outcome.seed = request.seed;
  std::vector<Execution> all;
  std::vector<library::Reference> references(subject.workloads.size());
  for (ir::Kernel& form : subject.forms) {
    if (!request.breakage.empty()) breakage = checks::break_kernel(form, request.breakage);
    for (std::size_t i = 0; i < subject.workloads.size(); ++i) {
      if (request.shrunken && compiler::has_explicit_memories(target)) {
        options.multiprocessors = kCoresOfSizes;
      } else if (request.shrunken) {
        options.multiprocessors = checks::shrunken_multiprocessors(form, i >= subject.usual);
      }
      if (request.multiprocessors) options.multiprocessors = *request.multiprocessors;
      all.push_back(
          {simulated(request, form, subject.workloads[i], references[i], subject.sizes[i]),
           options});
    }
  }
  execute(request, all, outcome);
  WeakData weak;
  for (std::size_t i = 0; i < subject.workloads.size(); ++i) {
    weak.add(subject.workloads[i], references[i]);
  }
  Title title{std::string(source.entry().name), subject.forms.front().name, target.name};
  title.forms = subject.forms.size();
  title.launches = launches_of(request);
  title.weak = weak.texts();
  return report(request, outcome, title, breakage);
}

// Kernels of several ranks and of PTX have all of their tensors drawn.
void refuse_inputs(const Request& request) {
  if (request.inputs.empty()) return;
  Diagnostic({}, fmt::format("--in {}: {} is no kernel that runs alone", request.inputs.front(),
                             request.kernel))
      .fix("leave it out: inputs are random, and --seed draws others")
      .raise();
}

// Words fit any size.
void refuse_files(const Request& request, std::string_view chosen) {
  for (const auto& [name, text] : parse_files(request.inputs, "--in")) {
    if (library::StatedInput::parse(text, name)) continue;
    Diagnostic({}, fmt::format("--in {}={}: with {} {} has several sizes, and a file has one", name,
                               text, chosen, request.kernel))
        .fix(fmt::format("say in words what it holds: --in {}=uniform:0:8", name))
        .raise();
  }
}

void refuse_time(const Request& request) {
  if (!request.time) return;
  Diagnostic(
      {}, fmt::format("--time: {} is no kernel, and no operation of the library", request.kernel))
      .fix("leave it out, or name what `tilewright list` names: --trace draws this one's time")
      .raise();
}

// What is of GPUs alone.
void refuse_for_core(const Request& request, const compiler::Target& target) {
  if (!compiler::has_explicit_memories(target)) return;
  for (const auto& [flag, given] :
       {std::pair("--time", request.time), std::pair("--break", !request.breakage.empty()),
        std::pair("--strict", request.strict), std::pair("--issue-order", request.issue_order)}) {
    if (!given) continue;
    Diagnostic({}, fmt::format("{}: {} is a core with explicit memories, and this is of GPUs", flag,
                               target.arch))
        .fix("leave it out: the units' modelled time is printed, and all orders are checked")
        .raise();
  }
}

// What is of kernels that Tilewright has compiled.
void refuse_for_ptx(const Request& request) {
  const auto refuse = [&](std::string_view said, std::string_view fix) {
    Diagnostic({}, fmt::format("{}: {} was made by another compiler", said, request.kernel))
        .fix(std::string(fix))
        .raise();
  };
  for (const auto& [flag, given] :
       {std::pair("--set", !request.settings.empty()), std::pair("--launches", !!request.launches),
        std::pair("--ranks", !!request.ranks),
        std::pair("--multiprocessors", !!request.multiprocessors)}) {
    if (given) refuse(flag, "leave it out: the launch file has the grid, sizes and numbers");
  }
  for (const auto& [flag, given] :
       {std::pair("--numerics", !request.numerics.empty()), std::pair("--faults", request.faults),
        std::pair("--control-only", request.control_only),
        std::pair("--provenance", request.provenance), std::pair("--printed", request.printed),
        std::pair("--trace", !request.traces.empty()),
        std::pair("--break", !request.breakage.empty()),
        std::pair("--search", request.search != "random"),
        std::pair("--one-for-all", request.one_for_all),
        std::pair("--issue-order", request.issue_order), std::pair("--strict", request.strict),
        std::pair("--shrunken", request.shrunken), std::pair("--checked", request.checked)}) {
    if (given) refuse(flag, "leave it out: this is of a kernel's source, or of its .tw file");
  }
  if (request.target != "sm_90a" && request.target != "sim:sm_90a" && request.target != "sm_100a" &&
      request.target != "sim:sm_100a") {
    refuse("--target " + request.target, "use --target sm_90a, or sm_100a: PTX is of these");
  }
}

}  // namespace

int simulate(const Request& request) {
  if (request.kernel.ends_with(".ptx")) {
    refuse_inputs(request);
    refuse_time(request);
    refuse_for_ptx(request);
    return simulate_ptx(request);
  }
  if (!request.launch.empty()) {
    Diagnostic({}, fmt::format("--launch {} is of a FILE.ptx, and {} is none", request.launch,
                               request.kernel))
        .fix("leave it out: --set gives the sizes")
        .raise();
  }
  if (request.faults && request.shrunken) {
    Diagnostic({}, "--faults --shrunken: faults are looked for in shrunken sizes anyway")
        .fix("leave --shrunken out: only what --set says is not shrunken")
        .raise();
  }
  // "sim:sm_90a" is the same as "sm_90a" here.
  const std::string name =
      request.target.rfind("sim:", 0) == 0 ? request.target.substr(4) : request.target;
  const auto simulated_target = [&] {
    const compiler::Target target = compiler::parse_target(name);
    if (target.kind == compiler::Target::Kind::architecture) return target;
    Diagnostic({}, fmt::format("target {} is not simulated", request.target))
        .fix("use --target sm_90a")
        .raise();
  };
  if (!request.faults) check_traces(request);
  if (is_program_file(request.kernel)) {
    refuse_time(request);
    return simulate_program(request, simulated_target());
  }
  if (request.faults) refuse_files(request, "--faults");
  if (request.shrunken) refuse_files(request, "--shrunken");
  const library::KernelSource source = open_kernel(request.kernel);
  const compiler::Target target = simulated_target();
  refuse_for_core(request, target);
  if (request.time) return simulate_time(request, source, target);
  if (request.faults && compiler::has_explicit_memories(target)) {
    return simulate_core_faults(request, source, target);
  }
  const bool is_program = source.entry().is_program();
  if (!is_program && !source.reaches_ranks()) return simulate_kernel(request, source, target);
  if (is_program) return simulate_operation(request, source, target);
  refuse_inputs(request);
  return simulate_ranks(request, source, target);
}

}  // namespace tilewright::tools
