#pragma once

#include "target/target.h"

namespace tilewright::target {

// NVIDIA Hopper.
Target sm_90a();

}  // namespace tilewright::target
