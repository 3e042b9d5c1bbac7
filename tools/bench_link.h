#pragma once

#include "command.h"

namespace tilewright::tools {

// `tilewright bench link`.
int bench_link(const Request& request);

}  // namespace tilewright::tools
