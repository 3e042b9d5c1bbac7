#pragma once

#include <cstdint>
#include <vector>

#include "simulator/machine/prepared_kernel.h"
#include "simulator/machine/shadow.h"

// Matrices in shared memory as wgmma sees them. Descriptors are decoded from their bits by the PTX
// description of the canonical layouts, on purpose without the layout algebra that made them.
namespace tilewright::simulator {

// A matrix in shared memory: the address of 16 bytes is start + mn and k digits times strides, and
// then the swizzle of the absolute address.
struct SharedMatrix {
  std::int64_t start = 0;
  std::int64_t leading = 0, stride = 0;  // bytes
  int swizzle_bytes = 0;                 // 0, 32, 64, 128
  bool transposed = false;

  std::int64_t swizzled(std::int64_t address) const {
    if (swizzle_bytes == 0) return address;
    return address ^ ((address >> 7 & (swizzle_bytes / 16 - 1)) << 4);
  }
  // K-major: the chunk-th 16 bytes of K of row `mn`. Groups of 8 rows lie `stride` apart. Without
  // swizzle rows are 16 bytes and chunks `leading` apart; with it rows are as wide as the swizzle.
  std::int64_t k_major(int mn, int chunk) const {
    const int row_bytes = swizzle_bytes == 0 ? 16 : swizzle_bytes;
    const std::int64_t across = swizzle_bytes == 0 ? chunk * leading : chunk * 16;
    return swizzled(start + mn / 8 * stride + mn % 8 * row_bytes + across);
  }
  // MN-major: the chunk-th 16 bytes of MN at `k`. Without swizzle groups of 8 k lie `leading` and
  // chunks `stride` apart; with it rows of MN are as wide as the swizzle and `leading` apart,
  // groups of 8 k `stride`.
  std::int64_t mn_major(int chunk, int k) const {
    if (swizzle_bytes == 0) return start + chunk * stride + k / 8 * leading + k % 8 * 16;
    const int per_row = swizzle_bytes / 16;
    return swizzled(start + chunk / per_row * leading + chunk % per_row * 16 + k / 8 * stride +
                    k % 8 * swizzle_bytes);
  }
};

// `start`: the address that the descriptor's low bits would hold.
SharedMatrix decode_descriptor(const MatrixOperand& operand, std::int64_t start);

// Which cells of 16 bytes an operand covers.
struct Footprint {
  std::vector<BlockRun> runs;
  std::int64_t cells = 0;  // of all runs
};

// Footprints, each worked out once.
class Footprints {
 public:
  // Of `rows` of M or N from `first` on and the product's k, and of the products of its run. What
  // lies outside of the allocation is left out.
  const Footprint& of(const PreparedKernel& kernel, const MatrixOperand& operand,
                      const Product& product, std::int64_t start, int first, int rows);

 private:
  struct Known {
    std::int64_t start = 0;
    int first = 0;
    Footprint footprint;
  };
  struct OfOperand {
    std::vector<Known> known;
    std::size_t last = 0;  // the one found last: other warps ask for the same soon
  };
  std::vector<OfOperand> operands_;  // each product's A, then B
};

}  // namespace tilewright::simulator
