#include "kernels/reference.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <thread>

#include "kernels/reference_offsets.h"
#include "kernels/reference_vectors.h"
#include "tilewright/error.h"
#include "tilewright/function_ref.h"

namespace tilewright::kernels {

std::vector<double> numbers_of(const HostTensor& tensor) {
  std::vector<double> numbers(static_cast<std::size_t>(tensor.elements()));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    numbers[i] = tensor.flat(static_cast<std::int64_t>(i));
  }
  return numbers;
}

namespace {

// Calls `body` with every number below `count`, from all processors.
void for_all(std::int64_t count, FunctionRef<void(std::int64_t)> body) {
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

// The rows of one sequence in packed tensors.
struct Rows {
  std::int64_t first_query, queries, first_key, keys;
};

// Writes the output of each row of `sequence`, and gives `sums(query, head, value)` its sum.
void attend(const AttentionSizes& s, const Rows& sequence,
            const std::vector<std::vector<double>>& inputs, const std::vector<double>& sinks,
            std::vector<double>& output,
            FunctionRef<void(std::int64_t, std::int64_t, double)> sums) {
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
    const double sink = sinks.empty() ? -std::numeric_limits<double>::infinity()
                                      : sinks[static_cast<std::size_t>(h)];
    double maximum = sink;
    for (std::int64_t j = first; j <= last; ++j) {
      const double score = s.scale * product_of_rows(query, k.data() + key_row(j) * s.dim, s.dim);
      weights.push_back(s.softcap > 0 ? s.softcap * std::tanh(score / s.softcap) : score);
      maximum = std::max(maximum, weights.back());
    }
    double sum = sinks.empty() ? 0 : std::exp(sink - maximum);
    for (double& weight : weights) sum += weight = std::exp(weight - maximum);

    double* out = output.data() + query_row * s.dim_v;
    for (std::int64_t j = first; j <= last; ++j) {
      const double weight = weights[static_cast<std::size_t>(j - first)] / sum;
      add_times(weight, v.data() + key_row(j) * s.dim_v, out, s.dim_v);
    }
    sums(i, h, maximum + std::log(sum));
  });
}

// Nobody writes a row of no sequence.
void leave_out_others(const HostTensor& offsets, std::int64_t rows, std::vector<double>& gradient) {
  std::vector<bool> is_in(static_cast<std::size_t>(rows));
  for (std::int64_t b = 0; b + 1 < offsets.elements(); ++b) {
    const auto end = static_cast<std::int64_t>(offsets.flat(b + 1));
    for (auto row = static_cast<std::int64_t>(offsets.flat(b)); row < end; ++row) {
      is_in[static_cast<std::size_t>(row)] = true;
    }
  }
  const std::int64_t width = rows == 0 ? 0 : static_cast<std::int64_t>(gradient.size()) / rows;
  for (std::int64_t row = 0; row < rows; ++row) {
    if (is_in[static_cast<std::size_t>(row)]) continue;
    std::fill_n(gradient.begin() + row * width, width, std::nan(""));
  }
}

std::vector<std::vector<double>> all_numbers(const std::vector<HostTensor>& tensors) {
  std::vector<std::vector<double>> numbers;
  for (const HostTensor& tensor : tensors) numbers.push_back(numbers_of(tensor));
  return numbers;
}

// The sinks behind the other inputs, if they are there.
std::vector<double> sinks_of(const std::vector<std::vector<double>>& inputs, std::size_t others) {
  return inputs.size() > others ? inputs[others] : std::vector<double>();
}

}  // namespace

std::vector<std::vector<double>> attention_reference(const AttentionSizes& s,
                                                     const std::vector<HostTensor>& inputs) {
  const std::vector<std::vector<double>> numbers = all_numbers(inputs);
  std::vector<double> output(static_cast<std::size_t>(s.batch * s.queries * s.heads * s.dim_v));
  std::vector<double> sums(static_cast<std::size_t>(s.batch * s.heads * s.queries));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    attend(s, {b * s.queries, s.queries, b * s.keys, s.keys}, numbers, sinks_of(numbers, 3), output,
           [&](std::int64_t i, std::int64_t h, double sum) {
             sums[static_cast<std::size_t>((b * s.heads + h) * s.queries + i)] = sum;
           });
  }
  return {std::move(output), std::move(sums)};
}

