#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::checks {

// JSON that somebody else may have written, from `file`. Lists and objects nest at most
// kMaxNesting deep, since a value is shown in messages by a recursion. Raises a usage error.
inline constexpr int kMaxNesting = 16;
nlohmann::ordered_json parse_user_json(const std::string& text, const std::string& file,
                                       const std::string& fix);

}  // namespace tilewright::checks
