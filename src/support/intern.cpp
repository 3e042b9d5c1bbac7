#include "support/intern.h"

#include <mutex>
#include <string>
#include <unordered_set>

namespace tilewright {

const char* intern(std::string_view text) {
  // Never destroyed: errors may be rendered while other statics are torn down.
  static auto& mutex = *new std::mutex;
  static auto& strings = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return strings.emplace(text).first->c_str();
}

}  // namespace tilewright
