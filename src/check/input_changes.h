#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tilewright/host_tensor.h"

namespace tilewright::checks {

// What makes an input one that is not drawn as usual. All of its elements lie far from zero, which
// shows what a mask lets through. Or they grow along an axis, as where a later block of a sum has
// larger elements.
struct InputChange {
  std::size_t input = 0;  // its number among all tensors
  double shift = 0;       // is added; or else
  std::size_t axis = 0;   // it grows along this one
};

// All of the tensor; none of one without floats.
std::vector<InputChange> changes_of_input(const HostTensor& tensor, std::size_t input);
void apply(const InputChange& change, HostTensor& tensor);
// "Q lies 256 from zero".
std::string describe(const InputChange& change, const std::string& name);

}  // namespace tilewright::checks
