#include "check/mutant_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>

#include "check/coverage.h"
#include "check/phases.h"
#include "check/shrunken_sizes.h"
#include "compiler/simulation.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::checks {
namespace {

using simulator::MachineOptions;
using simulator::MachineReport;

// A number that stands for all bits of the outputs.
std::size_t bits_of(const library::Workload& workload) {
  std::size_t bits = 0;
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    if (!workload.parameters[i]->is_output) continue;
    const HostTensor& tensor = workload.tensors[i];
    const std::string_view bytes(reinterpret_cast<const char*>(tensor.data()), tensor.size_bytes());
    bits = bits * 1000003 + std::hash<std::string_view>()(bytes);
  }
  return bits;
}

WorkloadNumbers numbers(std::size_t begin, std::size_t end) {
  WorkloadNumbers all(end - begin);
  std::iota(all.begin(), all.end(), begin);
  return all;
}

MachineOptions with_seed(std::uint64_t seed) {
  MachineOptions machine;
  machine.seed = seed;
  return machine;
}

simulator::Fault mismatch(const std::string& what) {
  return {"mismatch", {}, {}, "mismatch: " + what, {}};
}

[[noreturn]] void raise(const MutantRun& found) {
  Diagnostic text = compiler::diagnostic_of(found.fault);
  text.fix(fmt::format("a kernel without faults of its own (seed {})", found.seed)).raise();
}

// Whether a launch finds what the one before has left.
bool keeps_memory(const ir::Kernel& machine) {
  return std::any_of(machine.parameters.begin(), machine.parameters.end(),
                     [](const ir::Parameter& parameter) { return parameter.is_owned(); });
}

MutantRun comparison(const library::Workload& workload, const library::Reference& reference,
                     std::size_t number, std::uint64_t seed) {
  const library::Comparison compared = compare(workload, reference);
  if (compared.ok()) return {{}, number, seed};
  return {mismatch(compared.text()), number, seed};
}

constexpr std::int64_t kAllPlaces = INT64_MAX;

// How many places of others a cluster takes over in the runs that stand for all orders. Clusters
// share nothing but what they ask, so that the first one is as any that takes as many. Behind so
// many places, rings are where they were. Seeds in a row take these numbers in turn. There is an
// odd number of them, so that each meets even and odd seeds, by which CTAs that count run at once
// or not.
std::vector<std::optional<std::int64_t>> numbers_to_take(const ir::Kernel& kernel) {
  std::int64_t stages = 1;
  bool asks = false;
  ir::for_each(kernel.body, [&](const ir::Operation& operation) {
    asks = asks || ir::info(operation.op).family == ir::Family::launch_control;
    if (operation.op != ir::Op::mbarriers) return;
    stages = std::max(stages, kernel.type(operation.results[0]).elements());
  });
  if (!asks) return {std::nullopt};
  std::vector<std::optional<std::int64_t>> all = {kAllPlaces};
  for (std::int64_t takes = 0; takes < 2 * stages; ++takes) all.emplace_back(takes);
  return all;
}

// The line of a fault that says so.
std::string who_takes(std::int64_t takes) {
  if (takes == kAllPlaces) return "\n  where the first cluster takes over all places";
  return fmt::format("\n  where a cluster takes over {} {}", takes,
                     takes == 1 ? "place" : "places");
}

// Of an output's bytes that the kernel writes and the mutant does not.
simulator::Fault missing_bytes(const std::vector<std::vector<std::uint16_t>>& own,
                               const std::vector<std::vector<std::uint16_t>>& changed) {
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (std::size_t cell = 0; cell < own[i].size(); ++cell) {
      if ((own[i][cell] & ~changed[i][cell]) == 0) continue;
      return mismatch(
          fmt::format("output {}: nothing writes all of the 16 bytes +{:#x}, which the "
                      "kernel without the change does",
                      i, cell * 16));
    }
  }
  return {};
}

}  // namespace

MutantRunner::MutantRunner(const ir::Kernel& machine,
                           const std::vector<library::Workload>& workloads,
                           const ProofOptions& options)
    : machine_(machine),
      draws_(draws_conditions(machine)),
      takes_(numbers_to_take(machine)),
      launches_(keeps_memory(machine) ? options.launches : 1),
      workloads_(workloads),
      usual_(numbers(0, workloads.size())),
      further_(numbers(usual_.size(), usual_.size() + options.further.size())),
      candidates_(numbers(usual_.size() + further_.size(),
                          usual_.size() + further_.size() + options.candidates.size())),
      options_(options) {
  workloads_.resize(usual_.size() + further_.size() + candidates_.size());
  references_.resize(workloads_.size());
  executed_.resize(workloads_.size());
}

