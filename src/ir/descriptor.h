#pragma once

#include <cstdint>
#include <vector>

#include "ir/layout.h"

// What wgmma is told about a SharedLayout: its matrix descriptors.
namespace tilewright::ir {

enum class Major : std::uint8_t { k, mn };

// Byte offsets are from the base of the tile, or of a slice of it (wgmma_slice_offset). The
// descriptor of k-step s at shared address `base` is encode(base + k_steps[s]).
struct WgmmaOperand {
  Major major = Major::k;
  std::int64_t leading_byte_offset = 0;
  std::int64_t stride_byte_offset = 0;
  std::uint64_t high_bits = 0;        // the descriptor without its start address
  std::vector<std::int64_t> k_steps;  // of 32 bytes of K each (16 elements of 2 bytes)

  std::uint64_t encode(std::uint32_t address) const;
};

// The operand whose axis `k_axis` (0 or 1) is summed over; the other axis is M or N.
WgmmaOperand wgmma_operand(const SharedLayout& layout, int k_axis, SourceLocation where = {});

// Bytes from the base to the slice of M or N that starts at `first`.
std::int64_t wgmma_slice_offset(const SharedLayout& layout, int k_axis, std::int64_t first,
                                SourceLocation where = {});

}  // namespace tilewright::ir
