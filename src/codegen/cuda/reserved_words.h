#pragma once

#include <string_view>

namespace tilewright::codegen {

// Whether a function of CUDA C++ with C linkage cannot have the name: keywords, what NVRTC declares
// before the first line of a program, and the types of the prelude.
bool is_reserved(std::string_view name);

}  // namespace tilewright::codegen
