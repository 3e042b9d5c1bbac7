#pragma once

#include <string>
#include <string_view>

// How texts and numbers are written, for ir/text_scanner.h to read.
namespace tilewright::ir {

std::string quoted(std::string_view text);
// The shortest decimal that reads back as the same value, never mistaken for an integer.
std::string number_text(double value);

}  // namespace tilewright::ir
