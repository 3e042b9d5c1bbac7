#include <algorithm>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "simulator/faults/equivalence.h"

// Masks that put zeros where there are zeros: what a load finds outside of its limits is zero, and
// so is what products, sums and the like make of it.
namespace tilewright::simulator {

using ir::Key;
using ir::Op;
using ir::ValueId;

namespace {

constexpr std::int64_t kLanes = 32;
constexpr int kDepth = 16;

// Elements that a mask hides: element i of the select's result has number of[i] in an array.
using Elements = std::vector<std::int64_t>;

Elements through(const ir::IndexMap& map, const Elements& elements) {
  Elements result;
  for (const std::int64_t element : elements) result.push_back(ir::evaluate(map, element));
  return result;
}

// What hides elements: their coordinates on an axis of a layout are not less than the bound.
struct Hidden {
  const ir::Operation* coordinate = nullptr;
  Elements elements;  // of the coordinates' array
  ValueId bound = ir::kNoValue;
};

class MaskedZeros {
 public:
  explicit MaskedZeros(const Sites& sites) : sites_(sites) {}

  bool hides_zeros(const Site& select) {
    const std::vector<ValueId>& operands = select.operation->operands;
    const std::vector<ir::IndexMap>& maps = select.operation->attributes.maps();
    const ir::Type& type = sites_.kernel().type(operands[0]);
    Elements all(static_cast<std::size_t>(type.shape[0]));
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
    if (!is_zero_constant(operands[3])) return false;
    const std::optional<Hidden> hidden = hidden_by(operands[1], select, through(maps[0], all));
    if (!hidden) return false;
    hidden_ = *hidden;
    return is_zero(operands[2], select, through(maps[1], all), kDepth);
  }

  // Whether all that takes the computation's results multiplies them by zero.
  bool meets_zeros(const Site& computation) {
    const ValueId result = computation.operation->operands[0];
    for (const Use& use : sites_.uses(result)) {
      const Site& site = sites_.at(use.site);
      if (use.operand == 0 && writes_first_alone(site.op())) continue;
      const Site* from = written_before(result, site);
      if (from && from->number != computation.number) continue;
      const ir::Operation& operation = *site.operation;
      if (operation.op != Op::compute || operation.attributes.function() != Op::mul) return false;
      const std::size_t other = 3 - use.operand;
      Elements all(static_cast<std::size_t>(sites_.kernel().type(operation.operands[0]).shape[0]));
      for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::int64_t>(i);
      const Elements own = is_array(operation.operands[other])
                               ? through(operation.attributes.maps()[other - 1], all)
                               : Elements();
      if (!is_zero(operation.operands[other], site, own, kDepth)) return false;
    }
    return true;
  }

 private:
  bool is_array(ValueId value) const {
    return sites_.kernel().type(value).is(ir::Type::Kind::registers);
  }
  bool is_zero_constant(ValueId value) const {
    const Site* made = sites_.definition(value);
    if (!made || made->op() != Op::constant) return false;
    const ir::Attribute* number = made->operation->attributes.find(Key::value);
    if (!number) return false;
    if (std::holds_alternative<double>(*number)) return std::get<double>(*number) == 0;
    return sites_.is_constant(value, 0);
  }

  static bool writes_first_alone(Op op) {
    return op == Op::compute || op == Op::copy || op == Op::fill || op == Op::coordinate ||
           op == Op::reduce_registers;
  }
  bool writes(const Site& site, ValueId array) const {
    const ir::Operation& operation = *site.operation;
    const ir::OpInfo& record = ir::info(operation.op);
    if (operation.op == Op::registers) return false;
    const bool is_named = std::count(operation.operands.begin(), operation.operands.end(), array) ||
                          std::count(operation.results.begin(), operation.results.end(), array);
    if (!is_named) return false;
    if (writes_first_alone(operation.op)) return operation.operands[0] == array;
    return record.writes(ir::Memory::registers) || record.completion == ir::Completion::products ||
           operation.op == Op::wgmma_wait;
  }

  // The operation that wrote the array last before the site. Null if it depends on the path of the
  // run which one that is.
  const Site* written_before(ValueId array, const Site& site) const {
    for (const Site* at = &site; at; at = sites_.parent(*at)) {
      for (const Site* before = sites_.previous(*at); before; before = sites_.previous(*before)) {
        if (before->operation->blocks.empty()) {
          if (writes(*before, array)) return before;
          continue;
        }
        for (std::size_t inner = before->number + 1; inner < before->end; ++inner) {
          if (writes(sites_.at(inner), array)) return nullptr;
        }
      }
      // In a loop the array may have been written by the turn before.
      const Site* outer = sites_.parent(*at);
      if (!outer || outer->op() == Op::role) continue;
      for (std::size_t inner = outer->number + 1; inner < outer->end; ++inner) {
        if (writes(sites_.at(inner), array)) return nullptr;
      }
    }
    return nullptr;
  }

