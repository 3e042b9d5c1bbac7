#pragma once

#include "command.h"

namespace tilewright::tools {

// `list --cases`: of one setting, or settings that cover the cases of every plan.
int list_cases(const Request& request);

}  // namespace tilewright::tools
