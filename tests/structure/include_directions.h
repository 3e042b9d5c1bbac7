#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tilewright::structure {

// One folder of the include table: "src/passes analysis ir support !descriptor".
struct IncludeRule {
  std::set<std::string> layers;      // folders of src/ that it may include, apart from itself
  std::vector<std::string> refused;  // parts of header paths refused in other folders
};
using IncludeRules = std::map<std::string, IncludeRule>;  // by folder, relative to the root

IncludeRules read_include_rules(const std::string& text);

// Each violation as "file:line: what and why", the file relative to `root`, in a fixed order.
std::vector<std::string> include_violations(const std::filesystem::path& root,
                                            const IncludeRules& rules);

}  // namespace tilewright::structure
