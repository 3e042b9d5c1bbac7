#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "analysis/extents.h"
#include "schedules/placement.h"

namespace tilewright::schedules {

// What a CTA keeps in shared memory: rings for what products read, and staging for what leaves by
// TMA. Loads of one tensor and shape share a ring, as do the copies of a loop that passes have
// split; one that is held while others of its kind pass has a ring of its own.
class SharedPlan {
 public:
  struct RingPlan {
    std::string name;
    DType dtype;
    int rows = 0, columns = 0, stages = 1;
    bool in_loop = false;
    int held = 1;  // stages that the arithmetic holds at the same time
    SourceLocation where;
    std::int64_t stage_bytes() const { return std::int64_t{rows} * columns * size_of(dtype); }
  };
  struct Staging {
    int rows = 0, columns = 0;  // of a buffer: a piece for each warpgroup
    int pieces = 0, buffers = 0;
    int in_flight = 0;  // copies that may still read their buffers when the next piece is written
  };

  SharedPlan(const Placement& placement, const analysis::Extents& extents);
  const std::vector<RingPlan>& rings() const { return rings_; }
  std::size_t ring_of(ir::ValueId load) const { return ring_of_.at(load); }
  // How a store leaves through shared memory; null for one that goes straight from registers.
  const Staging* staging_of(const ir::Operation& store) const;

 private:
  struct Kind {
    ir::ValueId tensor;
    std::vector<std::int64_t> shape;
    int held_at;  // loops around a load that is held over a loop, else -1
    friend bool operator<(const Kind& a, const Kind& b) {
      return std::tie(a.tensor, a.shape, a.held_at) < std::tie(b.tensor, b.shape, b.held_at);
    }
  };
  void plan_rings(const ir::Block& block, int loops);
  std::map<std::size_t, int> count_held(const ir::Block& block);
  void plan_staging(const Placement& placement, const analysis::Extents& extents);
  void choose_stages();
  std::int64_t bytes() const;

  const Placement& placement_;
  std::vector<RingPlan> rings_;
  std::map<Kind, std::size_t> kinds_;
  std::map<ir::ValueId, std::size_t> ring_of_;
  std::map<const ir::Operation*, Staging> staging_;
  std::int64_t other_bytes_ = 0;  // of staging, and of computed operands of products
};

// For each load of the block, the operation of the block that last reads it.
std::map<ir::ValueId, const ir::Operation*> last_readers(const ir::Block& block);

}  // namespace tilewright::schedules
