#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "ir/layout.h"
#include "ir/modes.h"
#include "support/diagnostic.h"
#include "support/hash.h"

namespace tilewright::ir {
namespace {

using Coordinates = std::vector<std::int64_t>;

constexpr std::int64_t kUnswizzledAlignment = 128;  // of a shared address that TMA writes to
constexpr std::int64_t kMaximumBytes = std::int64_t{1} << 40;

std::optional<std::string> swizzle_problem(const SharedLayout& layout) {
  const auto [bits, base, shift] = layout.swizzle;
  if (bits < 0 || bits > shift || shift > 8 || base < 0 || base > 8) {
    return fmt::format("a swizzle of {} bits at bit {} from {} above", bits, base, shift);
  }
  if (layout.element_bytes > 1 << base) {
    return fmt::format("elements of {} bytes in swizzled chunks of {}", layout.element_bytes,
                       1 << base);
  }
  if (layout.size_bytes() % layout.alignment() == 0) return std::nullopt;
  return fmt::format("{} bytes, not a multiple of the swizzle's pattern of {}", layout.size_bytes(),
                     layout.alignment());
}

}  // namespace

std::int64_t Swizzle::operator()(std::int64_t address) const {
  const std::int64_t mask = ((std::int64_t{1} << bits) - 1) << base;
  return address ^ (address >> shift & mask);
}

SharedLayout SharedLayout::panels(std::int64_t rows, std::int64_t columns, int element_bytes,
                                  int swizzle_bytes, SourceLocation where) {
  if (swizzle_bytes != 0 && swizzle_bytes != 32 && swizzle_bytes != 64 && swizzle_bytes != 128) {
    Diagnostic(where, fmt::format("shared layout: a swizzle of {} bytes, not 0, 32, 64 or 128",
                                  swizzle_bytes))
        .raise();
  }
  const int span_bytes = swizzle_bytes == 0 ? 16 : swizzle_bytes;
  require_multiple("shared layout", "the number of rows", rows, 8, where);
  require_multiple("shared layout", "the element size in bytes", element_bytes, 1, where);
  if (span_bytes % element_bytes != 0) {
    Diagnostic(where, fmt::format("shared layout: elements of {} bytes in panels of {}",
                                  element_bytes, span_bytes))
        .raise();
  }
  if (columns < 1 || columns * element_bytes % span_bytes != 0) {
    const std::int64_t row_bytes = columns * element_bytes;
    Diagnostic(where, fmt::format("shared layout: {} columns of {} bytes do not fill panels of {} "
                                  "bytes",
                                  columns, element_bytes, span_bytes))
        .fix(row_bytes > 0 && row_bytes % 16 == 0
                 ? fmt::format("a swizzle of {} bytes", widest_swizzle(row_bytes))
                 : "rows of a multiple of 16 bytes")
        .raise();
  }
  const std::int64_t span = span_bytes / element_bytes;
  SharedLayout layout;
  layout.shape = {rows, columns};
  layout.element_bytes = element_bytes;
  layout.modes = {distribute(rows, 0, span_bytes), distribute(span, 1, element_bytes),
                  distribute(columns / span, 1, rows * span_bytes)};
  layout.swizzle.bits = swizzle_bytes == 128 ? 3 : swizzle_bytes / 32;
  return layout.canonical();
}

SharedLayout SharedLayout::row_major(Coordinates shape, int element_bytes) {
  SharedLayout layout;
  std::int64_t stride = element_bytes;
  for (std::size_t axis = shape.size(); axis-- > 0; stride *= shape[axis]) {
    layout.modes.push_back(distribute(shape[axis], static_cast<int>(axis), stride));
  }
  layout.shape = std::move(shape);
  layout.element_bytes = element_bytes;
  return layout.canonical();
}

std::int64_t SharedLayout::linear_offset(const Coordinates& coordinates) const {
  Coordinates rest = coordinates;
  std::int64_t offset = 0;
  for (const Mode& mode : modes) {
    offset += rest[mode.axis] % mode.size * mode.stride;
    rest[mode.axis] /= mode.size;
  }
  return offset;
}

std::int64_t SharedLayout::offset(const Coordinates& coordinates) const {
  return swizzle(linear_offset(coordinates));
}

std::int64_t SharedLayout::offset(std::int64_t row, std::int64_t column) const {
  return offset({row, column});
}

std::int64_t SharedLayout::size_bytes() const {
  std::int64_t size = element_bytes;
  for (const Mode& mode : modes) size += (mode.size - 1) * mode.stride;
  return size;
}

std::int64_t SharedLayout::alignment() const {
  if (swizzle.bits == 0) return kUnswizzledAlignment;
  return std::int64_t{1} << (swizzle.base + swizzle.shift + swizzle.bits);
}

std::optional<Panels> SharedLayout::as_panels() const {
  if (shape.size() != 2 || swizzle.base != 4 || swizzle.shift != 3 || swizzle.bits > 3) {
    return std::nullopt;
  }
  std::vector<Mode> by_axis[2];
  for (const Mode& mode : canonical().modes) by_axis[mode.axis].push_back(mode);
  for (const int axis : {1, 0}) {
    const std::vector<Mode>& across = by_axis[axis];
    const std::vector<Mode>& down = by_axis[1 - axis];
    if (across.empty() || across.size() > 2 || down.size() > 1) continue;
    Panels panels;
    panels.contiguous_axis = axis;
    panels.rows = shape[1 - axis];
    panels.span = across[0].size;
    panels.span_bytes = panels.span * element_bytes;
    panels.count = shape[axis] / panels.span;
    panels.distance = across.size() == 2 ? across[1].stride : panels.rows * panels.span_bytes;
    panels.swizzle_bytes = swizzle.bits == 0 ? 0 : 16 << swizzle.bits;
    const bool rows_touch = down.empty() || down[0].stride == panels.span_bytes;
    if (across[0].stride == element_bytes && rows_touch &&
        (panels.swizzle_bytes == 0 || panels.swizzle_bytes == panels.span_bytes)) {
      return panels;
    }
  }
  return std::nullopt;
}

SharedLayout SharedLayout::transposed() const {
  SharedLayout layout = *this;
  std::swap(layout.shape[0], layout.shape[1]);
  layout.modes = with_axes_swapped(modes);
  return layout.canonical();
}

std::optional<std::string> SharedLayout::problem() const {
  if (element_bytes < 1) return fmt::format("elements of {} bytes", element_bytes);
  const int rank = static_cast<int>(shape.size());
  std::vector<std::vector<Mode>> by_axis(shape.size());
  for (const Mode& mode : modes) {
    if (mode.kind != ModeKind::distribute) return "a mode that does not distribute an axis";
    if (mode.size < 1) return fmt::format("a mode has size {}", mode.size);
    if (mode.axis < 0 || mode.axis >= rank) {
      return fmt::format("a mode is on axis {} of a shape of rank {}", mode.axis, rank);
    }
    by_axis[mode.axis].push_back(mode);
  }
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t covered = total_size(by_axis[axis], shape[axis]);
    if (covered == shape[axis]) continue;
    return fmt::format("axis {} has size {} but its modes cover {}", axis, shape[axis], covered);
  }
  std::vector<Mode> sorted = merged(modes);
  std::sort(sorted.begin(), sorted.end(),
            [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  std::int64_t extent = element_bytes;
  for (const Mode& mode : sorted) {
    if (mode.stride < extent) {
      return fmt::format("axis {}: a stride of {} bytes overlaps the {} bytes below it", mode.axis,
                         mode.stride, extent);
    }
    extent += (mode.size - 1) * mode.stride;
    if (extent > kMaximumBytes) return fmt::format("more than {} bytes", kMaximumBytes);
  }
  return swizzle.bits == 0 ? std::nullopt : swizzle_problem(*this);
}

SharedLayout SharedLayout::canonical() const {
  SharedLayout layout = *this;
  std::stable_sort(layout.modes.begin(), layout.modes.end(),
                   [](const Mode& a, const Mode& b) { return a.axis < b.axis; });
  layout.modes = merged(layout.modes);
  if (swizzle.bits == 0) layout.swizzle = {};
  return layout;
}

bool SharedLayout::operator==(const SharedLayout& other) const {
  const SharedLayout a = canonical();
  const SharedLayout b = other.canonical();
  return a.shape == b.shape && a.element_bytes == b.element_bytes && a.modes == b.modes &&
         a.swizzle == b.swizzle;
}

std::size_t SharedLayout::hash() const { return hash64(to_string()); }

std::string SharedLayout::to_string() const {
  const SharedLayout layout = canonical();
  std::string text = fmt::format("[{}*{}", fmt::join(shape, "x"), element_bytes);
  if (!layout.modes.empty()) text += "|" + modes_text(layout.modes);
  if (swizzle.bits != 0) {
    text += fmt::format("|x{}.{}.{}", swizzle.bits, swizzle.base, swizzle.shift);
  }
  return text + "]";
}

SharedLayout SharedLayout::parse(std::string_view text, SourceLocation where) {
  LayoutParser parser(text, where);
  SharedLayout layout;
  parser.expect("[");
  layout.shape = parser.shape();
  parser.expect("*");
  layout.element_bytes = static_cast<int>(parser.number());
  bool swizzled = parser.accept("|x");
  if (!swizzled && parser.accept("|")) {
    layout.modes = parser.modes(layout.shape.size());
    swizzled = parser.accept("|x");
  }
  if (swizzled) {
    layout.swizzle.bits = static_cast<int>(parser.number());
    parser.expect(".");
    layout.swizzle.base = static_cast<int>(parser.number());
    parser.expect(".");
    layout.swizzle.shift = static_cast<int>(parser.number());
  }
  parser.finish();
  parser.check(layout.problem());
  return layout;
}

int widest_swizzle(std::int64_t row_bytes) {
  for (const int bytes : {128, 64, 32}) {
    if (row_bytes % bytes == 0) return bytes;
  }
  return 0;
}

}  // namespace tilewright::ir
