#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace tilewright {

// "1 run", "2 runs", "0 launches": a number with what it counts, in the singular. Words that end in
// a hiss take "es", and a y behind a consonant becomes "ies".
std::string counted(std::string_view number, std::string_view what);
std::string counted(std::integral auto number, std::string_view what) {
  return counted(std::string_view(std::to_string(number)), what);
}

}  // namespace tilewright
