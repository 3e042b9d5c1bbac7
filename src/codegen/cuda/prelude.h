#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tilewright::codegen {

// The names of its functions; one function calls those before it.
std::vector<std::string_view> prelude_names();

// Those functions of the device prelude that the text calls, and what they call, in order.
std::string prelude_for(std::string_view text);

}  // namespace tilewright::codegen
