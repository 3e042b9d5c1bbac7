#pragma once

#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::schedules {

inline constexpr int kGroupRows = 64;  // of a wgmma, so of a warpgroup

// The operation is in the way of an automatic schedule.
[[noreturn]] void unfit(const ir::Operation& operation, const std::string& why,
                        const std::string& fix);

// Which tiles of a kernel lie in shared memory for its products, and how many rows it works on.
// Raises for a kernel that does not fit.
struct Placement {
  explicit Placement(const ir::Kernel& kernel);
  // The load that makes the operand of a product, perhaps transposed; null for a computed one.
  const ir::Operation* load_of(ir::ValueId value, bool& transposed) const;
  // Whether the scalar is computed from the argument.
  bool depends(ir::ValueId value, ir::ValueId argument) const;

  const ir::Kernel& kernel;
  std::vector<const ir::Operation*> definitions;
  std::int64_t rows = 0;  // of every product: 64 for each warpgroup

 private:
  void visit_dot(const ir::Operation& dot);
  void check_reader(const ir::Operation& operation) const;
};

// Whether anything is loaded inside.
bool has_loads(const ir::Block& block);

}  // namespace tilewright::schedules
