#include "library/stated_schedule.h"

#include "ir/schedule.h"

namespace tilewright::library {
namespace {

void state(Schedule& schedule, const std::string& option, const std::string& value) {
  ir::state_field(schedule, std::string_view(option).substr(kFieldPrefix.size()), value, {});
  ir::check_ranges(schedule);
}

}  // namespace

std::string checked_field(const std::string& option, const std::string& value) {
  Schedule schedule;
  state(schedule, option, value);
  return ir::stated_fields(schedule).front().value;
}

Schedule stated_schedule(const OptionValues& options) {
  Schedule schedule;
  for (const auto& [option, value] : options.all()) {
    if (is_field(option)) state(schedule, option, value);
  }
  return schedule;
}

}  // namespace tilewright::library
