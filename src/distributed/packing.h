#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

// Fields in one string, as frames carry them.
namespace tilewright::distributed {

std::string pack(const std::vector<std::string>& fields);
// Nothing where it is not such a string.
std::optional<std::vector<std::string>> unpack(std::string_view packed);
// Nothing where it is not a whole number of that size.
std::optional<int> parse_int(std::string_view text);

}  // namespace tilewright::distributed
