#pragma once

#include <cstdint>

#include "ir/operation_record.h"

// What a timeline knows of the scalars that a kernel computes.
namespace tilewright::schedules {

// It may be unknown: what was read from a tile.
struct FollowedScalar {
  std::int64_t value = 0;
  bool known = false;
};

std::int64_t floor_div(std::int64_t a, std::int64_t b);

// An elementwise function of integers or booleans that are known; of select, its caller knows more.
FollowedScalar evaluate_scalar(ir::Op op, std::int64_t a, std::int64_t b);

}  // namespace tilewright::schedules
