#include "kernels/reference_serving.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference.h"

namespace tilewright::kernels {
namespace {

constexpr double kLargestByte = 448;  // of f8e4m3
constexpr double kEmpty = -std::numeric_limits<double>::infinity();

// A key of one head, turned by its position's angles.
void rotate(double* key, const double* cos_sin, std::int64_t rotary_dim) {
  const std::int64_t half = rotary_dim / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const double cosine = cos_sin[i], sine = cos_sin[half + i];
    const double left = key[i], right = key[half + i];
    key[i] = left * cosine - right * sine;
    key[half + i] = right * cosine + left * sine;
  }
}

}  // namespace

std::vector<std::vector<double>> kv_append_reference(const AppendSizes& sizes,
                                                     const std::vector<HostTensor>& inputs) {
  const std::size_t rows = sizes.is_latent ? 1 : 2;  // tensors of them: keys come first
  const HostTensor &sequences = inputs[rows], &positions = inputs[rows + 1];
  const HostTensor& table = inputs[rows + 2];
  std::size_t next = rows + 3;
  const std::vector<double> cos_sin =
      sizes.rotary_dim > 0 ? numbers_of(inputs[next++]) : std::vector<double>();
  std::vector<std::vector<double>> scales;
  for (int i = 0; sizes.is_quantised && i < 2; ++i) scales.push_back(numbers_of(inputs[next++]));
  std::vector<std::vector<double>> caches;
  for (std::size_t i = 0; i < rows; ++i) caches.push_back(numbers_of(inputs[next + i]));
  const std::int64_t max_pages = table.shape()[1];
  for (std::int64_t token = 0; token < sequences.elements(); ++token) {
    const auto position = static_cast<std::int64_t>(positions.flat(token));
    if (position < 0) continue;
    const auto sequence = static_cast<std::int64_t>(sequences.flat(token));
    const auto page =
        static_cast<std::int64_t>(table.flat(sequence * max_pages + position / sizes.page));
    if (page < 0) continue;
    const std::int64_t place = page * sizes.page + position % sizes.page;
    for (std::size_t which = 0; which < rows; ++which) {
      const std::int64_t heads = sizes.is_latent ? 1 : inputs[which].shape()[1];
      const std::int64_t dim = inputs[which].shape().back();
      for (std::int64_t head = 0; head < heads; ++head) {
        std::vector<double> row;
        for (std::int64_t i = 0; i < dim; ++i) {
          row.push_back(inputs[which].flat((token * heads + head) * dim + i));
        }
        if (which == 0 && sizes.rotary_dim > 0) {
          rotate(row.data() + (sizes.is_latent ? dim - sizes.rotary_dim : 0),
                 &cos_sin[static_cast<std::size_t>(position * sizes.rotary_dim)], sizes.rotary_dim);
        }
        if (sizes.is_quantised) {
          const double scale = scales[which][static_cast<std::size_t>(head)];
          for (double& x : row) x = std::clamp(x / scale, -kLargestByte, kLargestByte);
        }
        std::copy(
            row.begin(), row.end(),
            caches[which].begin() + static_cast<std::ptrdiff_t>((place * heads + head) * dim));
      }
    }
  }
  return caches;
}

std::vector<std::vector<double>> merge_states_reference(const std::vector<HostTensor>& inputs) {
  const std::vector<std::int64_t>& shape = inputs[0].shape();
  const std::int64_t parts = shape[0], states = shape[1] * shape[2], dim = shape[3];
  std::vector<double> outputs(static_cast<std::size_t>(states * dim));
  std::vector<double> sums(static_cast<std::size_t>(states), kEmpty);
  for (std::int64_t state = 0; state < states; ++state) {
    const auto sum_of = [&](std::int64_t part) { return inputs[1].flat(part * states + state); };
    double top = kEmpty, sum = 0;
    for (std::int64_t part = 0; part < parts; ++part) top = std::max(top, sum_of(part));
    if (top == kEmpty) continue;
    for (std::int64_t part = 0; part < parts; ++part) sum += std::exp(sum_of(part) - top);
    sums[static_cast<std::size_t>(state)] = top + std::log(sum);
    for (std::int64_t part = 0; part < parts; ++part) {
      const double weight = std::exp(sum_of(part) - top) / sum;
      if (weight == 0) continue;
      for (std::int64_t i = 0; i < dim; ++i) {
        outputs[static_cast<std::size_t>(state * dim + i)] +=
            weight * inputs[0].flat((part * states + state) * dim + i);
      }
    }
  }
  return {outputs, sums};
}

}  // namespace tilewright::kernels
