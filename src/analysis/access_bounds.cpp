#include "analysis/access_bounds.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "support/number_formats.h"

namespace tilewright::analysis {
namespace {

AxisCheck check_of(std::size_t axis, std::int64_t size, ir::ValueId start,
                   const LoadedIntegers& integers) {
  const auto from = integers.source(start);
  AxisCheck check{axis, size};
  check.counted = from && integers.nonnegative(start);
  check.placed = from && integers.alone(start);
  check.source = from.value_or(ir::kNoValue);
  return check;
}

}  // namespace

std::vector<AxisCheck> axis_checks(const ir::Operation& access, std::size_t first,
                                   const LoadedIntegers& integers) {
  const std::vector<std::int64_t>& sizes = access.attributes.integers(ir::Key::sizes);
  const std::size_t rank = sizes.size();
  std::vector<AxisCheck> checks;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const ir::ValueId start = access.operands[first + axis];
    const ir::ValueId limit = access.operands[first + rank + axis];
    AxisCheck check = check_of(axis, sizes[axis], start, integers);
    const auto to = integers.source(limit);
    const auto distance = integers.distance(start, limit);
    check.loaded_end = check.size > 0 && to && !(distance && *distance >= check.size);
    if (check.source == ir::kNoValue) check.source = to.value_or(ir::kNoValue);
    if (check.size == 0 || check.counted || check.placed || check.loaded_end)
      checks.push_back(check);
  }
  return checks;
}

std::vector<AxisCheck> coordinate_checks(const ir::Operation& copy, std::size_t first,
                                         const ir::Operation& map, const LoadedIntegers& integers) {
  std::vector<std::int64_t> sizes = map.attributes.integers(ir::Key::box);
  std::replace(sizes.begin(), sizes.end(), std::int64_t{1}, std::int64_t{0});
  if (const ir::Attribute* blocks = map.attributes.find(ir::Key::single)) {
    for (const std::int64_t axis : std::get<std::vector<std::int64_t>>(*blocks)) sizes[axis] = 1;
  }
  std::vector<AxisCheck> checks;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::size_t axis = sizes.size() - 1 - i;
    // What a copy is told on a ragged axis is not where its block begins.
    if (map.attributes.integer_or(ir::Key::ragged, -1) == static_cast<std::int64_t>(axis)) continue;
    const AxisCheck check = check_of(axis, sizes[axis], copy.operands[first + i], integers);
    if (check.size == 0 || check.counted || check.placed) checks.push_back(check);
  }
  return checks;
}

std::vector<AxisCheck> word_checks(const ir::Operation& word, std::size_t rank,
                                   const LoadedIntegers& integers) {
  std::vector<AxisCheck> checks;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    checks.push_back(check_of(axis, 0, word.operands[1 + axis], integers));
  }
  return checks;
}

std::string bounds_message(BoundsFault fault, std::size_t axis, std::string_view tensor) {
  const std::string of = fmt::format("on axis {} of {}, which has {{}}", axis, tensor);
  switch (fault) {
    case BoundsFault::index:
      return "index {} " + of;
    case BoundsFault::begin:
      return "a block that begins at {} " + of;
    case BoundsFault::end:
      return "a block from {} that ends at {} " + of;
  }
  return {};
}

IndexClaim::IndexClaim(const ir::Operation& load_index)
    : counted(load_index.attributes.has(ir::Key::counted)),
      ascending(load_index.attributes.has(ir::Key::ascending)) {
  const ir::Attribute* const most = load_index.attributes.find(ir::Key::at_most);
  if (most) at_most = std::get<Dim>(*most);
}

std::string describe_fault(const IndexClaim& claim, const LoadedIndex& index) {
  if (!claim.counted) return {};
  const auto value_at = [&](std::int64_t further) {
    return to_integer(DType::i32, index.element + further * size_of(DType::i32));
  };
  const std::int64_t value = value_at(0);
  const auto is = [&] {
    return fmt::format("{}{{{}}} is {}", index.tensor, fmt::join(index.at, ", "), value);
  };
  if (value < 0) return is() + ", and may not be negative";
  if (index.at_most && value > *index.at_most) {
    return fmt::format("{}, and may be {} at most", is(), *index.at_most);
  }
  if (!claim.ascending || index.at[0] == 0) return {};
  const std::int64_t before = value_at(-index.stride);
  return value < before ? fmt::format("{}, less than {} before it", is(), before) : "";
}

std::string fix_of(const IndexClaim& claim, const LoadedIndex& index) {
  return fmt::format("give numbers from 0 {}{}",
                     index.at_most ? fmt::format("to {}", *index.at_most) : "on",
                     claim.ascending ? ", that ascend" : "");
}

std::string_view source_message() { return "; it is computed from {}, which the launch gives"; }

std::string fill(std::string_view message, const std::vector<std::int64_t>& numbers) {
  std::string text;
  for (const std::int64_t number : numbers) {
    const std::size_t place = message.find("{}");
    if (place == std::string_view::npos) break;
    text += fmt::format("{}{}", message.substr(0, place), number);
    message.remove_prefix(place + 2);
  }
  return text + std::string(message);
}

std::string describe_fault(const AxisCheck& check, std::int64_t start, std::int64_t limit,
                           std::int64_t extent, std::string_view tensor) {
  const auto fault = [&](BoundsFault which, const std::vector<std::int64_t>& numbers) {
    return fill(bounds_message(which, check.axis, tensor), numbers);
  };
  if (check.size == 0) {
    return start >= 0 && start < extent ? "" : fault(BoundsFault::index, {start, extent});
  }
  // Of a block that is empty by the end that the launch gives nothing is accessed.
  if (check.loaded_end && limit <= start) return {};
  const bool before = check.counted ? start < 0 : check.placed && start + check.size <= 0;
  if (before || (check.placed && start >= extent)) {
    return fault(BoundsFault::begin, {start, extent});
  }
  if (check.loaded_end && std::min(limit, start + check.size) > extent) {
    return fault(BoundsFault::end, {start, limit, extent});
  }
  return {};
}

}  // namespace tilewright::analysis
