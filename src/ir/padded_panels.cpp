#include "ir/padded_panels.h"

#include <vector>

namespace tilewright::ir {

std::optional<Panels> padded_panels(const SharedLayout& layout) {
  if (auto panels = layout.as_panels()) return panels;
  if (layout.shape.size() != 2 || layout.swizzle.bits != 0) return std::nullopt;
  std::vector<Mode> by_axis[2];
  for (const Mode& mode : layout.canonical().modes) by_axis[mode.axis].push_back(mode);
  const std::vector<Mode>&rows = by_axis[0], &columns = by_axis[1];
  if (rows.size() != 1 || columns.empty() || columns.size() > 2 ||
      columns[0].stride != layout.element_bytes) {
    return std::nullopt;
  }
  Panels panels;
  panels.rows = layout.shape[0];
  panels.span = columns[0].size;
  panels.span_bytes = rows[0].stride;
  panels.count = layout.shape[1] / panels.span;
  panels.distance = columns.size() == 2 ? columns[1].stride : layout.size_bytes();
  return panels;
}

std::int64_t rows_of_views(const SharedLayout& layout) {
  return layout.swizzle.bits == 0 && !layout.as_panels() ? 1 : 8;
}

}  // namespace tilewright::ir
