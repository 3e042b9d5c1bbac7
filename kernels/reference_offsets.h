#pragma once

#include <cstdint>
#include <string>

#include "tilewright/error.h"

namespace tilewright::kernels {

// Rows of a packed sequence, from where it and the next one begin. An offset that somebody else has
// given must not lead outside of the tensors.
inline std::int64_t rows_between(const char* name, std::int64_t first, std::int64_t end,
                                 std::int64_t rows) {
  if (end <= first) return 0;
  if (first >= 0 && end <= rows) return end - first;
  raise_usage({}, "",
              std::string(name) + " gives a sequence rows " + std::to_string(first) + " to " +
                  std::to_string(end - 1) + ", and there are " + std::to_string(rows),
              "give numbers from 0 to " + std::to_string(rows) + " that ascend");
}

}  // namespace tilewright::kernels
