#include "check/coverage.h"

#include <algorithm>
#include <unordered_map>

#include "simulator/machine/cta.h"
#include "simulator/machine/launch.h"
#include "simulator/machine/machine.h"
#include "simulator/machine/recorder.h"

namespace tilewright::checks {
namespace {

class Recorded : public simulator::Recorder {
 public:
  using Recorder::begin;
  using Recorder::starts;
  explicit Recorded(const ir::Kernel& machine) {
    ir::for_each(machine.body, [&](const ir::Operation& operation) {
      const std::size_t number = numbers_.size();
      numbers_.emplace(&operation, number);
    });
    coverage_.reached.resize(numbers_.size());
    coverage_.executable.resize(numbers_.size());
  }
  Coverage take() { return std::move(coverage_); }

  void begin(const simulator::Launch& launch) override {
    coverage_.phases.assign(static_cast<std::size_t>(launch.kernel.barriers), 0);
    for (const simulator::Instruction& instruction : launch.kernel.code) {
      const auto found = numbers_.find(instruction.operation);
      if (found != numbers_.end()) coverage_.executable[found->second] = true;
    }
  }
  void starts(const simulator::Warp&, const simulator::Instruction& instruction) override {
    const auto found = numbers_.find(instruction.operation);
    if (found != numbers_.end()) coverage_.reached[found->second] = true;
  }
  void phase_completed(const simulator::Cta& cta, int barrier) override {
    std::uint64_t& most = coverage_.phases[static_cast<std::size_t>(barrier)];
    most = std::max(
        most, std::min(cta.barriers[static_cast<std::size_t>(barrier)].phase, Coverage::kPhases));
  }

 private:
  std::unordered_map<const ir::Operation*, std::size_t> numbers_;
  Coverage coverage_;
};

}  // namespace

bool Coverage::all() const {
  return reached == executable && std::all_of(phases.begin(), phases.end(),
                                              [](std::uint64_t count) { return count >= kPhases; });
}

bool Coverage::adds_to(const Coverage& other) const {
  for (std::size_t i = 0; i < reached.size(); ++i) {
    if (reached[i] && !(i < other.reached.size() && other.reached[i])) return true;
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases[i] > (i < other.phases.size() ? other.phases[i] : 0)) return true;
  }
  return false;
}

void Coverage::add(const Coverage& other) {
  reached.resize(std::max(reached.size(), other.reached.size()));
  if (executable.empty()) executable = other.executable;
  phases.resize(std::max(phases.size(), other.phases.size()));
  for (std::size_t i = 0; i < other.reached.size(); ++i) {
    reached[i] = reached[i] || other.reached[i];
  }
  for (std::size_t i = 0; i < other.phases.size(); ++i) {
    phases[i] = std::max(phases[i], other.phases[i]);
  }
}

std::vector<const ir::Operation*> Coverage::missing(const ir::Kernel& machine) const {
  std::vector<const ir::Operation*> list;
  std::size_t number = 0;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const std::size_t own = number++;
    if (own < executable.size() && executable[own] && !reached[own]) list.push_back(&operation);
  });
  return list;
}

Coverage coverage_of(const ir::Kernel& machine, const Arguments& arguments,
                     std::int64_t multiprocessors, std::uint64_t seed, std::int64_t& operations) {
  Recorded recorded(machine);
  simulator::MachineOptions options;
  options.control_only = true;
  options.multiprocessors = multiprocessors;
  options.seed = seed;
  options.recorder = &recorded;
  operations += simulator::run_machine(machine, arguments, options).operations;
  return recorded.take();
}

std::vector<std::size_t> covering(const ir::Kernel& machine,
                                  const std::vector<std::function<library::Workload()>>& candidates,
                                  std::int64_t multiprocessors, std::uint64_t seed,
                                  Coverage& begun) {
  constexpr std::int64_t kOperations = 10'000'000;
  std::vector<std::size_t> chosen;
  std::int64_t executed = 0;
  for (std::size_t i = 0; i < candidates.size() && !begun.all() && executed < kOperations; ++i) {
    library::Workload workload = candidates[i]();
    const Coverage own =
        coverage_of(machine, workload.arguments(), multiprocessors, seed, executed);
    if (!own.adds_to(begun)) continue;
    begun.add(own);
    chosen.push_back(i);
  }
  return chosen;
}

}  // namespace tilewright::checks
