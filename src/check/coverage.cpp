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
    coverage_.turns.resize(numbers_.size());
    first_.resize(numbers_.size());
    coverage_.executable.resize(numbers_.size());
  }
  Coverage take() { return std::move(coverage_); }

  void begin(const simulator::Launch& launch) override {
    coverage_.phases.assign(static_cast<std::size_t>(launch.kernel.barriers), 0);
    for (const simulator::BarrierArray& array : launch.kernel.barrier_arrays) {
      coverage_.wanted.insert(coverage_.wanted.end(), static_cast<std::size_t>(array.count),
                              Coverage::phases_wanted(array.arrivals));
    }
    for (const simulator::Instruction& instruction : launch.kernel.code) {
      const auto found = numbers_.find(instruction.operation);
      if (found != numbers_.end()) coverage_.executable[found->second] = true;
    }
  }
  void starts(const simulator::Warp& warp, const simulator::Instruction& instruction) override {
    const auto found = numbers_.find(instruction.operation);
    if (found == numbers_.end()) return;
    const simulator::Warp*& first = first_[found->second];
    if (!first) first = &warp;
    std::uint64_t& turns = coverage_.turns[found->second];
    if (first == &warp && turns < Coverage::kTurns) ++turns;
  }
  void phase_completed(const simulator::Cta& cta, int barrier) override {
    std::uint64_t& most = coverage_.phases[static_cast<std::size_t>(barrier)];
    const auto number = static_cast<std::size_t>(barrier);
    most = std::max(most, std::min(cta.barriers[number].phase, coverage_.wanted[number]));
  }

 private:
  std::unordered_map<const ir::Operation*, std::size_t> numbers_;
  std::vector<const simulator::Warp*> first_;  // that came to each operation
  Coverage coverage_;
};

}  // namespace

std::uint64_t Coverage::phases_wanted(int arrivals) {
  return static_cast<std::uint64_t>(std::max(4, arrivals + 2));
}

std::uint64_t Coverage::gain(const Coverage& other) const {
  std::uint64_t gain = 0;
  const auto add = [&](const std::vector<std::uint64_t>& own,
                       const std::vector<std::uint64_t>& more) {
    for (std::size_t i = 0; i < more.size(); ++i) {
      const std::uint64_t had = i < own.size() ? own[i] : 0;
      gain += more[i] > had ? more[i] - had : 0;
    }
  };
  add(turns, other.turns);
  add(phases, other.phases);
  return gain;
}

void Coverage::add(const Coverage& other) {
  if (executable.empty()) executable = other.executable;
  if (wanted.empty()) wanted = other.wanted;
  const auto take = [](std::vector<std::uint64_t>& own, const std::vector<std::uint64_t>& more) {
    own.resize(std::max(own.size(), more.size()));
    for (std::size_t i = 0; i < more.size(); ++i) own[i] = std::max(own[i], more[i]);
  };
  take(turns, other.turns);
  take(phases, other.phases);
}

std::vector<const ir::Operation*> Coverage::missing(const ir::Kernel& machine) const {
  std::vector<const ir::Operation*> list;
  std::size_t number = 0;
  ir::for_each(machine.body, [&](const ir::Operation& operation) {
    const std::size_t own = number++;
    if (own < executable.size() && executable[own] && turns[own] == 0) list.push_back(&operation);
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
                                  std::int64_t operations, Coverage begun) {
  std::vector<Coverage> all;
  std::int64_t executed = 0;
  while (all.size() < candidates.size() && executed < operations) {
    library::Workload workload = candidates[all.size()]();
    all.push_back(coverage_of(machine, workload.arguments(), multiprocessors, seed, executed));
  }
  std::vector<std::size_t> chosen;
  for (;;) {
    std::size_t best = all.size();
    std::uint64_t most = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::uint64_t gain = begun.gain(all[i]);
      if (gain <= most) continue;
      most = gain;
      best = i;
    }
    if (best == all.size()) return chosen;
    begun.add(all[best]);
    chosen.push_back(best);
  }
}

}  // namespace tilewright::checks
