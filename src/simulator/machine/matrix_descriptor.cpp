#include "simulator/machine/matrix_descriptor.h"

#include <algorithm>
#include <bit>

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

// `blocks` has a bit for each cell of each block from `first` on.
Footprint footprint_of(std::int64_t first, const std::vector<std::uint64_t>& blocks) {
  Footprint footprint;
  std::vector<BlockRun>& runs = footprint.runs;
  for (const std::uint64_t cells : blocks) {
    const std::int64_t block = first++;
    if (cells == 0) continue;
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
  operands_.resize(kernel.products.size() * 2);
  const bool is_b = &operand == &product.b;
  OfOperand& of = operands_[(&product - kernel.products.data()) * 2 + is_b];
  const auto same = [&](const Known& known) {
    return known.start == start && known.first == first;
  };
  if (of.last < of.known.size() && same(of.known[of.last])) return of.known[of.last].footprint;
  const auto found = std::find_if(of.known.begin(), of.known.end(), same);
  of.last = found - of.known.begin();
  if (found != of.known.end()) return found->footprint;
  const Allocation& allocation = kernel.allocations[operand.allocation];
  const std::int64_t first_block = allocation.offset / ShadowBlock::kBytes;
  std::vector<std::uint64_t> blocks(allocation.bytes() / ShadowBlock::kBytes + 2);
  for (const Product* each = &product; each < &product + std::max(product.run, 1); ++each) {
    const MatrixOperand& other = is_b ? each->b : each->a;
    for_chunks(decode_descriptor(other, start + other.step - operand.step), first, rows, each->k,
               size_of(each->dtype), [&](std::int64_t address) {
                 if (address < allocation.offset ||
                     address + 16 > allocation.offset + allocation.bytes()) {
                   return;
                 }
                 blocks[address / ShadowBlock::kBytes - first_block] |=
                     std::uint64_t{1} << address % ShadowBlock::kBytes / ShadowBlock::kCell;
               });
  }
  of.known.push_back({start, first, footprint_of(first_block, blocks)});
  return of.known.back().footprint;
}

}  // namespace tilewright::simulator
