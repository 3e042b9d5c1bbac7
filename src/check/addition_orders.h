#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "simulator/machine/machine.h"

namespace tilewright::checks {

// What runs of a program have shown with each order of its atomic additions (Search::handed).
struct AdditionOrders {
  simulator::Fault fault;       // no kind: none
  std::uint64_t seed = 0;       // of the fault
  std::int64_t operations = 0;  // of all of them
  std::string timing;           // what depends on the order of the work nevertheless
  simulator::ArrivalsInTime arrivals;
  std::vector<std::int64_t> phases;  // that mbarriers have completed, of each order
  bool all = false;                  // there are no more orders
};

// Runs each order, until so many operations are executed. Where there are more orders, those follow
// in which the same one of the warps that stand before an addition is always the next: it takes all
// that there is, so that what it fills is full.
AdditionOrders each_order(
    simulator::MachineOptions machine, std::int64_t most_operations,
    const std::function<simulator::MachineReport(const simulator::MachineOptions&)>& run);

}  // namespace tilewright::checks
