#pragma once

#include "tilewright/error.h"

namespace tilewright {

// Names of files are interned, so that equal ones have one address.
inline bool same_line(SourceLocation a, SourceLocation b) {
  return a.file == b.file && a.line == b.line;
}

}  // namespace tilewright
