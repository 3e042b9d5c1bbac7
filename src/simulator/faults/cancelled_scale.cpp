#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <variant>

#include "simulator/faults/equivalence.h"
#include "simulator/faults/forward_walk.h"

// A factor on the weights of a sum that what divides the sum has too.
namespace tilewright::simulator {

using ir::Op;
using ir::Type;
using ir::ValueId;

namespace {

// By which power of the factor all elements are larger. Zero and infinity are, whatever the power.
struct Power {
  enum class Kind { any, one, mixed } kind = Kind::any;
  int exponent = 0;  // of one

  static Power of(int exponent) { return {Kind::one, exponent}; }
  static Power mixed() { return {Kind::mixed, 0}; }
  bool is_unchanged() const { return kind == Kind::any || (kind == Kind::one && exponent == 0); }
  bool operator==(const Power& other) const = default;
};

// Of elements of which some have one of the powers and some the other, and of their sum.
Power join(Power a, Power b) {
  if (a.kind == Power::Kind::any) return b;
  if (b.kind == Power::Kind::any || a == b) return a;
  return Power::mixed();
}

Power product(Power a, Power b, int sign = 1) {
  if (a.kind == Power::Kind::mixed || b.kind == Power::Kind::mixed) return Power::mixed();
  if (a.kind == Power::Kind::any || b.kind == Power::Kind::any) return {};
  return Power::of(a.exponent + sign * b.exponent);
}

// What is of no use to a scaled number, such as an exponential.
Power unscaled(Power a) { return a.is_unchanged() ? Power::of(0) : Power::mixed(); }

bool keeps_exponents(DType dtype) { return dtype == DType::f32 || dtype == DType::bf16; }

// Follows the factor through all branches and turns of loops, and through shared memory.
class ScaleWalk : public ForwardWalk<ScaleWalk, Power> {
 public:
  ScaleWalk(const Sites& sites, const Site& scaled) : ForwardWalk(sites), scaled_(scaled.number) {}

  // Whether no element that leaves the kernel has the factor, and no condition depends on it.
  bool cancels() {
    for (bool grows = true; grows && cancels_;) {
      const Powers before = shared_;
      block(sites_.kernel().body, 0, {});
      grows = shared_ != before;
    }
    return cancels_;
  }

 private:
  friend ForwardWalk;
  using Powers = Facts;  // of register arrays, of shared memory

  static Power either(Power a, Power b) { return join(a, b); }

  void visit(const ir::Operation& operation, const Site& site, Powers& arrays) {
    const std::vector<ValueId>& operands = operation.operands;
    const auto of = [&](std::size_t i) { return held(arrays, operands[i]); };
    const ir::OpInfo& record = ir::info(operation.op);
    const ir::Family family = record.family;
    if (family == ir::Family::computation) return compute(operation, site, arrays);
    if (family == ir::Family::product) return multiply(operation, arrays);
    if (family == ir::Family::array || family == ir::Family::product_fence ||
        family == ir::Family::group_wait) {
      return;
    }
    if (family == ir::Family::global_access) {
      if (record.reads(ir::Memory::registers)) require_unchanged(of(1));
      if (record.writes(ir::Memory::registers)) arrays[operands[0]] = Power::of(0);
      if (operation.op == Op::atomic_registers) arrays[operands[1]] = Power::of(0);
      return;
    }
    if (family == ir::Family::matrix_access || family == ir::Family::element_access ||
        family == ir::Family::fragment_access) {
      if (record.writes(ir::Memory::shared)) {
        shared_[operands[1]] = join(of(1), of(0));
      } else {
        arrays[operands[0]] = join(of(0), of(1));  // some of its elements
      }
      return;
    }
    // Copies, and what else moves bytes, have no factor on its way.
    for (const ValueId value : operands) {
      const Type& type = sites_.kernel().type(value);
      if (type.is(Type::Kind::registers)) {
        if (record.reads(ir::Memory::registers)) require_unchanged(held(arrays, value));
        if (record.writes(ir::Memory::registers)) arrays[value] = Power::of(0);
      } else if (type.is(Type::Kind::shared)) {
        if (record.reads(ir::Memory::shared)) require_unchanged(held(arrays, value));
        if (record.writes(ir::Memory::shared)) shared_[value] = join(shared_[value], Power::of(0));
      }
    }
  }

