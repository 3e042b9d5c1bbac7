#include "ahead/c_dims.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

namespace tilewright::ahead {
namespace {

// Those that may fail are told of by `run`.
const char* function_of(Dim::Kind kind) {
  switch (kind) {
    case Dim::Kind::add:
      return "tw_add(run, ";
    case Dim::Kind::sub:
      return "tw_sub(run, ";
    case Dim::Kind::mul:
      return "tw_mul(run, ";
    case Dim::Kind::floordiv:
      return "tw_floor_div(run, ";
    case Dim::Kind::ceildiv:
      return "tw_ceil_div(run, ";
    case Dim::Kind::mod:
      return "tw_mod(run, ";
    case Dim::Kind::min:
      return "tw_min(";
    case Dim::Kind::max:
      return "tw_max(";
    case Dim::Kind::constant:
    case Dim::Kind::symbol:
      break;
  }
  return "";
}

// An axis "symbol" or "symbol + number" says what the symbol is.
struct Said {
  std::string symbol;
  std::int64_t more = 0;
};
std::optional<Said> said_by(const Dim& axis) {
  if (axis.kind() == Dim::Kind::symbol) return Said{axis.name()};
  const bool is_sum = axis.kind() == Dim::Kind::add && axis.rhs().is_constant() &&
                      axis.lhs().kind() == Dim::Kind::symbol;
  return is_sum ? std::optional(Said{axis.lhs().name(), axis.rhs().constant()}) : std::nullopt;
}

}  // namespace

std::string c_number(std::int64_t number) {
  if (number == INT64_MIN) return "INT64_MIN";
  return number > INT32_MAX || number < INT32_MIN ? fmt::format("INT64_C({})", number)
                                                  : std::to_string(number);
}

std::string c_text(const Dim& dim, const DimNames& names) {
  if (dim.is_constant()) return c_number(dim.constant());
  if (dim.kind() == Dim::Kind::symbol) {
    return dim.name() == ir::kMultiprocessors ? "run->multiprocessors" : names.at(dim.name());
  }
  return fmt::format("{}{}, {})", function_of(dim.kind()), c_text(dim.lhs(), names),
                     c_text(dim.rhs(), names));
}

std::string c_list(const std::vector<Dim>& dims, const DimNames& names) {
  std::vector<std::string> texts;
  for (const Dim& dim : dims) texts.push_back(c_text(dim, names));
  return fmt::format("{{{}}}", fmt::join(texts, ", "));
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + "\"";
}

std::string axes_text(const std::vector<Dim>& shape) {
  std::vector<std::string> axes;
  for (const Dim& dim : shape) axes.push_back(dim.to_string());
  return fmt::format("{}", fmt::join(axes, ", "));
}

bool is_said(const Dim& dim, const std::vector<DimSource>& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [&](const DimSource& tensor) {
    return std::any_of(tensor.shape.begin(), tensor.shape.end(), [&](const Dim& axis) {
      const auto said = said_by(axis);
      return said && said->symbol == dim.name();
    });
  });
}

std::string c_binding(const std::vector<DimSource>& tensors, const std::vector<Dim>& dims,
                      const std::string& tensor, const std::string& prefix,
                      const std::string& indent, DimNames& names) {
  std::string declared, checked;
  std::vector<std::pair<std::size_t, std::size_t>> sources;  // the axes that say a dim
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t axis = 0; axis < tensors[i].shape.size(); ++axis) {
      const auto said = said_by(tensors[i].shape[axis]);
      if (!said || names.count(said->symbol) != 0 || said->symbol == ir::kMultiprocessors) continue;
      const std::string name = names[said->symbol] = prefix + said->symbol;
      declared += fmt::format("{}const int64_t {} = {}[{}].shape[{}]{};\n", indent, name, tensor, i,
                              axis, said->more == 0 ? "" : fmt::format(" - {}", said->more));
      sources.emplace_back(i, axis);
    }
  }
  for (const Dim& dim : dims) {
    const auto name = names.find(dim.name());
    if (name == names.end() || name->second != prefix + dim.name()) continue;
    const DimFacts& facts = dim.facts();
    checked += fmt::format("{}tw_dim(run, {}, {}, {}, {}, {});\n", indent, quoted(dim.name()),
                           name->second, c_number(facts.multiple), c_number(facts.minimum),
                           c_number(facts.maximum));
  }
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    for (std::size_t axis = 0; axis < tensors[i].shape.size(); ++axis) {
      if (std::count(sources.begin(), sources.end(), std::pair(i, axis)) != 0) continue;
      const Dim& wanted = tensors[i].shape[axis];
      checked += fmt::format("{}tw_same(run, {}, {}, {}[{}].shape[{}], {}, {});\n", indent,
                             quoted(tensors[i].name), axis, tensor, i, axis,
                             quoted(wanted.to_string()), c_text(wanted, names));
    }
  }
  return declared + checked;
}

}  // namespace tilewright::ahead
