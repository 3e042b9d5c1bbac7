#include "kernels/reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <functional>
#include <limits>
#include <thread>

namespace tilewright::kernels {
namespace {

std::vector<double> numbers_of(const HostTensor& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = tensor.flat(static_cast<std::int64_t>(i));
  }
  return numbers;
}

// Calls `body` with every number below `count`, from all processors.
void for_all(std::int64_t count, const std::function<void(std::int64_t)>& body) {
  std::atomic<std::int64_t> next = 0;
  const auto work = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  const std::int64_t threads =
      std::min<std::int64_t>(std::max(1u, std::thread::hardware_concurrency()), count);
  std::vector<std::thread> others;
  for (std::int64_t i = 1; i < threads; ++i) others.emplace_back(work);
  work();
  for (std::thread& thread : others) thread.join();
}

// Independent sums, so that a term need not wait for the one before it.
double dot(const double* a, const double* b, std::int64_t count) {
  constexpr std::int64_t kSums = 8;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// The rows of one sequence in packed tensors.
struct Rows {
  std::int64_t first_query, queries, first_key, keys;
};

// Writes the output of each row of `sequence`, and gives `sums(query, head, value)` its sum.
void attend(const AttentionSizes& s, const Rows& sequence,
            const std::vector<std::vector<double>>& inputs, std::vector<double>& output,
            const std::function<void(std::int64_t, std::int64_t, double)>& sums) {
  const std::vector<double>&q = inputs[0], &k = inputs[1], &v = inputs[2];
  const std::int64_t group = s.heads / s.kv_heads;
  for_all(s.heads * sequence.queries, [&](std::int64_t row) {
    const std::int64_t i = row % sequence.queries;
    const std::int64_t h = row / sequence.queries;
    const std::int64_t diagonal = i + sequence.keys - sequence.queries;
    const std::int64_t last = s.causal ? std::min(diagonal, sequence.keys - 1) : sequence.keys - 1;
    const std::int64_t first =
        s.window > 0 ? std::max<std::int64_t>(diagonal - s.window + 1, 0) : 0;
    const auto key_row = [&](std::int64_t j) {
      return (sequence.first_key + j) * s.kv_heads + h / group;
    };
    const std::int64_t query_row = (sequence.first_query + i) * s.heads + h;
    const double* query = q.data() + query_row * s.dim;

    std::vector<double> weights;
    double maximum = -std::numeric_limits<double>::infinity();
    for (std::int64_t j = first; j <= last; ++j) {
      weights.push_back(s.scale * dot(query, k.data() + key_row(j) * s.dim, s.dim));
      maximum = std::max(maximum, weights.back());
    }
    double sum = 0;
    for (double& weight : weights) sum += weight = std::exp(weight - maximum);

    double* out = output.data() + query_row * s.dim_v;
    for (std::int64_t j = first; j <= last; ++j) {
      const double weight = weights[static_cast<std::size_t>(j - first)] / sum;
      const double* value = v.data() + key_row(j) * s.dim_v;
      for (std::int64_t d = 0; d < s.dim_v; ++d) out[d] += weight * value[d];
    }
    sums(i, h, maximum + std::log(sum));
  });
}

std::vector<std::vector<double>> all_numbers(const std::vector<HostTensor>& tensors) {
  std::vector<std::vector<double>> numbers;
  for (const HostTensor& tensor : tensors) numbers.push_back(numbers_of(tensor));
  return numbers;
}

}  // namespace

std::vector<std::vector<double>> attention_reference(const AttentionSizes& s,
                                                     const std::vector<HostTensor>& inputs) {
  const std::vector<std::vector<double>> numbers = all_numbers(inputs);
  std::vector<double> output(static_cast<std::size_t>(s.batch * s.queries * s.heads * s.dim_v));
  std::vector<double> sums(static_cast<std::size_t>(s.batch * s.heads * s.queries));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    attend(s, {b * s.queries, s.queries, b * s.keys, s.keys}, numbers, output,
           [&](std::int64_t i, std::int64_t h, double sum) {
             sums[static_cast<std::size_t>((b * s.heads + h) * s.queries + i)] = sum;
           });
  }
  return {std::move(output), std::move(sums)};
}

std::vector<std::vector<double>> attention_varlen_reference(const AttentionSizes& s,
                                                            const std::vector<HostTensor>& inputs) {
  const std::vector<std::vector<double>> numbers = all_numbers(inputs);
  const auto begin = [&](const std::vector<double>& offsets, std::int64_t b) {
    return static_cast<std::int64_t>(offsets[static_cast<std::size_t>(b)]);
  };
  std::vector<double> output(static_cast<std::size_t>(s.queries * s.heads * s.dim_v));
  std::vector<double> sums(static_cast<std::size_t>(s.heads * s.queries));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t query = begin(numbers[3], b), key = begin(numbers[4], b);
    attend(s, {query, begin(numbers[3], b + 1) - query, key, begin(numbers[4], b + 1) - key},
           numbers, output, [&](std::int64_t i, std::int64_t h, double sum) {
             sums[static_cast<std::size_t>(h * s.queries + query + i)] = sum;
           });
  }
  return {std::move(output), std::move(sums)};
}

std::vector<std::vector<double>> gemm_reference(const std::vector<HostTensor>& inputs) {
  const std::int64_t m = inputs[0].shape()[0], k = inputs[0].shape()[1];
  const std::int64_t n = inputs[1].shape()[0];
  const std::vector<double> a = numbers_of(inputs[0]);
  const std::vector<double> b = numbers_of(inputs[1]);
  double scale = 1;
  for (std::size_t i = 2; i < inputs.size(); ++i) scale *= inputs[i].flat(0);
  std::vector<double> c(static_cast<std::size_t>(m * n));
  for_all(m, [&](std::int64_t i) {
    for (std::int64_t j = 0; j < n; ++j) {
      c[static_cast<std::size_t>(i * n + j)] = scale * dot(a.data() + i * k, b.data() + j * k, k);
    }
  });
  return {std::move(c)};
}

}  // namespace tilewright::kernels