  // The mask as a comparison "coordinate < bound", if it is one.
  std::optional<Hidden> hidden_by(ValueId mask, const Site& at, const Elements& elements) const {
    const Site* made = written_before(mask, at);
    if (!made || made->op() != Op::compute) return {};
    const ir::Operation& compare = *made->operation;
    if (compare.attributes.function() != Op::lt || !is_array(compare.operands[1])) return {};
    const Site* coordinate = written_before(compare.operands[1], *made);
    if (!coordinate || coordinate->op() != Op::coordinate) return {};
    ValueId bound = compare.operands[2];
    if (is_array(bound)) {
      const Site* filled = written_before(bound, *made);
      if (!filled || filled->op() != Op::fill) return {};
      bound = filled->operation->operands[1];
    }
    return Hidden{coordinate->operation, through(compare.attributes.maps()[0], elements), bound};
  }

  // Whether all elements that the mask hides lie outside of what the load reads: it makes them 0.
  bool is_outside(const ir::Operation& load, const Elements& elements) const {
    if (!hidden_.coordinate) return false;
    const std::vector<std::int64_t>& sizes = load.attributes.integers(Key::sizes);
    const ir::RegisterLayout& layout = load.attributes.register_layout();
    const ir::RegisterLayout& of_mask = hidden_.coordinate->attributes.register_layout();
    const auto mask_axis =
        static_cast<std::size_t>(hidden_.coordinate->attributes.integer(Key::axis));
    std::size_t tile_axis = 0;
    for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
      if (sizes[axis] == 0) continue;
      const std::size_t own = tile_axis++;
      const ValueId start = load.operands[2 + axis], limit = load.operands[2 + sizes.size() + axis];
      if (is_rest(hidden_.bound, limit, start) &&
          are_alike(of_mask, mask_axis, layout, own, elements)) {
        return true;
      }
    }
    return false;
  }
  // Whether the bound is limit - start, the number of elements that the load finds.
  bool is_rest(ValueId bound, ValueId limit, ValueId start) const {
    if (sites_.is_constant(start, 0) && is_same(bound, limit)) return true;
    const Site* made = sites_.definition(bound);
    if (!made || made->op() != Op::sub) return false;
    const Shifted from = shifted(made->operation->operands[0]), to = shifted(limit);
    const Shifted less = shifted(made->operation->operands[1]), begin = shifted(start);
    return from.is_beside(to) && less.is_beside(begin) &&
           from.more - less.more == to.more - begin.more;
  }
  // A value as the sum of another value, or of a dim, and a constant.
  struct Shifted {
    ValueId value = ir::kNoValue;
    std::string dim;
    std::int64_t more = 0;
    bool is_beside(const Shifted& other) const {
      return dim.empty() ? value == other.value && other.dim.empty() : dim == other.dim;
    }
  };
  Shifted shifted(ValueId value) const {
    const Site* made = sites_.definition(value);
    if (!made) return {value, {}, 0};
    const std::vector<ValueId>& operands = made->operation->operands;
    if (made->op() == Op::dim) {
      const Dim& dim = made->operation->attributes.dim();
      const bool is_sum = dim.kind() == Dim::Kind::add && dim.rhs().is_constant();
      if (is_sum) return {value, dim.lhs().to_string(), dim.rhs().constant()};
      return {value, dim.to_string(), 0};
    }
    if (made->op() != Op::add) return {value, {}, 0};
    for (const std::size_t i : {0, 1}) {
      const std::optional<std::int64_t> more = sites_.constant(operands[i]);
      if (!more) continue;
      Shifted of = shifted(operands[1 - i]);
      of.more += *more;
      return of;
    }
    return {value, {}, 0};
  }
  bool is_same(ValueId a, ValueId b) const {
    if (a == b) return true;
    const Site *one = sites_.definition(a), *other = sites_.definition(b);
    return one && other && one->op() == Op::dim && other->op() == Op::dim &&
           one->operation->attributes.dim().to_string() ==
               other->operation->attributes.dim().to_string();
  }
  bool are_alike(const ir::RegisterLayout& a, std::size_t a_axis, const ir::RegisterLayout& b,
                 std::size_t b_axis, const Elements& elements) const {
    const std::int64_t warps = std::max<std::int64_t>(a.warp_count(), b.warp_count());
    for (std::size_t i = 0; i < elements.size(); ++i) {
      if (hidden_.elements[i] >= a.register_count() || elements[i] >= b.register_count()) {
        return false;
      }
      for (std::int64_t place = 0; place < kLanes * warps; ++place) {
        const std::int64_t lane = place % kLanes, warp = place / kLanes;
        if (warp >= a.warp_count() || warp >= b.warp_count() ||
            a.coordinates(hidden_.elements[i], lane, warp)[a_axis] !=
                b.coordinates(elements[i], lane, warp)[b_axis]) {
          return false;
        }
      }
    }
    return true;
  }

