#include "ir/dim_order.h"

#include <cstdint>
#include <map>
#include <string>

namespace tilewright::ir {
namespace {

// A number that is not known once it has left 64 bits.
class Number {
 public:
  Number(std::int64_t value = 0) : value_(value) {}
  bool is_known() const { return known_; }
  std::int64_t value() const { return value_; }
  friend Number operator+(Number a, Number b) {
    a.known_ = a.known_ && b.known_ && !__builtin_add_overflow(a.value_, b.value_, &a.value_);
    return a;
  }
  friend Number operator*(Number a, Number b) {
    a.known_ = a.known_ && b.known_ && !__builtin_mul_overflow(a.value_, b.value_, &a.value_);
    return a;
  }

 private:
  std::int64_t value_;
  bool known_ = true;
};

struct Term {
  Number factor;
  DimFacts range;
};

// constant + the sum of factor * term.
struct Sum {
  Number constant;
  std::map<std::string, Term> terms;
};

void add(Sum& sum, const Dim& dim, Number factor) {
  switch (dim.kind()) {
    case Dim::Kind::constant:
      sum.constant = sum.constant + factor * dim.constant();
      return;
    case Dim::Kind::add:
      add(sum, dim.lhs(), factor);
      return add(sum, dim.rhs(), factor);
    case Dim::Kind::sub:
      add(sum, dim.lhs(), factor);
      return add(sum, dim.rhs(), factor * -1);
    case Dim::Kind::mul:
      if (dim.rhs().is_constant()) return add(sum, dim.lhs(), factor * dim.rhs().constant());
      if (dim.lhs().is_constant()) return add(sum, dim.rhs(), factor * dim.lhs().constant());
      break;
    case Dim::Kind::symbol:
    case Dim::Kind::floordiv:
    case Dim::Kind::ceildiv:
    case Dim::Kind::mod:
    case Dim::Kind::min:
    case Dim::Kind::max:
      break;
  }
  Term& term = sum.terms[dim.to_string()];
  term.factor = term.factor + factor;
  term.range = dim.range();
}

// The least that the sum may be.
Number minimum(const Sum& sum) {
  Number least = sum.constant;
  for (const auto& [name, term] : sum.terms) {
    if (!term.factor.is_known()) return term.factor;
    if (term.factor.value() == 0) continue;
    const bool rises = term.factor.value() > 0;
    least = least + term.factor * (rises ? term.range.minimum : term.range.maximum);
  }
  return least;
}

}  // namespace

bool never_less(const Dim& a, const Dim& b) {
  Sum difference;
  add(difference, a, 1);
  add(difference, b, -1);
  const Number least = minimum(difference);
  if (least.is_known() && least.value() >= 0) return true;
  const std::int64_t most = b.range().maximum;  // INT64_MAX where it is that or more
  return most < INT64_MAX && a.range().minimum >= most;
}

}  // namespace tilewright::ir
