#pragma once

#include <functional>
#include <unordered_map>

#include "ir/binding.h"
#include "ir/ir.h"
#include "schedules/followed_scalars.h"
#include "target/devices.h"

namespace tilewright::schedules {

// What a timeline knows of the tensors that bulk copies move.
class FollowedCopies {
 public:
  FollowedCopies(const ir::Kernel& kernel, const ir::Binding& binding,
                 const target::Device::Reached& reached)
      : kernel_(kernel), binding_(binding), reached_(reached) {}

  // An operation that makes a tensor's map, or chooses one.
  void note(const ir::Operation& operation);

  // By how much a copy takes longer as its rows do not begin on a line.
  double longer_by_rows(const ir::Operation& load) const;
  // Which share of a copy's rows lies behind its tensor's ends.
  double behind_ends(const ir::Operation& load,
                     const std::function<FollowedScalar(ir::ValueId)>& scalar) const;
  // Of one box of the map.
  double stored_bytes(ir::ValueId map) const;

 private:
  // The operation that made the map, and its tensor if that is a parameter.
  const ir::Operation* made(ir::ValueId map) const;
  const ir::Parameter* tensor_of(ir::ValueId map) const;

  const ir::Kernel& kernel_;
  const ir::Binding& binding_;
  const target::Device::Reached& reached_;
  std::unordered_map<ir::ValueId, const ir::Operation*> maps_;
};

}  // namespace tilewright::schedules
