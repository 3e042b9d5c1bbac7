#include "distributed/packing.h"

#include <charconv>
#include <cstdint>
#include <cstring>

namespace tilewright::distributed {

std::string pack(const std::vector<std::string>& fields) {
  std::string packed;
  for (const std::string& field : fields) {
    const auto bytes = static_cast<std::uint32_t>(field.size());
    packed.append(reinterpret_cast<const char*>(&bytes), sizeof bytes);
    packed += field;
  }
  return packed;
}

std::optional<std::vector<std::string>> unpack(std::string_view packed) {
  std::vector<std::string> fields;
  while (!packed.empty()) {
    std::uint32_t bytes = 0;
    if (packed.size() < sizeof bytes) return std::nullopt;
    std::memcpy(&bytes, packed.data(), sizeof bytes);
    packed.remove_prefix(sizeof bytes);
    if (packed.size() < bytes) return std::nullopt;
    fields.emplace_back(packed.substr(0, bytes));
    packed.remove_prefix(bytes);
  }
  return fields;
}

std::optional<int> parse_int(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace tilewright::distributed
