#include "support/callers.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include "support/intern.h"

namespace tilewright {
namespace {

thread_local SourceLocation current_caller;

// Lives as long as the process, as locations do.
struct Registry {
  std::mutex mutex;
  std::map<std::tuple<std::string, const char*, int>, std::unique_ptr<std::string>> names;
  std::map<const char*, SourceLocation> callers;  // by name
};

Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

}  // namespace

CalledFrom::CalledFrom(SourceLocation where) : before_(current_caller) {
  if (!current_caller.file && where.file) current_caller = {intern(where.file), where.line};
}

CalledFrom::~CalledFrom() { current_caller = before_; }

SourceLocation with_caller(SourceLocation where) {
  if (!where.file || !current_caller.file || caller_of(where)) return where;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::unique_ptr<std::string>& name =
      all.names[{where.file, current_caller.file, current_caller.line}];
  if (!name) {
    name = std::make_unique<std::string>(where.file);
    all.callers[name->c_str()] = current_caller;
  }
  return {name->c_str(), where.line};
}

std::optional<SourceLocation> caller_of(SourceLocation where) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto at = all.callers.find(where.file);
  return at == all.callers.end() ? std::nullopt : std::optional(at->second);
}

}  // namespace tilewright
