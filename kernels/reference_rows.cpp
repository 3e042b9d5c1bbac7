#include "kernels/reference_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference.h"

namespace tilewright::kernels {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A matrix, row by row.
struct RowMatrix {
  explicit RowMatrix(const HostTensor& tensor)
      : rows(static_cast<std::size_t>(tensor.shape()[0])),
        columns(static_cast<std::size_t>(tensor.shape()[1])),
        numbers(numbers_of(tensor)) {}
  const double* row(std::size_t i) const { return numbers.data() + i * columns; }
  std::size_t rows, columns;
  std::vector<double> numbers;
};

// Of exponentials of a row that are shifted by its maximum, which a sum of their logarithm and a
// large maximum has no digits for.
struct ShiftedSum {
  ShiftedSum(const double* row, std::size_t columns)
      : maximum(columns == 0 ? -kInfinite : *std::max_element(row, row + columns)) {
    for (std::size_t j = 0; maximum > -kInfinite && j < columns; ++j) {
      sum += std::exp(row[j] - maximum);
    }
  }
  double weight(double x) const { return std::exp(x - maximum) / sum; }
  double log() const { return maximum == -kInfinite ? maximum : maximum + std::log(sum); }
  double maximum, sum = 0;
};

}  // namespace

std::vector<std::vector<double>> norm_reference(const NormSizes& sizes,
                                                const std::vector<HostTensor>& inputs) {
  const RowMatrix x(inputs[0]);
  const std::vector<double> weight =
      sizes.weight ? numbers_of(inputs[1]) : std::vector<double>(x.columns, 1);
  const std::vector<double> bias =
      sizes.bias ? numbers_of(inputs.back()) : std::vector<double>(x.columns, 0);
  const auto count = static_cast<double>(x.columns);
  std::vector<double> y, means, deviations;
  for (std::size_t i = 0; i < x.rows; ++i) {
    double mean = 0, variance = 0;
    for (std::size_t j = 0; sizes.centred && j < x.columns; ++j) mean += x.row(i)[j] / count;
    for (std::size_t j = 0; j < x.columns; ++j) {
      variance += (x.row(i)[j] - mean) * (x.row(i)[j] - mean) / count;
    }
    const double deviation = 1 / std::sqrt(variance + sizes.epsilon);
    means.push_back(mean);
    deviations.push_back(deviation);
    for (std::size_t j = 0; j < x.columns; ++j) {
      y.push_back((x.row(i)[j] - mean) * deviation * weight[j] + bias[j]);
    }
  }
  if (sizes.centred) return {y, means, deviations};
  return {y, deviations};
}

std::vector<std::vector<double>> norm_backward_reference(const NormSizes& sizes,
                                                         const std::vector<HostTensor>& inputs) {
  std::size_t next = 0;
  const RowMatrix x(inputs[next++]);
  const std::vector<double> weight =
      sizes.weight ? numbers_of(inputs[next++]) : std::vector<double>(x.columns, 1);
  const std::vector<double> means =
      sizes.centred ? numbers_of(inputs[next++]) : std::vector<double>(x.rows, 0);
  const std::vector<double> deviations = numbers_of(inputs[next++]);
  const RowMatrix dy(inputs[next]);
  const auto count = static_cast<double>(x.columns);
  std::vector<double> dx(x.numbers.size()), dweight(x.columns), dbias(x.columns);
  for (std::size_t i = 0; i < x.rows; ++i) {
    const auto normal = [&](std::size_t j) { return (x.row(i)[j] - means[i]) * deviations[i]; };
    double along = 0, mean = 0;
    for (std::size_t j = 0; j < x.columns; ++j) {
      const double g = dy.row(i)[j] * weight[j];
      along += g * normal(j) / count;
      if (sizes.centred) mean += g / count;
      dweight[j] += dy.row(i)[j] * normal(j);
      dbias[j] += dy.row(i)[j];
    }
    for (std::size_t j = 0; j < x.columns; ++j) {
      dx[i * x.columns + j] = (dy.row(i)[j] * weight[j] - mean - normal(j) * along) * deviations[i];
    }
  }
  std::vector<std::vector<double>> results = {dx};
  if (sizes.weight) results.push_back(dweight);
  if (sizes.bias) results.push_back(dbias);
  return results;
}

