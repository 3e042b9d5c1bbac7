#include <fmt/format.h>

#include <numeric>

#include "ir/layout.h"
#include "ir/modes.h"
#include "support/diagnostic.h"

// The register layouts that instructions impose.
namespace tilewright::ir {

RegisterLayout wgmma_accumulator(std::int64_t m, std::int64_t n, SourceLocation where) {
  require_multiple("wgmma accumulator", "m", m, 64, where);
  require_multiple("wgmma accumulator", "n", n, 8, where);
  return RegisterLayout{{m, n},
                        {distribute(2, 1, 1), distribute(2, 0, 8), distribute(n / 8, 1, 8),
                         distribute(m / 64, 0, 64)},
                        {distribute(4, 1, 2), distribute(8, 0, 1)},
                        {distribute(4, 0, 16)}}
      .canonical();
}

RegisterLayout tensor_memory_rows(std::int64_t columns) {
  return RegisterLayout{
      {128, columns}, {distribute(columns, 1, 1)}, {distribute(32, 0, 1)}, {distribute(4, 0, 32)}}
      .canonical();
}

RegisterLayout wgmma_a_fragment(std::int64_t m, std::int64_t k, int element_bytes,
                                SourceLocation where) {
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
    Diagnostic(where,
               fmt::format("wgmma A fragment: elements of {} bytes, not 1, 2 or 4", element_bytes))
        .raise();
  }
  require_multiple("wgmma A fragment", "m", m, 64, where);
  require_multiple("wgmma A fragment", "k", k, 32 / element_bytes, where);
  const std::int64_t packed = 4 / element_bytes;  // elements of one 32-bit register
  return RegisterLayout{{m, k},
                        {distribute(packed, 1, 1), distribute(2, 0, 8),
                         distribute(k / (4 * packed), 1, 4 * packed), distribute(m / 64, 0, 64)},
                        {distribute(4, 1, packed), distribute(8, 0, 1)},
                        {distribute(4, 0, 16)}}
      .canonical();
}

RegisterLayout blocked(const std::vector<std::int64_t>& shape, int threads, int vector,
                       SourceLocation where) {
  require_multiple("blocked layout", "the number of threads", threads, kLanes, where);
  require_multiple("blocked layout", "the vector width", vector, 1, where);
  if (threads > kLanes * kMaximumWarps) {
    Diagnostic(where, fmt::format("blocked layout: {} threads, more than 1024", threads)).raise();
  }
  for (const std::int64_t extent : shape) {
    require_multiple("blocked layout", "a size of the shape", extent, 1, where);
  }
  RegisterLayout layout;
  layout.shape = shape;
  std::vector<std::int64_t> taken(shape.size(), 1);
  const auto take = [&](std::vector<Mode>& modes, std::size_t axis, std::int64_t limit) {
    const std::int64_t size = std::gcd(limit, shape[axis] / taken[axis]);
    modes.push_back(distribute(size, static_cast<int>(axis), taken[axis]));
    taken[axis] *= size;
    return size;
  };
  if (!shape.empty()) take(layout.registers, shape.size() - 1, vector);
  const auto spread = [&](std::vector<Mode>& modes, std::int64_t count) {
    for (std::size_t axis = shape.size(); axis-- > 0;) count /= take(modes, axis, count);
    modes.push_back(replicate(count));
  };
  spread(layout.lanes, kLanes);
  spread(layout.warps, threads / kLanes);
  for (std::size_t axis = shape.size(); axis-- > 0;) take(layout.registers, axis, shape[axis]);
  return layout.canonical();
}

RowSplit split_rows(std::int64_t rows, std::int64_t columns, std::int64_t warps, int vector,
                    bool columns_first) {
  const std::int64_t runs = columns / std::gcd<std::int64_t>(columns, vector);
  RowSplit split;
  split.column_lanes = std::gcd<std::int64_t>(kLanes, runs);
  split.row_lanes = std::gcd(kLanes / split.column_lanes, rows);
  split.warps = warps;
  const std::int64_t of_rows = rows / split.row_lanes, of_columns = runs / split.column_lanes;
  split.column_warps = columns_first ? std::gcd(warps, of_columns) : 1;
  split.row_warps = std::gcd(warps / split.column_warps, of_rows);
  if (!columns_first) split.column_warps = std::gcd(warps / split.row_warps, of_columns);
  return split;
}

RegisterLayout row_layout(std::int64_t rows, std::int64_t columns, const RowSplit& split,
                          int vector) {
  RegisterLayout layout;
  layout.shape = {rows, columns};
  const std::int64_t extents[] = {rows, columns};
  std::int64_t taken[] = {1, 1};
  const auto take = [&](std::vector<Mode>& modes, int axis, std::int64_t limit) {
    const std::int64_t size = std::gcd(limit, extents[axis] / taken[axis]);
    modes.push_back(distribute(size, axis, taken[axis]));
    modes.push_back(replicate(limit / size));
    taken[axis] *= size;
  };
  const std::int64_t adjacent = std::gcd<std::int64_t>(vector, columns);
  layout.registers.push_back(distribute(adjacent, 1, 1));
  taken[1] = adjacent;
  take(layout.lanes, 1, split.column_lanes);
  take(layout.lanes, 0, split.row_lanes);
  layout.lanes.push_back(replicate(kLanes / (split.column_lanes * split.row_lanes)));
  take(layout.warps, 1, split.column_warps);
  take(layout.warps, 0, split.row_warps);
  layout.warps.push_back(replicate(split.warps / (split.column_warps * split.row_warps)));
  for (const int axis : {1, 0}) {
    layout.registers.push_back(distribute(extents[axis] / taken[axis], axis, taken[axis]));
  }
  return layout.canonical();
}

std::optional<RegisterLayout> warp_rows(std::int64_t rows, std::int64_t columns, int vector) {
  constexpr std::int64_t kWarps = 4, kPanel = 64;
  const std::int64_t own = std::gcd<std::int64_t>(vector, columns);
  const std::int64_t beside = std::gcd(kPanel / own, columns / own);
  const std::int64_t below = kLanes / beside;
  if (kLanes % beside != 0 || rows % (kWarps * below) != 0) return std::nullopt;
  return RegisterLayout{
      {rows, columns},
      {distribute(own, 1, 1), distribute(columns / (own * beside), 1, own * beside),
       distribute(rows / (kWarps * below), 0, below)},
      {distribute(beside, 1, own), distribute(below, 0, 1)},
      {distribute(kWarps, 0, rows / kWarps)}}
      .canonical();
}

}  // namespace tilewright::ir
