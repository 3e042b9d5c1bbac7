#include "kernels/reference_gemm.h"

#include <algorithm>
#include <cmath>

namespace tilewright::kernels {
namespace {

const double kPi = std::acos(-1.0);

struct ValueAndSlope {
  double value, slope;
};

ValueAndSlope activated(const std::string& activation, double z) {
  if (activation == "relu") return {std::max(z, 0.0), z > 0 ? 1.0 : 0.0};
  if (activation == "gelu") {
    const double below = std::erfc(-z / std::sqrt(2.0)) / 2;
    return {z * below, below + z * std::exp(-z * z / 2) / std::sqrt(2 * kPi)};
  }
  if (activation == "gelu_tanh") {
    const double scale = std::sqrt(2 / kPi), cube = 0.044715;
    const double t = std::tanh(scale * (z + cube * z * z * z));
    const double slope = (1 - t * t) * scale * (1 + 3 * cube * z * z);
    return {z * (1 + t) / 2, (1 + t + z * slope) / 2};
  }
  if (activation == "silu") {
    const double s = 1 / (1 + std::exp(-z));
    return {z * s, s + z * s * (1 - s)};
  }
  return {z, 1};
}

// {rows, columns} as {columns, rows}.
HostTensor transposed(const HostTensor& tensor) {
  const std::int64_t rows = tensor.shape()[0], columns = tensor.shape()[1];
  HostTensor result = HostTensor::zeros(tensor.dtype(), {columns, rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result.set_flat(j * rows + i, tensor.flat(i * columns + j));
    }
  }
  return result;
}

}  // namespace

std::vector<std::vector<double>> linear_reference(const LinearTerms& terms,
                                                  const std::vector<HostTensor>& inputs) {
  const HostTensor a = terms.a_along_m ? transposed(inputs[0]) : inputs[0];
  const HostTensor b = terms.b_along_n ? transposed(inputs[1]) : inputs[1];
  std::vector<double> sums = gemm_reference({a, b})[0], results;
  const auto columns = static_cast<std::size_t>(b.shape()[0]);
  const std::vector<double> bias =
      terms.bias ? numbers_of(inputs[2]) : std::vector<double>(columns, 0);
  const std::vector<double> residual =
      terms.residual ? numbers_of(inputs.back()) : std::vector<double>(sums.size(), 0);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] += bias[i % columns];
    results.push_back(activated(terms.activation, sums[i]).value + residual[i]);
  }
  if (terms.keep_sums) return {results, sums};
  return {results};
}

std::vector<std::vector<double>> activation_backward_reference(
    const std::string& activation, bool has_bias, const std::vector<HostTensor>& inputs) {
  const auto columns = static_cast<std::size_t>(inputs[0].shape()[1]);
  const std::vector<double> z = numbers_of(inputs[0]), dy = numbers_of(inputs[1]);
  std::vector<double> dz, dbias(columns);
  for (std::size_t i = 0; i < z.size(); ++i) {
    dz.push_back(dy[i] * activated(activation, z[i]).slope);
    dbias[i % columns] += dz.back();
  }
  if (has_bias) return {dz, dbias};
  return {dz};
}

std::vector<std::vector<double>> column_sums_reference(const std::vector<HostTensor>& inputs) {
  const auto columns = static_cast<std::size_t>(inputs[0].shape()[1]);
  const std::vector<double> x = numbers_of(inputs[0]);
  std::vector<double> sums(columns);
  for (std::size_t i = 0; i < x.size(); ++i) sums[i % columns] += x[i];
  return {sums};
}

}  // namespace tilewright::kernels
