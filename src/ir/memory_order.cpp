#include "ir/memory_order.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace tilewright::ir {
namespace {

constexpr std::string_view kSemantics[] = {"weak", "relaxed", "acquire", "release", "acq_rel"};
constexpr std::string_view kScopes[] = {"block", "cluster", "gpu", "system"};
constexpr std::string_view kCompares[] = {"eq", "ne", "lt", "le", "gt", "ge"};

template <typename T, std::size_t N>
std::optional<T> find(const std::string_view (&names)[N], std::string_view name) {
  const auto* found = std::find(std::begin(names), std::end(names), name);
  if (found == std::end(names)) return std::nullopt;
  return static_cast<T>(found - std::begin(names));
}

}  // namespace

std::string_view name_of(Semantics semantics) { return kSemantics[static_cast<int>(semantics)]; }
std::string_view name_of(Scope scope) { return kScopes[static_cast<int>(scope)]; }
std::string_view name_of(Compare compare) { return kCompares[static_cast<int>(compare)]; }
std::optional<Semantics> find_semantics(std::string_view name) {
  return find<Semantics>(kSemantics, name);
}
std::optional<Scope> find_scope(std::string_view name) { return find<Scope>(kScopes, name); }
std::optional<Compare> find_compare(std::string_view name) {
  return find<Compare>(kCompares, name);
}

bool holds(Compare compare, std::int32_t word, std::int32_t value) {
  const auto difference = static_cast<std::int32_t>(static_cast<std::uint32_t>(word) -
                                                    static_cast<std::uint32_t>(value));
  switch (compare) {
    case Compare::eq:
      return difference == 0;
    case Compare::ne:
      return difference != 0;
    case Compare::lt:
      return difference < 0;
    case Compare::le:
      return difference <= 0;
    case Compare::gt:
      return difference > 0;
    case Compare::ge:
      return difference >= 0;
  }
  return false;
}

std::string_view sign_of(Compare compare) {
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  return kSigns[static_cast<int>(compare)];
}

std::string order_problem(Op op, Semantics semantics) {
  const auto& possible = info(op).semantics;
  if (std::find(possible.begin(), possible.end(), semantics) != possible.end()) return {};
  std::string names;
  for (const Semantics& each : possible) {
    if (!names.empty()) names += &each + 1 == possible.end() ? " or " : ", ";
    names += name_of(each);
  }
  return fmt::format("it is {}, expected {}", name_of(semantics), names);
}

MemoryOrder order_of(const Operation& operation) {
  const Attributes& attributes = operation.attributes;
  const OpInfo& record = info(operation.op);
  MemoryOrder order{*record.semantics.begin(), record.scope.value_or(Scope::block)};
  if (attributes.has(Key::semantics)) {
    order.semantics = *find_semantics(attributes.text(Key::semantics));
  }
  if (attributes.has(Key::scope)) order.scope = *find_scope(attributes.text(Key::scope));
  return order;
}

Compare compare_of(const Operation& operation) {
  return *find_compare(operation.attributes.text(Key::compare));
}

void set_order(Attributes& attributes, MemoryOrder order) {
  attributes.set(Key::semantics, std::string(name_of(order.semantics)));
  if (order.semantics == Semantics::weak) return attributes.erase(Key::scope);
  attributes.set(Key::scope, std::string(name_of(order.scope)));
}

}  // namespace tilewright::ir
