#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ir/layout.h"

// How the other side of an operation that moves, cuts, copies or sums elements lies in registers.
namespace tilewright::passes {

// Parts of a sum, once each thread has all of it.
ir::RegisterLayout completed(ir::RegisterLayout parts);

// What stretches a little along its last axis, in which it has one element: the copies of an
// element in neighbouring registers. Nothing where it stretches otherwise, or holds an element more
// than once already.
std::optional<ir::RegisterLayout> stretched(const ir::RegisterLayout& from,
                                            const std::vector<std::int64_t>& to);
// The other way: an operand of this shape, whose axes of size 1 stretch to those of the result.
ir::RegisterLayout before_stretching(const ir::RegisterLayout& result,
                                     const std::vector<std::int64_t>& operand);

// Of a tile whose axis i is axis permutation[i] of `from`; and of that from this one.
ir::RegisterLayout permuted(const ir::RegisterLayout& from,
                            const std::vector<std::int64_t>& permutation);
ir::RegisterLayout permuted_back(const ir::RegisterLayout& to,
                                 const std::vector<std::int64_t>& permutation);

struct Slice {
  ir::RegisterLayout layout;
  std::optional<std::size_t> torn_axis;  // in which it does not fall on whole registers
};
Slice sliced(const ir::RegisterLayout& whole, const std::vector<std::int64_t>& offsets,
             const std::vector<std::int64_t>& sizes);
// A tile of the shape `whole`, all of whose slices lie as `part`, which is the one at these
// offsets. Nothing where such slices do not make it up.
std::optional<ir::RegisterLayout> whole_of_slices(ir::RegisterLayout part,
                                                  const std::vector<std::int64_t>& offsets,
                                                  const std::vector<std::int64_t>& whole);

}  // namespace tilewright::passes
