#include "ir/text_words.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>

namespace tilewright::ir {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  return result + '"';
}

std::string number_text(double value) {
  if (std::isnan(value)) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    return bits == 0x7ff8000000000000 ? "nan" : fmt::format("nan(0x{:x})", bits);
  }
  std::string text = fmt::format("{}", value);
  if (text.find_first_of(".en") == std::string::npos) text += ".0";
  return text;
}

std::string location_text(SourceLocation where) {
  return where.file == nullptr ? "" : fmt::format(" @{}:{}", quoted(where.file), where.line);
}

std::string dim_text(const Dim& symbol) {
  const DimFacts none, facts = symbol.facts();
  std::string text = "dim " + symbol.name();
  if (facts.multiple != none.multiple) text += fmt::format(" multiple_of({})", facts.multiple);
  if (facts.minimum != none.minimum) text += fmt::format(" at_least({})", facts.minimum);
  if (facts.maximum != none.maximum) text += fmt::format(" at_most({})", facts.maximum);
  return text;
}

std::string dims_text(const std::vector<Dim>& dims) {
  std::string text;
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i ? ", " : "") + dims[i].to_string();
  return text;
}

}  // namespace tilewright::ir
