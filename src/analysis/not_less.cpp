#include "analysis/not_less.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "analysis/definitions.h"
#include "target/target.h"

namespace tilewright::analysis {

using ir::Key;
using ir::Op;
using ir::Operation;
using ir::ValueId;

namespace {

std::int64_t rounded_up(std::int64_t a, std::int64_t divisor) {
  return a / divisor + (a % divisor > 0 ? 1 : 0);
}

}  // namespace

NotLess::NotLess(const ir::Kernel& kernel, int steps)
    : kernel_(kernel), definitions_(definitions(kernel)), most_steps_(steps) {
  ir::for_each(kernel.body, [&](const Operation& o) {
    if (o.op == Op::for_loop) loops_[o.blocks[0].arguments[0]] = &o;
    if (o.op == Op::role) {
      const std::int64_t group_warps = target::target_of(kernel).limits.group_warps;
      groups_[o.blocks[0].arguments[0]] =
          (o.attributes.integer(Key::warps) + group_warps - 1) / group_warps;
    }
  });
}

bool NotLess::proves(ValueId a, ValueId b, std::int64_t more) {
  return proves(std::vector{a}, std::vector{b}, more);
}

bool NotLess::proves(const Dim& a, ValueId b, std::int64_t more) {
  return proves(plus({more, {}}, plus(of(a), of(b), -1)));
}

bool NotLess::proves(const std::vector<ValueId>& sum, const std::vector<ValueId>& other,
                     std::int64_t more) {
  Sum difference{more, {}};
  for (const ValueId value : sum) difference = plus(difference, of(value));
  for (const ValueId value : other) difference = plus(difference, of(value), -1);
  return proves(difference);
}

bool NotLess::proves(const Sum& difference) {
  steps_ = most_steps_;
  know_loops(difference);
  return not_negative(difference) && !overflows_;
}

// What is asked about an index is asked inside of its loop.
void NotLess::know_loops(const Sum& difference) {
  facts_.clear();
  for (const auto& [index, loop] : loops_) {
    const Sum value = of(index);
    const std::size_t own = value.atoms.front().atom;
    if (std::none_of(difference.atoms.begin(), difference.atoms.end(),
                     [&](const Term& term) { return term.atom == own; })) {
      continue;
    }
    facts_.push_back(plus(value, of(loop->operands[0]), -1));
    Sum above = plus(of(loop->operands[1]), value, -1);
    above.constant -= 1;
    facts_.push_back(above);
  }
  for (const ValueId condition : entered_) {
    if (const std::optional<Sum> fact = slack(condition)) add_fact(*fact);
  }
}

template <typename Add>
std::int64_t NotLess::add_terms(const Sum& a, const Sum& b, std::int64_t factor, Add add) {
  const auto multiple = [&](std::int64_t to, std::int64_t times) {
    std::int64_t more = 0;
    overflows_ |=
        __builtin_mul_overflow(factor, times, &more) || __builtin_add_overflow(to, more, &to);
    return to;
  };
  auto own = a.atoms.begin();
  for (const Term& other : b.atoms) {
    for (; own != a.atoms.end() && own->atom < other.atom; ++own) add(*own);
    const bool both = own != a.atoms.end() && own->atom == other.atom;
    const Term sum{other.atom, multiple(both ? own->factor : 0, other.factor)};
    if (both) ++own;
    if (sum.factor != 0) add(sum);
  }
  for (; own != a.atoms.end(); ++own) add(*own);
  return multiple(a.constant, b.constant);
}

NotLess::Sum NotLess::plus(const Sum& a, const Sum& b, std::int64_t factor) {
  Sum result;
  result.atoms.reserve(a.atoms.size() + b.atoms.size());
  result.constant =
      add_terms(a, b, factor, [&](const Term& term) { result.atoms.push_back(term); });
  return result;
}

NotLess::Sum NotLess::without(const Sum& sum, std::size_t atom) {
  Sum rest{sum.constant, {}};
  rest.atoms.reserve(sum.atoms.size());
  std::copy_if(sum.atoms.begin(), sum.atoms.end(), std::back_inserter(rest.atoms),
               [&](const Term& term) { return term.atom != atom; });
  return rest;
}

NotLess::Sum NotLess::atom(Atom made) {
  std::size_t number = 0;
  const auto same = [&](const Atom& other) {
    return other.kind == made.kind && other.name == made.name && other.divisor == made.divisor &&
           other.a == made.a && other.b == made.b && other.condition == made.condition;
  };
  while (number < atoms_.size() && !same(atoms_[number])) ++number;
  if (number == atoms_.size()) atoms_.push_back(std::move(made));
  return {0, {{number, 1}}};
}

NotLess::Sum NotLess::quotient(const Sum& a, std::int64_t divisor) {
  return atom({Atom::Kind::quotient, {}, divisor, a});
}

// Each value once: one that is computed from itself doubled would else take forever.
const NotLess::Sum& NotLess::of(ValueId value) {
  if (const auto known = sums_.find(value); known != sums_.end()) return known->second;
  const Operation* o = definitions_[value];
  const bool integer = o && kernel_.type(value) == ir::Type::scalar(i32);
  Sum sum = integer ? of(*o) : unknown(value);
  return sums_.emplace(value, std::move(sum)).first->second;
}

NotLess::Sum NotLess::unknown(ValueId value) {
  Atom made{Atom::Kind::unknown, "%" + std::to_string(value)};
  if (const auto loop = loops_.find(value); loop != loops_.end()) {
    const std::vector<ValueId>& range = loop->second->operands;  // low, high, step
    made.least = integer_constant(definitions_[range[0]]).value_or(INT64_MIN);
    if (const auto high = integer_constant(definitions_[range[1]])) made.greatest = *high - 1;
  }
  if (const auto role = groups_.find(value); role != groups_.end()) {
    made.least = 0;
    made.greatest = role->second - 1;
  }
  return atom(std::move(made));
}

NotLess::Sum NotLess::of(const Operation& o) {
  if (const auto constant = integer_constant(&o)) return {*constant, {}};
  const auto operand = [&](std::size_t i) { return of(o.operands[i]); };
  const auto divisor = [&] { return integer_constant(definitions_[o.operands[1]]).value_or(0); };
  if (o.op == Op::dim) return of(o.attributes.dim());
  if (o.op == Op::add) return plus(operand(0), operand(1));
  if (o.op == Op::sub) return plus(operand(0), operand(1), -1);
  if (o.op == Op::mul) {
    for (const std::size_t side : {0u, 1u}) {
      const auto factor = integer_constant(definitions_[o.operands[side]]);
      if (factor) return plus({}, operand(1 - side), *factor);
    }
  }
  if (o.op == Op::div && divisor() > 0) return quotient(operand(0), divisor());
  if (o.op == Op::ceildiv && divisor() > 0) {
    return quotient(plus(operand(0), {divisor() - 1, {}}), divisor());
  }
  if (o.op == Op::mod && divisor() > 0) {
    Atom rest{Atom::Kind::unknown, "%" + std::to_string(o.results[0])};
    rest.least = 0;
    rest.greatest = divisor() - 1;
    return atom(std::move(rest));
  }
  if (o.op == Op::cta_index) {
    Atom place{Atom::Kind::unknown, "%" + std::to_string(o.results[0])};
    place.least = 0;
    return atom(std::move(place));
  }
  if (o.op == Op::min) return atom({Atom::Kind::minimum, {}, 0, operand(0), operand(1)});
  if (o.op == Op::max) return atom({Atom::Kind::maximum, {}, 0, operand(0), operand(1)});
  if (o.op == Op::select) {
    if (const std::optional<Sum> condition = slack(o.operands[0])) {
      return atom({Atom::Kind::choice, {}, 0, operand(1), operand(2), *condition});
    }
  }
  return atom({Atom::Kind::unknown, "%" + std::to_string(o.results[0])});
}

NotLess::Sum NotLess::of(const Dim& dim) {
  using Kind = Dim::Kind;
  if (dim.is_constant()) return {dim.constant(), {}};
  if (dim.kind() != Kind::symbol) {
    const bool by_constant = dim.rhs().is_constant() && dim.rhs().constant() > 0;
    switch (dim.kind()) {
      case Kind::add:
        return plus(of(dim.lhs()), of(dim.rhs()));
      case Kind::sub:
        return plus(of(dim.lhs()), of(dim.rhs()), -1);
      case Kind::mul:
        if (dim.rhs().is_constant()) return plus({}, of(dim.lhs()), dim.rhs().constant());
        if (dim.lhs().is_constant()) return plus({}, of(dim.rhs()), dim.lhs().constant());
        break;
      case Kind::floordiv:
        if (by_constant) return quotient(of(dim.lhs()), dim.rhs().constant());
        break;
      case Kind::ceildiv:
        if (by_constant) {
          const std::int64_t divisor = dim.rhs().constant();
          return quotient(plus(of(dim.lhs()), {divisor - 1, {}}), divisor);
        }
        break;
      case Kind::min:
        return atom({Atom::Kind::minimum, {}, 0, of(dim.lhs()), of(dim.rhs())});
      case Kind::max:
        return atom({Atom::Kind::maximum, {}, 0, of(dim.lhs()), of(dim.rhs())});
      case Kind::constant:
      case Kind::symbol:
      case Kind::mod:
        break;
    }
  }
  const DimFacts range = dim.range();
  return atom({Atom::Kind::unknown, dim.to_string(), 0, {}, {}, {}, range.minimum, range.maximum});
}

std::optional<NotLess::Sum> NotLess::slack(ValueId condition) {
  const Operation* o = definitions_[condition];
  if (!o || (o->op != Op::lt && o->op != Op::le)) return {};
  for (const ValueId side : o->operands) {
    if (kernel_.type(side) != ir::Type::scalar(i32)) return {};
  }
  Sum difference = plus(of(o->operands[1]), of(o->operands[0]), -1);
  if (o->op == Op::lt) difference.constant -= 1;
  return difference;
}

bool NotLess::add_least(const Term& term, std::int64_t& least) const {
  const Atom& atom = atoms_[term.atom];
  const std::int64_t bound = term.factor > 0 ? atom.least : atom.greatest;
  if (bound == INT64_MIN || bound == INT64_MAX) return false;
  std::int64_t part = 0;
  return !__builtin_mul_overflow(term.factor, bound, &part) &&
         !__builtin_add_overflow(least, part, &least);
}

bool NotLess::bounded_below(const Sum& sum) const {
  std::int64_t least = sum.constant;
  return std::all_of(sum.atoms.begin(), sum.atoms.end(),
                     [&](const Term& term) { return add_least(term, least); }) &&
         least >= 0;
}

bool NotLess::difference_bounded_below(const Sum& a, const Sum& b) {
  std::int64_t least = 0;
  bool bounded = true;
  const std::int64_t constant =
      add_terms(a, b, -1, [&](const Term& term) { bounded = bounded && add_least(term, least); });
  return bounded && !__builtin_add_overflow(least, constant, &least) && least >= 0;
}

bool NotLess::expanded(const Sum& sum, std::size_t number, std::int64_t factor, bool both) {
  const Sum rest = without(sum, number);
  const Sum &a = atoms_[number].a, &b = atoms_[number].b;
  const bool first = not_negative(plus(rest, a, factor));
  if (first != both) return first;
  return not_negative(plus(rest, b, factor));
}

// A condition that is neither proven nor refuted makes two cases.
bool NotLess::chosen(const Sum& sum, std::size_t number, std::int64_t factor) {
  const Atom& atom = atoms_[number];
  const Sum refuted = plus({-1, {}}, atom.condition, -1);
  const Sum rest = without(sum, number);
  const Sum first = plus(rest, atom.a, factor), second = plus(rest, atom.b, factor);
  if (not_negative(atom.condition)) return not_negative(first);
  if (not_negative(refuted)) return not_negative(second);
  bool holds = true;
  for (const auto& [fact, that] : {std::pair(atom.condition, first), std::pair(refuted, second)}) {
    const std::size_t known = facts_.size();
    add_fact(fact);
    holds = holds && not_negative(that);
    facts_.resize(known);
  }
  return holds;
}

// And what follows from it: a minimum that is not negative makes two facts, and one that is not
// positive one, where one of its two cannot be the reason.
void NotLess::add_fact(const Sum& fact) {
  facts_.push_back(fact);
  for (const auto& [number, factor] : fact.atoms) {
    const Atom& atom = atoms_[number];
    if (atom.kind != Atom::Kind::minimum && atom.kind != Atom::Kind::maximum) continue;
    const Sum rest = without(fact, number);
    const Sum first = plus(rest, atom.a, factor), second = plus(rest, atom.b, factor);
    const bool both = (atom.kind == Atom::Kind::minimum) == (factor > 0);
    const auto refuted = [this](const Sum& sum) { return not_negative(plus({-1, {}}, sum, -1)); };
    if (both || refuted(second)) add_fact(first);
    if (both || refuted(first)) add_fact(second);
    return;
  }
}

bool NotLess::not_negative(const Sum& sum) {
  if (overflows_) return false;
  if (bounded_below(sum)) return true;
  for (const Sum& fact : facts_) {
    if (difference_bounded_below(sum, fact)) return true;
  }
  if (--steps_ < 0) return false;
  for (const auto& [number, factor] : sum.atoms) {
    if (atoms_[number].kind == Atom::Kind::choice) return chosen(sum, number, factor);
  }
  // What must hold for both alternatives comes first: which one of another is enough may differ. Of
  // these any may be the one to begin with, since expanding one hides that it is part of another.
  for (const bool both : {true, false}) {
    for (const auto& [number, factor] : sum.atoms) {
      const Atom::Kind kind = atoms_[number].kind;
      if (kind != Atom::Kind::minimum && kind != Atom::Kind::maximum) continue;
      if (((kind == Atom::Kind::minimum) == (factor > 0)) != both) continue;
      const bool holds = expanded(sum, number, factor, both);
      if (holds || both) return holds;
    }
  }
  // Quotients grow with what is divided.
  for (const auto& [number, factor] : sum.atoms) {
    const Atom& larger = atoms_[number];
    if (larger.kind != Atom::Kind::quotient || factor <= 0) continue;
    if (sum.atoms.size() == 1) {
      const std::int64_t least = rounded_up(-sum.constant, factor);
      return not_negative(plus(larger.a, {larger.divisor * least, {}}, -1));
    }
    for (const auto& [other, times] : sum.atoms) {
      const Atom& smaller = atoms_[other];
      if (smaller.kind != Atom::Kind::quotient || smaller.divisor != larger.divisor) continue;
      if (other == number || (times != factor && times != -factor)) continue;
      const Sum rest = without(without(sum, number), other);
      if (times == factor) {
        // Each rounds down by less than 1: two of them are at least what is divided in both, by
        // the divisor, less 2 (divisor - 1) / divisor.
        if (!rest.atoms.empty()) continue;
        const std::int64_t least = rounded_up(-rest.constant, factor);
        Sum both = plus(larger.a, smaller.a);
        both.constant -= larger.divisor * (least + 1) - 1;
        if (not_negative(both)) return true;
        continue;
      }
      const Sum difference = plus(larger.a, smaller.a, -1);
      if (rest.atoms.empty()) {
        // Enough is that one quotient is so much above the other.
        const std::int64_t above = rounded_up(-rest.constant, factor);
        return not_negative(plus(difference, {larger.divisor * above, {}}, -1));
      }
      if (not_negative(difference) && not_negative(rest)) return true;
    }
  }
  // A quotient is at most a number where what is divided stays below the divisor times one more.
  for (const auto& [number, factor] : sum.atoms) {
    const Atom& smaller = atoms_[number];
    if (smaller.kind != Atom::Kind::quotient || factor != -1) continue;
    const Sum rest = without(sum, number);
    const Sum multiple = plus({smaller.divisor - 1, {}}, rest, smaller.divisor);
    if (not_negative(plus(multiple, smaller.a, -1))) return true;
  }
  return false;
}

}  // namespace tilewright::analysis
