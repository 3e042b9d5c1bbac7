#pragma once

// The files of the pages, as strings that the build makes of them.
namespace tilewright::explanations {

extern const char* const kFrameHtml;

extern const char* const kPageHtml;
extern const char* const kPageCss;
extern const char* const kPageScript;
extern const char* const kDrawingsScript;

extern const char* const kTraceHtml;
extern const char* const kTraceCss;
extern const char* const kTraceModelScript;
extern const char* const kTraceScript;
extern const char* const kTraceInputScript;

}  // namespace tilewright::explanations
