#include "ir/dim_order.h"

#include <cstdint>
#include <map>
#include <string>

namespace tilewright::ir {
namespace {

// constant + the sum of factor * term.
struct Sum {
  std::int64_t constant = 0;
  std::map<std::string, std::int64_t> terms;
};

void add(Sum& sum, const Dim& dim, std::int64_t factor) {
  switch (dim.kind()) {
    case Dim::Kind::constant:
      sum.constant += factor * dim.constant();
      return;
    case Dim::Kind::add:
      add(sum, dim.lhs(), factor);
      return add(sum, dim.rhs(), factor);
    case Dim::Kind::sub:
      add(sum, dim.lhs(), factor);
      return add(sum, dim.rhs(), -factor);
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
  sum.terms[dim.to_string()] += factor;
}

}  // namespace

bool never_less(const Dim& a, const Dim& b) {
  Sum difference;
  add(difference, a, 1);
  add(difference, b, -1);
  for (const auto& [term, factor] : difference.terms) {
    if (factor != 0) return a.range().minimum >= b.range().maximum;
  }
  return difference.constant >= 0;
}

}  // namespace tilewright::ir
