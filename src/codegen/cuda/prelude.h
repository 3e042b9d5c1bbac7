#pragma once

#include <string>
#include <string_view>

namespace tilewright::codegen {

// Those functions of the device prelude that the text calls, and what they call, in order.
std::string prelude_for(std::string_view text);

}  // namespace tilewright::codegen
