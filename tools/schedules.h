#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "compiler/simulation.h"
#include "library/accuracy.h"

// What `simulate` executes in many schedules, and what came of it.
namespace tilewright::tools {

// What can be executed again and again: a kernel with tensors, or a program.
struct Simulated {
  std::string sizes;  // "keys=496 queries=568"; empty: as the command says
  // From the same memory each time.
  std::function<simulator::MachineReport(const simulator::MachineOptions&)> launch;
  std::int64_t launches = 1;  // calls of it in a schedule, one after the other
  std::int64_t bytes = 0;     // of its tensors: which of several sizes are small
  // Conditions depend on data. Without arithmetic the seed draws them.
  bool has_conditions = false;
  // The results of the last call; null where nothing is compared.
  std::function<library::Comparison()> compare;
};

// What was run of one of them.
struct Case {
  std::string sizes;
  std::int64_t schedules = 0, possible = 0;  // possible: with at most two delays
  bool one_for_all = false;                  // one was executed, which stands for `schedules`
  bool without_values = false;               // what Request::valued_operations did not reach to
  std::int64_t operations = 0;               // of warps, in the first of them
  library::Comparison comparison;
  bool ok() const { return comparison.ok(); }
};

struct Outcome {
  std::vector<simulator::Fault> faults;   // each once, whatever the schedules that showed it
  std::uint64_t seed = 0;                 // of the first schedule with a fault, else of the first
  std::string sizes;                      // of the same
  std::optional<simulator::Trace> trace;  // of the same
  std::vector<Case> cases;
  std::int64_t operations = 0;
  // Of a core with explicit memories, of the first launch: no schedule changes modelled time.
  std::vector<simulator::UnitUse> units;
  std::int64_t cycles = 0;
  bool ok() const {
    return faults.empty() &&
           std::all_of(cases.begin(), cases.end(), [](const Case& each) { return each.ok(); });
  }
  std::int64_t schedules() const {
    std::int64_t sum = 0;
    for (const Case& each : cases) sum += each.schedules;
    return sum;
  }
  // The one with the largest error, as a share of what is allowed.
  const Case& worst() const {
    const auto share = [](const Case& each) {
      return std::pair(each.comparison.share(), !each.comparison.outputs.empty());
    };
    return *std::max_element(cases.begin(), cases.end(),
                             [&](const Case& a, const Case& b) { return share(a) < share(b); });
  }
};

struct Execution {
  Simulated simulated;
  simulator::MachineOptions options;
};

// Executes each in the request's schedules, and adds what came of it to the outcome. With
// --one-for-all those in which something depends on the order of the work share them: each has one
// at least, and small ones have most. Small ones come first there, and have values until so many
// operations are executed as the request says.
void execute(const Request& request, const std::vector<Execution>& all, Outcome& outcome);

// What the request says of all executions; the rest is the caller's.
simulator::MachineOptions machine_options(const Request& request);

}  // namespace tilewright::tools
