#include "kernels/reference_exchanges.h"

#include <functional>
#include <numeric>

namespace tilewright::kernels {
namespace {

using Numbers = std::vector<double>;

// Of a tensor of rows, each of some heads of so many columns.
struct HeadRows {
  std::int64_t heads, columns;
  std::int64_t at(std::int64_t row, std::int64_t head) const {
    return (row * heads + head) * columns;
  }
};

// Calls back with a row of a rank, among its own and among all of them.
using EachRow = std::function<void(
    const std::function<void(std::int64_t rank, std::int64_t own, std::int64_t all)>&)>;

EachRow equal_rows(std::int64_t ranks, std::int64_t batch, std::int64_t tokens) {
  return [=](const auto& visit) {
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      for (std::int64_t b = 0; b < batch; ++b) {
        for (std::int64_t i = 0; i < tokens; ++i) {
          visit(rank, b * tokens + i, (b * ranks + rank) * tokens + i);
        }
      }
    }
  };
}

// By where the sequences' parts begin in each rank.
EachRow packed_rows(const HostTensor& first_rows) {
  return [&first_rows](const auto& visit) {
    const std::int64_t ranks = first_rows.shape()[0], sequences = first_rows.shape()[1] - 1;
    std::int64_t all = 0;
    for (std::int64_t b = 0; b < sequences; ++b) {
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const auto first = static_cast<std::int64_t>(first_rows.at({rank, b}));
        const auto end = static_cast<std::int64_t>(first_rows.at({rank, b + 1}));
        for (std::int64_t own = first; own < end; ++own) visit(rank, own, all++);
      }
    }
  };
}

EachRow rows_of(const ExchangedHeadCounts& h, const HostTensor& own_tokens,
                std::int64_t tokens_of_all, const HostTensor* first_rows) {
  if (first_rows != nullptr) return packed_rows(*first_rows);
  return equal_rows(h.ranks, own_tokens.shape()[0], tokens_of_all);
}

}  // namespace

std::vector<std::vector<double>> all_to_all_reference(const ExchangedHeadCounts& h,
                                                      const std::vector<HostTensor>& inputs) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(h.ranks);
  std::vector<Numbers> outputs;
  for (std::int64_t to = 0; to < h.ranks; ++to) {
    for (std::size_t part = 0; part < 3; ++part) {
      const HostTensor& shape = inputs[part];
      const std::int64_t heads = part == 0 ? h.heads : h.kv_heads, columns = shape.shape().back();
      const std::int64_t own_heads = heads < h.ranks ? 1 : heads / h.ranks;
      const HeadRows from{heads, columns}, into{own_heads, columns};
      Numbers& output = outputs.emplace_back(
          static_cast<std::size_t>(shape.elements() / heads * h.ranks * own_heads));
      const HostTensor* first_rows = h.packed ? &inputs[part == 0 ? 3 : 4] : nullptr;
      rows_of(h, shape, shape.shape()[h.packed ? 0 : 1],
              first_rows)([&](std::int64_t rank, std::int64_t own, std::int64_t all) {
        const HostTensor& source = inputs[static_cast<std::size_t>(rank) * of_rank + part];
        for (std::int64_t head = 0; head < own_heads; ++head) {
          for (std::int64_t i = 0; i < columns; ++i) {
            output[static_cast<std::size_t>(into.at(all, head) + i)] =
                source.flat(from.at(own, to * heads / h.ranks + head) + i);
          }
        }
      });
    }
  }
  return outputs;
}

std::vector<std::vector<double>> all_to_all_back_reference(const ExchangedHeadCounts& h,
                                                           const std::vector<HostTensor>& inputs) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(h.ranks);
  const HostTensor& shape = inputs[0];
  const std::int64_t own_heads = h.heads / h.ranks, columns = shape.shape().back();
  const HeadRows from{own_heads, columns}, into{h.heads, columns};
  std::vector<Numbers> outputs(static_cast<std::size_t>(h.ranks),
                               Numbers(static_cast<std::size_t>(shape.elements())));
  const std::int64_t tokens = shape.shape()[h.packed ? 0 : 1] / h.ranks;
  rows_of(
      h, shape, tokens,
      h.packed ? &inputs[1] : nullptr)([&](std::int64_t rank, std::int64_t own, std::int64_t all) {
    for (std::int64_t head = 0; head < h.heads; ++head) {
      const HostTensor& source = inputs[static_cast<std::size_t>(head / own_heads) * of_rank];
      for (std::int64_t i = 0; i < columns; ++i) {
        outputs[static_cast<std::size_t>(rank)][static_cast<std::size_t>(into.at(own, head) + i)] =
            source.flat(from.at(all, head % own_heads) + i);
      }
    }
  });
  return outputs;
}

