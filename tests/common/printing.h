#pragma once

#include <ostream>

#include "tilewright/dtype.h"

namespace tilewright {

// So that GoogleTest prints a test's parameters as words.
inline void PrintTo(DType dtype, std::ostream* out) { *out << name_of(dtype); }

}  // namespace tilewright
