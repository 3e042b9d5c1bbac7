#include "ir/descriptor.h"

#include <fmt/format.h>

#include <string_view>

#include "support/diagnostic.h"

namespace tilewright::ir {
namespace {

constexpr std::int64_t kCoreRows = 8;             // rows of a core matrix of wgmma
constexpr std::int64_t kCoreBytes = 16;           // bytes of one of its rows
constexpr std::int64_t kStepBytes = 32;           // of K in one wgmma
constexpr std::int64_t kMaximumOffset = 0x3fff0;  // 14 bits of 16-byte units

[[noreturn]] void reject(SourceLocation where, const SharedLayout& layout, std::string_view what) {
  Diagnostic(where, fmt::format("wgmma operand: {}: {}", layout.to_string(), what)).raise();
}

Panels require_panels(const SharedLayout& layout, SourceLocation where) {
  if (const std::optional<Panels> panels = layout.as_panels()) return *panels;
  Diagnostic(
      where,
      fmt::format("wgmma operand: {} is not made of panels of contiguous rows, as wide as the "
                  "swizzle",
                  layout.to_string()))
      .fix("declare the tile with a swizzle of 0, 32, 64 or 128 bytes")
      .raise();
}

// The panels of a wgmma operand; everything that depends on its two extents is checked here.
Panels require_operand(const SharedLayout& layout, int k_axis, SourceLocation where) {
  const Panels panels = require_panels(layout, where);
  const int bytes = layout.element_bytes;
  if (bytes != 1 && bytes != 2 && bytes != 4) {
    reject(where, layout, fmt::format("elements of {} bytes, not 1, 2 or 4", bytes));
  }
  if (panels.swizzle_bytes == 0 && panels.span_bytes != kCoreBytes) {
    reject(where, layout,
           fmt::format("without a swizzle its panels must be {} bytes wide, not {}", kCoreBytes,
                       panels.span_bytes));
  }
  const std::int64_t k = layout.shape[k_axis];
  if (k * bytes % kStepBytes != 0) {
    reject(where, layout,
           fmt::format("a K of {} elements of {} bytes is not a multiple of {} bytes", k, bytes,
                       kStepBytes));
  }
  if (panels.contiguous_axis != k_axis && bytes != 2) {
    reject(where, layout,
           fmt::format("K is axis {} but axis {} is contiguous, which only elements of 2 bytes may "
                       "have, not of {}",
                       k_axis, panels.contiguous_axis, bytes));
  }
  if (panels.count > 1 && panels.distance % layout.alignment() != 0) {
    reject(where, layout,
           fmt::format("panels {} bytes apart, not a multiple of {}", panels.distance,
                       layout.alignment()));
  }
  const std::int64_t mn = layout.shape[1 - k_axis];
  if (mn % kCoreRows != 0) {
    reject(where, layout,
           fmt::format("axis {} has {} elements, not a multiple of {}", 1 - k_axis, mn, kCoreRows));
  }
  return panels;
}

std::uint64_t swizzle_field(int swizzle_bytes) {
  switch (swizzle_bytes) {
    case 128:
      return 1;
    case 64:
      return 2;
    case 32:
      return 3;
    default:
      return 0;
  }
}

}  // namespace

std::uint64_t WgmmaOperand::encode(std::uint32_t address) const {
  return high_bits | (address & 0x3ffff) >> 4;
}

WgmmaOperand wgmma_operand(const SharedLayout& layout, int k_axis, SourceLocation where) {
  const Panels panels = require_operand(layout, k_axis, where);
  const bool swizzled = panels.swizzle_bytes != 0;
  WgmmaOperand operand;
  operand.major = panels.contiguous_axis == k_axis ? Major::k : Major::mn;
  // Hardware walks 8 rows of a panel by itself. It needs the distance of the next 8 rows and that
  // of the next panel; which field holds which depends on the major and on the swizzle.
  const std::int64_t next_rows = kCoreRows * panels.span_bytes;
  if (operand.major == Major::k) {
    // A k-step never leaves a swizzled panel: the field is unused and 1 by convention.
    operand.leading_byte_offset = swizzled ? kCoreBytes : panels.distance;
    operand.stride_byte_offset = next_rows;
  } else {
    operand.leading_byte_offset = swizzled ? panels.distance : next_rows;
    operand.stride_byte_offset = swizzled ? next_rows : panels.distance;
  }
  for (const std::int64_t offset : {operand.leading_byte_offset, operand.stride_byte_offset}) {
    if (offset % kCoreBytes == 0 && offset <= kMaximumOffset) continue;
    reject(where, layout,
           fmt::format("a distance of {} bytes is not a multiple of {} up to {}", offset,
                       kCoreBytes, kMaximumOffset));
  }
  operand.high_bits = static_cast<std::uint64_t>(operand.leading_byte_offset) >> 4 << 16 |
                      static_cast<std::uint64_t>(operand.stride_byte_offset) >> 4 << 32 |
                      swizzle_field(panels.swizzle_bytes) << 62;
  const std::int64_t step = kStepBytes / layout.element_bytes;
  std::vector<std::int64_t> position(2, 0);
  for (; position[k_axis] < layout.shape[k_axis]; position[k_axis] += step) {
    operand.k_steps.push_back(layout.linear_offset(position));
  }
  return operand;
}

std::int64_t wgmma_slice_offset(const SharedLayout& layout, int k_axis, std::int64_t first,
                                SourceLocation where) {
  const Panels panels = require_operand(layout, k_axis, where);
  const std::int64_t unit = panels.contiguous_axis == k_axis ? kCoreRows : panels.span;
  if (first < 0 || first >= layout.shape[1 - k_axis] || first % unit != 0) {
    reject(where, layout,
           fmt::format("a slice of axis {} cannot start at {}, only at a multiple of {} below {}",
                       1 - k_axis, first, unit, layout.shape[1 - k_axis]));
  }
  std::vector<std::int64_t> position(2, 0);
  position[1 - k_axis] = first;
  return layout.linear_offset(position);
}

}  // namespace tilewright::ir
