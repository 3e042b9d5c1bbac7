#pragma once

#include <string>

#include "explain/explanation.h"

namespace tilewright::explanations {

// What the page shows, as JSON: what explanation_json has, and the source, stages, pipeline and
// layouts.
std::string page_data(const Explanation& explanation);
// Of a program: its steps, and under "kernels" the same of each kernel.
std::string page_data(const ProgramExplanation& program);

// The kernel's layouts, a picture each; none for the tile form, which has no layouts.
std::vector<compiler::DumpFile> layout_files(const Explanation& explanation);

// One HTML document that needs nothing else: page.html, its styles and scripts, and the data.
std::string page(const Explanation& explanation);
// The same of a program: what it queues, and each kernel where one chooses it.
std::string page(const ProgramExplanation& program);

}  // namespace tilewright::explanations
