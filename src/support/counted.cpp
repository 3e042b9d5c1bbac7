#include "support/counted.h"

namespace tilewright {

std::string counted(std::string_view number, std::string_view what) {
  std::string text(number);
  text += ' ';
  text += what;
  if (number == "1" || what.empty()) return text;
  const auto ends = [&](std::string_view with) { return what.ends_with(with); };
  if (ends("s") || ends("x") || ends("z") || ends("ch") || ends("sh")) return text + "es";
  constexpr std::string_view kVowels = "aeiou";
  const bool is_ies =
      what.size() > 1 && ends("y") && kVowels.find(what[what.size() - 2]) == kVowels.npos;
  if (!is_ies) return text + "s";
  text.pop_back();
  return text + "ies";
}

}  // namespace tilewright
