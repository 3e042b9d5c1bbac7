#include "simulator/access_bounds.h"

#include <fmt/format.h>

#include <algorithm>

namespace tilewright::simulator {

std::vector<AxisCheck> axis_checks(const ir::Operation& access, std::size_t first,
                                   const analysis::LoadedIntegers& integers) {
  const std::vector<std::int64_t>& sizes = access.attributes.integers(ir::Key::sizes);
  const std::size_t rank = sizes.size();
  std::vector<AxisCheck> checks;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const ir::ValueId start = access.operands[first + axis];
    const ir::ValueId limit = access.operands[first + rank + axis];
    AxisCheck check{axis, sizes[axis]};
    const auto from = integers.source(start), to = integers.source(limit);
    check.counted = from && integers.nonnegative(start);
    check.placed = from && integers.alone(start);
    const auto distance = integers.distance(start, limit);
    check.loaded_end = check.size > 0 && to && !(distance && *distance >= check.size);
    check.source = from.value_or(to.value_or(ir::kNoValue));
    if (check.size == 0 || check.counted || check.placed || check.loaded_end)
      checks.push_back(check);
  }
  return checks;
}

std::string describe_fault(const AxisCheck& check, std::int64_t start, std::int64_t limit,
                           std::int64_t extent, const std::string& tensor) {
  const std::string of = fmt::format("on axis {} of {}, which has {}", check.axis, tensor, extent);
  if (check.size == 0) {
    return start >= 0 && start < extent ? "" : fmt::format("index {} {}", start, of);
  }
  // Of a block that is empty by the end that the launch gives nothing is accessed.
  if (check.loaded_end && limit <= start) return {};
  const bool before = check.counted ? start < 0 : check.placed && start + check.size <= 0;
  if (before || (check.placed && start >= extent)) {
    return fmt::format("a block that begins at {} {}", start, of);
  }
  if (check.loaded_end && std::min(limit, start + check.size) > extent) {
    return fmt::format("a block from {} that ends at {} {}", start, limit, of);
  }
  return {};
}

}  // namespace tilewright::simulator
