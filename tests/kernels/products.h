#pragma once

#include <cstdint>
#include <vector>

#include "kernels/execution.h"
#include "kernels/reference_vectors.h"

namespace tilewright::test {

// A B^T, row-major.
inline std::vector<double> products(const Padded& a, const Padded& b) {
  const std::vector<double> rows = a.values(), columns = b.values();
  const std::int64_t depth = a.shape()[1];
  std::vector<double> result;
  for (std::int64_t i = 0; i < a.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < b.shape()[0]; ++j) {
      result.push_back(
          kernels::product_of_rows(rows.data() + i * depth, columns.data() + j * depth, depth));
    }
  }
  return result;
}

}  // namespace tilewright::test
