#pragma once

#include "ir/ir.h"

namespace tilewright::simulator {

// Whether all lanes of a warp execute the operation together, as PTX asks of what it calls aligned.
inline bool is_aligned(ir::Op op) {
  const ir::OpInfo& record = ir::info(op);
  if (record.agent == ir::Agent::warpgroup || op == ir::Op::reduce_lanes) return true;
  return record.family == ir::Family::named_barrier || record.family == ir::Family::cta_barrier ||
         record.family == ir::Family::cluster_barrier || record.family == ir::Family::lane_order ||
         record.family == ir::Family::matrix_access ||
         record.family == ir::Family::tensor_allocation ||
         record.family == ir::Family::tensor_access || record.family == ir::Family::tensor_wait;
}

}  // namespace tilewright::simulator
