#pragma once

#include <initializer_list>
#include <string>

#include "tilewright/kernel.h"

// A shared library of kernels for other languages, which load it by its file, as
// tilewright.load("libmine.so") does in Python:
//
//   Kernel softmax_rows() { ... }
//   Kernel softmax_rows_backward() { ... }
//   TILEWRIGHT_PLUGIN(softmax_rows, softmax_rows_backward)
//
// It hands over the kernels' texts. So it may be built with another compiler, or another version of
// the C++ library, than what compiles them. Link it with tilewright::tilewright.
namespace tilewright {

// What a file NAME.tw of the kernel holds.
std::string text_of(const Kernel& kernel);

// The kernel's name and text; of one that cannot be recorded NULL, and what the error says.
using PluginTake = void (*)(void* context, const char* name, const char* text);
inline constexpr int kNoSuchKernel = -1;
// Of the kernel with this number, from 0. Returns 0, kNoSuchKernel or the ErrorKind.
int give_kernel(std::initializer_list<Kernel (*)()> kernels, int number, void* context,
                PluginTake take) noexcept;

}  // namespace tilewright

#define TILEWRIGHT_PLUGIN(...)                                                    \
  extern "C" __attribute__((visibility("default"))) int tilewright_plugin_kernel( \
      int number, void* context, tilewright::PluginTake take) {                   \
    return tilewright::give_kernel({__VA_ARGS__}, number, context, take);         \
  }
