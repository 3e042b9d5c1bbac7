#include <algorithm>
#include <bit>

#include "ir/claim.h"
#include "ir/schedule.h"
#include "ir/text.h"

namespace tilewright::ir {
namespace {

bool same_attribute(const Attribute& a, const Attribute& b) {
  // By bits, so that a NaN equals itself and -0.0 differs from 0.0.
  const double* x = std::get_if<double>(&a);
  const double* y = std::get_if<double>(&b);
  if (x && y) return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*y);
  return a == b;
}

bool same_attributes(const Attributes& a, const Attributes& b) {
  const auto &x = a.entries(), &y = b.entries();
  if (x.size() != y.size()) return false;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i].first != y[i].first || !same_attribute(x[i].second, y[i].second)) return false;
  }
  return true;
}

bool same_facts(const DimFacts& a, const DimFacts& b) {
  return a.multiple == b.multiple && a.minimum == b.minimum && a.maximum == b.maximum;
}

// Walks two kernels side by side; the first meeting of two values pairs them.
class Comparison {
 public:
  Comparison(const Kernel& a, const Kernel& b)
      : a_(a), b_(b), to_b_(a.types.size(), kNoValue), to_a_(b.types.size(), kNoValue) {}

  bool same() {
    if (a_.name != b_.name || a_.form != b_.form || a_.target != b_.target || a_.grid != b_.grid ||
        a_.cluster != b_.cluster || a_.cta_pairs != b_.cta_pairs || a_.threads != b_.threads ||
        a_.resident != b_.resident || a_.shared_bytes != b_.shared_bytes || a_.dims != b_.dims ||
        a_.parameters.size() != b_.parameters.size()) {
      return false;
    }
    for (std::size_t i = 0; i < a_.dims.size(); ++i) {
      if (!same_facts(a_.dims[i].facts(), b_.dims[i].facts())) return false;
    }
    for (std::size_t i = 0; i < a_.parameters.size(); ++i) {
      const Parameter &p = a_.parameters[i], &q = b_.parameters[i];
      if (p.kind != q.kind || p.name != q.name || p.dtype != q.dtype || p.shape != q.shape ||
          !same(p.value, q.value)) {
        return false;
      }
    }
    const auto same_claim = [](const Claim& x, const Claim& y) { return equal(x, y); };
    return std::equal(a_.claims.begin(), a_.claims.end(), b_.claims.begin(), b_.claims.end(),
                      same_claim) &&
           equal(a_.schedule, b_.schedule) && same(a_.body, b_.body);
  }

 private:
  bool same(ValueId a, ValueId b) {
    if (a >= to_b_.size() || b >= to_a_.size()) return a == b;
    if (to_b_[a] == kNoValue && to_a_[b] == kNoValue) {
      to_b_[a] = b;
      to_a_[b] = a;
      return a_.types[a] == b_.types[b];
    }
    return to_b_[a] == b && to_a_[b] == a;
  }
  bool same(const std::vector<ValueId>& a, const std::vector<ValueId>& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (!same(a[i], b[i])) return false;
    }
    return true;
  }
  bool same(const Block& a, const Block& b) {
    if (!same(a.arguments, b.arguments) || a.body.size() != b.body.size()) return false;
    for (std::size_t i = 0; i < a.body.size(); ++i) {
      if (!same(a.body[i], b.body[i])) return false;
    }
    return true;
  }
  bool same(const Operation& a, const Operation& b) {
    if (a.op != b.op || a.blocks.size() != b.blocks.size() || !same(a.operands, b.operands) ||
        !same(a.results, b.results) || !same_attributes(a.attributes, b.attributes)) {
      return false;
    }
    for (std::size_t i = 0; i < a.blocks.size(); ++i) {
      if (!same(a.blocks[i], b.blocks[i])) return false;
    }
    return true;
  }

  const Kernel& a_;
  const Kernel& b_;
  std::vector<ValueId> to_b_, to_a_;
};

}  // namespace

bool equal(const Kernel& a, const Kernel& b) { return Comparison(a, b).same(); }

}  // namespace tilewright::ir
