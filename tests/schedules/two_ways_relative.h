#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "schedules/two_ways.h"

// Whole outputs of the automatic schedule beside the interpreter's, by their relative error.
namespace tilewright::test {

// Of bf16 results; a wrong tile or a lost row is far above.
inline constexpr double kOutputTolerance = 6e-3;

inline double output_error(const HostTensor& got, const HostTensor& want) {
  double error = 0, norm = 0;
  for (std::int64_t i = 0; i < want.elements(); ++i) {
    const double x = got.flat(i), y = want.flat(i);
    if (x == y) {
      norm += std::isinf(y) ? 0 : y * y;
      continue;
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return INFINITY;
    error += (x - y) * (x - y);
    norm += y * y;
  }
  return error == 0 ? 0 : std::sqrt(error / norm);
}

inline void check(const Kernel& kernel, std::vector<HostTensor> tensors,
                  const std::vector<HostTensor>& outputs, const std::vector<double>& scalars = {}) {
  const std::size_t inputs = tensors.size();
  tensors.insert(tensors.end(), outputs.begin(), outputs.end());
  const TwoWays results = run_two_ways(kernel, tensors, scalars);
  for (std::size_t i = inputs; i < tensors.size(); ++i) {
    EXPECT_LT(output_error(results.got[i], results.wanted[i]), kOutputTolerance)
        << "output " << i - inputs;
  }
}

inline HostTensor random(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(bf16, std::move(shape), seed);
}
inline HostTensor poison(std::vector<std::int64_t> shape, DType dtype = bf16) {
  return HostTensor::poisoned(dtype, std::move(shape));
}
inline HostTensor random_f32(std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(f32, std::move(shape), seed);
}

}  // namespace tilewright::test
