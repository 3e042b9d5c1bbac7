#pragma once

#include <unordered_map>
#include <vector>

#include "ir/ir.h"

namespace tilewright::ir {

// Copies operations within their kernel: every result of a copy is a new value, and a copy reads
// what the values that it names stand for.
class Cloner {
 public:
  explicit Cloner(Kernel& kernel) : kernel_(kernel) {}

  // From now on `from` stands for `to`.
  void bind(ValueId from, ValueId to) { values_[from] = to; }
  // What the value stands for; itself, where it is bound to nothing.
  ValueId operator()(ValueId value) const;
  std::vector<ValueId> operator()(const std::vector<ValueId>& values) const;
  Operation copy(const Operation& operation);
  Block copy(const Block& block);

 private:
  ValueId renew(ValueId value);

  Kernel& kernel_;
  std::unordered_map<ValueId, ValueId> values_;
};

}  // namespace tilewright::ir
