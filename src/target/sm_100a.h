#pragma once

#include "target/target.h"

// NVIDIA Blackwell, as differences from sm_90a: copies, barriers, clusters and registers are those
// of Hopper. No such GPU has run what is compiled for it.
namespace tilewright::target {

Target sm_100a();
// The same architecture in a system on a chip, as differences from sm_100a.
Target sm_110a();

}  // namespace tilewright::target
