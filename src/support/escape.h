#pragma once

#include <string>
#include <string_view>

namespace tilewright {

// Where the first control character stands, or npos: of ASCII, with line breaks and tabs, and those
// of Unicode that terminals obey too (U+0080 to U+009F) or that turn the order of a line round
// (U+202A to U+202E, U+2066 to U+2069), as UTF-8 writes them. A byte that is no UTF-8 counts as
// one.
std::size_t find_control(std::string_view text);

// The text with each control character as \x and two digits, so that no terminal obeys it. Line
// breaks and tabs stay: `text` is of several lines.
std::string escaped_lines(std::string_view text);

// The same without line breaks and tabs, and with backslashes as \x5c: what stands behind // in a
// line of C++ and must not reach the next line.
std::string escaped_comment(std::string_view text);

}  // namespace tilewright
