// The product by the instruction for bf16: the one thing in which AVX-512 and NEON with it differ
// from those without.
#define TW_LEVEL bf16
#include "cpu/kernels/pairs.h"
#include "cpu/kernels/tables.h"

namespace tilewright::cpu {

void product_with_bf16(const Product& p) {
#if defined(__x86_64__)
  const Kernels& others = kKernelsV4;
#else
  const Kernels& others = kKernelsBaseline;
#endif
  if (p.element != Element::bf16 || p.rounding != Rounding::pairs) return others.product(p);
  bf16::product_in_pairs(p);
}

}  // namespace tilewright::cpu
