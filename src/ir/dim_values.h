#pragma once

#include <cstdint>
#include <string>

#include "tilewright/dim.h"
#include "tilewright/function_ref.h"

namespace tilewright::ir {

// Whether there is a size that has them all.
bool are_possible(const DimFacts& facts);

// The values of an expression's symbols, for messages: "n = 4, m = 2".
std::string values_text(const Dim& dim, FunctionRef<std::int64_t(const std::string&)> lookup);

}  // namespace tilewright::ir
