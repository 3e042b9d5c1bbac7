#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright {

// A tensor in memory that a launch is given. `strides` are in elements; `data` is element 0.
struct TensorArgument {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::byte* data = nullptr;
};

// What one launch of a kernel is given, in the order of the kernel's tensor parameters and of its
// scalar parameters.
struct Arguments {
  std::vector<TensorArgument> tensors;
  std::vector<double> scalars;
};

}  // namespace tilewright
