#pragma once

#include <string>

#include "explain/explanation.h"

namespace tilewright::explanations {

// What `tilewright explain --json` prints.
std::string explanation_json(const Explanation& explanation);

}  // namespace tilewright::explanations
