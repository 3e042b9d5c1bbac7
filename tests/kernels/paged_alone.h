#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "library/accuracy.h"
#include "tilewright/library.h"

// A sequence of paged attention in a batch, and alone. Workloads are those of block_table.
namespace tilewright::test {

// Places of the tensors in front of the cache.
enum SequenceTensor : std::size_t { kQueries, kOffsetsOfQueries, kLengthsOfKeys, kPagesOfKeys };

// Those of O and LSE.
inline std::vector<std::size_t> outputs_of(const library::Workload& work) {
  const std::size_t end = work.tensors.size() - (work.options.boolean("sinks") ? 1 : 0);
  return {end - 2, end - 1};
}

inline std::int64_t whole(const HostTensor& tensor, std::int64_t at) {
  return static_cast<std::int64_t>(tensor.flat(at));
}

// Rows `from` to `from + count - 1` of the first axis.
inline HostTensor rows_of(const HostTensor& tensor, std::int64_t from, std::int64_t count) {
  std::vector<std::int64_t> shape = tensor.shape();
  shape[0] = count;
  HostTensor rows = HostTensor::zeros(tensor.dtype(), shape);
  const std::int64_t row = count > 0 ? rows.elements() / count : 0;
  for (std::int64_t i = 0; i < rows.elements(); ++i) rows.set_flat(i, tensor.flat(from * row + i));
  return rows;
}

// The workload of sequence b by itself, in a table with room for `more` pages that it has not.
inline library::Workload alone(const library::Workload& batch, std::int64_t b, std::int64_t more) {
  const HostTensor& offsets = batch.tensors[kOffsetsOfQueries];
  const HostTensor& table = batch.tensors[kPagesOfKeys];
  const std::int64_t first = whole(offsets, b), queries = whole(offsets, b + 1) - first;
  const std::int64_t columns = table.shape()[1];
  library::Workload own = batch;
  own.options.set("batch", "1");
  own.options.set("queries", std::to_string(queries));
  own.options.set("lengths_q", "");
  own.options.set("max_pages", std::to_string(columns + more));
  own.tensors[kQueries] = rows_of(batch.tensors[kQueries], first, queries);
  own.tensors[kOffsetsOfQueries] =
      HostTensor::from_values(i32, {2}, {0, static_cast<double>(queries)});
  own.tensors[kLengthsOfKeys] = rows_of(batch.tensors[kLengthsOfKeys], b, 1);
  HostTensor& pages = own.tensors[kPagesOfKeys] = HostTensor::zeros(i32, {1, columns + more});
  for (std::int64_t column = 0; column < columns; ++column) {
    pages.set({0, column}, table.at({b, column}));
  }
  for (const std::size_t i : outputs_of(batch)) {
    own.tensors[i] = rows_of(batch.tensors[i], first, queries);
  }
  own.poison_outputs();
  return own;
}

// Whether O and LSE of sequence b have the same bits in both.
inline bool same_bits(const library::Workload& batch, std::int64_t b,
                      const library::Workload& own) {
  const HostTensor& offsets = batch.tensors[kOffsetsOfQueries];
  const std::int64_t first = whole(offsets, b), queries = whole(offsets, b + 1) - first;
  for (const std::size_t i : outputs_of(batch)) {
    const HostTensor& tensor = own.tensors[i];
    const HostTensor rows = rows_of(batch.tensors[i], first, queries);
    const auto bytes = static_cast<std::size_t>(tensor.elements() * size_of(tensor.dtype()));
    if (!std::equal(tensor.data(), tensor.data() + bytes, rows.data())) return false;
  }
  return true;
}

}  // namespace tilewright::test
