#pragma once

#include <string>
#include <string_view>

#include "tilewright/library.h"
#include "tilewright/schedule.h"

// Options that every kernel has: the fields of a Schedule, "schedule.stages".
namespace tilewright::library {

inline constexpr std::string_view kFieldPrefix = "schedule.";

inline bool is_field(std::string_view option) { return option.starts_with(kFieldPrefix); }
// The value of such an option as it is compared. Raises a usage error for a field or a value that
// there is not.
std::string checked_field(const std::string& option, const std::string& value);
// What the options state.
Schedule stated_schedule(const OptionValues& options);

}  // namespace tilewright::library
