// What AVX-512 and NEON with instructions for bf16 have in place of those without: the product, and
// on AVX-512 what stores bf16: chains and the conversion.
#define TW_LEVEL bf16
#include "cpu/kernels/chain.h"
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

#if defined(__x86_64__)
void chain_with_bf16(Shape shape, const Step* steps, int count, FirstRow first) {
  bf16::chain(shape, steps, count, first);
}

void convert_to_bf16(Shape shape, const Operand& source, Result result) {
  bf16::convert<float, bf16::Bf16>(shape, source, result);
}
#endif

}  // namespace tilewright::cpu
