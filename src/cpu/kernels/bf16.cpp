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

PairRows a_as_pairs(const Product& p, void* copied) {
  using namespace bf16;
  if (p.a.column_stride == 2 && p.k % 2 == 0) {
    return {static_cast<const char*>(p.a.data), p.a.row_stride};
  }
  const std::int64_t stride = 2 * pairs_of(p.k);
  auto* const to = static_cast<std::uint16_t*>(copied);
  if (p.a.row_stride == 2) {
    const std::int64_t words_of_row = buffer_stride(pairs_of(p.k));
    fill_transposed(
        p.m, pairs_of(p.k), {static_cast<float*>(copied), words_of_row},
        [&p](std::int64_t pair, std::int64_t row, std::int64_t count, float* words) {
          const auto at = [&](std::int64_t i) { return element<std::uint16_t>(p.a, row, i); };
          interleave(count, at(2 * pair), 2 * pair + 1 < p.k ? at(2 * pair + 1) : nullptr,
                     reinterpret_cast<std::uint32_t*>(words));
        });
    return {static_cast<const char*>(copied), 4 * words_of_row};
  }
  for (std::int64_t row = 0; row < p.m; ++row) {
    to[row * stride + stride - 1] = 0;
    for (std::int64_t i = 0; i < p.k; ++i) {
      to[row * stride + i] = *element<std::uint16_t>(p.a, row, i);
    }
  }
  return {static_cast<const char*>(copied), 2 * stride};
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
