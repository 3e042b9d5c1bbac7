#pragma once

#include <cstddef>

#include "simulator/evaluate_elementwise.h"
#include "simulator/tile_value.h"

namespace tilewright::simulator {

// Sets `result`, of size 1 along the axis, to the function of the source's elements along it, one
// after the other in ascending order; nothing that exists gives the function's identity. Real is as
// of TileEvaluator.
template <typename Real>
void reduce_tile(const Elementwise& function, std::size_t axis, const Value& source, Value& result);

// Whether one of the booleans that exist is true.
bool any_element(const Value& source);

}  // namespace tilewright::simulator
