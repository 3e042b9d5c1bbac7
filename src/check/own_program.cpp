#include "check/own_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <unordered_set>
#include <utility>

#include "check/input_changes.h"
#include "compiler/simulation.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/recorder.h"
#include "support/diagnostic.h"

namespace tilewright::checks {

ir::Program executed(const ProgramCase& of, ir::Program program) {
  return of.has_callers ? library::with_callers(std::move(program)) : program;
}

bool draws_conditions(const std::vector<ir::Kernel>& kernels) {
  return std::any_of(kernels.begin(), kernels.end(),
                     [](const ir::Kernel& kernel) { return draws_conditions(kernel); });
}

std::vector<std::size_t> cheapest_first(const std::vector<ProgramCase>& cases) {
  const auto bytes_of = [&](std::size_t number) {
    std::int64_t bytes = 0;
    for (const std::vector<HostTensor>& of_rank : cases[number].before) {
      for (const HostTensor& tensor : of_rank) {
        bytes += static_cast<std::int64_t>(tensor.size_bytes());
      }
    }
    return bytes;
  };
  std::vector<std::size_t> numbers(cases.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](std::size_t a, std::size_t b) { return bytes_of(a) < bytes_of(b); });
  return numbers;
}

namespace {

// Which operations of which kernels warps come to.
class Sites : public simulator::Recorder {
 public:
  using Recorder::begin;
  using Recorder::starts;
  void begin(const simulator::Launch& launch) override {
    for (const simulator::Instruction& instruction : launch.kernel.code) {
      executable_.insert(instruction.operation);
    }
  }
  void starts(const simulator::Warp&, const simulator::Instruction& instruction) override {
    executed_.insert(instruction.operation);
  }
  bool is_executable(const ir::Operation& operation) const {
    return executable_.count(&operation) != 0;
  }
  bool is_executed(const ir::Operation& operation) const {
    return executed_.count(&operation) != 0;
  }

 private:
  std::unordered_set<const ir::Operation*> executable_, executed_;
};

}  // namespace

OwnProgram::OwnProgram(const std::vector<ProgramCase>& cases,
                       const std::vector<ir::Kernel>& kernels, const ProofOptions& options)
    : cases_(cases), kernels_(kernels), options_(options), known_(cases.size()) {
  for (const ProgramCase& each : cases) programs_.push_back(executed(each, each.program));
}

simulator::MachineReport OwnProgram::run(std::size_t number, std::uint64_t seed,
                                         library::ProgramTensors* after,
                                         simulator::Recorder* recorder) const {
  const ProgramCase& each = cases_[number];
  simulator::MachineOptions machine = each.machine;
  machine.seed = seed;
  machine.control_only = after == nullptr;
  machine.timing = true;
  machine.recorder = recorder;
  simulator::MachineReport report =
      library::simulate_program(programs_[number], kernels_, before(number, after != nullptr),
                                after, machine, options_.launches);
  if (report.ok()) return report;
  Diagnostic text = compiler::diagnostic_of(report.faults.front());
  text.fix(fmt::format("a program without faults of its own (seed {})", seed));
  try {
    text.raise();
  } catch (const Error& error) {
    throw OwnFault{error};
  }
}

const library::ProgramTensors& OwnProgram::before(std::size_t number, bool values) const {
  const ProgramCase& each = cases_[number];
  if (!values || !each.valued) return each.before;
  Known& known = known_[number];
  std::call_once(known.drawn, [&] { known.before = each.valued(); });
  return known.before;
}

std::int64_t OwnProgram::operations(std::size_t number) const {
  order(number);
  return known_[number].operations;
}

std::optional<bool> OwnProgram::comes_to(std::size_t number, std::size_t kernel,
                                         std::size_t site) const {
  order(number);
  const Known& known = known_[number];
  if (!known.executable[kernel][site] || draws_conditions(kernels_)) return std::nullopt;
  return known.executed[kernel][site];
}

void OwnProgram::order(std::size_t number) const {
  Known& known = known_[number];
  std::call_once(known.ordered, [&] {
    Sites sites;
    known.operations = run(number, options_.seed, nullptr, &sites).operations;
    for (const ir::Kernel& kernel : kernels_) {
      std::vector<bool>& executable = known.executable.emplace_back();
      std::vector<bool>& executed = known.executed.emplace_back();
      ir::for_each(kernel.body, [&](const ir::Operation& operation) {
        executable.push_back(sites.is_executable(operation));
        executed.push_back(sites.is_executed(operation));
      });
    }
  });
}

const library::ProgramTensors& OwnProgram::wanted(std::size_t number) const {
  Known& known = known_[number];
  std::call_once(known.valued, [&] {
    for (std::int64_t i = 0; i < schedules(); ++i) {
      const simulator::MachineReport report =
          run(number, options_.seed + static_cast<std::uint64_t>(i), &known.wanted);
      if (report.timing.empty() && report.words.empty() && !draws_conditions(kernels_)) break;
    }
  });
  return known.wanted;
}

bool OwnProgram::reads_zeros(std::size_t number, int buffer, int rank) const {
  Known& known = known_[number];
  std::call_once(known.zeroed, [&] {
    if (draws_conditions(kernels_)) return;
    for (std::int64_t i = 0; i < options_.few && !known.zeros_read; ++i) {
      simulator::MachineReport report =
          run(number, options_.seed + static_cast<std::uint64_t>(i), nullptr);
      if (report.timing.empty() && report.words.empty()) {
        known.zeros_read = std::move(report.zeros_read);
      }
    }
  });
  return !known.zeros_read || known.zeros_read->count({buffer, rank}) != 0;
}

const std::vector<OwnProgram::Unusual>& OwnProgram::unusual(std::size_t number) const {
  Known& known = known_[number];
  std::call_once(known.unusually, [&] {
    const ir::Program& program = programs_[number];
    std::vector<std::pair<std::size_t, const HostTensor*>> inputs;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      names.push_back(program.buffers[i].name);
      if (program.buffers[i].kind == ir::ProgramBuffer::Kind::in) {
        inputs.emplace_back(i, &before(number, true)[0][i]);
      }
    }
    for (const InputChange& change : changes_of_inputs(inputs)) {
      Unusual unusual;
      unusual.how = describe(change, names);
      unusual.before = before(number, true);
      for (const std::size_t input : change.inputs) apply(change, input, unusual.before[0][input]);
      library::ProgramTensors again;
      const auto is_clean = [&](std::uint64_t seed, library::ProgramTensors& after) {
        simulator::MachineOptions machine = without_order(number);
        machine.seed = seed;
        return report_of([&] {
                 return library::simulate_program(program, kernels_, unusual.before, &after,
                                                  machine, options_.launches);
               })
            .ok();
      };
      const bool ok = is_clean(options_.seed, unusual.wanted) && is_clean(options_.seed + 1, again);
      if (!ok || !library::compare_buffers(program, again, unusual.wanted).ok()) continue;
      known.unusual.push_back(std::move(unusual));
    }
  });
  return known.unusual;
}

simulator::MachineOptions OwnProgram::without_order(std::size_t number) const {
  simulator::MachineOptions machine = cases_[number].machine;
  machine.seed = options_.seed;
  machine.check_order = false;
  machine.max_operations = most_operations(operations(number));
  return machine;
}

}  // namespace tilewright::checks
