#pragma once

#include <map>

#include "passes/lowering/outside_boxes.h"
#include "passes/lowering/role_code.h"
#include "passes/lowering/views.h"

namespace tilewright::passes {

// Lowers what moves tiles: between registers and shared memory, registers and global memory, and,
// by TMA, global and shared memory.
class TransferLowering {
 public:
  TransferLowering(const Places& places, const OutsideBoxes& outside, RoleCode& code, Views& views)
      : places_(places), outside_(outside), code_(code), views_(views) {}
  void load_tile(const ir::Operation& o);
  void store_tile(const ir::Operation& o);
  void load_fragment(const ir::Operation& o);
  void store_fragment(const ir::Operation& o);
  void load(const ir::Operation& o);
  void store(const ir::Operation& o);
  void atomic(const ir::Operation& o);
  void tma(const ir::Operation& o);
  void cluster_copy(const ir::Operation& o);
  void choose_map(const ir::Operation& o) { chosen_from_[o.results[0]] = o.operands[0]; }

 private:
  void move_tile(ir::ValueId tile, ir::ValueId place, ir::Op by_matrix, ir::Op by_element,
                 const ir::Operation& o);
  void matrices(ir::Op op, ir::ValueId tile, const View& view, const ir::Operation& o);
  void transposed_matrices(ir::Op op, ir::ValueId tile, const View& view, const ir::Operation& o);
  void elements(ir::Op op, ir::ValueId tile, const View& view, const ir::Operation& o);
  void fragment(ir::Op op, ir::ValueId tile, ir::ValueId shared, ir::ValueId place,
                const ir::Operation& o);

  ir::ValueId ragged_map(const ir::Operation& copy, const ir::Operation& map, std::int64_t column);

  const Places& places_;
  const OutsideBoxes& outside_;
  RoleCode& code_;
  Views& views_;
  std::map<ir::ValueId, ir::ValueId> chosen_from_;  // several maps, by the one that is chosen
};

}  // namespace tilewright::passes
