#pragma once

#include <string>

#include "ahead/exported.h"

namespace tilewright::ahead {

// The function `variant_N` of C: it binds the sizes, says how much memory is needed, checks, and
// queues what the variant's program does. Its kernels have the numbers from `first_kernel` on.
std::string c_variant(const Variant& variant, std::size_t number, std::size_t first_kernel);

}  // namespace tilewright::ahead
