#pragma once

#include <set>
#include <tuple>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// How much of each tile of the tile form exists, as the loads say that it comes from.
class Extents {
 public:
  // Elements below (limit - start) * factor - offset exist.
  struct Bound {
    ir::ValueId start, limit;
    std::int64_t factor = 1;  // of an axis that was split behind the load: parts of each element
    std::int64_t offset = 0;  // of a part within the tile that was loaded
    friend bool operator<(const Bound& a, const Bound& b) {
      return std::tie(a.start, a.limit, a.factor, a.offset) <
             std::tie(b.start, b.limit, b.factor, b.offset);
    }
  };
  using Bounds = std::set<Bound>;

  explicit Extents(const ir::Kernel& kernel);
  // Empty where the axis provably exists whole.
  const Bounds& of(ir::ValueId tile, std::size_t axis) const;
  // Whether the load or store may end before its tensor does on the tensor's axis.
  bool ends_earlier(const ir::Operation& access, std::size_t axis) const;
  // Whether it may on some axis, and begin before its tensor on any: a copy of boxes finds such an
  // end as that of memory which begins before the tensor, and would reach what lies there. Integers
  // that a launch gives, such as where a sequence begins, are taken not to be negative.
  bool reaches_out_twice(const ir::Operation& access) const;
  // Whether a copy of boxes clips a load or store as its limits say: they are the sizes of its
  // tensor's axes, but for one of at most four axes, which is not the last. Then it begins inside,
  // as every store does that is such a copy.
  bool clips_boxes(const ir::Operation& access) const;

 private:
  void find_nonnegative();
  bool may_begin_before(const ir::Operation& access) const;
  void visit(const ir::Block& block);
  void visit(const ir::Operation& operation);
  void tile(const ir::Operation& operation);
  void reshape(const ir::Operation& operation);
  void merge(ir::ValueId to, ir::ValueId from);
  bool whole(const ir::Operation& load, std::size_t axis) const;

  const ir::Kernel& kernel_;
  std::vector<const ir::Operation*> definitions_;
  std::vector<std::vector<Bounds>> bounds_;
  std::vector<bool> nonnegative_;  // empty where nobody asks
};

}  // namespace tilewright::analysis
