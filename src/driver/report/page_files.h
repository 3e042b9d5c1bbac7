#pragma once

// The files of the page, as strings that the build makes of them.
namespace tilewright::driver {

extern const char* const kPageHtml;
extern const char* const kPageCss;
extern const char* const kPageScript;
extern const char* const kDrawingsScript;

}  // namespace tilewright::driver
