#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "check/core_proof.h"
#include "check/input_changes.h"
#include "compiler/rewrites.h"
#include "core_sizes.h"
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

simulator::Rebind with_owned(simulator::Rebind rebind, const std::vector<ir::Kernel>& machine) {
  if (!rebind) return rebind;
  return [rebind = std::move(rebind), &machine](const auto& change) {
    ir::Program program = rebind(change);
    ir::add_owned(program, machine);
    return program;
  };
}

namespace {

using Json = nlohmann::ordered_json;

// The kernels, and what they are run on.
struct CoreSubject {
  std::string name;
  std::vector<ir::Kernel> kernels;
  std::vector<checks::CoreCase> cases;
  std::vector<std::string> sizes;  // of each case
  bool of_program = false;
  checks::ProgramChanges changes = {};  // of the program
  std::vector<checks::UnusualCoreCase> unusual = {};
  std::vector<std::int64_t> work = {};  // of each case, as a number that grows with it
  void add(std::string of_sizes, checks::CoreCase run, std::int64_t of_work) {
    sizes.push_back(std::move(of_sizes));
    cases.push_back(std::move(run));
    work.push_back(of_work);
  }
};

template <typename Tensors>
std::int64_t bytes_of(const Tensors& tensors) {
  std::int64_t bytes = 0;
  for (const HostTensor& tensor : tensors) bytes += static_cast<std::int64_t>(tensor.size_bytes());
  return bytes;
}

// As prove_cores wants them.
void put_cheapest_last(CoreSubject& subject) {
  std::vector<std::size_t> order(subject.cases.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return subject.work[a] > subject.work[b]; });
  const auto sorted = [&](auto& list) {
    auto moved = list;
    for (std::size_t i = 0; i < order.size(); ++i) moved[i] = std::move(list[order[i]]);
    list = std::move(moved);
  };
  sorted(subject.cases);
  sorted(subject.sizes);
}

// Inputs, and what is wanted of them once somebody asks.
template <typename Inputs, typename Wanted>
class Given {
 public:
  explicit Given(const Inputs& given) : inputs(given) {}
  const Inputs inputs;
  const Wanted& wanted(const std::function<Wanted()>& make) {
    std::call_once(made_, [&] { wanted_ = make(); });
    return wanted_;
  }

 private:
  std::once_flag made_;
  Wanted wanted_;
};

template <typename Inputs>
const library::Reference& reference_of(Given<Inputs, library::Reference>& given,
                                       const library::Workload& workload) {
  return given.wanted([&] { return library::reference_of(workload); });
}

using InputList = std::vector<std::pair<std::size_t, const HostTensor*>>;

