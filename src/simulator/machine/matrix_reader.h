#pragma once

#include <algorithm>
#include <cstring>

#include "simulator/machine/launch.h"
#include "support/number_formats.h"

// Operands of products in shared memory as floats, by their descriptors.
namespace tilewright::simulator {

// Reads chunks of 16 bytes for one warp's share of a product.
class MatrixReader {
 public:
  // What lies in the CTA's shared memory.
  MatrixReader(Launch& launch, Warp& warp, const Cta& cta, const Instruction& instruction,
               const MatrixOperand& operand)
      : launch_(launch), warp_(warp), cta_(cta), instruction_(instruction), operand_(operand) {
    const Allocation& allocation = launch.kernel.allocations[operand.allocation];
    low_ = allocation.offset;
    high_ = allocation.offset + allocation.bytes() - 16;
  }

  // 16 bytes; zeros where they are out of bounds.
  const std::byte* chunk(std::int64_t address) {
    static constexpr std::byte kZeros[16]{};
    const SharedMemory& shared = cta_.shared;
    if (address < low_ || address > high_) {
      launch_.inside(warp_, instruction_, operand_.allocation, address, 16);
      return kZeros;
    }
    if (!shared.chunk_initialised(address)) {
      launch_.check_held(warp_, instruction_, cta_, operand_.allocation, address, 16);
    }
    first_ = std::min(first_, address);
    last_ = std::max(last_, address + 15);
    return shared.at(address);
  }
  std::int64_t first() const { return first_; }
  std::int64_t last() const { return last_; }

 private:
  Launch& launch_;
  Warp& warp_;
  const Cta& cta_;
  const Instruction& instruction_;
  const MatrixOperand& operand_;
  std::int64_t low_ = 0, high_ = 0;
  std::int64_t first_ = INT64_MAX, last_ = 0;
};

// The elements of 16 bytes.
template <typename Bits, float (*to_float)(Bits)>
struct ElementFormat {
  static constexpr int kCount = 16 / sizeof(Bits);
  static float decode(const std::byte* chunk, int element) {
    Bits bits;
    std::memcpy(&bits, chunk + element * sizeof(Bits), sizeof(bits));
    return to_float(bits);
  }
};

// Calls `put(mn, k, values)` for 8 of the `rows` of M or N from `first` on at a time.
template <typename Format, typename Put>
void read_matrix(MatrixReader& reader, const SharedMatrix& matrix, int first, int rows, int k,
                 Put put) {
  float values[Format::kCount][8];
  if (matrix.transposed) {  // of 16-bit elements alone
    for (int i = 0; i < k; ++i) {
      for (int mn = 0; mn < rows; mn += 8) {
        const std::byte* const chunk = reader.chunk(matrix.mn_major((first + mn) / 8, i));
        for (int e = 0; e < 8; ++e) values[0][e] = Format::decode(chunk, e);
        put(mn, i, values[0]);
      }
    }
    return;
  }
  for (int mn = 0; mn < rows; mn += 8) {
    for (int i = 0; i < k; i += Format::kCount) {
      for (int row = 0; row < 8; ++row) {
        const std::byte* const chunk =
            reader.chunk(matrix.k_major(first + mn + row, i / Format::kCount));
        for (int e = 0; e < Format::kCount; ++e) values[e][row] = Format::decode(chunk, e);
      }
      for (int e = 0; e < Format::kCount; ++e) put(mn, i + e, values[e]);
    }
  }
}

template <typename Put>
void read_matrix(DType dtype, MatrixReader& reader, const SharedMatrix& matrix, int first, int rows,
                 int k, Put put) {
  switch (dtype) {
    case DType::bf16:
      return read_matrix<ElementFormat<std::uint16_t, bf16_to_float>>(reader, matrix, first, rows,
                                                                      k, put);
    case DType::f16:
      return read_matrix<ElementFormat<std::uint16_t, f16_to_float>>(reader, matrix, first, rows, k,
                                                                     put);
    case DType::f32:
    case DType::f8e4m3:
    case DType::i32:
    case DType::i64:
    case DType::i8:
    case DType::u8:
    case DType::u32:
    case DType::boolean:
      break;
  }
  return read_matrix<ElementFormat<std::uint8_t, f8e4m3_to_float>>(reader, matrix, first, rows, k,
                                                                   put);
}

}  // namespace tilewright::simulator
