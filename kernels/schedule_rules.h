#pragma once

#include <string_view>
#include <vector>

#include "tilewright/library.h"

namespace tilewright::kernels {

// The files kernels/schedules/KERNEL.TARGET.txt, which the build copies into the library.
std::vector<ScheduleRules> schedule_rules(std::string_view kernel);

}  // namespace tilewright::kernels
