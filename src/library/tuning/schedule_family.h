#pragma once

#include <string>
#include <vector>

#include "library/kernel_source.h"
#include "library/tuning/family.h"

namespace tilewright::library {

// What the compiler chooses where no field is stated, among the members of a schedule family.
inline constexpr const char* kCompilersChoice = "the compiler's choice";

// The schedules that fit a kernel of the tile level, each of another machine form.
struct ScheduleFamily {
  struct Refused {
    std::string name, why;
  };
  std::vector<FamilyMember> members;  // "stages=3 ctas=2"; the compiler's choice first
  std::vector<Refused> refused;
};

// Tries values of every field that the options do not state: those that fit alone, in all
// combinations. Raises what compiling the kernel does.
ScheduleFamily schedule_family(const KernelSource& source, const OptionValues& options,
                               const compiler::Target& target);

}  // namespace tilewright::library
