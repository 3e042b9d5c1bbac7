#pragma once

#include <string>
#include <vector>

#include "support/arguments.h"
#include "tilewright/host_tensor.h"
#include "tilewright/tensor_ref.h"

namespace tilewright::checks::fuzz {

// A tensor inside a larger one. What lies between its rows is NaN and belongs to nobody; it keeps
// strides that TMA takes.
struct LaunchTensor {
  LaunchTensor(std::string name, DType dtype, std::vector<std::int64_t> shape);
  void fill_randomly(std::uint64_t seed);
  TensorArgument argument();

  std::string name;
  std::vector<std::int64_t> shape;
  HostTensor memory;  // elements by their place in memory
};

// What one launch of a kernel is given.
struct Launch {
  std::vector<LaunchTensor> tensors;  // in the order of the kernel's parameters
  std::vector<double> scalars;
  Arguments arguments();
};

}  // namespace tilewright::checks::fuzz
