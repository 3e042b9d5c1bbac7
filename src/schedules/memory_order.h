#pragma once

#include <map>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace tilewright::schedules {

// Which accesses to tensors that a kernel both reads and writes meet within a block of the grid. In
// the tile form one follows the other; warps and copies keep no such order by themselves.
class MemoryOrder {
 public:
  explicit MemoryOrder(const ir::Kernel& kernel);

  // Whether a store to the load's tensor may come before it.
  bool after_store(const ir::Operation& load) const { return after_store_.count(&load) != 0; }
  // Whether its tensor is stored to other than where it reads.
  bool stored_elsewhere(const ir::Operation& load) const;
  // Whether its tensor is stored to at all.
  bool stored(const ir::Operation& load) const { return stores_.count(tensor_of(load)) != 0; }
  // Whether a load may read what the store has written.
  bool read_back(const ir::Operation& store) const {
    return read_back_.count(tensor_of(store)) != 0;
  }
  // Whether any load's tensor is stored to.
  bool any_meet() const { return any_meet_; }

 private:
  void visit(const ir::Block& block, std::set<ir::ValueId>& stored);
  // The parameter, whichever rank's it is: a rank may be its own peer.
  ir::ValueId tensor_of(const ir::Operation& access) const {
    return kernel_.parameter_of(access.operands[0])->value;
  }

  const ir::Kernel& kernel_;
  std::map<ir::ValueId, std::vector<const ir::Operation*>> stores_;  // by tensor
  std::set<const ir::Operation*> after_store_;
  std::set<ir::ValueId> read_back_;
  bool any_meet_ = false;
};

}  // namespace tilewright::schedules
