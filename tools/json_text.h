#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace tilewright::tools {

// As the command prints it: also of texts that are not UTF-8, such as names of files.
inline std::string json_text(const nlohmann::ordered_json& json) {
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace tilewright::tools