void MutantRunner::require_clean() {
  const MutantRun found = run_equivalent(machine_);
  if (!found.clean()) raise(found);
}

bool MutantRunner::changes_values_alone(const simulator::Mutant& mutant) {
  if (mutant.computations.empty()) return false;
  if (left_out_.empty()) {
    left_out_ = simulator::computations_left_out(machine_, workloads_.front().arguments(),
                                                 shrunken_multiprocessors(machine_));
  }
  return std::all_of(mutant.computations.begin(), mutant.computations.end(),
                     [&](std::size_t number) { return left_out_[number]; });
}

WorkloadNumbers MutantRunner::that_tell(const simulator::Mutant& mutant,
                                        WorkloadNumbers workloads) {
  using Division = simulator::Mutant::Division;
  if (mutant.division == Division::none) return workloads;
  const auto is_same = [&](std::size_t i) {
    const Executed& executed = executed_of(i);
    const std::vector<bool>& tells =
        mutant.division == Division::by_one_more   ? executed.divisor_tells
        : mutant.division == Division::by_one_less ? executed.less_tells
                                                   : executed.remainder_tells;
    return executed.known[mutant.site] && !tells[mutant.site];
  };
  workloads.erase(std::remove_if(workloads.begin(), workloads.end(), is_same), workloads.end());
  return workloads;
}

WorkloadNumbers MutantRunner::that_reach(const simulator::Mutant& mutant,
                                         const WorkloadNumbers& workloads) {
  const ir::Kernel probe = mutant.probe(machine_);
  const bool wherever = mutant.matters_if == ir::kNoValue && !mutant.in_later_turns;
  WorkloadNumbers reached;
  for (const std::size_t i : workloads) {
    const Executed& executed = executed_of(i);
    if (wherever && executed.known[mutant.site]) {
      if (executed.is[mutant.site]) reached.push_back(i);
      continue;
    }
    MachineOptions machine = with_seed(options_.seed);
    machine.control_only = true;
    bool comes = !launch(probe, i, machine).ok();
    machine.control_only = false;
    comes = comes || (draws() && !launch(probe, i, machine).ok());
    if (comes) reached.push_back(i);
  }
  return reached;
}

WorkloadNumbers MutantRunner::that_may_reach(const simulator::Mutant& mutant) {
  WorkloadNumbers may;
  for (const std::size_t i : further_) {
    const Executed& executed = executed_of(i);
    if (!executed.known[mutant.site] || executed.is[mutant.site]) may.push_back(i);
  }
  return may;
}

bool MutantRunner::unusual_reaches(const simulator::Mutant& mutant) {
  const ir::Kernel probe = mutant.probe(machine_);
  for (std::size_t change = 0; change < input_changes().size(); ++change) {
    for (const std::size_t i : usual_) {
      Unusual* const unusual = unusual_of(i, change);
      if (unusual && !launch(probe, unusual->workload, i, with_seed(options_.seed)).ok()) {
        return true;
      }
    }
  }
  return false;
}

bool MutantRunner::same_bits() {
  return std::all_of(bits_.begin(), bits_.end(), [&](const Bits& bits) {
    return bits.changed == (bits.own ? *bits.own : own_bits(bits.workload));
  });
}

MutantRun MutantRunner::run(const ir::Kernel& kernel, const WorkloadNumbers& workloads,
                            std::int64_t schedules) {
  MutantRun all;
  for (const std::size_t i : cheapest_first(workloads)) {
    for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
      MutantRun found = run(kernel, i, options_.seed + static_cast<std::uint64_t>(schedule),
                            takes_[static_cast<std::size_t>(schedule) % takes_.size()]);
      if (!found.clean()) return found;
      all.add_timing(found);
      if (found.timing.empty() && found.words.empty() && found.taken == 0) break;
    }
  }
  return all;
}

MutantRun MutantRunner::run_launch(const ir::Kernel& kernel, const WorkloadNumbers& workloads) {
  MachineOptions machine = with_seed(options_.seed);
  machine.check_order = false;
  for (const std::size_t i : cheapest_first(workloads)) {
    MachineReport report = launch(kernel, i, machine);
    if (!report.ok()) return {std::move(report.faults.front()), i, options_.seed};
    const std::size_t bits = bits_of(workloads_[i]);
    MutantRun found = compared_with_own(i, options_.seed);
    if (!found.clean()) return found;
    bits_.push_back({i, bits});
  }
  return {};
}

