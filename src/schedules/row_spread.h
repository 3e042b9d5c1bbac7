#pragma once

#include <vector>

#include "ir/ir.h"

namespace tilewright::schedules {

// How the tiles of a kernel without products are spread over the warps of a CTA: all by one split,
// that of the largest, so that they lie together wherever an operation joins them.
class RowSpread {
 public:
  // Raises when the largest tile is more than registers hold.
  explicit RowSpread(const ir::Kernel& kernel);
  int warps() const { return warps_; }
  int registers() const { return registers_; }  // of a thread, at most
  // Whether columns are spread over warps before rows.
  bool by_columns() const { return columns_first_; }
  const std::vector<std::int64_t>& largest() const { return largest_; }
  // Of a thread, for all that the block and those inside it load.
  std::int64_t loaded_registers(const ir::Kernel& kernel, const ir::Block& block) const;
  // Of a tile that no operation determines (a load, a constant); an empty one where its neighbours
  // have to say.
  ir::RegisterLayout layout(const std::vector<std::int64_t>& shape) const;

 private:
  ir::RegisterLayout of_rows(std::int64_t rows, std::int64_t columns) const;
  void check_partition(const ir::Kernel& kernel, int widest);
  // Elements of the largest tile a lane, and the vectors and split that leave fewest.
  std::int64_t divide(int warps, int widest);

  int warps_ = 4, registers_ = 128;
  bool columns_first_ = false;
  int vector_ = 1;
  std::vector<std::int64_t> largest_;
  ir::RowSplit split_;
};

}  // namespace tilewright::schedules
