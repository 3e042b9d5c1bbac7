#include "support/escape.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace tilewright {
namespace {

// A character of UTF-8; of bytes that are none, one byte.
struct Character {
  std::size_t bytes = 1;
  std::uint32_t code = 0;
  bool is_valid = false;
};

Character character_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {1, first, true};
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < bytes) return {};
  std::uint32_t code = first & (0x7fU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3f);
  }
  const bool is_longer_than_needed = code < (bytes == 3 ? 0x800U : bytes == 4 ? 0x10000U : 0U);
  if (is_longer_than_needed || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {bytes, code, true};
}

// Bytes of the control character that begins at `at`, or of what is no character; 0 where neither
// does.
std::size_t control_size(std::string_view text, std::size_t at) {
  const Character c = character_at(text, at);
  const bool turns_text_round =
      (c.code >= 0x202a && c.code <= 0x202e) || (c.code >= 0x2066 && c.code <= 0x2069);
  const bool is_control = c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0);
  return !c.is_valid || is_control || turns_text_round ? c.bytes : 0;
}

template <typename Stays>
std::string escaped(std::string_view text, Stays stays) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = stays(text[at]) ? 0 : text[at] == '\\' ? 1 : control_size(text, at);
    for (std::size_t i = 0; i < size; ++i) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at + i]));
    }
    const std::size_t bytes = size == 0 ? character_at(text, at).bytes : size;
    if (size == 0) result += text.substr(at, bytes);
    at += bytes;
  }
  return result;
}

}  // namespace

std::size_t find_control(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); at += character_at(text, at).bytes) {
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