MutantRun MutantRunner::run_order(const ir::Kernel& kernel, const WorkloadNumbers& workloads) {
  MachineOptions machine = with_seed(options_.seed);
  machine.control_only = machine.timing = machine.note_written = true;
  MutantRun all;
  for (const std::size_t i : cheapest_first(workloads)) {
    std::int64_t most = 0;
    for (const std::optional<std::int64_t> takes : takes_) {
      if (takes && *takes != kAllPlaces && *takes >= most) break;
      machine.takes = takes;
      MutantRun found = run_launches(kernel, i, machine);
      if (!found.clean()) return found;
      all.add_timing(found);
      most = std::max(most, found.taken);
    }
  }
  return all;
}

MutantRun MutantRunner::run_equivalent(const ir::Kernel& kernel) {
  MutantRun found = run(kernel, usual_.front(), options_.seed, takes_.front());
  return found.clean() ? run_order(kernel, {usual_.begin() + 1, usual_.end()}) : found;
}

MutantRun MutantRunner::run_unusual(const ir::Kernel& kernel, const WorkloadNumbers& workloads,
                                    bool check_order) {
  const WorkloadNumbers ordered = cheapest_first(workloads);
  for (std::size_t change = 0; change < input_changes().size(); ++change) {
    for (const std::size_t i : ordered) {
      Unusual* const unusual = unusual_of(i, change);
      if (!unusual) continue;
      MutantRun found = run_values(kernel, i, *unusual, check_order);
      if (found.clean()) {
        bits_.push_back({i, bits_of(unusual->workload), unusual->bits});
        continue;
      }
      found.fault.message += "\n  where " + unusual->how;
      return found;
    }
  }
  return {};
}

MutantRun MutantRunner::run_held(const ir::Kernel& kernel, const WorkloadNumbers& workloads) {
  std::int64_t operations = options_.operations;
  for (const std::size_t i : workloads) {
    HeldRun found = checks::run_held(
        operations / 2, [&](const MachineOptions& machine) { return launch(kernel, i, machine); });
    if (!found.fault.kind.empty()) return {std::move(found.fault), i, found.seed};
    operations -= found.operations;
  }
  return {};
}

MutantRun MutantRunner::run_candidates(const ir::Kernel& kernel, const simulator::Mutant& mutant) {
  constexpr std::int64_t kCheaper = 4;
  std::int64_t operations = 0;
  for (const std::size_t i : candidates_) {
    if (operations >= options_.to_divide) break;
    const WorkloadNumbers telling = that_tell(mutant, {i});
    // To look whether it tells takes no arithmetic, and is kept for the other mutants.
    operations += executed_of(i).count / (telling.empty() ? kCheaper : 1);
    MutantRun found = run_launch(kernel, telling);
    if (!found.clean()) return found;
  }
  return {};
}

MutantRun MutantRunner::run_control(const ir::Kernel& kernel, const WorkloadNumbers& workloads,
                                    std::int64_t schedules, std::int64_t of_further) {
  MachineOptions machine;
  machine.control_only = true;
  std::int64_t operations = 0;
  for (std::int64_t schedule = 0; schedule < schedules; ++schedule) {
    if (schedule >= options_.few && operations >= options_.operations) break;
    machine.seed = options_.seed + static_cast<std::uint64_t>(schedule);
    for (const std::size_t i : workloads) {
      if (i >= usual_.size() && schedule >= of_further) continue;
      MachineReport report = launch(kernel, i, machine);
      operations += report.operations;
      if (!report.ok()) return {std::move(report.faults.front()), i, machine.seed};
    }
  }
  return {};
}

MutantRun MutantRunner::run(const ir::Kernel& kernel, std::size_t number, std::uint64_t seed,
                            std::optional<std::int64_t> takes) {
  MachineOptions machine = with_seed(seed);
  machine.takes = takes;
  machine.timing = true;
  MutantRun found = run_launches(kernel, number, machine);
  if (!found.clean()) return found;
  const std::size_t bits = bits_of(workloads_[number]);
  MutantRun wrong = is_own(kernel) ? compared(number, seed) : compared_with_own(number, seed);
  wrong.timing = std::move(found.timing);
  wrong.words = std::move(found.words);
  wrong.arrivals = std::move(found.arrivals);
  wrong.taken = found.taken;
  if (!is_own(kernel) && seed == options_.seed) bits_.push_back({number, bits});
  return wrong;
}

