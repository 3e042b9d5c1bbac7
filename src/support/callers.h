#pragma once

#include <optional>

#include "tilewright/called_from.h"

namespace tilewright {

// A line that is recorded or refused now, and that knows its caller if a CalledFrom lives: its file
// is then a copy of the name that belongs to this caller.
SourceLocation with_caller(SourceLocation where);

// What called the helper that the line is of.
std::optional<SourceLocation> caller_of(SourceLocation where);

}  // namespace tilewright
