#pragma once

#include <string>

#include "explain/explanation.h"

namespace tilewright::explanations {

// What `tilewright explain --json` prints.
std::string explanation_json(const Explanation& explanation);
// Of a program: its steps, roofline and schedule, and the JSON of each kernel.
std::string explanation_json(const ProgramExplanation& program);

}  // namespace tilewright::explanations
