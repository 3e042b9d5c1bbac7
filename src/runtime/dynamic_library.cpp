#include "runtime/dynamic_library.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>
#include <sys/stat.h>

#include <utility>

#include "support/diagnostic.h"

namespace tilewright::runtime {

DynamicLibrary::~DynamicLibrary() {
  if (handle_ != nullptr) dlclose(handle_);
}

DynamicLibrary::DynamicLibrary(DynamicLibrary&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), path_(std::move(other.path_)) {}

DynamicLibrary& DynamicLibrary::operator=(DynamicLibrary&& other) noexcept {
  std::swap(handle_, other.handle_);
  std::swap(path_, other.path_);
  return *this;
}

namespace {

// Whether the loader would open something else than a file: a pipe that nobody writes keeps it for
// ever. A name without a folder is looked for elsewhere.
bool is_no_file(const std::string& path) {
  struct stat status {};
  return path.find('/') != std::string::npos && ::stat(path.c_str(), &status) == 0 &&
         !S_ISREG(status.st_mode);
}

}  // namespace

DynamicLibrary DynamicLibrary::try_open(const std::string& path, std::string* why) {
  DynamicLibrary library;
  if (is_no_file(path)) {
    if (why != nullptr) *why = path + ": not a regular file";
    return library;
  }
  library.handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library.handle_ == nullptr) {
    const char* reason = dlerror();
    if (why != nullptr) *why = reason == nullptr ? "unknown reason" : reason;
    return library;
  }
  link_map* map = nullptr;
  const bool known = dlinfo(library.handle_, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr;
  library.path_ = known && map->l_name[0] != '\0' ? map->l_name : path;
  return library;
}

DynamicLibrary DynamicLibrary::open_first(const LibraryRequest& request) {
  std::vector<std::string> reasons;
  for (const std::string& candidate : request.candidates) {
    std::string why;
    DynamicLibrary library = try_open(candidate, &why);
    if (library) return library;
    // A file that is merely not there needs no reason of its own: the list of candidates says it.
    if (why.find("No such file") == std::string::npos) reasons.push_back(why);
  }
  const std::string message =
      reasons.empty()
          ? fmt::format("{} was not found (tried {})", request.what,
                        fmt::join(request.candidates, ", "))
          : fmt::format("{} cannot be loaded: {}", request.what, fmt::join(reasons, "; "));
  Diagnostic({}, message, ErrorKind::unavailable).fix(request.how_to_get_it).raise();
}

void* DynamicLibrary::find(const char* symbol) const noexcept {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

std::filesystem::path own_folder() {
  Dl_info info = {};
  std::error_code failed;
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0) return {};
  return std::filesystem::canonical(info.dli_fname, failed).parent_path();
}

}  // namespace tilewright::runtime
