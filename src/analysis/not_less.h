#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/ir.h"

namespace tilewright::analysis {

// Proves that one integer scalar plus a constant is never less than another, from how both are
// computed: sums, minima, maxima, quotients by constants, and selections by comparisons. No proof
// means nothing. Integers are taken not to overflow.
class NotLess {
 public:
  static constexpr int kUsualSteps = 4000;
  // A proof that takes more steps is given up.
  explicit NotLess(const ir::Kernel& kernel, int steps = kUsualSteps);
  bool proves(ir::ValueId a, ir::ValueId b, std::int64_t more = 0);
  bool proves(const Dim& a, ir::ValueId b, std::int64_t more = 0);
  // The same of two sums.
  bool proves(const std::vector<ir::ValueId>& sum, const std::vector<ir::ValueId>& other,
              std::int64_t more = 0);
  // A comparison that holds where the next questions are asked, until it is left.
  void enter(ir::ValueId condition) { entered_.push_back(condition); }
  void leave() { entered_.pop_back(); }

 private:
  // constant + the sum of factor * atom. Atoms are in order, and no factor is 0.
  struct Term {
    std::size_t atom;
    std::int64_t factor;
    friend bool operator==(const Term& a, const Term& b) {
      return a.atom == b.atom && a.factor == b.factor;
    }
  };
  struct Sum {
    std::int64_t constant = 0;
    std::vector<Term> atoms;
    friend bool operator==(const Sum& a, const Sum& b) {
      return a.constant == b.constant && a.atoms == b.atoms;
    }
  };
  struct Atom {
    enum class Kind : std::uint8_t { unknown, minimum, maximum, quotient, choice };
    Kind kind = Kind::unknown;
    std::string name = {};     // unknown
    std::int64_t divisor = 0;  // quotient, of a by it
    Sum a = {}, b = {};
    Sum condition = {};                                    // choice: a where it is >= 0, else b
    std::int64_t least = INT64_MIN, greatest = INT64_MAX;  // unknown
  };

  bool proves(const Sum& difference);
  // Calls `add` with each atom of a + factor * b, and gives the constant.
  template <typename Add>
  std::int64_t add_terms(const Sum& a, const Sum& b, std::int64_t factor, Add add);
  Sum plus(const Sum& a, const Sum& b, std::int64_t factor = 1);
  static Sum without(const Sum& sum, std::size_t atom);
  const Sum& of(ir::ValueId value);
  Sum of(const ir::Operation& operation);
  Sum of(const Dim& dim);
  Sum atom(Atom atom);
  Sum unknown(ir::ValueId value);
  Sum quotient(const Sum& a, std::int64_t divisor);
  // What is >= 0 where the comparison of integers holds.
  std::optional<Sum> slack(ir::ValueId condition);
  void know_loops(const Sum& difference);
  bool not_negative(const Sum& sum);
  // Whether one alternative, or both, of the atom are enough.
  bool expanded(const Sum& sum, std::size_t atom, std::int64_t factor, bool both);
  bool chosen(const Sum& sum, std::size_t atom, std::int64_t factor);
  void add_fact(const Sum& fact);
  bool bounded_below(const Sum& sum) const;
  // The same of a - b.
  bool difference_bounded_below(const Sum& a, const Sum& b);
  // Adds the least that factor * atom is; false if there is none.
  bool add_least(const Term& term, std::int64_t& least) const;

  const ir::Kernel& kernel_;
  const std::vector<const ir::Operation*> definitions_;
  std::map<ir::ValueId, const ir::Operation*> loops_;  // by their indices
  std::map<ir::ValueId, std::int64_t> groups_;         // of a role, by the number of one of them
  const int most_steps_;
  std::vector<Atom> atoms_;
  std::map<ir::ValueId, Sum> sums_;  // of values that were asked for
  std::vector<ir::ValueId> entered_;
  std::vector<Sum> facts_;  // that are >= 0 in the case at hand
  int steps_ = 0;           // left
  bool overflows_ = false;  // a sum left 64 bits: nothing is proven any more
};

}  // namespace tilewright::analysis
