#pragma once

#include <string>
#include <string_view>
#include <vector>

// What both pages are put together with.
namespace tilewright::explanations {

struct PageParts {
  std::string_view title;
  std::string_view body;
  std::vector<std::string_view> styles;
  std::vector<std::string_view> scripts;  // they define show(), which is called last
};

// One HTML document that needs nothing else: the parts in frame.html. `json` is what the scripts
// read from the element "data".
std::string html_document(const PageParts& parts, std::string_view json);

}  // namespace tilewright::explanations
