#pragma once

#include "cpu/program.h"

namespace tilewright::cpu {

// The function of the scalars that it names. An integer that leaves its dtype and a division by
// zero are usage errors at its line.
Scalar evaluate(const Compute& compute, const Scalar* scalars);

}  // namespace tilewright::cpu
