#include "schedules/schedule.h"

#include "schedules/empty_loops.h"
#include "schedules/rowwise.h"
#include "schedules/warpgroups.h"

namespace tilewright::schedules {

ir::Kernel schedule_for_sm90(const ir::Kernel& tile, std::int64_t reserved) {
  bool products = false;
  ir::for_each(tile.body, [&](const ir::Operation& o) { products |= o.op == ir::Op::dot; });
  ir::Kernel scheduled = products ? schedule_warpgroups(tile, reserved) : schedule_rowwise(tile);
  drop_empty_loops(scheduled);
  return scheduled;
}

}  // namespace tilewright::schedules
