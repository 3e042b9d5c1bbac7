#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>

#include "simulator/machine/recorder.h"

namespace tilewright::checks {

// Counts the phases that mbarriers complete.
class Phases : public simulator::Recorder {
 public:
  void phase_completed(const simulator::Cta&, int) override { ++count; }
  std::int64_t count = 0;
};

// Why a change is undecided that leaves other phases: one that no longer comes to its end is one
// that a longer launch may wait for.
inline std::string other_phases(std::int64_t own, std::int64_t changed) {
  return fmt::format("the {} phases of its mbarriers are {} with the change", own, changed);
}

}  // namespace tilewright::checks
