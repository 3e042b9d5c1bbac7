#pragma once

#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "schedules/placement.h"

namespace tilewright::schedules {

// What a CTA keeps in shared memory: rings for what products read, buffers for operands that are
// computed, and staging for what leaves by TMA. Loads of one tensor and shape share a ring, as do
// the copies of a loop that passes have split; one that is held while others of its kind pass has a
// ring of its own. Loads that are joined fill one stage.
class SharedPlan {
 public:
  struct RingPlan {
    std::string name;
    DType dtype;
    int rows = 0, columns = 0, stages = 1;
    bool in_loop = false;
    bool in_products = false;  // which read its stages
    int held = 1;              // stages that the arithmetic holds at the same time
    SourceLocation where;
    std::int64_t stage_bytes() const { return std::int64_t{rows} * columns * size_of(dtype); }
  };
  // Written and read anew in each iteration: loops that follow each other share it.
  struct Buffer {
    std::string name;
    DType dtype;
    int rows = 0, columns = 0;
    SourceLocation where;
    std::int64_t bytes() const { return std::int64_t{rows} * columns * size_of(dtype); }
  };
  struct Staging {
    int columns = 0, pieces = 0;
    std::vector<std::size_t> buffers;  // of the pieces in turn, with a part for each warpgroup
    int in_flight = 0;  // copies that may still read their buffers when the next piece is written
  };

  struct StagingSize {
    int columns = 0, buffers = 0;
  };

  // `reserved`: bytes that are left to others, as far as rings can do with fewer stages for it.
  SharedPlan(const Placement& placement, std::int64_t reserved = 0);
  const std::vector<RingPlan>& rings() const { return rings_; }
  // Of the rings that loops fill: "A 4, B 4".
  std::string stages_text() const;
  std::size_t ring_of(ir::ValueId load) const { return ring_of_.at(load); }
  const std::vector<Buffer>& buffers() const { return buffers_; }
  // Of a tile that every warpgroup reads all of.
  std::size_t buffer_of(ir::ValueId exchanged) const { return buffer_of_.at(exchanged); }
  bool exchanges() const { return !buffer_of_.empty(); }
  bool stages_stores() const { return !staging_.empty(); }
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
  void plan_exchange(const ir::Block& block, std::set<std::size_t> taken);
  bool declared(ir::ValueId value) const;
  void plan_staging(const StagingSize& size);
  // The first buffer of the kind that is not taken.
  std::size_t buffer(const Buffer& kind, const std::set<std::size_t>& taken);
  std::int64_t loaded_ahead() const;
  bool choose_stages();
  void check_stages() const;
  [[noreturn]] void refuse() const;
  [[noreturn]] void refuse_with(Diagnostic error, const std::string& fix) const;
  std::int64_t most_stages() const;
  std::int64_t bytes() const;

  const Placement& placement_;
  const std::int64_t reserved_, limit_;  // bytes; the limit of all but those reserved
  std::vector<RingPlan> rings_;
  std::map<Kind, std::size_t> kinds_;
  std::map<ir::ValueId, std::size_t> ring_of_;
  std::map<const ir::Operation*, Staging> staging_;
  std::vector<Buffer> buffers_;
  std::map<ir::ValueId, std::size_t> buffer_of_;
};

// For each load of the block, the operation of the block that last reads it.
std::map<ir::ValueId, const ir::Operation*> last_readers(const ir::Block& block);

}  // namespace tilewright::schedules
