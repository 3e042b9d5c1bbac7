#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/error.h"
#include "tilewright/host_tensor.h"

// Whole tensors and what ranks have of them. Raises Error(usage) for an axis that the tensor has
// not, and for one that is not divided evenly.
namespace tilewright {

// Which rows of an axis a rank has.
enum class Shards : std::uint8_t {
  contiguous,  // rank r the r-th run of them
  // The r-th of as many runs as there are ranks, then the r-th from the end of as many more: under
  // a causal mask every rank then has as much to do. The first ones have a row more where a rank's
  // rows are odd.
  zig_zag,
};

// What each rank has, along this axis. Axes of queries and of keys may be of different lengths.
std::vector<HostTensor> shard(const HostTensor& whole, int axis, int ranks,
                              Shards how = Shards::contiguous, SourceLocation where = here());
HostTensor unshard(const std::vector<HostTensor>& shards, int axis, Shards how = Shards::contiguous,
                   SourceLocation where = here());

// The same by heads: contiguous, and where there are fewer heads than ranks, several that follow
// each other have the same one, as heads of keys that are shared are.
std::vector<HostTensor> shard_heads(const HostTensor& whole, int axis, int ranks,
                                    SourceLocation where = here());
HostTensor unshard_heads(const std::vector<HostTensor>& shards, int axis, int heads,
                         SourceLocation where = here());

}  // namespace tilewright
