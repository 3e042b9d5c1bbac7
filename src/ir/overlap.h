#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace tilewright::ir {

using ElementIndex = std::vector<std::int64_t>;

// Two elements that positive strides put in one place; none where each element has its own. Sizes
// times strides fit 64 bits, and no size is 0.
std::optional<std::pair<ElementIndex, ElementIndex>> overlap(
    const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides);

}  // namespace tilewright::ir
