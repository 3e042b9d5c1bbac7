#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"

// Functions of rows, and rotary embeddings, in float64, written without the language. `inputs` are
// those of the kernel in their order, and the result is its outputs.
namespace tilewright::kernels {

struct NormSizes {
  bool centred, weight, bias;
  double epsilon;
};
std::vector<std::vector<double>> norm_reference(const NormSizes& sizes,
                                                const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> norm_backward_reference(const NormSizes& sizes,
                                                         const std::vector<HostTensor>& inputs);

std::vector<std::vector<double>> softmax_reference(const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> softmax_backward_reference(const std::vector<HostTensor>& inputs);

std::vector<std::vector<double>> cross_entropy_reference(double smoothing, std::int64_t ignored,
                                                         const std::vector<HostTensor>& inputs);
std::vector<std::vector<double>> cross_entropy_backward_reference(
    double smoothing, std::int64_t ignored, const std::vector<HostTensor>& inputs);

struct RotarySizes {
  bool interleaved, positions, inverse;
};
std::vector<std::vector<double>> rotary_reference(const RotarySizes& sizes,
                                                  const std::vector<HostTensor>& inputs);

}  // namespace tilewright::kernels
