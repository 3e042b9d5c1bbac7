#pragma once

#include <string>

#include "tilewright/error.h"

namespace tilewright {

// Raises unless it is an identifier: names are words of the text of kernels and programs, and of
// CUDA C++. `what` is the function that was given it.
void check_name(const std::string& name, const char* what, SourceLocation where);

}  // namespace tilewright
