#include "simulator/machine/fragment_product.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::simulator {
namespace {

constexpr int kLanes = 32;

// What each of the functions below does for one group of 8 columns, which are 4 registers of 32
// lanes: on all k at once, since its sums fill the machine's vector registers.
using Group = void (*)(int k, const float* a, const float* b, int b_stride, float* registers);

// The four lanes of a row at a time, the vector that every machine has.
void multiply_group(int k, const float* a, const float* b, int b_stride, float* registers) {
  typedef float Vector __attribute__((vector_size(16)));
  const auto load = [](const float* from) {
    Vector value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  };
  constexpr int kRows = 4;  // with 4 sums each of even and odd columns
  for (int row = 0; row < 16; row += kRows) {
    float* const even = registers + row / 8 * 2 * kLanes + row % 8 * 4;
    float* const odd = even + kLanes;
    Vector sums[2][kRows];
    for (int r = 0; r < kRows; ++r) {
      sums[0][r] = load(even + r * 4);
      sums[1][r] = load(odd + r * 4);
    }
    for (int i = 0; i < k; ++i) {
      const Vector b_even = load(b + i * b_stride), b_odd = load(b + i * b_stride + 4);
      for (int r = 0; r < kRows; ++r) {
        const Vector value = load(a + spread_a(row + r, i));
        sums[0][r] += value * b_even;
        sums[1][r] += value * b_odd;
      }
    }
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(even + r * 4, &sums[0][r], sizeof(Vector));
      std::memcpy(odd + r * 4, &sums[1][r], sizeof(Vector));
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_group_avx2(int k, const float* a, const float* b,
                                                             int b_stride, float* registers) {
  for (int half = 0; half < 2; ++half) {
    float* const even = registers + half * 2 * kLanes;
    float* const odd = even + kLanes;
    __m256 sums[2][4];
    for (int v = 0; v < 4; ++v) {
      sums[0][v] = _mm256_loadu_ps(even + v * 8);
      sums[1][v] = _mm256_loadu_ps(odd + v * 8);
    }
    for (int i = 0; i < k; ++i) {
      const auto* const columns = reinterpret_cast<const __m128*>(b + i * b_stride);
      const __m256 b_even = _mm256_broadcast_ps(columns), b_odd = _mm256_broadcast_ps(columns + 1);
      for (int v = 0; v < 4; ++v) {
        const __m256 rows = _mm256_loadu_ps(a + spread_a(half * 8 + v * 2, i));
        sums[0][v] = _mm256_fmadd_ps(rows, b_even, sums[0][v]);
        sums[1][v] = _mm256_fmadd_ps(rows, b_odd, sums[1][v]);
      }
    }
    for (int v = 0; v < 4; ++v) {
      _mm256_storeu_ps(even + v * 8, sums[0][v]);
      _mm256_storeu_ps(odd + v * 8, sums[1][v]);
    }
  }
}

__attribute__((target("avx512f"))) void multiply_group_avx512(int k, const float* a, const float* b,
                                                              int b_stride, float* registers) {
  __m512 sums[8];  // of register i the lanes below 16, then those above
  for (int v = 0; v < 8; ++v) sums[v] = _mm512_loadu_ps(registers + v * 16);
  for (int i = 0; i < k; ++i) {
    const float* const columns = b + i * b_stride;
    // The masked form: GCC 12 warns of what its plain one leaves undefined.
    const __m512 b_even = _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(columns));
    const __m512 b_odd = _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(columns + 4));
    for (int v = 0; v < 4; ++v) {  // 4 rows each
      const __m512 rows = _mm512_loadu_ps(a + spread_a(v * 4, i));
      const int even = v / 2 * 4 + v % 2, odd = even + 2;
      sums[even] = _mm512_fmadd_ps(rows, b_even, sums[even]);
      sums[odd] = _mm512_fmadd_ps(rows, b_odd, sums[odd]);
    }
  }
  for (int v = 0; v < 8; ++v) _mm512_storeu_ps(registers + v * 16, sums[v]);
}
#endif

Group best_group() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return multiply_group_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return multiply_group_avx2;
#endif
  return multiply_group;
}

}  // namespace

void multiply_fragment(int n, int k, const float* a, const float* b, bool accumulate,
                       float* accumulator) {
  static const Group multiply = best_group();
  if (!accumulate) std::fill(accumulator, accumulator + n / 2 * kLanes, 0.0f);
  for (int column = 0; column < n; column += 8) {
    multiply(k, a, b + column, n, accumulator + column / 2 * kLanes);
  }
}

}  // namespace tilewright::simulator
