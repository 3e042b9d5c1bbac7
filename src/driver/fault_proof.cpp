#include "driver/fault_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "driver/simulation.h"
#include "ir/verifier.h"
#include "support/diagnostic.h"

namespace tilewright::driver {
namespace {

using Verdict = MutantResult::Verdict;

// What many runs of kernels that are alike share.
struct Proof {
  const ProofOptions& options;
  std::int64_t multiprocessors = 1;
  double tolerance = 0;
  std::vector<std::vector<double>> reference;
};

struct Run {
  simulator::Fault fault;  // of the first schedule that shows one; no kind: all are clean
  std::uint64_t seed = 0;
};

simulator::MachineReport launch(const Proof& proof, const ir::Kernel& kernel, Workload& workload,
                                std::uint64_t seed) {
  simulator::MachineOptions machine;
  machine.seed = seed;
  machine.multiprocessors = proof.multiprocessors;
  workload.poison_outputs();
  return simulator::run_machine(kernel, workload.arguments(), machine);
}

Run run(const Proof& proof, const ir::Kernel& kernel, Workload& workload) {
  for (std::int64_t schedule = 0; schedule < proof.options.schedules; ++schedule) {
    const std::uint64_t seed = proof.options.seed + static_cast<std::uint64_t>(schedule);
    for (std::int64_t i = 0; i < proof.options.launches; ++i) {
      simulator::MachineReport report = launch(proof, kernel, workload, seed);
      if (!report.ok()) return {std::move(report.faults.front()), seed};
    }
    const Comparison comparison = compare(workload, proof.reference);
    if (comparison.max_relative_error <= proof.tolerance) continue;
    return {{"mismatch", {}, {}, "mismatch: " + comparison.worst, {}}, seed};
  }
  return {};
}

bool is_reached(const Proof& proof, const ir::Kernel& machine, std::size_t site,
                Workload& workload) {
  return !launch(proof, simulator::with_probe(machine, site), workload, proof.options.seed).ok();
}

void judge(const Proof& proof, const ir::Kernel& machine, Workload& workload,
           MutantResult& result) {
  const ir::Kernel changed = result.mutant.apply(machine);
  try {
    ir::verify(changed);
    Run found = run(proof, changed, workload);
    result.fault = std::move(found.fault);
    result.seed = found.seed;
  } catch (const Error& error) {
    result.verdict = Verdict::rejected;
    result.fault = {"rejected", error.location(), {}, error.message(), {}};
    return;
  }
  if (!result.fault.kind.empty()) {
    const auto& classes = result.kind->classes;
    result.verdict = Verdict::caught;
    result.right_class =
        std::find(classes.begin(), classes.end(), result.fault.kind) != classes.end();
    result.both_lines = result.fault.first.line > 0 && result.fault.second.line > 0;
  } else if (!result.mutant.equivalent.empty()) {
    result.verdict = Verdict::equivalent;
  } else if (!is_reached(proof, machine, result.mutant.site, workload)) {
    result.verdict = Verdict::unreached;
  }
}

void require_clean(const Proof& proof, const ir::Kernel& machine, const Workload& workload) {
  Workload own = workload;
  const Run found = run(proof, machine, own);
  if (found.fault.kind.empty()) return;
  Diagnostic text = diagnostic_of(found.fault);
  text.fix(fmt::format("a kernel without faults of its own (seed {})", found.seed)).raise();
}

// Calls `work(i)` for all i below the count, each once, from several threads.
void in_parallel(unsigned threads, std::size_t count,
                 const std::function<void(std::size_t, unsigned)>& work) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto worker = [&](unsigned number) {
    try {
      for (std::size_t i = next++; i < count; i = next++) work(i, number);
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  for (unsigned i = 1; i < threads; ++i) others.emplace_back(worker, i);
  worker(0);
  for (std::thread& other : others) other.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

std::vector<MutantResult> prove_by_faults(const ir::Kernel& machine, const Workload& workload,
                                          const ProofOptions& options,
                                          const std::function<void(std::int64_t)>& begin,
                                          const std::function<void()>& advance) {
  const Proof proof{options, machine.cluster, workload.kernel->tolerance(workload.options),
                    reference_of(workload)};
  require_clean(proof, machine, workload);
  std::vector<MutantResult> results;
  for (const simulator::FaultKind& kind : simulator::fault_kinds()) {
    for (simulator::Mutant& mutant : simulator::mutants_of(kind, machine)) {
      MutantResult& result = results.emplace_back();
      result.kind = &kind;
      result.mutant = std::move(mutant);
    }
  }
  if (begin) begin(static_cast<std::int64_t>(results.size()));
  unsigned threads = options.threads ? options.threads : std::thread::hardware_concurrency();
  threads = std::max(threads, 1u);
  std::vector<Workload> workloads(threads, workload);
  in_parallel(threads, results.size(), [&](std::size_t i, unsigned thread) {
    judge(proof, machine, workloads[thread], results[i]);
    if (advance) advance();
  });
  return results;
}

namespace {

struct Axis {
  std::int64_t box = 0;  // the largest of its tensor maps; 0: in none
  bool is_output = false;
};

std::map<std::string, Axis> axes_of(const LibraryKernel& kernel, const ir::Kernel& machine) {
  std::map<std::string, Axis> axes;
  for (const LibraryTensor& tensor : kernel.tensors) {
    for (const std::string& extent : tensor.shape) {
      Axis& axis = axes[parse_axis(extent).option];
      axis.is_output = axis.is_output || tensor.is_output;
    }
  }
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::tensor_map) return;
    const ir::Parameter* parameter = machine.parameter_of(operation.operands[0]);
    const auto tensor = std::find_if(
        kernel.tensors.begin(), kernel.tensors.end(),
        [&](const LibraryTensor& candidate) { return candidate.name == parameter->name; });
    if (tensor == kernel.tensors.end()) return;
    const std::vector<std::int64_t>& box = operation.attributes.integers(ir::Key::box);
    for (std::size_t i = 0; i < tensor->shape.size(); ++i) {
      Axis& axis = axes[parse_axis(tensor->shape[i]).option];
      axis.box = std::max(axis.box, box[i]);
    }
  });
  axes.erase("");
  return axes;
}

std::int64_t most_stages(const ir::Kernel& machine) {
  std::int64_t stages = 1;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    if (operation.op != ir::Op::shared) return;
    stages = std::max(stages, operation.attributes.integer_or(ir::Key::stages, 1));
  });
  return stages;
}

}  // namespace

