#pragma once

#include "cpu/kernels/vectors.h"

// Four neighbours of each of kLanes rows become four vectors, of the first neighbours, of the
// second ones and so on. It is what a product needs of an operand that lies the other way round.
namespace tilewright::cpu::TW_LEVEL {
namespace {

// Four neighbours of row `first`, then of every fourth row behind it.
TW_INLINE Floats every_fourth_row(const float* p, std::int64_t stride, std::int64_t first) {
#if defined(__AVX512F__)
  __m512 result = _mm512_castps128_ps512(load4(p + first * stride));
  result = _mm512_insertf32x4(result, load4(p + (first + 4) * stride), 1);
  const __m256 upper = _mm256_insertf128_ps(_mm256_castps128_ps256(load4(p + (first + 8) * stride)),
                                            load4(p + (first + 12) * stride), 1);
  return _mm512_insertf32x8(result, upper, 1);
#elif defined(__AVX2__)
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load4(p + first * stride)),
                              load4(p + (first + 4) * stride), 1);
#else
  return load4(p + first * stride);
#endif
}

// In each 128 bits: a0 b0 a1 b1, and a2 b2 a3 b3.
TW_INLINE Floats interleave_low(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_unpacklo_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_unpacklo_ps(a, b);
#else
  return __builtin_shufflevector(a, b, 0, 4, 1, 5);
#endif
}
TW_INLINE Floats interleave_high(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_unpackhi_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_unpackhi_ps(a, b);
#else
  return __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
}
// In each 128 bits: a0 a1 b0 b1, and a2 a3 b2 b3.
TW_INLINE Floats low_halves(Floats a, Floats b) {
#if defined(__AVX512F__)
  return (Floats)_mm512_unpacklo_pd((Doubles)a, (Doubles)b);
#elif defined(__AVX2__)
  return (Floats)_mm256_unpacklo_pd((Doubles)a, (Doubles)b);
#else
  return __builtin_shufflevector(a, b, 0, 1, 4, 5);
#endif
}
TW_INLINE Floats high_halves(Floats a, Floats b) {
#if defined(__AVX512F__)
  return (Floats)_mm512_unpackhi_pd((Doubles)a, (Doubles)b);
#elif defined(__AVX2__)
  return (Floats)_mm256_unpackhi_pd((Doubles)a, (Doubles)b);
#else
  return __builtin_shufflevector(a, b, 2, 3, 6, 7);
#endif
}

// In each 128 bits: a0 a2 b0 b2, and a1 a3 b1 b3.
TW_INLINE Floats even_lanes(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_shuffle_ps(a, b, 0x88);
#elif defined(__AVX2__)
  return _mm256_shuffle_ps(a, b, 0x88);
#else
  return __builtin_shufflevector(a, b, 0, 2, 4, 6);
#endif
}
TW_INLINE Floats odd_lanes(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_shuffle_ps(a, b, 0xdd);
#elif defined(__AVX2__)
  return _mm256_shuffle_ps(a, b, 0xdd);
#else
  return __builtin_shufflevector(a, b, 1, 3, 5, 7);
#endif
}

// result[i][j] = p[j * stride + i].
TW_INLINE void transpose_four(const float* p, std::int64_t stride, Floats (&result)[4]) {
  const Floats a = every_fourth_row(p, stride, 0), b = every_fourth_row(p, stride, 1);
  const Floats c = every_fourth_row(p, stride, 2), d = every_fourth_row(p, stride, 3);
  const Floats ab = interleave_low(a, b), cd = interleave_low(c, d);
  const Floats ab_high = interleave_high(a, b), cd_high = interleave_high(c, d);
  result[0] = low_halves(ab, cd);
  result[1] = high_halves(ab, cd);
  result[2] = low_halves(ab_high, cd_high);
  result[3] = high_halves(ab_high, cd_high);
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
