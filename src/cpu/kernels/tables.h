#pragma once

#include "cpu/kernels.h"

// The tables that this library was compiled with. Each is defined in the file of its instruction
// set.
namespace tilewright::cpu {

#if defined(__x86_64__)
extern const Kernels kKernelsV2, kKernelsV3, kKernelsV4;
// Of AVX-512 with bf16, where a product may take its terms in pairs.
void product_with_bf16(const Product& product);
#else
extern const Kernels kKernelsBaseline;
#endif

}  // namespace tilewright::cpu
