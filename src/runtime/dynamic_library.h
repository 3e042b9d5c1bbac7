#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright::runtime {

// What to load, and what a person without it must be told.
struct LibraryRequest {
  std::string what;                     // "the NVIDIA driver library libcuda.so.1"
  std::vector<std::string> candidates;  // sonames or paths, best first
  std::string how_to_get_it;
};

// A shared object, closed with the last owner.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;
  ~DynamicLibrary();
  DynamicLibrary(DynamicLibrary&& other) noexcept;
  DynamicLibrary& operator=(DynamicLibrary&& other) noexcept;

  // The first candidate that loads; Error(unavailable) names all of them and why they did not.
  static DynamicLibrary open_first(const LibraryRequest& request);
  // An empty library when it does not load; `why`, if given, receives the loader's reason.
  static DynamicLibrary try_open(const std::string& path, std::string* why = nullptr);

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  // The file that was loaded, also when it was asked for by soname.
  const std::string& path() const noexcept { return path_; }

  void* find(const char* symbol) const noexcept;
  // False when the library has no such symbol: `function` is then null.
  template <typename Function>
  bool bind(Function*& function, const char* symbol) const noexcept {
    function = reinterpret_cast<Function*>(find(symbol));
    return function != nullptr;
  }

 private:
  void* handle_ = nullptr;
  std::string path_;
};

// Of the file that this code is in: libtilewright.so, or a program.
std::filesystem::path own_folder();

}  // namespace tilewright::runtime
