#include "explain/report/page_text.h"

#include <fmt/ranges.h>

#include "explain/report/page_files.h"
#include "support/diagnostic.h"

namespace tilewright::explanations {
namespace {

// Puts `with` where the page says `mark`; that it does is an internal condition.
void place(std::string& page, std::string_view mark, std::string_view with) {
  const std::size_t at = page.find(mark);
  if (at == page.npos) {
    Diagnostic({}, "the page has no place for " + std::string(mark), ErrorKind::internal).raise();
  }
  page.replace(at, mark.size(), with);
}

// JSON that may stand inside <script>, where nothing may look like a tag.
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

}  // namespace

std::string html_document(const PageParts& parts, std::string_view json) {
  std::string page = kFrameHtml;
  place(page, "/*title*/", parts.title);
  place(page, "/*styles*/", fmt::format("{}", fmt::join(parts.styles, "\n")));
  place(page, "/*body*/", parts.body);
  place(page, "/*scripts*/", fmt::format("{}", fmt::join(parts.scripts, "\n")));
  // Last: the data may hold any text.
  place(page, "/*data*/", inside_script(json));
  return page;
}

}  // namespace tilewright::explanations
