#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// How scalars of the scheduled and machine forms differ between the CTAs of a cluster that execute
// the same operation, each in the same turn of the loops around it.
class ClusterValues {
 public:
  explicit ClusterValues(const ir::Kernel& kernel);
  // How many different values there are at most: 1 where all CTAs have the same.
  std::int64_t different(ir::ValueId value) const;
  // The value by rank, where it depends on nothing else; else none.
  std::vector<std::int64_t> by_rank(ir::ValueId value) const;

 private:
  // By rank: CTAs with the same class have the same value.
  using Classes = std::vector<std::int64_t>;
  struct Known {
    Classes classes;
    // Whether the classes are the values, or, with `shifted`, these and one unknown multiple of the
    // cluster's size.
    bool exact = false, shifted = false;
    friend bool operator==(const Known& a, const Known& b) {
      return a.classes == b.classes && a.exact == b.exact && a.shifted == b.shifted;
    }
  };

  bool visit(const ir::Block& block);
  bool visit(const ir::Operation& operation);
  bool visit_control(const ir::Operation& operation);
  Known evaluate(const ir::Operation& operation) const;
  Known arithmetic(const ir::Operation& operation, const Known& a, const Known& b) const;
  Known of_cta_index(ir::Op op, std::int64_t divisor) const;
  Known joined(const Known& a, const Known& b) const;
  Known uniform() const;
  Known per_rank(const std::function<std::int64_t(std::int64_t rank)>& value) const;
  bool set(ir::ValueId value, Known known);

  const ir::Kernel& kernel_;
  std::vector<Known> known_;  // without classes: not visited yet
};

}  // namespace tilewright::analysis
