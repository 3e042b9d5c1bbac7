#pragma once

#include "tilewright/library.h"

namespace tilewright::kernels {

LibraryKernel attention_paged_entry();

}  // namespace tilewright::kernels
