#pragma once

#include "target/target.h"

namespace tilewright::target {

// The processor that Tilewright itself runs on: kernels of the tile form become lists of operations
// on whole tiles there (src/cpu), so that it has no machine form.
Target cpu();

}  // namespace tilewright::target
