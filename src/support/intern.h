#pragma once

#include <string_view>

namespace tilewright {

// A null-terminated copy that lives as long as the process; equal texts give the same pointer.
const char* intern(std::string_view text);

}  // namespace tilewright
