#pragma once

#include "tilewright/library.h"

namespace tilewright {

// Whether the kernel has the tensor with these options: the one that it names is true, or false
// where it names "!option".
bool is_present(const LibraryTensor& tensor, const OptionValues& options);

}  // namespace tilewright
