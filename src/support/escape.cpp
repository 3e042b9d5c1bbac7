#include "support/escape.h"

#include <fmt/format.h>

namespace tilewright {
namespace {

// Bytes of the control character that begins at `at`; 0 where none does.
std::size_t control_size(std::string_view text, std::size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x20 || byte == 0x7f) return 1;
  if (byte != 0xc2 || at + 1 == text.size()) return 0;
  const auto next = static_cast<unsigned char>(text[at + 1]);
  return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

template <typename Stays>
std::string escaped(std::string_view text, Stays stays) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = stays(text[at]) ? 0 : text[at] == '\\' ? 1 : control_size(text, at);
    for (std::size_t i = 0; i < size; ++i) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    }
    if (size == 0) result += text[at];
    at += size == 0 ? 1 : size;
  }
  return result;
}

}  // namespace

std::size_t find_control(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (control_size(text, at) != 0) return at;
  }
  return text.npos;
}

std::string escaped_lines(std::string_view text) {
  return escaped(text, [](char c) { return c == '\n' || c == '\t' || c == '\\'; });
}

std::string escaped_comment(std::string_view text) {
  return escaped(text, [](char) { return false; });
}

}  // namespace tilewright