// What shows a mask that lets something through, sums that a later block outweighs, and a small
// number that is added so that nothing is divided by 0.
std::vector<checks::InputChange> usual_changes(const InputList& inputs) {
  std::vector<checks::InputChange> changes = checks::changes_of_inputs(inputs);
  using Kind = checks::InputChange::Kind;
  std::erase_if(changes, [](const checks::InputChange& change) {
    return change.inputs.size() > 1 ||
           (change.kind != Kind::shift && change.kind != Kind::growth && change.kind != Kind::zero);
  });
  return changes;
}
// What shows one element of many, where a block begins or ends.
std::vector<checks::InputChange> changes_at_blocks(const InputList& inputs) {
  constexpr double kApart = 8;
  std::vector<checks::InputChange> changes;
  using Kind = checks::InputChange::Kind;
  for (const auto& [input, tensor] : inputs) {
    const std::vector<std::int64_t>& shape = tensor->shape();
    if (!is_float(tensor->dtype()) || shape.size() < 2) continue;
    const auto longest =
        static_cast<std::size_t>(std::max_element(shape.begin(), shape.end() - 1) - shape.begin());
    for (const std::size_t axis : {longest, shape.size() - 1}) {
      for (const Kind kind : {Kind::starts, Kind::ends}) {
        changes.push_back({kind, {input}, kApart, axis});
      }
    }
  }
  return changes;
}
// In the size of that number, of so many: the first has several blocks, and the second costs less.
std::vector<checks::InputChange> changes_of(const InputList& inputs, std::size_t number,
                                            std::size_t sizes) {
  std::vector<checks::InputChange> changes;
  if (number == 1) changes = changes_at_blocks(inputs);
  if (number != std::min<std::size_t>(2, sizes)) return changes;
  const std::vector<checks::InputChange> usual = usual_changes(inputs);
  changes.insert(changes.end(), usual.begin(), usual.end());
  return changes;
}
InputList inputs_of(const library::Workload& workload) {
  InputList inputs;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) inputs.emplace_back(i, &workload.tensors[i]);
  }
  return inputs;
}
InputList inputs_of(const ir::Program& program, const std::vector<HostTensor>& tensors) {
  InputList inputs;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    using Kind = ir::ProgramBuffer::Kind;
    const Kind kind = program.buffers[i].kind;
    if (kind == Kind::in || kind == Kind::tensor) inputs.emplace_back(i, &tensors[i]);
  }
  return inputs;
}
library::Workload changed(library::Workload workload, const checks::InputChange& change) {
  for (const std::size_t input : change.inputs) apply(change, input, workload.tensors[input]);
  return workload;
}
std::string how_of(const library::Workload& workload, const checks::InputChange& change) {
  std::vector<std::string> names;
  for (const auto& parameter : workload.parameters) names.push_back(parameter->name);
  return describe(change, names);
}

checks::CoreRun held_against(const library::Workload& workload, simulator::MachineReport report,
                             const library::Reference& reference) {
  checks::CoreRun run;
  run.report = std::move(report);
  run.bits = checks::bits_of(workload.tensors);
  const library::Comparison compared = compare(workload, reference);
  if (!compared.ok()) run.mismatch = compared.text();
  return run;
}

// A case that is made once somebody asks for it: few mutants get so far.
checks::CoreCase once_asked(const std::function<checks::CoreCase()>& make) {
  struct Lazy {
    std::once_flag made;
    checks::CoreCase run;
  };
  return [make, lazy = std::make_shared<Lazy>()](const std::vector<ir::Kernel>& kernels,
                                                 const simulator::MachineOptions& options,
                                                 const simulator::ProgramMutant* change) {
    std::call_once(lazy->made, [&] { lazy->run = make(); });
    return lazy->run(kernels, options, change);
  };
}

// Lengths and tables decide what a kernel does: others are drawn, in each of the first sizes.
bool draws_whole_numbers(const LibraryKernel& entry) {
  return std::any_of(entry.tensors.begin(), entry.tensors.end(), [](const LibraryTensor& tensor) {
    return !tensor.is_output && tensor.dtype && !is_float(*tensor.dtype) && tensor.values;
  });
}
void add_other_draws(CoreSubject& subject, const LibraryKernel& entry, std::uint64_t seed,
                     const std::function<checks::CoreCase(std::uint64_t seed)>& drawn_with) {
  constexpr std::uint64_t kDraws = 4;
  constexpr std::size_t kSizes = 2;
  if (!draws_whole_numbers(entry) || subject.cases.size() > kSizes) return;
  for (std::uint64_t more = 1; more <= kDraws; ++more) {
    subject.unusual.push_back({fmt::format("inputs are drawn with --input-seed {}", seed + more),
                               once_asked([=] { return drawn_with(seed + more); })});
  }
}

