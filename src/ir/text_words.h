#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dim.h"
#include "tilewright/error.h"

// How texts and numbers are written, for ir/text_scanner.h to read.
namespace tilewright::ir {

std::string quoted(std::string_view text);
// The shortest decimal that reads back as the same value, never mistaken for an integer.
std::string number_text(double value);
// ` @"file":line`, or nothing where there is no location.
std::string location_text(SourceLocation where);
// "dim keys multiple_of(8)"; "rows, (rows + 1)".
std::string dim_text(const Dim& symbol);
std::string dims_text(const std::vector<Dim>& dims);

}  // namespace tilewright::ir
