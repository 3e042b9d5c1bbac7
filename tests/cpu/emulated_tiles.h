#pragma once

#include "cpu/kernels.h"

namespace tilewright::cpu {

// What product_with_amx gives, on a machine that has AVX-512 with bf16 alone. Few rows go by tiles
// too.
void product_by_emulated_tiles(const Product& product);

}  // namespace tilewright::cpu
