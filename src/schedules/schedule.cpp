#include "schedules/schedule.h"

#include <algorithm>
#include <string>

#include "schedules/core_tiles.h"
#include "schedules/empty_loops.h"
#include "schedules/rowwise.h"
#include "schedules/warpgroups.h"
#include "support/diagnostic.h"
#include "target/target.h"

namespace tilewright::schedules {
namespace {

bool has_products(const ir::Kernel& tile) {
  bool products = false;
  ir::for_each(tile.body, [&](const ir::Operation& o) { products |= o.op == ir::Op::dot; });
  return products;
}

// By the names that records of targets list.
struct Automatic {
  std::string_view name;
  bool (*takes)(const ir::Kernel& tile);
  Scheduled (*make)(const ir::Kernel& tile, std::int64_t reserved);
};
constexpr Automatic kSchedules[] = {
    {"warpgroups", has_products, schedule_warpgroups},
    {"core_tiles", [](const ir::Kernel&) { return true; },
     [](const ir::Kernel& tile, std::int64_t) { return schedule_core_tiles(tile); }},
    {"rows", [](const ir::Kernel& tile) { return !has_products(tile); },
     [](const ir::Kernel& tile, std::int64_t) { return schedule_rowwise(tile); }},
};

}  // namespace

Scheduled schedule_for_target(const ir::Kernel& traced, std::int64_t reserved) {
  // A product in a loop without a turn is none, and no schedule is made for it.
  ir::Kernel tile = traced;
  drop_empty_loops(tile);
  const target::Target& target = target::target_of(tile);
  for (const std::string_view name : target.schedules) {
    const auto* found = std::find_if(std::begin(kSchedules), std::end(kSchedules),
                                     [&](const Automatic& each) { return each.name == name; });
    if (found == std::end(kSchedules) || !found->takes(tile)) continue;
    Scheduled scheduled = found->make(tile, reserved);
    drop_empty_loops(scheduled.kernel);
    return scheduled;
  }
  Diagnostic(tile.where, "\"" + tile.name + "\": " + target.name + " has no schedule for it" +
                             (has_products(tile) ? ", which has products" : ""))
      .fix("write it at the explicit level, or take the target cpu")
      .raise();
}

}  // namespace tilewright::schedules
