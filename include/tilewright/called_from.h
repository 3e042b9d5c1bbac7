#pragma once

#include "tilewright/error.h"

namespace tilewright {

// For helpers that record operations, as those of `tilewright/kernels/` do. While it lives, what
// this thread records is the helper's, which was called at `where`. Errors then show that line, and
// name the helper's own in a note. Of several at once the outermost counts.
//
//   Tile row_norm(const Tile& x, SourceLocation where = here()) {
//     const CalledFrom called(where);
//     return x * rsqrt(reduce_sum(x * x, 1));
//   }
class CalledFrom {
 public:
  explicit CalledFrom(SourceLocation where);
  ~CalledFrom();
  CalledFrom(const CalledFrom&) = delete;
  CalledFrom& operator=(const CalledFrom&) = delete;

 private:
  const SourceLocation before_;
};

}  // namespace tilewright
