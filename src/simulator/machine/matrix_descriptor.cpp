#include "simulator/machine/matrix_descriptor.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kAddressMask = 0x3ffff;

// Calls `visit(address)` for each 16 bytes of the rows.
template <typename Visit>
void for_chunks(const SharedMatrix& matrix, int first, int rows, int k, int element_bytes,
                Visit visit) {
  const int per_chunk = 16 / element_bytes;
  if (matrix.transposed) {
    for (int i = 0; i < k; ++i) {
      for (int mn = 0; mn < rows; mn += per_chunk) {
        visit(matrix.mn_major((first + mn) / per_chunk, i));
      }
    }
    return;
  }
  for (int mn = 0; mn < rows; ++mn) {
    for (int i = 0; i < k; i += per_chunk) visit(matrix.k_major(first + mn, i / per_chunk));
  }
}

// Of {number of a block, a bit for each cell}.
Footprint footprint_of(const std::map<std::int64_t, std::uint64_t>& blocks) {
  Footprint footprint;
  std::vector<BlockRun>& runs = footprint.runs;
  for (const auto& [block, cells] : blocks) {
    footprint.cells += std::popcount(cells);
    if (!runs.empty() && runs.back().first + runs.back().count == block &&
        runs.back().bytes.cells == cells) {
      ++runs.back().count;
    } else {
      runs.push_back({block, 1, {cells, Bytes::kWhole}});
    }
  }
  return footprint;
}

}  // namespace

SharedMatrix decode_descriptor(const MatrixOperand& operand, std::int64_t start) {
  constexpr int kSwizzles[] = {0, 128, 64, 32};
  SharedMatrix matrix;
  matrix.start = (start & kAddressMask) >> 4 << 4;
  matrix.leading = static_cast<std::int64_t>(operand.descriptor >> 16 & 0x3fff) << 4;
  matrix.stride = static_cast<std::int64_t>(operand.descriptor >> 32 & 0x3fff) << 4;
  matrix.swizzle_bytes = kSwizzles[operand.descriptor >> 62];
  matrix.transposed = operand.transposed;
  return matrix;
}

const Footprint& Footprints::of(const PreparedKernel& kernel, const MatrixOperand& operand,
                                const Product& product, std::int64_t start, int first, int rows) {
  known_.resize(kernel.products.size() * 2);
  const bool is_b = &operand == &product.b;
  std::vector<Known>& known = known_[(&product - kernel.products.data()) * 2 + is_b];
  for (Known& each : known) {
    if (each.start != start || each.first != first) continue;
    std::swap(each, known.front());  // other warps ask for the same soon
    return known.front().footprint;
  }
  const Allocation& allocation = kernel.allocations[operand.allocation];
  std::map<std::int64_t, std::uint64_t> cells;
  for (const Product* each = &product; each < &product + std::max(product.run, 1); ++each) {
    const MatrixOperand& other = is_b ? each->b : each->a;
    for_chunks(decode_descriptor(other, start + other.step - operand.step), first, rows, each->k,
               size_of(each->dtype), [&](std::int64_t address) {
                 if (address < allocation.offset ||
                     address + 16 > allocation.offset + allocation.bytes()) {
                   return;
                 }
                 cells[address / ShadowBlock::kBytes] |=
                     std::uint64_t{1} << address % ShadowBlock::kBytes / ShadowBlock::kCell;
               });
  }
  known.push_back({start, first, footprint_of(cells)});
  return known.back().footprint;
}

}  // namespace tilewright::simulator
