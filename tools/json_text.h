#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace tilewright::tools {

// As the command prints it: also of texts that are not UTF-8, such as names of files.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace tilewright::tools
