#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tilewright {

// How many letters are put in, left out or exchanged to make one of the other.
std::size_t difference(std::string_view name, std::string_view other);

// Of the known names, one at least, the first of those that differ least. Of a long name the
// beginning alone is looked at: a file's may have any number of letters.
const std::string& nearest_name(std::string_view name, const std::vector<std::string>& known);

// "; the nearest name is X", for the end of an error's first line: of the known names the one that
// differs least, where a slip could have made it the name. Otherwise "".
std::string nearest_text(std::string_view name, const std::vector<std::string>& known);

}  // namespace tilewright
