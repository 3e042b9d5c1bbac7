#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tilewright/dtype.h"

namespace tilewright {

// A tensor in memory that a launch is given. `strides` are in elements; `data` is element 0. Of a
// symmetric tensor `peers` has element 0 in each rank; none: there is this rank alone.
struct TensorArgument {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::byte* data = nullptr;
  std::vector<std::byte*> peers = {};
  // Its floating elements are doubles in memory, whatever the dtype: for the interpreter alone, in
  // float64.
  bool is_double = false;
  int element_bytes() const {
    return is_double && is_float(dtype) ? static_cast<int>(sizeof(double)) : size_of(dtype);
  }
};

// What one launch of a kernel is given, in the order of the kernel's tensor parameters and of its
// scalar parameters. A kernel of several ranks is launched once on each; `epoch` counts its
// launches on the same signals, from 1.
struct Arguments {
  std::vector<TensorArgument> tensors;
  std::vector<double> scalars;
  int rank = 0, ranks = 1, epoch = 1;
};

// Of a dense tensor, in elements.
inline std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& shape) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

}  // namespace tilewright
