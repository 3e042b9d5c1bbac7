#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/paged_alone.h"
#include "library/accuracy.h"
#include "tilewright/library.h"

// Paged attention whose table names pages that follow each other.
namespace tilewright::test {

inline constexpr std::size_t kFirstCache = 4;

inline bool is_cache(const library::Workload& work, std::size_t tensor) {
  return tensor >= kFirstCache && work.tensors[tensor].shape().size() >= 3 &&
         work.tensors[tensor].shape()[0] == work.options.integer("pages");
}

// The same keys, where the table names pages that follow each other in runs of `run`, every second
// run in front of the one before it.
inline library::Workload in_runs(const library::Workload& shuffled, std::int64_t run) {
  library::Workload work = shuffled;
  HostTensor& table = work.tensors[kPagesOfKeys];
  const std::int64_t page = work.options.integer("page");
  std::int64_t next = 0;
  for (std::int64_t b = 0; b < table.shape()[0]; ++b) {
    const std::int64_t used = (whole(work.tensors[kLengthsOfKeys], b) + page - 1) / page;
    for (std::int64_t column = 0; column < used; ++column, ++next) {
      const std::int64_t pair = 2 * run, at = column % pair, whole = column / pair * pair;
      const bool swapped = whole + pair <= used;
      const std::int64_t to = next - column + whole + (swapped ? (at + run) % pair : at);
      const auto from = static_cast<std::int64_t>(shuffled.tensors[kPagesOfKeys].at({b, column}));
      if (from < 0) continue;  // a page that is missing stays so
      table.set({b, column}, static_cast<double>(to));
      for (std::size_t i = kFirstCache; i < work.tensors.size(); ++i) {
        if (!is_cache(work, i)) continue;
        HostTensor& cache = work.tensors[i];
        const std::int64_t bytes = cache.elements() / cache.shape()[0] * size_of(cache.dtype());
        std::copy_n(shuffled.tensors[i].data() + from * bytes, bytes, cache.data() + to * bytes);
      }
    }
  }
  return work;
}

}  // namespace tilewright::test
