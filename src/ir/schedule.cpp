#include "ir/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

constexpr std::string_view kPartitions[] = {"rows", "columns"};

struct Range {
  std::string_view name;
  int least, most;
};
constexpr Range kRanges[] = {{"stages", 1, 16}, {"warpgroups", 1, 8}, {"ctas", 1, 16}};

bool read(std::string_view text, int& value) {
  const char* const end = text.data() + text.size();
  return std::from_chars(text.data(), end, value) == std::from_chars_result{end, {}};
}

bool read(std::string_view text, Partition& value) {
  for (const Partition each : {Partition::rows, Partition::columns}) {
    if (value_text(each) != text) continue;
    value = each;
    return true;
  }
  return false;
}

bool read(std::string_view text, bool& value) {
  value = text == "true" || text == "1";
  return value || text == "false" || text == "0";
}

std::string wanted(int) { return "a number"; }
std::string wanted(Partition) { return fmt::format("{}", fmt::join(kPartitions, " or ")); }
std::string wanted(bool) { return "true or false"; }

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  Schedule any;
  for_each_field([&](const char* name, auto&) { names.emplace_back(name); }, any);
  return names;
}

}  // namespace

std::string value_text(int value) { return std::to_string(value); }
std::string value_text(Partition value) {
  const auto number = static_cast<std::size_t>(value);
  if (number >= std::size(kPartitions)) return fmt::format("Partition({})", number);
  return std::string(kPartitions[number]);
}
std::string value_text(bool value) { return value ? "true" : "false"; }

std::vector<StatedField> stated_fields(const Schedule& schedule) {
  std::vector<StatedField> fields;
  for_each_field(
      [&](const char* name, const auto& field) {
        if (field.is_set()) fields.push_back({name, value_text(field.value()), field.where()});
      },
      schedule);
  return fields;
}

void state_field(Schedule& schedule, std::string_view name, std::string_view value,
                 SourceLocation where) {
  bool known = false;
  const auto fail = [&](const std::string& what, const std::string& fix) {
    Diagnostic(where, "schedule: " + what).token(name).fix(fix).raise();
  };
  const auto state = [&]<typename T>(ScheduleField<T>& field) {
    T read_value{};
    if (field.is_set()) {
      fail(fmt::format("{} is stated twice, as {} and as {}", name, value_text(field.value()),
                       value),
           "state it once");
    }
    if (!read(value, read_value)) {
      fail(fmt::format("{} = '{}' is not {}", name, value, wanted(read_value)),
           fmt::format("state {} as {}", name, wanted(read_value)));
    }
    field = ScheduleField<T>(read_value, where);
  };
  for_each_field(
      [&](const char* each, auto& field) {
        if (name != each) return;
        known = true;
        state(field);
      },
      schedule);
  if (known) return;
  fail(fmt::format("there is no field '{}'", name),
       fmt::format("state one of: {}", fmt::join(field_names(), ", ")));
}

void check_ranges(const Schedule& schedule) {
  const ScheduleField<Partition>& partition = schedule.partition;
  Partition known{};
  if (partition.is_set() && !read(value_text(partition.value()), known)) {
    Diagnostic(partition.where(),
               fmt::format("schedule: partition = {}", value_text(partition.value())))
        .token("partition")
        .fix(fmt::format("state {}", wanted(known)))
        .raise();
  }
  for (const StatedField& field : stated_fields(schedule)) {
    for (const Range& range : kRanges) {
      int value = 0;
      if (range.name != field.name || !read(field.value, value)) continue;
      if (value >= range.least && value <= range.most) continue;
      Diagnostic(field.where, fmt::format("schedule: {} = {}", field.name, value))
          .token(field.name)
          .fix(fmt::format("state {} to {}", range.least, range.most))
          .raise();
    }
  }
}

Schedule merged(const Schedule& first, const Schedule& second) {
  Schedule result = first;
  for_each_field(
      [](const char*, auto& mine, const auto& other) {
        if (!mine.is_set()) mine = other;
      },
      result, second);
  return result;
}

bool equal(const Schedule& a, const Schedule& b) {
  bool same = true;
  for_each_field(
      [&](const char*, const auto& x, const auto& y) {
        same &= x.is_set() == y.is_set() && (!x.is_set() || x.value() == y.value());
      },
      a, b);
  return same;
}

}  // namespace tilewright::ir
