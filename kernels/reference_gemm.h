#pragma once

#include <string>
#include <vector>

#include "kernels/reference.h"

// Products and what stands behind them, in float64, written without the language.
namespace tilewright::kernels {

struct LinearTerms {
  bool a_along_m, b_along_n, bias, residual, keep_sums;
  std::string activation;
};
// A, B and, where they are there, bias and residual.
std::vector<std::vector<double>> linear_reference(const LinearTerms& terms,
                                                  const std::vector<HostTensor>& inputs);

// Z and dY {rows, columns}.
std::vector<std::vector<double>> activation_backward_reference(
    const std::string& activation, bool has_bias, const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> column_sums_reference(const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
