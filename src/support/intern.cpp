#include "support/intern.h"

#include <mutex>
#include <string>
#include <unordered_set>

namespace tilewright {
namespace {

class Pool {
 public:
  const char* add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    return strings_.emplace(text).first->c_str();
  }
  bool has(const char* text) {
    const std::lock_guard lock(mutex_);
    const auto found = strings_.find(text);
    return found != strings_.end() && found->c_str() == text;
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> strings_;
};

// Never destroyed: errors may be rendered while other statics are torn down.
Pool& own() {
  static auto& pool = *new Pool;
  return pool;
}
Pool& claimed() {
  static auto& pool = *new Pool;
  return pool;
}

}  // namespace

const char* intern(std::string_view text) { return own().add(text); }
const char* intern_claimed(std::string_view text) { return claimed().add(text); }
bool is_claimed(const char* file) { return claimed().has(file); }

}  // namespace tilewright
