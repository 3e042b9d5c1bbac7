#pragma once

#include <string>
#include <string_view>

// What both pages are put together with.
namespace tilewright::driver {

// Puts `with` where the page says `mark`; that it does is an internal condition.
void place(std::string& page, std::string_view mark, std::string_view with);

// JSON that may stand inside <script>, where nothing may look like a tag.
std::string inside_script(std::string_view json);

}  // namespace tilewright::driver
