#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>

#include "ptx/machine.h"
#include "support/number_formats.h"

// Operands of products in shared memory, by their descriptors as the PTX manual has them.
namespace tilewright::ptx {

// A matrix in shared memory, of elements of `element` bytes.
struct Matrix {
  std::uint64_t start, leading, stride;
  std::uint64_t row;  // bytes of a row of the swizzle; 16 without one
  bool swizzled, transposed;
  int element;

  // Of element (mn, k).
  std::uint64_t address(int mn, int k) const {
    const auto along = static_cast<std::uint64_t>(transposed ? mn : k) * element;  // contiguous
    const auto across = static_cast<std::uint64_t>(transposed ? k : mn);
    const std::uint64_t in_row = along % row, rows = along / row;
    std::uint64_t at = start + across % 8 * row + in_row;
    // Groups of 8 rows lie `stride` apart, and what is wider than a row `leading`. Without swizzle
    // that is the other way round for what is contiguous along M or N.
    const bool turned = transposed && !swizzled;
    at += across / 8 * (turned ? leading : stride) + rows * (turned ? stride : leading);
    return swizzled ? at ^ ((at >> 7 & (row / 16 - 1)) << 4) : at;
  }
};

// By a descriptor of wgmma, and of tcgen05, whose further bits the caller has looked at.
inline Matrix decode_matrix(Execution& x, std::uint64_t descriptor, bool transposed, int element) {
  const auto field = [&](int first) { return (descriptor >> first & 0x3fff) << 4; };
  if ((descriptor >> 49 & 7) != 0) x.fail("wgmma", "with a base offset");
  constexpr std::uint64_t kRowBytes[] = {16, 128, 64, 32};
  const std::uint64_t swizzle = descriptor >> 62;
  return {field(0), field(16), field(32), kRowBytes[swizzle], swizzle != 0, transposed, element};
}

inline void decode_elements(Type type, const std::byte* from, int count, float* to) {
  const auto halves = [&](float (*decode)(std::uint16_t)) {
    for (int i = 0; i < count; ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, from + 2 * i, 2);
      to[i] = decode(half);
    }
  };
  if (type == Type::bf16) return halves(bf16_to_float);
  if (type == Type::f16) return halves(f16_to_float);
  for (int i = 0; i < count; ++i) to[i] = f8e4m3_to_float(static_cast<std::uint8_t>(from[i]));
}

// So many bytes that lie in a row stay together, whatever the swizzle.
inline constexpr int kPiece = 16;

// Checks them for a product, and gives where they are.
inline const std::byte* operand_piece(Execution& x, Cta& cta, std::uint64_t address) {
  const std::uint64_t at = address - kSharedBase;
  if (at + kPiece > cta.shared.size()) {
    x.fail("out_of_bounds", fmt::format("of shared {:#x}", address));
  }
  std::uint8_t all[kPiece];
  std::memset(all, 1, kPiece);
  if (std::memcmp(cta.held.data() + at, all, kPiece) != 0) {
    x.fail("uninitialised",
           fmt::format("of {} bytes at shared {:#x}, which has not been written", kPiece, address));
  }
  touch(x, cta, at, kPiece, Accessor::product, static_cast<std::uint32_t>(x.warp.product_groups));
  return cta.shared.data() + at;
}

// Calls `put(mn, k, value)` for the rows of an operand in the CTA's shared memory.
template <typename Put>
void read_matrix(Execution& x, Cta& cta, Type type, const Matrix& matrix, int first, int rows,
                 int k, Put put) {
  const int elements = kPiece / matrix.element;
  const int across = matrix.transposed ? k : rows, along = matrix.transposed ? rows : k;
  float values[kPiece];
  for (int j = 0; j < across; ++j) {
    for (int i = 0; i < along; i += elements) {
      const std::uint64_t address =
          matrix.transposed ? matrix.address(first + i, j) : matrix.address(first + j, i);
      decode_elements(type, operand_piece(x, cta, address), elements, values);
      for (int e = 0; e < elements; ++e) {
        matrix.transposed ? put(i + e, j, values[e]) : put(j, i + e, values[e]);
      }
    }
  }
}

}  // namespace tilewright::ptx