std::vector<std::vector<double>> softmax_reference(const std::vector<HostTensor>& inputs) {
  const RowMatrix x(inputs[0]);
  std::vector<double> y;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const ShiftedSum sum(x.row(i), x.columns);
    for (std::size_t j = 0; j < x.columns; ++j) y.push_back(sum.weight(x.row(i)[j]));
  }
  return {y};
}

std::vector<std::vector<double>> softmax_backward_reference(const std::vector<HostTensor>& inputs) {
  const RowMatrix y(inputs[0]), dy(inputs[1]);
  std::vector<double> dx;
  for (std::size_t i = 0; i < y.rows; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < y.columns; ++j) sum += y.row(i)[j] * dy.row(i)[j];
    for (std::size_t j = 0; j < y.columns; ++j) dx.push_back(y.row(i)[j] * (dy.row(i)[j] - sum));
  }
  return {dx};
}

std::vector<std::vector<double>> cross_entropy_reference(double smoothing, std::int64_t ignored,
                                                         const std::vector<HostTensor>& inputs) {
  const RowMatrix x(inputs[0]);
  std::vector<double> losses, sums;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const auto target = static_cast<std::int64_t>(inputs[1].flat(static_cast<std::int64_t>(i)));
    const ShiftedSum sum(x.row(i), x.columns);
    // Of a class, without the maximum, which would leave no digits of the rest.
    const auto loss_of = [&](std::size_t j) {
      return sum.maximum - x.row(i)[j] + std::log(sum.sum);
    };
    const bool is_class = target >= 0 && target < static_cast<std::int64_t>(x.columns);
    double loss =
        is_class ? (1 - smoothing) * loss_of(static_cast<std::size_t>(target)) : kInfinite;
    for (std::size_t j = 0; smoothing > 0 && j < x.columns; ++j) {
      loss += smoothing * loss_of(j) / static_cast<double>(x.columns);
    }
    losses.push_back(target == ignored ? 0 : loss);
    sums.push_back(sum.log());
  }
  return {losses, sums};
}

std::vector<std::vector<double>> cross_entropy_backward_reference(
    double smoothing, std::int64_t ignored, const std::vector<HostTensor>& inputs) {
  const RowMatrix x(inputs[0]);
  const std::vector<double> sums = numbers_of(inputs[2]), of_rows = numbers_of(inputs[3]);
  std::vector<double> dx;
  for (std::size_t i = 0; i < x.rows; ++i) {
    const auto target = static_cast<std::int64_t>(inputs[1].flat(static_cast<std::int64_t>(i)));
    for (std::size_t j = 0; j < x.columns; ++j) {
      const double is_target = static_cast<std::int64_t>(j) == target ? 1 - smoothing : 0;
      const double step =
          std::exp(x.row(i)[j] - sums[i]) - is_target - smoothing / static_cast<double>(x.columns);
      dx.push_back(target == ignored ? 0 : step * of_rows[i]);
    }
  }
  return {dx};
}

std::vector<std::vector<double>> rotary_reference(const RotarySizes& sizes,
                                                  const std::vector<HostTensor>& inputs) {
  const std::vector<std::int64_t>& shape = inputs[0].shape();
  const std::int64_t length = shape[1], heads = shape[2], dim = shape[3];
  const std::int64_t half = inputs[1].shape()[1];
  std::vector<double> y = numbers_of(inputs[0]);
  for (std::int64_t token = 0; token < shape[0] * length; ++token) {
    const std::int64_t position =
        sizes.positions ? static_cast<std::int64_t>(inputs[3].flat(token)) : token % length;
    for (std::int64_t pair = 0; pair < heads * half; ++pair) {
      const std::int64_t i = pair % half;
      double* const head = y.data() + (token * heads + pair / half) * dim;
      double& left = head[sizes.interleaved ? 2 * i : i];
      double& right = head[sizes.interleaved ? 2 * i + 1 : i + half];
      const double cosine = inputs[1].flat(position * half + i);
      const double sine = inputs[2].flat(position * half + i) * (sizes.inverse ? -1 : 1);
      const double turned = left * cosine - right * sine;
      right = right * cosine + left * sine;
      left = turned;
    }
  }
  return {y};
}

}  // namespace tilewright::kernels
