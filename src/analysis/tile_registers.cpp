#include "analysis/tile_registers.h"

#include <algorithm>

#include "target/target.h"

namespace tilewright::analysis {
namespace {

constexpr std::int64_t kRegisterBytes = 4;
// Addresses, stages, what masks compare and what is on its way from scores to weights: 160
// registers hold 130 of tiles without spills, and 240 hold 178.
constexpr std::int64_t kOtherRegisters = 30;
// Each of four lanes has two of eight columns of a product's result.
constexpr std::int64_t kColumnsOfThread = 4;

}  // namespace

std::int64_t tile_registers(const ir::Kernel& kernel, const ir::Type& type) {
  if (!type.is_tile() || type.shape.size() != 2) return 0;
  const TargetLimits& limits = target::target_of(kernel).limits;
  return type.shape[1] * size_of(type.dtype) * limits.group_rows /
         (limits.group_threads() * kRegisterBytes);
}

std::int64_t registers_for_tiles(const ir::Kernel& kernel, std::int64_t rows) {
  const TargetLimits& limits = target::target_of(kernel).limits;
  const RoleRegisters share =
      role_registers(limits, std::max<std::int64_t>(rows / limits.group_rows, 1),
                     kernel.schedule.ctas.value_or(1));
  return share.computing - kOtherRegisters;
}

bool rows_fit(const ir::Kernel& kernel, const ir::Block& block,
              const std::vector<ir::ValueId>& begin) {
  std::int64_t taken = 0, rows = 0;
  for (const ir::Operation& o : block.body) {
    if (o.op == ir::Op::dot) {
      rows = std::max(rows, kernel.type(o.results[0]).shape[0]);
      taken += tile_registers(kernel, kernel.type(o.results[0]));
    }
    if (o.op != ir::Op::load) continue;
    const ir::Type& type = kernel.type(o.results[0]);
    const bool is_row = type.shape.size() == 2 && type.shape[0] == 1;
    if (!is_row || std::count(begin.begin(), begin.end(), o.results[0]) != 0) continue;
    taken += type.shape[1] / kColumnsOfThread;
  }
  return rows > 0 && taken <= registers_for_tiles(kernel, rows);
}

}  // namespace tilewright::analysis
