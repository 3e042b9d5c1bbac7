#include "ir/dim_values.h"

#include <algorithm>
#include <vector>

namespace tilewright::ir {
namespace {

void collect_symbols(const Dim& dim, std::vector<std::string>& names) {
  if (dim.is_constant()) return;
  if (dim.kind() == Dim::Kind::symbol) {
    if (std::count(names.begin(), names.end(), dim.name()) == 0) names.push_back(dim.name());
    return;
  }
  collect_symbols(dim.lhs(), names);
  collect_symbols(dim.rhs(), names);
}

}  // namespace

bool are_possible(const DimFacts& facts) {
  const std::int64_t most = std::min<std::int64_t>(facts.maximum, INT32_MAX);
  return facts.multiple >= 1 && facts.minimum >= 0 && most >= 0 &&
         most / facts.multiple * facts.multiple >= facts.minimum;
}

std::string values_text(const Dim& dim, FunctionRef<std::int64_t(const std::string&)> lookup) {
  std::vector<std::string> names;
  collect_symbols(dim, names);
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + name + " = " + std::to_string(lookup(name));
  }
  return text;
}

}  // namespace tilewright::ir
