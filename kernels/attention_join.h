#pragma once

#include <functional>
#include <optional>

#include "tilewright/kernel.h"

namespace tilewright::kernels {

// Softmax of rows whose keys were divided: of each part its rows, divided by its sum, and the
// logarithm of that sum, which is -inf where the part has no keys.
struct SoftmaxParts {
  Dim count;
  int rows, columns;
  std::function<TensorView(const Index&part)> outputs, sums;
};

// The whole softmax. Weights the parts by their sums, in their order.
struct JoinedRows {
  Tile outputs, sums;  // {rows, columns} and {rows, 1}
};
// `sinks` {rows, 1}: scores that belong to no part, and whose value is 0.
JoinedRows join(const SoftmaxParts& parts, const std::optional<Tile>& sinks = {});

// As many of `rows` as one block of a kernel joins.
int rows_to_join(int rows);

}  // namespace tilewright::kernels
