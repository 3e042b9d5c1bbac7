#pragma once

#include <cstdint>
#include <vector>

#include "ir/ir.h"
#include "simulator/tile_value.h"

// The same elements in other places.
namespace tilewright::simulator {

// Transposes and slices: the result's axis i runs along the source's axes[i] from offsets[i]. Real
// is as of TileEvaluator.
template <typename Real>
void rearrange_tile(const std::vector<std::int64_t>& axes, const std::vector<std::int64_t>& offsets,
                    const Value& source, Value& result);

// The source in row-major order as a tile of the type. Raises at the operation where what exists of
// the source is no part of that shape.
Value reshape_tile(const ir::Operation& operation, const Value& source, const ir::Type& type);

}  // namespace tilewright::simulator
