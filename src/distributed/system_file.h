#pragma once

#include <fstream>
#include <iterator>
#include <string>

namespace tilewright::distributed {

// Of /proc, whose files say that they have no bytes; "" where there is none.
inline std::string read_system_file(const std::string& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace tilewright::distributed
