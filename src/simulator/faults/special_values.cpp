#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <variant>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/forward_walk.h"

// Which sorts of numbers the computations on registers make: a factor shows on finite ones alone.
namespace tilewright::simulator {

using ir::Op;
using ir::ValueId;

namespace {

// A set of sorts.
using Sorts = std::uint8_t;
constexpr Sorts kNegativeInfinity = 1, kNegative = 2, kZero = 4, kPositive = 8,
                kPositiveInfinity = 16, kNoNumber = 32;
constexpr Sorts kFinite = kNegative | kPositive;
constexpr Sorts kAny = 63;

Sorts sort_of(double value) {
  if (std::isnan(value)) return kNoNumber;
  if (std::isinf(value)) return value < 0 ? kNegativeInfinity : kPositiveInfinity;
  return value == 0 ? kZero : value < 0 ? kNegative : kPositive;
}

Sorts negated(Sorts sorts) {
  Sorts result = sorts & (kZero | kNoNumber);
  if (sorts & kNegativeInfinity) result |= kPositiveInfinity;
  if (sorts & kPositiveInfinity) result |= kNegativeInfinity;
  if (sorts & kNegative) result |= kPositive;
  if (sorts & kPositive) result |= kNegative;
  return result;
}

// Of one sort each. Sums and products of finite numbers may overflow, and these underflow.
Sorts sum_of_sorts(Sorts a, Sorts b) {
  constexpr Sorts kInfinite = kNegativeInfinity | kPositiveInfinity;
  if (a == kNoNumber || b == kNoNumber) return kNoNumber;
  if (a & kInfinite) return (b & kInfinite) && a != b ? kNoNumber : a;
  if (b & kInfinite) return b;
  if (a == kZero) return b;
  if (b == kZero) return a;
  if (a != b) return kNegative | kZero | kPositive;
  return a == kNegative ? kNegative | kNegativeInfinity : kPositive | kPositiveInfinity;
}

Sorts product_of_sorts(Sorts a, Sorts b) {
  constexpr Sorts kInfinite = kNegativeInfinity | kPositiveInfinity;
  constexpr Sorts kBelow = kNegative | kNegativeInfinity;
  if (a == kNoNumber || b == kNoNumber) return kNoNumber;
  const bool infinite = ((a | b) & kInfinite) != 0;
  if (a == kZero || b == kZero) return infinite ? kNoNumber : kZero;
  const Sorts above =
      infinite ? kPositiveInfinity : static_cast<Sorts>(kPositive | kZero | kPositiveInfinity);
  return ((a & kBelow) != 0) != ((b & kBelow) != 0) ? negated(above) : above;
}

template <typename Combine>
Sorts for_pairs(Sorts a, Sorts b, Combine combine) {
  Sorts result = 0;
  for (Sorts i = 1; i <= kNoNumber; i <<= 1) {
    for (Sorts j = 1; j <= kNoNumber; j <<= 1) {
      if ((a & i) && (b & j)) result |= combine(i, j);
    }
  }
  return result;
}

Sorts sum(Sorts a, Sorts b) { return for_pairs(a, b, sum_of_sorts); }
Sorts product(Sorts a, Sorts b) { return for_pairs(a, b, product_of_sorts); }

Sorts power(Sorts a) {
  Sorts result = a & (kNoNumber | kPositiveInfinity);
  if (a & kNegativeInfinity) result |= kZero;
  if (a & kNegative) result |= kZero | kPositive;
  if (a & kZero) result |= kPositive;
  if (a & kPositive) result |= kPositive | kPositiveInfinity;
  return result;
}

}  // namespace

// Follows what each array holds in any of its elements, through all branches and turns of loops.
class SpecialValues::Walk : public ForwardWalk<SpecialValues::Walk, Sorts> {
 public:
  using Arrays = Facts;

  Walk(const Sites& sites, std::map<std::size_t, std::uint8_t>& made)
      : ForwardWalk(sites), made_(made) {}

 private:
  friend ForwardWalk;

  static Sorts either(Sorts a, Sorts b) { return a | b; }

  void visit(const ir::Operation& operation, const Site& site, Arrays& arrays) {
    if (operation.op == Op::fill || operation.op == Op::copy) {
      arrays[operation.operands[0]] = held(arrays, operation.operands[1]);
    } else if (operation.op == Op::compute) {
      const Sorts result = computed(operation, arrays);
      made_[site.number] |= result;
      arrays[operation.operands[0]] = result;
    } else if (ir::info(operation.op).writes(ir::Memory::registers) ||
               ir::info(operation.op).completion == ir::Completion::products ||
               operation.op == Op::wgmma_wait) {
      for (const auto* values : {&operation.operands, &operation.results}) {
        for (const ValueId value : *values) {
          if (sites_.kernel().type(value).is(ir::Type::Kind::registers)) arrays[value] = kAny;
        }
      }
    }
  }

  Sorts held(const Arrays& arrays, ValueId value) const {
    if (sites_.kernel().type(value).is(ir::Type::Kind::registers)) {
      const auto known = arrays.find(value);
      return known == arrays.end() ? kAny : known->second;
    }
    const Site* made = sites_.definition(value);
    if (!made || made->op() != Op::constant) return kAny;
    const ir::Attribute* number = made->operation->attributes.find(ir::Key::value);
    if (number && std::holds_alternative<double>(*number)) {
      return sort_of(std::get<double>(*number));
    }
    const auto integer = sites_.constant(value);
    return integer ? sort_of(static_cast<double>(*integer)) : kAny;
  }

  Sorts computed(const ir::Operation& operation, const Arrays& arrays) const {
    const auto operand = [&](std::size_t i) { return held(arrays, operation.operands[i + 1]); };
    const Op function = operation.attributes.function();
    if (function == Op::add) return sum(operand(0), operand(1));
    if (function == Op::sub) return sum(operand(0), negated(operand(1)));
    if (function == Op::mul) return product(operand(0), operand(1));
    if (function == Op::fma) return sum(product(operand(0), operand(1)), operand(2));
    if (function == Op::neg) return negated(operand(0));
    if (function == Op::exp || function == Op::exp2 || function == Op::exp2_polynomial) {
      return power(operand(0));
    }
    if (function == Op::min || function == Op::max) return operand(0) | operand(1);
    if (function == Op::select) return operand(1) | operand(2);
    return kAny;
  }

  std::map<std::size_t, std::uint8_t>& made_;
};

SpecialValues::SpecialValues(const Sites& sites) {
  Walk(sites, made_).block(sites.kernel().body, 0, {});
}

std::string SpecialValues::never_finite(const Site& computation) const {
  const auto made = made_.find(computation.number);
  if (made == made_.end() || made->second == 0 || (made->second & kFinite) != 0) return {};
  return "whatever it makes is zero, infinite or no number, and stays so";
}

}  // namespace tilewright::simulator