std::vector<std::string> shrunken_sizes(const LibraryKernel& kernel,
                                        const std::vector<std::string>& settings,
                                        const OptionValues& options, const ir::Kernel& machine) {
  constexpr std::int64_t kTail = 16;  // rows that the last block lacks
  std::set<std::string> is_set;
  for (const std::string& setting : settings) is_set.insert(setting.substr(0, setting.find('=')));
  const std::map<std::string, Axis> axes = axes_of(kernel, machine);
  // Sequences of a packed batch share the lengths.
  std::int64_t sequences = 1;
  for (const KernelOption& option : kernel.options) {
    const auto axis = axes.find(option.name);
    if (option.is_length && axis != axes.end() && axis->second.box == 0) sequences = 2;
  }
  std::vector<std::string> sizes;
  for (const KernelOption& option : kernel.options) {
    const auto found = axes.find(option.name);
    if (found == axes.end() || is_set.count(option.name) != 0) continue;
    const Axis& axis = found->second;
    const bool follows = options.has(option.standard);
    std::int64_t size = 0;
    if (option.is_length) {
      const std::int64_t blocks = axis.is_output ? 2 : (most_stages(machine) + 1) * machine.cluster;
      size = axis.box > 1 ? blocks * axis.box * sequences - kTail : sequences;
    } else if (axis.box == 1 && !follows) {
      size = 2;
    }
    if (size > 0) sizes.push_back(fmt::format("{}={}", option.name, size));
  }
  return sizes;
}

}  // namespace tilewright::driver
