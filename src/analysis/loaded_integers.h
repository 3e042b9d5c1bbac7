#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// Which integers are computed from what a launch gives: indices that the kernel loads (load_index)
// and integer scalars. Only such integers can be wrong without the kernel being wrong.
class LoadedIntegers {
 public:
  explicit LoadedIntegers(const ir::Kernel& kernel);

  // Such an index or scalar that the integer is computed from; none if there is none.
  std::optional<ir::ValueId> source(ir::ValueId value) const;
  // Whether such indices and scalars alone decide it, and not the place in the grid or a loop too.
  // Of a core's sequencer: of the first of its instances.
  bool alone(ir::ValueId value) const;
  // Whether the integer cannot be negative unless one that the launch gives is.
  bool nonnegative(ir::ValueId value) const { return nonnegative_[value]; }
  // end - start, where it is the same number whatever the kernel computes.
  std::optional<std::int64_t> distance(ir::ValueId start, ir::ValueId end) const;

 private:
  struct Sum;
  void add(ir::ValueId value, std::int64_t factor, Sum& sum) const;
  bool same(ir::ValueId a, ir::ValueId b) const;
  bool is_of_instance(ir::ValueId value) const;

  std::vector<const ir::Operation*> definitions_;
  std::vector<ir::ValueId> sources_;  // kNoValue where there is none
  std::vector<bool> nonnegative_;
  std::set<ir::ValueId> instances_;  // a sequencer's number of each role
};

}  // namespace tilewright::analysis
