#include "language/names.h"

#include <algorithm>

#include "support/diagnostic.h"

namespace tilewright {

void check_name(const std::string& name, const char* what, SourceLocation where) {
  const auto is_letter = [](char c) {
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  const auto fits = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
  if (!name.empty() && is_letter(name[0]) && std::all_of(name.begin(), name.end(), fits)) return;
  Diagnostic(where, std::string(what) + ": \"" + name + "\" is no name")
      .token(what)
      .fix("take letters, digits and _, and begin with a letter")
      .raise();
}

}  // namespace tilewright
