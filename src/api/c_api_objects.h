#pragma once

#include <exception>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "support/diagnostic.h"
#include "tilewright/c_api.h"
#include "tilewright/distributed.h"
#include "tilewright/library.h"

// What the C interface hands out, and what becomes of errors in its calls.
struct tilewright_group {
  tilewright::Group group;
  std::vector<std::string> gathered = {};  // by its latest all_gather
};

namespace tilewright::c_api {

inline thread_local std::string last_error;

// A caller of C has no source of the kernel: its name stands for the line. What the simulated GPU
// reports is about that source, and keeps its lines.
inline std::string told_to_caller(const Error& error, const LibraryKernel* kernel) {
  const bool names_line = error.location().file != nullptr;
  if (!kernel || !names_line || error.kind() != ErrorKind::usage) return error.what();
  const bool named = error.message().rfind(kernel->name, 0) == 0;
  std::string text = "error: " + (named ? "" : kernel->name + ": ") + error.message();
  if (!error.fix().empty()) text += "\n  fix: " + error.fix();
  return text;
}

// `kernel`: what its errors name, if any.
template <typename Action>
tilewright_status guarded(const LibraryKernel* kernel, const Action& action) noexcept {
  try {
    action();
    return TILEWRIGHT_OK;
  } catch (const Error& error) {
    last_error = told_to_caller(error, kernel);
    return static_cast<tilewright_status>(error.kind());
  } catch (const std::bad_alloc&) {
    // Short enough for the string's own storage: nothing is allocated.
    last_error = "out of memory";
    return TILEWRIGHT_ERROR_UNAVAILABLE;
  } catch (const std::exception& error) {
    last_error = std::string("internal error: ") + error.what();
    return TILEWRIGHT_ERROR_INTERNAL;
  }
}

[[noreturn]] inline void fail(const std::string& message, const std::string& fix) {
  Diagnostic({}, message).fix(fix).raise();
}

inline const char* required(const char* text, const char* what) {
  if (text == nullptr) fail(std::string(what) + " is NULL", "pass its name");
  return text;
}

// The objects that were created and not destroyed: what a caller passes may be neither.
template <typename Object>
class Live {
 public:
  // Never destroyed: an object may be used while a program ends.
  static Live& all() {
    static auto& live = *new Live;
    return live;
  }
  void add(const Object* object) {
    const std::unique_lock lock(mutex_);
    objects_.insert(object);
  }
  // Whether it was there.
  bool remove(const Object* object) {
    const std::unique_lock lock(mutex_);
    return objects_.erase(object) != 0;
  }
  bool has(const Object* object) {
    const std::shared_lock lock(mutex_);
    return objects_.count(object) != 0;
  }
  // `what`: "kernel".
  void require(const Object* object, const std::string& what) {
    if (object == nullptr)
      fail("the " + what + " is NULL", "create it, and check that it succeeded");
    if (has(object)) return;
    fail("the " + what + " is not there: it was destroyed, or never created",
         "destroy it behind its last use");
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_set<const Object*> objects_;
};

}  // namespace tilewright::c_api
