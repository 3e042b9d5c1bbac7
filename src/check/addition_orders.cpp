#include "check/addition_orders.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "check/phases.h"

namespace tilewright::checks {
namespace {

using simulator::kBitsOfHanded;
using simulator::MachineReport;

constexpr std::size_t kMostHandedChoices = 64 / kBitsOfHanded;
using SeedDigits = std::vector<std::uint64_t>;  // of a seed, from the lowest on

class OrderRuns {
 public:
  OrderRuns(simulator::MachineOptions machine,
            const std::function<MachineReport(const simulator::MachineOptions&)>& run)
      : machine_(machine), run_(run) {
    machine_.control_only = machine_.timing = true;
    machine_.search = simulator::Search::handed;
  }

  // Whether there are more orders than these.
  bool each(std::int64_t most_operations) {
    SeedDigits digits;
    do {
      if (!one(digits) || stood_.size() > kMostHandedChoices) return true;
      // The next order, of which the first choices are the same.
      digits.resize(stood_.size());
      while (!digits.empty() && digits.back() + 1 >= stood_[digits.size() - 1]) digits.pop_back();
      if (!digits.empty() && ++digits.back() >> kBitsOfHanded != 0) return true;
    } while (!digits.empty() && found_.operations < most_operations);
    found_.all = digits.empty();
    return !found_.all;
  }

  // Of as many as ever stand before an addition. The first one is always the next in each()'s
  // first.
  void always_the_same() {
    const auto most =
        stood_.empty() ? stood_.end() : std::max_element(stood_.begin(), stood_.end());
    const std::uint64_t warps = most == stood_.end() ? 0 : *most;
    for (std::uint64_t i = 1; i < std::min<std::uint64_t>(warps, 1 << kBitsOfHanded); ++i) {
      if (!one(SeedDigits(kMostHandedChoices, i))) return;
    }
  }

  AdditionOrders take() { return std::move(found_); }
  bool goes_on() const { return found_.fault.kind.empty() && found_.timing.empty(); }

 private:
  // Whether nothing is found.
  bool one(const SeedDigits& digits) {
    machine_.seed = 0;
    for (std::size_t i = digits.size(); i-- > 0;) {
      machine_.seed = machine_.seed << kBitsOfHanded | digits[i];
    }
    Phases phases;
    machine_.recorder = &phases;
    MachineReport report = run_(machine_);
    found_.operations += report.operations;
    found_.phases.push_back(phases.count);
    found_.arrivals.join(report.arrivals);
    stood_ = std::move(report.stood);
    if (!report.ok()) {
      found_.fault = std::move(report.faults.front());
      found_.fault.message += fmt::format("\n  with --search handed --seed {}", machine_.seed);
      found_.seed = machine_.seed;
      return false;
    }
    found_.timing = report.timing.empty() && !report.is_handed_out ? std::move(report.words)
                                                                   : std::move(report.timing);
    return goes_on();
  }

  simulator::MachineOptions machine_;
  const std::function<MachineReport(const simulator::MachineOptions&)>& run_;
  AdditionOrders found_;
  std::vector<std::uint8_t> stood_;  // of the last one
};

}  // namespace

AdditionOrders each_order(
    simulator::MachineOptions machine, std::int64_t most_operations,
    const std::function<MachineReport(const simulator::MachineOptions&)>& run) {
  OrderRuns orders(machine, run);
  if (orders.each(most_operations) && orders.goes_on()) orders.always_the_same();
  return orders.take();
}

}  // namespace tilewright::checks
