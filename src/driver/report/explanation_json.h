#pragma once

#include <string>

#include "driver/explanation.h"

namespace tilewright::driver {

// What `tilewright explain --json` prints.
std::string explanation_json(const Explanation& explanation);

}  // namespace tilewright::driver
