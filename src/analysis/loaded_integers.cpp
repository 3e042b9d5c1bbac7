#include "analysis/loaded_integers.h"

#include <algorithm>

#include "analysis/carried.h"
#include "analysis/definitions.h"
#include "analysis/nonnegative.h"

namespace tilewright::analysis {
namespace {

using ir::Op;
using ir::Operation;
using ir::ValueId;

bool is_integer_scalar(const ir::Kernel& kernel, ValueId value) {
  return kernel.type(value).is_scalar() && is_integer(kernel.type(value).dtype);
}

// Hands sources on from operands to results, until nothing changes.
class Flow {
 public:
  explicit Flow(const ir::Kernel& kernel)
      : kernel_(kernel), sources_(kernel.types.size(), ir::kNoValue) {
    for (const ir::Parameter& parameter : kernel.parameters) {
      if (!parameter.is_tensor() && is_integer_scalar(kernel, parameter.value)) {
        sources_[parameter.value] = parameter.value;
      }
    }
  }

  std::vector<ValueId> run() {
    do {
      changed_ = false;
      ir::for_each(kernel_.body, [this](const Operation& operation) { visit(operation); });
    } while (changed_);
    return std::move(sources_);
  }

 private:
  void pass(ValueId from, ValueId to) {
    if (sources_[from] == ir::kNoValue || sources_[to] != ir::kNoValue) return;
    sources_[to] = sources_[from];
    changed_ = true;
  }

  void visit(const Operation& operation) {
    if (operation.op == Op::load_index) {
      if (sources_[operation.results[0]] == ir::kNoValue) {
        sources_[operation.results[0]] = operation.results[0];
        changed_ = true;
      }
      return;
    }
    const ir::Family family = ir::info(operation.op).family;
    if (family == ir::Family::function) {
      if (!is_integer_scalar(kernel_, operation.results[0])) return;
      for (const ValueId operand : operation.operands) pass(operand, operation.results[0]);
    }
    if (operation.op == Op::for_loop) {
      for (std::size_t i = 0; i < 3; ++i) {
        pass(operation.operands[i], operation.blocks[0].arguments[0]);
      }
    }
    for_each_carried(operation, [this](ValueId from, ValueId to) { pass(from, to); });
  }

  const ir::Kernel& kernel_;
  std::vector<ValueId> sources_;
  bool changed_ = false;
};

}  // namespace

// A number and values with factors.
struct LoadedIntegers::Sum {
  std::int64_t number = 0;
  std::vector<std::pair<ValueId, std::int64_t>> terms;
};

LoadedIntegers::LoadedIntegers(const ir::Kernel& kernel)
    : definitions_(definitions(kernel)),
      sources_(Flow(kernel).run()),
      nonnegative_(nonnegative_values(kernel, [this](ValueId value) {
        const Operation* made = definitions_[value];
        if (!made) return true;
        const ir::Family family = ir::info(made->op).family;
        return family != ir::Family::function && family != ir::Family::control &&
               family != ir::Family::constant && family != ir::Family::position;
      })) {
  ir::for_each(kernel.body, [this](const Operation& o) {
    if (o.op != Op::role) return;
    instances_.insert(o.blocks[0].arguments.begin(), o.blocks[0].arguments.end());
  });
}

std::optional<ValueId> LoadedIntegers::source(ValueId value) const {
  return sources_[value] == ir::kNoValue ? std::nullopt : std::optional(sources_[value]);
}

// The same function of the same values, perhaps recorded twice.
bool LoadedIntegers::same(ValueId a, ValueId b) const {
  if (a == b) return true;
  const Operation *x = definitions_[a], *y = definitions_[b];
  if (!x || !y || x->op != y->op || !(x->attributes == y->attributes)) return false;
  const ir::Family family = ir::info(x->op).family;
  if (family != ir::Family::function && family != ir::Family::constant) return false;
  return std::equal(x->operands.begin(), x->operands.end(), y->operands.begin(), y->operands.end(),
                    [this](ValueId v, ValueId w) { return same(v, w); });
}

void LoadedIntegers::add(ValueId value, std::int64_t factor, Sum& sum) const {
  const Operation* made = definitions_[value];
  if (const auto number = integer_constant(made)) {
    sum.number += factor * *number;
    return;
  }
  if (made && (made->op == Op::add || made->op == Op::sub)) {
    add(made->operands[0], factor, sum);
    return add(made->operands[1], made->op == Op::add ? factor : -factor, sum);
  }
  for (auto& [term, times] : sum.terms) {
    if (!same(term, value)) continue;
    times += factor;
    return;
  }
  sum.terms.emplace_back(value, factor);
}

// A sequencer's number, or so many of it.
bool LoadedIntegers::is_of_instance(ValueId value) const {
  const Operation* made = definitions_[value];
  if (made == nullptr || made->op != Op::mul) return instances_.count(value) != 0;
  const bool is_number = integer_constant(definitions_[made->operands[1]]).has_value();
  return is_number && is_of_instance(made->operands[0]);
}

bool LoadedIntegers::alone(ValueId value) const {
  Sum sum;
  add(value, 1, sum);
  return std::all_of(sum.terms.begin(), sum.terms.end(), [this](const auto& term) {
    return sources_[term.first] != ir::kNoValue || is_of_instance(term.first);
  });
}

std::optional<std::int64_t> LoadedIntegers::distance(ValueId start, ValueId end) const {
  Sum sum;
  add(end, 1, sum);
  add(start, -1, sum);
  const bool cancels = std::all_of(sum.terms.begin(), sum.terms.end(),
                                   [](const auto& term) { return term.second == 0; });
  return cancels ? std::optional(sum.number) : std::nullopt;
}

}  // namespace tilewright::analysis
