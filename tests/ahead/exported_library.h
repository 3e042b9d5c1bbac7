#pragma once

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "ahead/c_files.h"
#include "common/temporary_folder.h"
#include "tilewright/c_api.h"

namespace tilewright::test {

// What an export takes, laid out as its struct of arguments is.
class ExportedArguments {
 public:
  ExportedArguments(const std::vector<tilewright_tensor>& tensors,
                    const std::vector<float>& scalars, void* workspace = nullptr) {
    add(std::uint32_t{0});
    for (const tilewright_tensor& tensor : tensors) add(tensor);
    for (const float scalar : scalars) add(scalar);
    add(workspace);
    const auto size = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &size, sizeof size);
  }
  const void* data() const { return bytes_.data(); }

 private:
  template <typename T>
  void add(const T& value) {
    const std::size_t at = (bytes_.size() + alignof(T) - 1) / alignof(T) * alignof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  std::vector<unsigned char> bytes_;
};

// An export, compiled and loaded.
class ExportedLibrary {
 public:
  // `language`: "c" or "c++".
  explicit ExportedLibrary(const ahead::Exported& exported, const std::string& language = "c")
      : ExportedLibrary(std::vector{exported}, language) {}
  explicit ExportedLibrary(const std::vector<ahead::Exported>& architectures,
                           const std::string& language = "c", bool with_cpu = false)
      : name_(architectures.front().name) {
    for (const auto& [file, text] : ahead::c_files(architectures, with_cpu)) {
      std::ofstream(folder_ / file) << text;
    }
    const std::string compiler = language == "c" ? TILEWRIGHT_C_COMPILER " -std=c99"
                                                 : TILEWRIGHT_CXX_COMPILER " -x c++ -std=c++17";
    const std::string command = compiler + " -pedantic -Wall -Wextra -Werror -O0 -shared -fPIC " +
                                (folder_ / (name_ + ".c")) + " -o " + (folder_ / "export.so");
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
    handle_ = dlopen((folder_ / "export.so").c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) throw std::runtime_error(dlerror());
  }
  ~ExportedLibrary() {
    call<void (*)()>("_unload")();
    dlclose(handle_);
  }
  ExportedLibrary(const ExportedLibrary&) = delete;

  int load(int device = 0) {
    return call<int (*)(int, char*, size_t)>("_load")(device, text_, 512);
  }
  int check(const ExportedArguments& arguments) {
    return call<int (*)(const void*, char*, size_t)>("_check")(arguments.data(), text_, 512);
  }
  std::int64_t workspace(const ExportedArguments& arguments) {
    return call<std::int64_t (*)(const void*)>("_workspace")(arguments.data());
  }
  int launch(const ExportedArguments& arguments, void* stream = nullptr) {
    return call<int (*)(const void*, void*)>("_launch")(arguments.data(), stream);
  }
  // Of the last call that has one.
  const char* message() const { return text_; }

 private:
  template <typename Function>
  Function call(const std::string& name) {
    return reinterpret_cast<Function>(dlsym(handle_, (name_ + name).c_str()));
  }

  std::string name_;
  TemporaryFolder folder_;
  void* handle_ = nullptr;
  char text_[512] = {};
};

}  // namespace tilewright::test