MutantRun MutantRunner::run_launches(const ir::Kernel& kernel, std::size_t number,
                                     MachineOptions machine) {
  simulator::OwnedMemory owned;
  machine.owned = &owned;
  MutantRun run{{}, number, machine.seed};
  // Before the launches, whose results stay behind.
  const Own* own = machine.timing && !is_own(kernel)
                       ? &own_of({number, !draws() || machine.control_only, machine.takes})
                       : nullptr;
  Phases phases;
  if (machine.timing) machine.recorder = &phases;
  for (std::int64_t i = 0; i < launches_; ++i) {
    machine.launch = static_cast<std::uint64_t>(i);
    MachineReport report = launch(kernel, number, machine);
    if (!report.ok()) {
      run.fault = std::move(report.faults.front());
      if (report.taken > 0 && machine.takes) run.fault.message += who_takes(*machine.takes);
      return run;
    }
    run.taken = std::max(run.taken, report.taken);
    if (run.timing.empty()) run.timing = std::move(report.timing);
    if (run.words.empty()) run.words = std::move(report.words);
    run.arrivals.join(report.arrivals);
    run.written = std::move(report.written);
  }
  run.phases = phases.count;
  if (!own) return run;
  // Conditions that are drawn may leave out what they will.
  if (machine.note_written && !draws()) run.fault = missing_bytes(own->written, run.written);
  // A phase that no longer comes to its end is one that a longer launch may wait for.
  if (run.timing.empty() && run.phases != own->phases) {
    run.timing = other_phases(own->phases, run.phases);
  }
  return run;
}

MutantRun MutantRunner::run_values(const ir::Kernel& kernel, std::size_t number, Unusual& unusual,
                                   bool check_order) {
  MachineOptions machine = with_seed(options_.seed);
  machine.check_order = check_order;
  MachineReport report = launch(kernel, unusual.workload, number, machine);
  if (!report.ok()) return {std::move(report.faults.front()), number, options_.seed};
  return comparison(unusual.workload, unusual.reference, number, options_.seed);
}

MutantRun MutantRunner::compared(std::size_t number, std::uint64_t seed) {
  if (references_[number].values.empty()) references_[number] = reference_of(workloads_[number]);
  return comparison(workloads_[number], references_[number], number, seed);
}

MutantRun MutantRunner::compared_with_own(std::size_t number, std::uint64_t seed) {
  MutantRun found = compared(number, seed);
  // It says nothing of the change where the kernel is as wrong.
  if (!found.clean()) own_bits(number);
  return found;
}

WorkloadNumbers MutantRunner::cheapest_first(WorkloadNumbers workloads) {
  std::stable_sort(workloads.begin(), workloads.end(), [&](std::size_t a, std::size_t b) {
    return executed_of(a).count < executed_of(b).count;
  });
  return workloads;
}

const MutantRunner::Own& MutantRunner::own_of(const Way& way) {
  const auto [own, is_new] = own_.try_emplace(way);
  if (!is_new) return own->second;
  MachineOptions machine = with_seed(options_.seed);
  machine.timing = true;
  machine.takes = way.takes;
  machine.control_only = machine.note_written = way.control_only;
  MutantRun run = run_launches(machine_, way.workload, machine);
  own->second = {run.phases, std::move(run.written)};
  return own->second;
}

std::size_t MutantRunner::own_bits(std::size_t number) {
  const auto known = own_bits_.find(number);
  if (known != own_bits_.end()) return known->second;
  MutantRun found = run_launches(machine_, number, with_seed(options_.seed));
  const std::size_t bits = bits_of(workloads_[number]);
  if (found.clean()) found = compared(number, options_.seed);
  try {
    if (!found.clean()) raise(found);
  } catch (const Error& error) {
    throw OwnFault{error};
  }
  return own_bits_.emplace(number, bits).first->second;
}

