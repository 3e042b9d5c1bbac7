#include "driver/report/page_text.h"

#include "support/diagnostic.h"

namespace tilewright::driver {

void place(std::string& page, std::string_view mark, std::string_view with) {
  const std::size_t at = page.find(mark);
  if (at == page.npos) {
    Diagnostic({}, "the page has no place for " + std::string(mark), ErrorKind::internal).raise();
  }
  page.replace(at, mark.size(), with);
}

std::string inside_script(std::string_view json) {
  std::string text;
  for (const char c : json) {
    // In JSON, < occurs in strings alone.
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace tilewright::driver
