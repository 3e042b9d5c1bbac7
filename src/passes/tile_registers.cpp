#include "passes/tile_registers.h"

#include <algorithm>

#include "target/target.h"

namespace tilewright::passes {
namespace {

constexpr std::int64_t kRegisterBytes = 4;
// Addresses, stages, what masks compare and what is on its way from scores to weights: 160
// registers hold 130 of tiles without spills, and 240 hold 178.
constexpr std::int64_t kOtherRegisters = 30;

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

}  // namespace tilewright::passes
