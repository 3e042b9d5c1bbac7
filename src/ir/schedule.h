#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/schedule.h"

// Schedules as text and field by field.
namespace tilewright::ir {

// Calls `visit(name, field)` for every field of one schedule, or of two side by side.
template <typename Visit, typename... Schedules>
void for_each_field(Visit&& visit, Schedules&... schedules) {
  visit("stages", schedules.stages...);
  visit("warpgroups", schedules.warpgroups...);
  visit("partition", schedules.partition...);
  visit("ctas", schedules.ctas...);
  visit("overlap", schedules.overlap...);
}

std::string value_text(int value);
std::string value_text(Partition value);
std::string value_text(bool value);

// A field that is set: "stages", "3".
struct StatedField {
  std::string name, value;
  SourceLocation where;
};
std::vector<StatedField> stated_fields(const Schedule& schedule);

// Raises a usage error at `where` for a name or a value that there is not, and for a field that is
// set already.
void state_field(Schedule& schedule, std::string_view name, std::string_view value,
                 SourceLocation where);
// Raises a usage error for a number that no kernel could be compiled with.
void check_ranges(const Schedule& schedule);
// The first one's fields, and the second one's where the first says nothing.
Schedule merged(const Schedule& first, const Schedule& second);
// The same values, wherever they were stated.
bool equal(const Schedule& a, const Schedule& b);

}  // namespace tilewright::ir
