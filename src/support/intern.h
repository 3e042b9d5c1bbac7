#pragma once

#include <string_view>

namespace tilewright {

// A null-terminated copy that lives as long as the process; equal texts give the same pointer.
const char* intern(std::string_view text);

// The same, and another pointer, for the name of a file that stands in a file: anybody may have
// written it.
const char* intern_claimed(std::string_view text);
// Whether intern_claimed() returned it.
bool is_claimed(const char* file);

}  // namespace tilewright
