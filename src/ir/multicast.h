#pragma once

#include <bit>
#include <cstdint>

namespace tilewright::ir {

// A multicast copy's mask has the CTAs that it reaches, the first of them as bit 0 and the others
// at equal distances: of a run of `multicast_group` CTAs those at the sender's place modulo this.
inline int multicast_stride(std::uint64_t mask) {
  const std::uint64_t others = mask & (mask - 1);
  return others == 0 ? 1 : std::countr_zero(others) - std::countr_zero(mask);
}

}  // namespace tilewright::ir