  void compute(const ir::Operation& operation, const Site& site, Powers& arrays) {
    const std::vector<ValueId>& operands = operation.operands;
    const ValueId result = operands[0];
    if (operation.op == Op::any_register) {
      require_unchanged(held(arrays, result));
    } else if (operation.op == Op::coordinate) {
      arrays[result] = Power::of(0);
    } else if (operation.op == Op::fill || operation.op == Op::copy) {
      arrays[result] = held(arrays, operands[1]);
    } else if (operation.op == Op::reduce_registers || operation.op == Op::reduce_lanes) {
      const Power power = held(arrays, operands.back());
      const Op function = operation.attributes.function();
      const bool keeps = function == Op::add || function == Op::min || function == Op::max;
      arrays[result] = keeps ? power : unscaled(power);
    } else {
      arrays[result] = computed(operation, arrays);
      if (site.number == scaled_) arrays[result] = product(arrays[result], Power::of(1));
    }
  }

  Power computed(const ir::Operation& operation, const Powers& arrays) const {
    const auto operand = [&](std::size_t i) { return held(arrays, operation.operands[i + 1]); };
    const auto type = [&](std::size_t i) { return sites_.kernel().type(operation.operands[i]); };
    const Op function = operation.attributes.function();
    if (function == Op::mul) return product(operand(0), operand(1));
    if (function == Op::div) return product(operand(0), operand(1), -1);
    if (function == Op::fma) return join(product(operand(0), operand(1)), operand(2));
    if (function == Op::neg) return operand(0);
    if (function == Op::add || function == Op::sub || function == Op::min || function == Op::max) {
      return join(operand(0), operand(1));
    }
    if (function == Op::cast && keeps_exponents(type(0).dtype) && keeps_exponents(type(1).dtype)) {
      return operand(0);
    }
    if (function == Op::select) {
      return operand(0).is_unchanged() ? join(operand(1), operand(2)) : Power::mixed();
    }
    if (function == Op::lt || function == Op::le || function == Op::eq) {
      return join(operand(0), operand(1)).kind == Power::Kind::mixed ? Power::mixed()
                                                                     : Power::of(0);
    }
    Power all = Power::of(0);
    for (std::size_t i = 0; i + 1 < operation.operands.size(); ++i) {
      if (!operand(i).is_unchanged()) all = Power::mixed();
    }
    return all;
  }

  // Into the registers of the first operand: of its second one and the next shared memory.
  void multiply(const ir::Operation& operation, Powers& arrays) {
    const std::vector<ValueId>& operands = operation.operands;
    Power made = Power::of(0);
    for (std::size_t i = 1; i < operands.size(); ++i) {
      if (sites_.kernel().type(operands[i]).is_scalar()) continue;
      made = product(made, held(arrays, operands[i]));
    }
    Power& sum = arrays[operands[0]];
    sum = sites_.is_constant(operands.back(), 0) ? made : join(sum, made);
  }

  void require_unchanged(Power power) { cancels_ = cancels_ && power.is_unchanged(); }

  Power held(const Powers& arrays, ValueId value) const {
    const Type& type = sites_.kernel().type(value);
    if (!type.is_scalar()) {
      const Powers& powers = type.is(Type::Kind::registers) ? arrays : shared_;
      const auto known = powers.find(value);
      return known == powers.end() ? Power() : known->second;
    }
    const Site* made = sites_.definition(value);
    if (!made || made->op() != Op::constant) return Power::of(0);
    const ir::Attribute* number = made->operation->attributes.find(ir::Key::value);
    if (number && std::holds_alternative<double>(*number)) {
      const double constant = std::get<double>(*number);
      if (constant == 0 || std::isinf(constant)) return {};
    }
    return Power::of(0);
  }

  const std::size_t scaled_;
  Powers shared_;
  bool cancels_ = true;
};

}  // namespace

std::string scale_cancels(const Sites& sites, const Site& computation) {
  if (!ScaleWalk(sites, computation).cancels()) return {};
  return "what divides its results has the same factor: what is stored differs by rounding alone";
}

}  // namespace tilewright::simulator
