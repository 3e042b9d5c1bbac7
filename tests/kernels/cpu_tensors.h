#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <utility>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Tensors of small whole numbers, whose sums are exact in every order, and kernels that run on
// them.
namespace tilewright::test {

inline HostTensor counted(std::vector<std::int64_t> shape, std::int64_t step = 7,
                          DType dtype = f32) {
  HostTensor tensor = HostTensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set_flat(i, static_cast<double>(i * step % 11 - 5));
  }
  return tensor;
}
inline HostTensor untouched(std::vector<std::int64_t> shape) {
  return HostTensor::poisoned(f32, std::move(shape));
}

inline std::vector<HostTensor> run_on(const char* target, const Kernel& kernel,
                                      std::vector<HostTensor> tensors) {
  std::vector<TensorRef> refs;
  for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
  compile(kernel, target).run(refs);
  return tensors;
}

// Poison where nobody writes is compared too.
inline void expect_alike(const Kernel& kernel, const std::vector<HostTensor>& tensors) {
  const std::vector<HostTensor> wanted = run_on("interpreter", kernel, tensors);
  const std::vector<HostTensor> got = run_on("cpu", kernel, tensors);
  for (std::size_t t = 0; t < got.size(); ++t) {
    for (std::int64_t i = 0; i < got[t].elements(); ++i) {
      const double a = got[t].flat(i), b = wanted[t].flat(i);
      ASSERT_EQ(std::memcmp(&a, &b, sizeof a), 0)
          << "tensor " << t << " at " << i << ": " << a << ", and " << b << " on the interpreter";
    }
  }
}

}  // namespace tilewright::test