const MutantRunner::Executed& MutantRunner::executed_of(std::size_t number) {
  std::optional<Executed>& made = executed_[number];
  if (made) return *made;
  made.emplace();
  const auto add = [&](const CoveredRun& run) {
    const Coverage& coverage = run.coverage;
    made->count += run.operations;
    made->known = coverage.executable;
    made->is.resize(coverage.turns.size());
    made->divisor_tells.resize(coverage.turns.size());
    made->less_tells.resize(coverage.turns.size());
    made->remainder_tells.resize(coverage.turns.size());
    for (std::size_t i = 0; i < coverage.turns.size(); ++i) {
      if (coverage.turns[i] > 0) made->is[i] = true;
      if (coverage.divisor_tells[i]) made->divisor_tells[i] = true;
      if (coverage.less_tells[i]) made->less_tells[i] = true;
      if (coverage.remainder_tells[i]) made->remainder_tells[i] = true;
    }
  };
  const auto execute = [&](bool control_only) {
    CoveredRun run;
    run.coverage =
        coverage_of(machine_, made_workload(number).arguments(), multiprocessors_of(number),
                    options_.seed, run.operations, control_only);
    add(run);
  };
  // Conditions may depend on the inputs, which the known runs did not have.
  if (draws()) {
    execute(/*control_only=*/true);
    execute(/*control_only=*/false);
  } else if (const CoveredRun* known = known_run(number)) {
    add(*known);
  } else {
    execute(/*control_only=*/true);
  }
  return *made;
}

const CoveredRun* MutantRunner::known_run(std::size_t number) const {
  if (number < usual_.size()) return nullptr;
  const std::size_t place = number - usual_.size();
  const bool is_further = place < further_.size();
  const auto& runs = is_further ? options_.further_runs : options_.candidate_runs;
  const auto known = runs.find(is_further ? place : place - further_.size());
  return known == runs.end() ? nullptr : &known->second;
}

const std::vector<InputChange>& MutantRunner::input_changes() {
  if (input_changes_) return *input_changes_;
  const library::Workload& usual = workloads_.front();
  std::vector<std::pair<std::size_t, const HostTensor*>> inputs;
  for (std::size_t input = 0; input < usual.tensors.size(); ++input) {
    if (!usual.parameters[input]->is_output) inputs.emplace_back(input, &usual.tensors[input]);
  }
  input_changes_ = changes_of_inputs(inputs);
  return *input_changes_;
}

MutantRunner::Unusual* MutantRunner::unusual_of(std::size_t number, std::size_t change) {
  const auto [made, is_new] = unusual_.try_emplace(std::pair(number, change));
  std::optional<Unusual>& unusual = made->second;
  if (!is_new) return unusual ? &*unusual : nullptr;
  unusual.emplace();
  unusual->workload = workloads_[number];
  std::vector<std::string> names;
  for (const auto& parameter : unusual->workload.parameters) names.push_back(parameter->name);
  const InputChange& how = input_changes()[change];
  unusual->how = describe(how, names);
  for (const std::size_t input : how.inputs) apply(how, input, unusual->workload.tensors[input]);
  unusual->reference = reference_of(unusual->workload);
  if (run_values(machine_, number, *unusual, /*check_order=*/false).clean()) {
    unusual->bits = bits_of(unusual->workload);
    return &*unusual;
  }
  unusual.reset();
  return nullptr;
}

MachineReport MutantRunner::launch(const ir::Kernel& kernel, std::size_t number,
                                   const MachineOptions& machine) {
  return launch(kernel, made_workload(number), number, machine);
}
library::Workload& MutantRunner::made_workload(std::size_t number) {
  library::Workload& workload = workloads_[number];
  if (workload.kernel) return workload;
  const std::size_t place = number - usual_.size();
  const bool is_further = place < further_.size();
  workload =
      is_further ? options_.further[place]() : options_.candidates[place - further_.size()]();
  return workload;
}
// Of the number's sizes.
MachineReport MutantRunner::launch(const ir::Kernel& kernel, library::Workload& workload,
                                   std::size_t number, MachineOptions machine) {
  machine.multiprocessors = multiprocessors_of(number);
  // Also of a mutant without the kernel's only wait, whose CTAs could run one after the other.
  if (ir::is_cooperative(machine_)) {
    machine.resident = target::resident_ctas(machine_) * machine.multiprocessors;
  }
  if (!is_own(kernel)) machine.max_operations = most_operations(executed_of(number).count);
  if (!machine.control_only) workload.poison_outputs();
  return report_of([&] { return simulator::run_machine(kernel, workload.arguments(), machine); });
}
std::int64_t MutantRunner::multiprocessors_of(std::size_t number) const {
  return shrunken_multiprocessors(machine_, number >= usual_.size());
}

}  // namespace tilewright::checks