namespace {

Numbers numbers_in(const HostTensor& tensor) {
  Numbers numbers;
  for (std::int64_t i = 0; i < tensor.elements(); ++i) numbers.push_back(tensor.flat(i));
  return numbers;
}

// Columns first .. first + count - 1 of X W^T + bias, for each row of X.
Numbers projected(const Numbers& x, const Numbers& w, const Numbers& bias, std::int64_t k,
                  std::int64_t rows, std::int64_t first, std::int64_t count) {
  Numbers result;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = first; column < first + count; ++column) {
      const auto from = x.begin() + row * k;
      result.push_back(
          std::inner_product(from, from + k, w.begin() + column * k,
                             bias.empty() ? 0.0 : bias[static_cast<std::size_t>(column)]));
    }
  }
  return result;
}

Numbers sum_of(const std::vector<HostTensor>& inputs, std::int64_t first, std::int64_t count) {
  Numbers sum(static_cast<std::size_t>(count));
  for (const HostTensor& input : inputs) {
    for (std::int64_t i = 0; i < count; ++i) {
      sum[static_cast<std::size_t>(i)] += input.flat(first + i);
    }
  }
  return sum;
}

}  // namespace

std::vector<std::vector<double>> projection_all_to_all_reference(
    const ExchangedHeadCounts& h, std::int64_t dim, bool has_bias,
    const std::vector<HostTensor>& inputs) {
  const std::size_t of_rank = inputs.size() / static_cast<std::size_t>(h.ranks);
  std::vector<HostTensor> exchanged;
  for (std::size_t at = 0; at < inputs.size(); at += of_rank) {
    const HostTensor& X = inputs[at];
    const std::int64_t k = X.shape().back(), tokens = X.shape()[h.packed ? 0 : 1];
    const std::int64_t batch = h.packed ? 1 : X.shape()[0];
    const Numbers x = numbers_in(X), w = numbers_in(inputs[at + 1]);
    const Numbers bias = has_bias ? numbers_in(inputs[at + 2]) : Numbers{};
    std::int64_t first = 0;
    for (const std::int64_t heads : {h.heads, h.kv_heads, h.kv_heads}) {
      std::vector<std::int64_t> shape{tokens, heads, dim};
      if (!h.packed) shape.insert(shape.begin(), batch);
      exchanged.push_back(HostTensor::from_values(
          f32, shape, projected(x, w, bias, k, batch * tokens, first * dim, heads * dim)));
      first += heads;
    }
    if (h.packed) exchanged.insert(exchanged.end(), 2, inputs[at + of_rank - 1]);
  }
  return all_to_all_reference(h, exchanged);
}

std::vector<std::vector<double>> gathered_reference(const std::vector<HostTensor>& inputs) {
  Numbers all;
  for (const HostTensor& input : inputs) {
    const Numbers own = numbers_in(input);
    all.insert(all.end(), own.begin(), own.end());
  }
  return std::vector<Numbers>(inputs.size(), all);
}

std::vector<std::vector<double>> summed_reference(const std::vector<HostTensor>& inputs) {
  return std::vector<Numbers>(inputs.size(), sum_of(inputs, 0, inputs[0].elements()));
}

std::vector<std::vector<double>> parts_summed_reference(const std::vector<HostTensor>& inputs) {
  const std::int64_t count = inputs[0].elements() / static_cast<std::int64_t>(inputs.size());
  std::vector<Numbers> sums;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    sums.push_back(sum_of(inputs, static_cast<std::int64_t>(rank) * count, count));
  }
  return sums;
}

std::vector<std::vector<double>> exchanged_reference(const std::vector<HostTensor>& inputs) {
  const std::int64_t count = inputs[0].elements() / static_cast<std::int64_t>(inputs.size());
  std::vector<Numbers> parts(inputs.size());
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    for (const HostTensor& input : inputs) {
      for (std::int64_t i = 0; i < count; ++i) {
        parts[rank].push_back(input.flat(static_cast<std::int64_t>(rank) * count + i));
      }
    }
  }
  return parts;
}

std::vector<std::vector<double>> broadcast_reference(std::int64_t root,
                                                     const std::vector<HostTensor>& inputs) {
  return std::vector<Numbers>(inputs.size(), numbers_in(inputs[static_cast<std::size_t>(root)]));
}

}  // namespace tilewright::kernels
