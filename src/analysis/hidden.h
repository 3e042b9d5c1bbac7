#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>

#include "ir/ir.h"

namespace tilewright::analysis {

// What values of the tile form are where certain conditions are false: at some elements of each
// tile, or, `everywhere`, at all. Nothing infinite times 0 is taken to occur, and no product of a
// finite number and a constant to overflow.
class Hidden {
 public:
  // A number, or the same as another value; each value is at least the same as itself.
  struct Known {
    std::optional<double> number;
    ir::ValueId same = ir::kNoValue;
    friend bool operator==(const Known& a, const Known& b) {
      return a.number == b.number && a.same == b.same;
    }
  };
  using Definitions = std::vector<const ir::Operation*>;
  using IsFalse = std::function<bool(ir::ValueId condition)>;
  // Whether a load finds nothing there, which makes zeros.
  using FindsNothing = std::function<bool(const ir::Operation& load)>;

  Hidden(const ir::Kernel& kernel, const Definitions& definitions, IsFalse is_false,
         bool everywhere, FindsNothing finds_nothing = {});
  Known of(ir::ValueId value);

 private:
  Known evaluate(ir::ValueId value);
  Known arithmetic(ir::ValueId value, const ir::Operation& o);
  Known choice(ir::ValueId value, const ir::Operation& o);
  Known of_all(ir::ValueId value, const ir::Operation& o);
  // What the operand is, where it needs no stretching to be the value.
  Known operand_as(ir::ValueId value, ir::ValueId operand);
  bool above_minus_infinity(ir::ValueId value);
  bool is_minus_infinity(ir::ValueId value);

  const ir::Kernel& kernel_;
  const Definitions& definitions_;
  const IsFalse is_false_;
  const bool everywhere_;
  const FindsNothing finds_nothing_;
  std::map<ir::ValueId, Known> known_;
  // Of what loops carry: where it begins, and what it becomes.
  std::map<ir::ValueId, std::pair<ir::ValueId, ir::ValueId>> carried_;
  std::set<ir::ValueId> above_;  // assumed while they are asked
};

}  // namespace tilewright::analysis
