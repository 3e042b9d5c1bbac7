#pragma once

#include <optional>

#include "ir/layout.h"

namespace tilewright::ir {

// The panels of a layout whose rows may lie further apart than they are wide: `span_bytes` is from
// one row to the next. Loads and stores of threads take those; TMA and products want the rows side
// by side, as as_panels() has them.
std::optional<Panels> padded_panels(const SharedLayout& layout);

// Views have whole groups of so many rows, which products and swizzles take; any where threads
// alone read and write rows that lie apart.
std::int64_t rows_of_views(const SharedLayout& layout);

}  // namespace tilewright::ir
