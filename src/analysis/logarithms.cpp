#include "analysis/logarithms.h"

#include <map>

namespace tilewright::analysis {
namespace {

using ir::Op;

bool keeps_elements(Op op) {
  return op == Op::cast || op == Op::reshape || op == Op::transpose || op == Op::slice ||
         op == Op::splat;
}

bool is_sum(Op op) {
  return op == Op::add || op == Op::sub || op == Op::neg || op == Op::mul || op == Op::fma ||
         op == Op::select || op == Op::min || op == Op::max || op == Op::reduce;
}

class Definitions {
 public:
  explicit Definitions(const ir::Block& body) {
    ir::for_each(body, [&](const ir::Operation& o) {
      for (const ir::ValueId result : o.results) of_[result] = &o;
    });
  }

  bool has_logarithm(ir::ValueId value) {
    const auto known = found_.find(value);
    if (known != found_.end()) return known->second;
    bool found = false;
    if (const ir::Operation* o = find(value)) {
      if (o->op == Op::log || o->op == Op::log2) {
        found = !is_loaded(o->operands[0]);
      } else if (keeps_elements(o->op) || is_sum(o->op)) {
        for (const ir::ValueId operand : o->operands) found = found || has_logarithm(operand);
      }
    }
    return found_[value] = found;
  }

 private:
  const ir::Operation* find(ir::ValueId value) const {
    const auto found = of_.find(value);
    return found == of_.end() ? nullptr : found->second;
  }
  bool is_loaded(ir::ValueId value) const {
    const ir::Operation* o = find(value);
    while (o != nullptr && keeps_elements(o->op)) o = find(o->operands[0]);
    return o != nullptr && o->op == Op::load;
  }

  std::map<ir::ValueId, const ir::Operation*> of_;
  std::map<ir::ValueId, bool> found_;
};

}  // namespace

std::set<std::string> stored_logarithms(const ir::Kernel& kernel) {
  std::set<std::string> names;
  Definitions definitions(kernel.body);
  ir::for_each(kernel.body, [&](const ir::Operation& o) {
    if (o.op != Op::store || !definitions.has_logarithm(o.operands[1])) return;
    if (const ir::Parameter* parameter = kernel.parameter_of(o.operands[0])) {
      names.insert(parameter->name);
    }
  });
  return names;
}

}  // namespace tilewright::analysis
