#pragma once

#include "cpu/kernels.h"

// The tables that this library was compiled with. Each is defined in the file of its instruction
// set.
namespace tilewright::cpu {

#if defined(__x86_64__)
extern const Kernels kKernelsV2, kKernelsV3, kKernelsV4;
void product_with_amx(const Product& product);
void chain_with_bf16(Shape shape, const Step* steps, int count, FirstRow first);
void convert_to_bf16(Shape shape, const Operand& source, Result result);
#else
extern const Kernels kKernelsBaseline;
#endif
// Of AVX-512 and of NEON, each with bf16: a product may take its terms in pairs. AMX takes tiles of
// them.
#if defined(__x86_64__) || defined(__aarch64__)
void product_with_bf16(const Product& product);
// Rows of pairs of neighbours along k, as words; an odd last one has a 0 beside it.
struct PairRows {
  const char* data;
  std::int64_t stride;  // in bytes
};
// a of a product where it lies, or else a copy of it.
PairRows a_as_pairs(const Product& product, void* copied);
#endif

}  // namespace tilewright::cpu
