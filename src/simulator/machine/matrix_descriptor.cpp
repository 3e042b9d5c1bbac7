#include "simulator/machine/matrix_descriptor.h"

#include <algorithm>
#include <map>
#include <utility>

#include "simulator/machine/shadow.h"

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
  known.push_back({start, first, Footprint(cells.begin(), cells.end())});
  return known.back().footprint;
}

}  // namespace tilewright::simulator
