#pragma once

#include <functional>

#include "check/fuzz/recipe.h"

namespace tilewright::checks::fuzz {

// A smaller recipe that still `fails`: steps are left out or replaced by what they contain, extents
// and blocks made smaller, numbers brought toward 0, until nothing more can be taken away or
// `attempts` recipes were tried.
Recipe shrunken(Recipe recipe, const std::function<bool(const Recipe&)>& fails, int attempts = 600);

}  // namespace tilewright::checks::fuzz
