#include "check/input_changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>

namespace tilewright::checks {

std::vector<InputChange> changes_of_input(const HostTensor& tensor, std::size_t input) {
  constexpr double kFar = 256;  // exp(-kFar) is 0 in f32; e4m3 reaches to 448
  if (!is_float(tensor.dtype())) return {};
  std::vector<InputChange> changes;
  for (const double shift : {-kFar, kFar}) changes.push_back({input, shift});
  for (std::size_t axis = 0; axis + 1 < tensor.shape().size(); ++axis) {
    if (tensor.shape()[axis] > 1) changes.push_back({input, 0, axis});
  }
  return changes;
}

void apply(const InputChange& change, HostTensor& tensor) {
  constexpr double kGrowth = 2;
  const std::vector<std::int64_t>& shape = tensor.shape();
  const std::int64_t extent = shape.empty() ? 1 : shape[change.axis];
  const std::int64_t inner =
      std::accumulate(shape.begin() + std::min(change.axis + 1, shape.size()), shape.end(),
                      std::int64_t{1}, std::multiplies<>());
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    const double value = tensor.flat(i), at = static_cast<double>(i / inner % extent);
    const double factor =
        1 + kGrowth * at / static_cast<double>(std::max<std::int64_t>(extent - 1, 1));
    tensor.set_flat(i, change.shift != 0 ? value + change.shift : value * factor);
  }
}

std::string describe(const InputChange& change, const std::string& name) {
  return change.shift != 0 ? fmt::format("{} lies {} from zero", name, change.shift)
                           : fmt::format("{} grows along axis {}", name, change.axis);
}

}  // namespace tilewright::checks
