#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "ir/program.h"
#include "tilewright/distributed.h"
#include "tilewright/tensor_ref.h"

namespace tilewright {

// A buffer that callers pass, and the operation that reaches it from another rank.
struct ReachedBuffer {
  int buffer = 0;
  const ir::ProgramOperation* operation = nullptr;  // the program's
};
// Each once, in order.
std::vector<ReachedBuffer> reached_by_others(const ir::Program& program);

// By all ranks: of each of these buffers, where each rank has the tensor that its caller passes.
// `own` is what this rank's passes, in the order of the buffers that are passed. Raises a usage
// error, in all ranks, where such a tensor does not lie in memory that the ranks share, or not in
// the same place as in other ranks.
std::map<int, std::vector<std::byte*>> shared_places(const Group& group, const ir::Program& program,
                                                     const std::vector<ReachedBuffer>& reached,
                                                     const std::vector<TensorArgument>& own);

}  // namespace tilewright