CoreSubject subject_of_kernel(const Request& request, const library::KernelSource& source,
                              const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  CoreSizes sizes = core_sizes(request, entry, [&](const std::vector<std::string>& settings) {
    return compiler::simulated_forms(source.traced(resolve_options(entry, settings), target),
                                     target.arch, compilation_of(request));
  });
  CoreSubject subject;
  subject.kernels = std::move(sizes.kernels);
  subject.name = subject.kernels.front().name;
  if (request.list_mutants) return subject;
  for (const std::vector<std::string>& choice : sizes.choices) {
    const std::uint64_t seed = request.input_seed.value_or(request.seed);
    const auto drawn = [&request, &entry, choice](std::uint64_t with) {
      return library::make_workload(entry, joined(request.settings, choice),
                                    parse_files(request.inputs, "--in"), with);
    };
    const library::Workload workload = drawn(seed);
    const auto run_on = [](const library::Workload& inputs) -> checks::CoreCase {
      const auto given = std::make_shared<Given<library::Workload, library::Reference>>(inputs);
      return [given](const std::vector<ir::Kernel>& kernels, simulator::MachineOptions options,
                     const simulator::ProgramMutant*) {
        library::Workload own = given->inputs;
        own.poison_outputs();
        options.multiprocessors = kCoresOfSizes;
        simulator::MachineReport report =
            compiler::simulate(kernels.front(), own.arguments(), options);
        return held_against(own, std::move(report), reference_of(*given, given->inputs));
      };
    };
    subject.add(fmt::format("{}", fmt::join(choice, " ")), run_on(workload),
                bytes_of(workload.tensors));
    for (const checks::InputChange& change :
         changes_of(inputs_of(workload), subject.cases.size(), sizes.choices.size())) {
      subject.unusual.push_back({how_of(workload, change), run_on(changed(workload, change))});
    }
    add_other_draws(subject, entry, seed,
                    [run_on, drawn](auto with) { return run_on(drawn(with)); });
  }
  return subject;
}

CoreSubject subject_of_program(const Request& request, const library::KernelSource& source,
                               const compiler::Target& target) {
  const LibraryKernel& entry = source.entry();
  ir::Program recorded;
  CoreSizes sizes = core_sizes(request, entry, [&](const std::vector<std::string>& settings) {
    recorded = source.program(resolve_options(entry, settings), target);
    return library::machine_forms(recorded, target.arch, compilation_of(request)).front();
  });
  CoreSubject subject;
  subject.name = recorded.name;
  subject.of_program = true;
  subject.kernels = sizes.kernels;
  for (const auto& [choice, cores] : sizes_on_cores(sizes, recorded)) {
    library::ProgramWorkload bound = operation_cut(request, entry, recorded, choice, cores).made;
    ir::add_owned(bound.program, subject.kernels);
    if (subject.cases.empty()) subject.changes = simulator::program_mutants(bound.program);
    if (request.list_mutants) break;
    const auto run_on = [cores =
                             cores](const library::ProgramWorkload& inputs) -> checks::CoreCase {
      const auto given =
          std::make_shared<Given<library::ProgramWorkload, library::Reference>>(inputs);
      return
          [given, cores](const std::vector<ir::Kernel>& kernels, simulator::MachineOptions options,
                         const simulator::ProgramMutant* change) {
            library::ProgramWorkload own = given->inputs;
            if (change != nullptr) own.program = change->apply(own.program);
            options.multiprocessors = cores;
            library::ProgramTensors after;
            simulator::MachineReport report = library::simulate_program(
                own.program, kernels, own.before(), &after, options, /*runs=*/1);
            own.take(after);
            return held_against(own.workload, std::move(report),
                                reference_of(*given, given->inputs.workload));
          };
    };
    subject.add(fmt::format("{}", fmt::join(choice, " ")), run_on(bound),
                bytes_of(bound.workload.tensors) * cores);
    for (const checks::InputChange& change :
         changes_of(inputs_of(bound.workload), subject.cases.size(), sizes.choices.size())) {
      library::ProgramWorkload unusual = bound;
      unusual.workload = changed(std::move(unusual.workload), change);
      subject.unusual.push_back({how_of(bound.workload, change), run_on(unusual)});
    }
    const auto drawn = [&request, &entry, recorded, choice, cores = cores,
                        machine = subject.kernels](std::uint64_t with) {
      Request other = request;
      other.input_seed = with;
      library::ProgramWorkload made = operation_cut(other, entry, recorded, choice, cores).made;
      ir::add_owned(made.program, machine);
      return made;
    };
    add_other_draws(subject, entry, request.input_seed.value_or(request.seed),
                    [run_on, drawn](auto with) { return run_on(drawn(with)); });
  }
  return subject;
}

