#pragma once

#include <vector>

#include "check/fuzz/interval.h"
#include "check/fuzz/launch.h"
#include "ir/ir.h"

namespace tilewright::checks::fuzz {

// What a launch may leave in a tensor, by place in memory.
struct TensorEnvelope {
  std::vector<Interval> values;
  std::vector<bool> written;  // the others keep every bit
};

// Runs a kernel of the tile form in interval arithmetic: the bounds of each element of each tensor
// follow from the operations that made it, by the running error analysis of numerical analysis
// (Higham, Accuracy and Stability of Numerical Algorithms, 3.1): every rounding, every order of a
// sum, and both sides of a comparison that rounding may tip. It is written without the interpreter,
// which is held against it like everything else. Raises Undecided where control depends on
// rounding.
std::vector<TensorEnvelope> envelope_of(const ir::Kernel& kernel, Launch& launch,
                                        const Precision& precision);

}  // namespace tilewright::checks::fuzz
