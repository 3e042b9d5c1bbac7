#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"

// A kernel of the tile level on the interpreter, and by the automatic schedule on the simulated
// GPU.
namespace tilewright::test {

struct TwoWays {
  std::vector<HostTensor> wanted, got;  // what the tensors hold afterwards, in their order
};

inline TwoWays run_two_ways(const Kernel& kernel, const std::vector<HostTensor>& tensors,
                            const std::vector<double>& scalars = {},
                            const char* simulated = "sim:sm_90a") {
  TwoWays results{tensors, tensors};
  for (auto& [target, on] :
       {std::pair("interpreter", &results.wanted), {simulated, &results.got}}) {
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : *on) refs.push_back(ref(tensor));
    compile(kernel, target).run(refs, scalars);
  }
  return results;
}

// Elements agree up to `bound`, relative to those above 1.
inline void expect_near(const HostTensor& got, const HostTensor& wanted, double bound) {
  for (std::int64_t i = 0; i < wanted.elements(); ++i) {
    const double x = got.flat(i), y = wanted.flat(i);
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    ASSERT_NEAR(x, y, bound * (1 + std::abs(y))) << "element " << i;
  }
}

// The tensors behind the first `inputs` are those that the kernel makes.
inline void expect_two_ways(const Kernel& kernel, const std::vector<HostTensor>& tensors,
                            std::size_t inputs, double bound,
                            const char* simulated = "sim:sm_90a") {
  const TwoWays results = run_two_ways(kernel, tensors, {}, simulated);
  for (std::size_t i = inputs; i < tensors.size(); ++i) {
    SCOPED_TRACE(testing::Message() << kernel.name() << ": output " << i - inputs);
    expect_near(results.got[i], results.wanted[i], bound);
  }
}

}  // namespace tilewright::test