namespace {

// Rows of an axis of the whole that a rank has, in the order in which it has them.
std::vector<std::int64_t> rows_of_rank(std::int64_t rank, std::int64_t ranks, std::int64_t rows,
                                       Shards shards) {
  std::vector<std::int64_t> whole;
  const std::int64_t early = shards == Shards::zig_zag ? (rows + 1) / 2 : rows;
  for (std::int64_t i = 0; i < early; ++i) whole.push_back(rank * early + i);
  for (std::int64_t i = early; i < rows; ++i) {
    whole.push_back(ranks * early + (ranks - 1 - rank) * (rows - early) + (i - early));
  }
  return whole;
}

// Those rows of {outer, rows, inner}.
std::vector<double> take_rows(const std::vector<double>& from, std::int64_t outer,
                              std::int64_t inner, const std::vector<std::int64_t>& rows) {
  const std::int64_t all =
      static_cast<std::int64_t>(from.size()) / std::max<std::int64_t>(outer * inner, 1);
  std::vector<double> taken;
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const std::int64_t row : rows) {
      const auto first = from.begin() + (i * all + row) * inner;
      taken.insert(taken.end(), first, first + inner);
    }
  }
  return taken;
}

// The tensor that stands at `place` among those of each rank.
HostTensor whole_of(const std::vector<HostTensor>& inputs, std::size_t place, std::size_t of_rank,
                    int axis, Shards shards) {
  std::vector<HostTensor> parts;
  for (std::size_t i = place; i < inputs.size(); i += of_rank) parts.push_back(inputs[i]);
  return unshard(parts, axis, shards);
}

Rows packed_rows(const AttentionSizes& s, std::int64_t query, std::int64_t query_end,
                 std::int64_t key, std::int64_t key_end) {
  return {query, rows_between("cu_seqlens_q", query, query_end, s.queries), key,
          rows_between("cu_seqlens_k", key, key_end, s.keys)};
}

AttentionSizes of_all_ranks(AttentionSizes of_rank, int ranks) {
  of_rank.queries *= ranks;
  of_rank.keys *= ranks;
  return of_rank;
}

}  // namespace

std::vector<std::vector<double>> attention_varlen_reference(const AttentionSizes& s,
                                                            const std::vector<HostTensor>& inputs) {
  const std::vector<std::vector<double>> numbers = all_numbers(inputs);
  const auto begin = [&](const std::vector<double>& offsets, std::int64_t b) {
    return static_cast<std::int64_t>(offsets[static_cast<std::size_t>(b)]);
  };
  std::vector<double> output(static_cast<std::size_t>(s.queries * s.heads * s.dim_v));
  std::vector<double> sums(static_cast<std::size_t>(s.heads * s.queries), std::nan(""));
  for (std::int64_t b = 0; b < s.batch; ++b) {
    const std::int64_t query = begin(numbers[3], b), key = begin(numbers[4], b);
    attend(s, packed_rows(s, query, begin(numbers[3], b + 1), key, begin(numbers[4], b + 1)),
           numbers, sinks_of(numbers, 5), output, [&](std::int64_t i, std::int64_t h, double sum) {
             sums[static_cast<std::size_t>(h * s.queries + query + i)] = sum;
           });
  }
  leave_out_others(inputs[3], s.queries, output);
  return {std::move(output), std::move(sums)};
}

std::vector<std::vector<double>> sequence_parallel_attention_reference(
    const AttentionSizes& s, int ranks, Shards shards, const std::vector<HostTensor>& inputs,
    bool is_packed) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(ranks);
  std::vector<HostTensor> whole;
  for (std::size_t tensor = 0; tensor < 3; ++tensor) {
    whole.push_back(whole_of(inputs, tensor, of_rank, is_packed ? 0 : 1, shards));
  }
  const AttentionSizes all = of_all_ranks(s, ranks);
  const std::int64_t batch = is_packed ? 1 : s.batch;
  std::vector<std::vector<double>> outputs, results;
  std::vector<HostTensor> seen;
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<HostTensor> sees = whole;
    const auto own = inputs.begin() + static_cast<std::ptrdiff_t>(rank * of_rank);
    sees.insert(sees.end(), own + 3, own + static_cast<std::ptrdiff_t>(of_rank));
    if (sees != seen) {
      results = is_packed ? attention_varlen_reference(all, sees) : attention_reference(all, sees);
    }
    seen = std::move(sees);
    const std::vector<std::int64_t> rows = rows_of_rank(rank, ranks, s.queries, shards);
    outputs.push_back(take_rows(results[0], batch, s.heads * s.dim_v, rows));
    outputs.push_back(take_rows(results[1], batch * s.heads, 1, rows));
  }
  return outputs;
}