int prove(const Request& request, CoreSubject subject, const compiler::Target& target) {
  const std::vector<checks::MutantResult> listed =
      checks::list_core_mutants(subject.kernels, subject.changes);
  if (request.list_mutants) return print_mutants({listed}, {subject.kernels});
  put_cheapest_last(subject);
  checks::ProofOptions options = proof_options(request);
  options.mutants = wanted_mutants(request, {listed.size()}, 0);
  // Each seed finds the same: those behind the first are for whoever asks for more.
  options.schedules = request.schedules;
  JudgedFile judged(request.judged, subject.sizes);
  std::unique_ptr<ProgressBar> progress;
  const std::vector<checks::MutantResult> results = checks::prove_cores(
      subject.kernels, subject.cases, subject.unusual, options, subject.changes,
      [&](std::int64_t count) { progress = std::make_unique<ProgressBar>("mutants", count); },
      [&](const checks::MutantResult& result) {
        progress->advance();
        judged.add(result);
      });
  progress.reset();
  const Kinds kinds = checks::core_kinds(subject.of_program);
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

int simulate_core_faults(const Request& request, const std::vector<checks::ProgramCase>& cases,
                         const std::vector<std::string>& sizes,
                         const std::vector<ir::Kernel>& kernels, const compiler::Target& target) {
  CoreSubject subject{cases.front().program.name, kernels, {}, {}, /*of_program=*/true};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const checks::ProgramCase& of = cases[i];
    const auto bound = std::make_shared<ir::Program>(of.program);
    ir::add_owned(*bound, kernels);
    if (subject.cases.empty()) {
      subject.changes = simulator::program_mutants(*bound, of.recorded);
      if (request.list_mutants) break;
    }
    const auto run_on = [&kernels, bound, rebind = with_owned(of.rebind, kernels)](
                            const library::ProgramTensors& before) -> checks::CoreCase {
      const auto given =
          std::make_shared<Given<library::ProgramTensors, library::ProgramTensors>>(before);
      const auto run = [given, bound, rebind](
                           const std::vector<ir::Kernel>& forms, simulator::MachineOptions options,
                           const simulator::ProgramMutant* change, library::ProgramTensors& after) {
        options.multiprocessors = kCoresOfSizes;
        return library::simulate_program(change == nullptr ? *bound : change->apply(*bound, rebind),
                                         forms, given->inputs, &after, options, /*runs=*/1);
      };
      return [&kernels, bound, given, run](const std::vector<ir::Kernel>& forms,
                                           const simulator::MachineOptions& options,
                                           const simulator::ProgramMutant* change) {
        // What the program without a change computes.
        const library::ProgramTensors& wanted = given->wanted([&] {
          library::ProgramTensors made;
          run(kernels, {}, nullptr, made);
          return made;
        });
        library::ProgramTensors after;
        checks::CoreRun made;
        made.report = run(forms, options, change, after);
        made.bits = checks::bits_of(after.front());
        const library::Comparison compared = library::compare_buffers(*bound, after, wanted);
        if (!compared.ok()) made.mismatch = compared.text();
        return made;
      };
    };
    subject.add(i < sizes.size() ? sizes[i] : "", run_on(of.before), bytes_of(of.before.front()));
    if (subject.cases.size() > 1) continue;
    std::vector<std::string> names;
    for (const ir::ProgramBuffer& buffer : bound->buffers) names.push_back(buffer.name);
    for (const checks::InputChange& change :
         changes_of(inputs_of(*bound, of.before.front()), 1, 1)) {
      library::ProgramTensors before = of.before;
      const std::size_t input = change.inputs.front();
      apply(change, input, before.front()[input]);
      subject.unusual.push_back({describe(change, names), run_on(before)});
    }
  }
  return prove(request, std::move(subject), target);
}

}  // namespace tilewright::tools
