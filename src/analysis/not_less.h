#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// Proves that one integer scalar is never less than another, from how both are computed: sums,
// minima, maxima, quotients by constants, and selections whose condition is proven. No proof means
// nothing. Integers are taken not to overflow.
class NotLess {
 public:
  explicit NotLess(const ir::Kernel& kernel);
  bool proves(ir::ValueId a, ir::ValueId b);

 private:
  // constant + the sum of factor * atom.
  struct Sum {
    std::int64_t constant = 0;
    std::map<std::size_t, std::int64_t> atoms;
    friend bool operator==(const Sum& a, const Sum& b) {
      return a.constant == b.constant && a.atoms == b.atoms;
    }
  };
  struct Atom {
    enum class Kind : std::uint8_t { unknown, minimum, maximum, quotient };
    Kind kind = Kind::unknown;
    std::string name;          // unknown
    std::int64_t divisor = 0;  // quotient, of a by it
    Sum a, b;
    std::int64_t least = INT64_MIN, greatest = INT64_MAX;  // unknown
  };

  static Sum plus(const Sum& a, const Sum& b, std::int64_t factor = 1);
  Sum of(ir::ValueId value);
  Sum of(const ir::Operation& operation);
  Sum of(const Dim& dim);
  Sum atom(Atom atom);
  Sum quotient(const Sum& a, std::int64_t divisor);
  bool is_true(ir::ValueId condition);
  bool not_negative(const Sum& sum);
  // Whether one alternative, or both, of the atom are enough.
  bool expanded(const Sum& sum, std::size_t atom, std::int64_t factor, bool both);
  bool bounded_below(const Sum& sum) const;

  const ir::Kernel& kernel_;
  const std::vector<const ir::Operation*> definitions_;
  std::vector<Atom> atoms_;
  int steps_ = 0;  // left
};

}  // namespace tilewright::analysis
