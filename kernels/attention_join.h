#pragma once

#include <functional>
#include <optional>

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Softmax of rows whose keys were divided: of each part its rows, divided by their sums, and the
// logarithms of these sums, which are -inf where the part has no keys.
struct SoftmaxParts {
  Index count;
  std::function<TensorView(const Block& parts)> outputs;  // {parts, rows, columns}
  std::function<TensorView(const Block& parts)> sums;     // {parts, rows}
};

// The whole softmax: {rows, columns}, and {1, rows}. Weights the parts by their sums, in their
// order. `sinks` {1, rows}: scores that belong to no part, and whose value is 0.
struct JoinedSoftmax {
  Tile outputs, sums;
};
JoinedSoftmax join(const SoftmaxParts& parts, int rows, int columns,
                   const std::optional<Tile>& sinks = {});

// As many of `rows`, of so many columns, as one block of a kernel joins.
int rows_to_join(int rows, int columns);

}  // namespace tilewright::kernels
