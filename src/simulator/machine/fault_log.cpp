#include "simulator/machine/fault_log.h"

#include <algorithm>
#include <utility>

#include "support/same_line.h"

namespace tilewright::simulator {

void FaultLog::add(Fault fault) {
  const bool known =
      std::any_of(report_.faults.begin(), report_.faults.end(), [&](const Fault& other) {
        return other.kind == fault.kind && same_line(other.first, fault.first) &&
               same_line(other.second, fault.second);
      });
  if (!known) report_.faults.push_back(std::move(fault));
  if (stop_at_first_) throw Stopped{};
}

}  // namespace tilewright::simulator