  // Whether the elements are zero where the mask hides them, if all numbers are finite.
  bool is_zero(ValueId value, const Site& at, const Elements& elements, int depth) const {
    if (!is_array(value)) return is_zero_constant(value);
    const Site* made = depth == 0 ? nullptr : written_before(value, at);
    if (!made) return false;
    const ir::Operation& operation = *made->operation;
    if (operation.op == Op::load_registers) return is_outside(operation, elements);
    if (operation.op == Op::fill) return is_zero_constant(operation.operands[1]);
    if (operation.op == Op::copy) return is_zero(operation.operands[1], *made, elements, depth - 1);
    if (operation.op != Op::compute) return false;
    const std::vector<ir::IndexMap>& maps = operation.attributes.maps();
    const auto zero = [&](std::size_t i) {
      const ValueId operand = operation.operands[i + 1];
      return is_array(operand) ? is_zero(operand, *made, through(maps[i], elements), depth - 1)
                               : is_zero_constant(operand);
    };
    // Functions that are not listed may make anything of zeros.
    const Op function = operation.attributes.function();
    if (function == Op::cast || function == Op::neg || function == Op::tanh) return zero(0);
    if (function == Op::mul) return zero(0) || zero(1);
    if (function == Op::add || function == Op::sub) return zero(0) && zero(1);
    if (function == Op::fma) return (zero(0) || zero(1)) && zero(2);
    if (function == Op::div) return is_zero_quotient(*made, elements, depth);
    return function == Op::select && zero(1) &&
           (zero(2) || is_of_zeros(operation, *made, elements, depth));
  }
  // Whether the quotient is 0 / d, or the rounded-up (0 + c) / d with c < d.
  bool is_zero_quotient(const Site& division, const Elements& elements, int depth) const {
    const ir::Operation& operation = *division.operation;
    const auto divisor = sites_.constant(operation.operands[2]);
    const ValueId dividend = operation.operands[1];
    if (!divisor || *divisor <= 0 || !is_array(dividend)) return false;
    const Elements own = through(operation.attributes.maps()[0], elements);
    if (is_zero(dividend, division, own, depth - 1)) return true;
    const Site* sum = written_before(dividend, division);
    if (!sum || sum->op() != Op::compute || sum->operation->attributes.function() != Op::add) {
      return false;
    }
    const ir::Operation& added = *sum->operation;
    const auto more = sites_.constant(added.operands[2]);
    return more && *more >= 0 && *more < *divisor && is_array(added.operands[1]) &&
           is_zero(added.operands[1], *sum, through(added.attributes.maps()[0], own), depth - 1);
  }
  // Whether the select's condition is x == 0 and x is zero, so that it takes its first operand.
  bool is_of_zeros(const ir::Operation& select, const Site& at, const Elements& elements,
                   int depth) const {
    const Site* made = written_before(select.operands[1], at);
    if (!made || made->op() != Op::compute) return false;
    const ir::Operation& compare = *made->operation;
    if (compare.attributes.function() != Op::eq) return false;
    const Elements own = through(select.attributes.maps()[0], elements);
    const std::vector<ir::IndexMap>& maps = compare.attributes.maps();
    return is_zero(compare.operands[1], *made, through(maps[0], own), depth - 1) &&
           is_zero(compare.operands[2], *made, through(maps[1], own), depth - 1);
  }
  const Sites& sites_;
  Hidden hidden_;
};

}  // namespace

std::string meets_zeros(const Sites& sites, const Site& computation) {
  if (!MaskedZeros(sites).meets_zeros(computation)) return {};
  return "all that takes its result multiplies it by zero, as far as all numbers are finite";
}

std::string hides_zeros(const Sites& sites, const std::vector<std::size_t>& selects) {
  MaskedZeros zeros(sites);
  for (const std::size_t number : selects) {
    if (!zeros.hides_zeros(sites.at(number))) return {};
  }
  return "what the mask hides is zero: made of what loads find outside of their limits, as far as "
         "all numbers are finite";
}

}  // namespace tilewright::simulator
