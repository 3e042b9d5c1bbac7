#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "support/arguments.h"

namespace tilewright::ir {

using ElementIndex = std::vector<std::int64_t>;

// Two elements that positive strides put in one place; none where each element has its own. Sizes
// times strides fit 64 bits, and no size is 0.
std::optional<std::pair<ElementIndex, ElementIndex>> overlap(
    const std::vector<std::int64_t>& sizes, const std::vector<std::int64_t>& strides);

// Whether the two tensors surely have an element in one place: two parts of one larger tensor may
// lie among each other and share nothing. Elements of different sizes that lie among each other go
// unseen, and so do strides of which very many combinations would have to be tried.
bool share_elements(const TensorArgument& a, const TensorArgument& b);

}  // namespace tilewright::ir