namespace {

// What one query row of one head adds to the gradients. `numbers` are Q, K, V, dO, dLSE, sinks
// and O.
struct Gradients {
  std::vector<double> dq, dk, dv, dsinks;
};

void differentiate(const AttentionSizes& s, const Rows& sequence,
                   const std::vector<std::vector<double>>& numbers, std::int64_t h, std::int64_t i,
                   double lse_gradient, Gradients& gradients) {
  const std::vector<double>&q = numbers[0], &k = numbers[1], &v = numbers[2], &grad = numbers[3];
  const std::vector<double>&sinks = numbers[5], &output = numbers[6];
  const std::int64_t kv_head = h / (s.heads / s.kv_heads);
  const std::int64_t diagonal = i + sequence.keys - sequence.queries;
  const std::int64_t last = s.causal ? std::min(diagonal, sequence.keys - 1) : sequence.keys - 1;
  const std::int64_t first = s.window > 0 ? std::max<std::int64_t>(diagonal - s.window + 1, 0) : 0;
  const std::int64_t query_row = (sequence.first_query + i) * s.heads + h;
  const double* query = q.data() + query_row * s.dim;
  const double* out = grad.data() + query_row * s.dim_v;
  const auto key_row = [&](std::int64_t j) {
    return (sequence.first_key + j) * s.kv_heads + kv_head;
  };

  // The capped scores, and how they change with the score that is capped.
  std::vector<double> weights, slopes;
  double maximum =
      sinks.empty() ? -std::numeric_limits<double>::infinity() : sinks[static_cast<std::size_t>(h)];
  for (std::int64_t j = first; j <= last; ++j) {
    const double score = s.scale * product_of_rows(query, k.data() + key_row(j) * s.dim, s.dim);
    const double share = s.softcap > 0 ? std::tanh(score / s.softcap) : 0;
    weights.push_back(s.softcap > 0 ? s.softcap * share : score);
    slopes.push_back(1 - share * share);
    maximum = std::max(maximum, weights.back());
  }
  const double sink = sinks.empty() ? 0 : std::exp(sinks[static_cast<std::size_t>(h)] - maximum);
  double sum = sink;
  for (double& weight : weights) sum += weight = std::exp(weight - maximum);

  // dO V^T of each key, and its mean: dO O.
  std::vector<double> products;
  double mean = 0;
  for (std::int64_t j = first; j <= last; ++j) {
    const double weight = weights[static_cast<std::size_t>(j - first)] /= sum;
    products.push_back(product_of_rows(out, v.data() + key_row(j) * s.dim_v, s.dim_v));
    mean += weight * products.back();
  }
  if (!output.empty()) mean = product_of_rows(out, output.data() + query_row * s.dim_v, s.dim_v);
  for (std::int64_t j = first; j <= last; ++j) {
    const auto at = static_cast<std::size_t>(j - first);
    const double score = weights[at] * (products[at] - mean + lse_gradient) * slopes[at] * s.scale;
    const std::int64_t key = key_row(j);
    add_times(score, k.data() + key * s.dim, gradients.dq.data() + query_row * s.dim, s.dim);
    add_times(score, query, gradients.dk.data() + key * s.dim, s.dim);
    add_times(weights[at], out, gradients.dv.data() + key * s.dim_v, s.dim_v);
  }
  if (!sinks.empty()) {
    gradients.dsinks[static_cast<std::size_t>(h)] += sink / sum * (lse_gradient - mean);
  }
}

}  // namespace

std::vector<std::vector<double>> attention_backward_reference(
    const AttentionSizes& s, const std::vector<HostTensor>& inputs,
    const std::vector<HostTensor>& offsets) {
  std::vector<std::vector<double>> numbers = all_numbers(inputs);
  numbers.resize(7);
  Gradients gradients{
      std::vector<double>(numbers[0].size()), std::vector<double>(numbers[1].size()),
      std::vector<double>(numbers[2].size()), std::vector<double>(numbers[5].size())};
  for (std::int64_t b = 0; b < s.batch; ++b) {
    Rows rows{b * s.queries, s.queries, b * s.keys, s.keys};
    if (!offsets.empty()) {
      const auto begin = [&](int side, std::int64_t sequence) {
        return static_cast<std::int64_t>(offsets[side].flat(sequence));
      };
      rows = packed_rows(s, begin(0, b), begin(0, b + 1), begin(1, b), begin(1, b + 1));
    }
    // Heads that share keys add to the same rows.
    const std::int64_t group = s.heads / s.kv_heads;
    for_all(s.kv_heads, [&](std::int64_t kv_head) {
      for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        for (std::int64_t i = 0; i < rows.queries; ++i) {
          const std::int64_t row = offsets.empty() ? (b * s.heads + h) * s.queries + i
                                                   : h * s.queries + rows.first_query + i;
          const double lse = numbers[4].empty() ? 0 : numbers[4][static_cast<std::size_t>(row)];
          differentiate(s, rows, numbers, h, i, lse, gradients);
        }
      }
    });
  }
  if (!offsets.empty()) {
    leave_out_others(offsets[0], s.queries, gradients.dq);
    leave_out_others(offsets[1], s.keys, gradients.dk);
    leave_out_others(offsets[1], s.keys, gradients.dv);
  }
  std::vector<std::vector<double>> all = {std::move(gradients.dq), std::move(gradients.dk),
                                          std::move(gradients.dv)};
  if (!gradients.dsinks.empty()) all.push_back(std::move(gradients.dsinks));
  return all;
}

