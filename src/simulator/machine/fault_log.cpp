#include "simulator/machine/fault_log.h"

#include <algorithm>
#include <utility>

namespace tilewright::simulator {

void FaultLog::add(Fault fault) {
  const auto same_place = [](SourceLocation a, SourceLocation b) {
    return a.file == b.file && a.line == b.line;
  };
  const bool known =
      std::any_of(report_.faults.begin(), report_.faults.end(), [&](const Fault& other) {
        return other.kind == fault.kind && same_place(other.first, fault.first) &&
               same_place(other.second, fault.second);
      });
  if (!known) report_.faults.push_back(std::move(fault));
  if (stop_at_first_) throw Stopped{};
}

}  // namespace tilewright::simulator