std::vector<std::vector<double>> sequence_parallel_attention_backward_reference(
    const AttentionSizes& s, int ranks, Shards shards, bool has_sinks,
    const std::vector<HostTensor>& inputs, bool is_packed) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(ranks);
  const int axis = is_packed ? 0 : 1;
  const auto whole = [&](std::size_t place) {
    return whole_of(inputs, place, of_rank, axis, shards);
  };
  const HostTensor none = HostTensor::zeros(f32, {0});
  const std::size_t first = is_packed ? 5 : 3;         // behind V, or where sequences begin
  const std::size_t at = first + (has_sinks ? 1 : 0);  // of O, LSE, dO and perhaps dLSE
  const HostTensor dLSE =
      of_rank > at + 3 ? whole_of(inputs, at + 3, of_rank, axis + 1, shards) : none;
  const std::vector<HostTensor> offsets(inputs.begin() + 3,
                                        inputs.begin() + static_cast<std::ptrdiff_t>(first));
  const std::vector<std::vector<double>> gradients =
      attention_backward_reference(of_all_ranks(s, ranks),
                                   {whole(0), whole(1), whole(2), whole(at + 2), dLSE,
                                    has_sinks ? inputs[first] : none, whole(at)},
                                   offsets);
  std::vector<std::vector<double>> outputs;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto take = [&](const std::vector<double>& gradient, std::int64_t of_row,
                          std::int64_t rows) {
      outputs.push_back(take_rows(gradient, is_packed ? 1 : s.batch, of_row,
                                  rows_of_rank(rank, ranks, rows, shards)));
    };
    take(gradients[0], s.heads * s.dim, s.queries);
    take(gradients[1], s.kv_heads * s.dim, s.keys);
    take(gradients[2], s.kv_heads * s.dim_v, s.keys);
    if (has_sinks) outputs.push_back(gradients[3]);
  }
  return outputs;
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
      c[static_cast<std::size_t>(i * n + j)] =
          scale * product_of_rows(a.data() + i * k, b.data() + j * k, k);
    }
  });
  return {std::move(c)};
}

std::vector<std::vector<double>> reduce_scatter_reference(std::int64_t ranks, bool has_scale,
                                                          bool has_bias,
                                                          const std::vector<HostTensor>& inputs) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(ranks);
  const std::int64_t m = inputs[0].shape()[1], k = inputs[0].shape()[2];
  const std::int64_t n = inputs[1].shape()[0];
  std::vector<std::vector<double>> a, b, outputs;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    a.push_back(numbers_of(inputs[static_cast<std::size_t>(rank) * of_rank]));
    b.push_back(numbers_of(inputs[static_cast<std::size_t>(rank) * of_rank + 1]));
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const HostTensor* more = &inputs[static_cast<std::size_t>(rank) * of_rank + 2];
    const double scale = has_scale ? more++->flat(0) : 1;
    std::vector<double>& c = outputs.emplace_back(static_cast<std::size_t>(m * n));
    for_all(m, [&](std::int64_t i) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (std::size_t from = 0; from < a.size(); ++from) {
          sum += product_of_rows(a[from].data() + (rank * m + i) * k, b[from].data() + j * k, k);
        }
        c[static_cast<std::size_t>(i * n + j)] = scale * sum + (has_bias ? more->flat(j) : 0);
      }
    });
  }
  return outputs;
}

std::vector<std::vector<double>> all_gather_reference(std::int64_t ranks,
                                                      const std::vector<HostTensor>& inputs) {
  std::vector<std::vector<double>> outputs;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::vector<double>& c = outputs.emplace_back();
    for (std::int64_t from = 0; from < ranks; ++from) {
      const std::vector<double> rows =
          gemm_reference({inputs[static_cast<std::size_t>(2 * from)],
                          inputs[static_cast<std::size_t>(2 * rank + 1)]})[0];
      c.insert(c.end(), rows.begin(), rows.end());
    }
  }
  return outputs;
}

}  // namespace tilewright::kernels
