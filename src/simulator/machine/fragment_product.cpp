#include "simulator/machine/fragment_product.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tilewright::simulator {
namespace {

constexpr int kWarpLanes = 32;
constexpr int kGroup = 4 * kWarpLanes;  // the accumulators of 8 columns: 4 registers

// The four lanes of a row at a time: the vector that every machine has.
typedef float Vector __attribute__((vector_size(16)));

Vector load(const float* from) {
  Vector value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
void store(Vector value, float* to) { std::memcpy(to, &value, sizeof(value)); }

void multiply_in_fours(int groups, int k, const float* a, const float* b, float* registers) {
  constexpr int kRows = 4;  // with 4 sums each of even and odd columns
  for (int group = 0; group < groups; ++group, registers += kGroup) {
    for (int row = 0; row < 16; row += kRows) {
      float* const even = registers + row / 8 * 2 * kWarpLanes + row % 8 * 4;
      float* const odd = even + kWarpLanes;
      Vector sums[2][kRows];
      for (int r = 0; r < kRows; ++r) {
        sums[0][r] = load(even + r * 4);
        sums[1][r] = load(odd + r * 4);
      }
      for (int i = 0; i < k; ++i) {
        const float* const columns = b + (i * groups + group) * 8;
        const Vector b_even = load(columns), b_odd = load(columns + 4);
        for (int r = 0; r < kRows; ++r) {
          const Vector value = load(a + spread_a(row + r, i));
          sums[0][r] += value * b_even;
          sums[1][r] += value * b_odd;
        }
      }
      for (int r = 0; r < kRows; ++r) {
        store(sums[0][r], even + r * 4);
        store(sums[1][r], odd + r * 4);
      }
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void multiply_in_eights(int groups, int k, const float* a,
                                                            const float* b, float* registers) {
  for (int half = 0; half < 2 * groups; ++half) {  // 8 rows of a group
    float* const even = registers + half * kGroup / 2;
    float* const odd = even + kWarpLanes;
    const float* columns = b + half / 2 * 8;
    const float* rows = a + spread_a(half % 2 * 8, 0);
    __m256 sums[2][4];
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      sums[0][v] = _mm256_loadu_ps(even + v * 8);
      sums[1][v] = _mm256_loadu_ps(odd + v * 8);
    }
    for (int i = 0; i < k; ++i) {
      const __m256 b_even = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(columns));
      const __m256 b_odd = _mm256_broadcast_ps(reinterpret_cast<const __m128*>(columns + 4));
#pragma GCC unroll 4
      for (int v = 0; v < 4; ++v) {
        const __m256 value = _mm256_loadu_ps(rows + v * 8);
        sums[0][v] = _mm256_fmadd_ps(value, b_even, sums[0][v]);
        sums[1][v] = _mm256_fmadd_ps(value, b_odd, sums[1][v]);
      }
      rows += spread_a(0, 1);
      columns += groups * 8;
    }
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      _mm256_storeu_ps(even + v * 8, sums[0][v]);
      _mm256_storeu_ps(odd + v * 8, sums[1][v]);
    }
  }
}

// Of `kGroups` groups at once: two share the loads of A.
template <int kGroups>
__attribute__((target("avx512f"))) void multiply_in_sixteens(int k, const float* a, const float* b,
                                                             int b_stride, float* registers) {
  __m512 sums[kGroups * 8];  // of each register the lanes below 16, then those above
#pragma GCC unroll 16
  for (int v = 0; v < kGroups * 8; ++v) sums[v] = _mm512_loadu_ps(registers + v * 16);
  for (int i = 0; i < k; ++i, a += spread_a(0, 1), b += b_stride) {
    __m512 columns[kGroups * 2];
#pragma GCC unroll 4
    for (int c = 0; c < kGroups * 2; ++c) {
      // The masked form: GCC 12 warns of what its plain one leaves undefined.
      columns[c] = _mm512_maskz_broadcast_f32x4(0xffff, _mm_loadu_ps(b + c * 4));
    }
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {  // 4 rows each
      const __m512 rows = _mm512_loadu_ps(a + v * 16);
#pragma GCC unroll 4
      for (int c = 0; c < kGroups * 2; ++c) {
        __m512& sum = sums[c / 2 * 8 + v / 2 * 4 + c % 2 * 2 + v % 2];
        sum = _mm512_fmadd_ps(rows, columns[c], sum);
      }
    }
  }
#pragma GCC unroll 16
  for (int v = 0; v < kGroups * 8; ++v) _mm512_storeu_ps(registers + v * 16, sums[v]);
}

void multiply_in_sixteens(int groups, int k, const float* a, const float* b, float* registers) {
  int group = 0;
  for (; group + 2 <= groups; group += 2) {
    multiply_in_sixteens<2>(k, a, b + group * 8, groups * 8, registers + group * kGroup);
  }
  if (group < groups) {
    multiply_in_sixteens<1>(k, a, b + group * 8, groups * 8, registers + group * kGroup);
  }
}
#endif

}  // namespace

const std::vector<VectorUnit>& vector_units() {
  static const std::vector<VectorUnit> units = [] {
    std::vector<VectorUnit> found;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) found.push_back({"avx512f", multiply_in_sixteens});
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
      found.push_back({"avx2", multiply_in_eights});
    }
#endif
    found.push_back({"any", multiply_in_fours});
    return found;
  }();
  return units;
}

void spread_registers(int packed, const float* registers, float* a) {
  for (int i = 0; i < 4 * packed; ++i) {
    const int j = i / packed;
    const int k = i % packed + j / 2 * 4 * packed;
    float* to = a + spread_a(8 * (j & 1), k);
    const std::size_t step = spread_a(0, packed);
    for (int row = 0; row < 8; ++row, to += spread_a(1, 0)) {
      const Vector lanes = load(registers + i * kWarpLanes + row * 4);
      store(__builtin_shufflevector(lanes, lanes, 0, 0, 0, 0), to);
      store(__builtin_shufflevector(lanes, lanes, 1, 1, 1, 1), to + step);
      store(__builtin_shufflevector(lanes, lanes, 2, 2, 2, 2), to + 2 * step);
      store(__builtin_shufflevector(lanes, lanes, 3, 3, 3, 3), to + 3 * step);
    }
  }
}

void multiply_fragment(int n, int k, const float* a, const float* b, bool accumulate,
                       float* accumulator) {
  static const MultiplyGroups multiply = vector_units().front().multiply;
  if (!accumulate) std::fill(accumulator, accumulator + n / 2 * kWarpLanes, 0.0f);
  multiply(n / 8, k, a, b, accumulator);
}

}  // namespace tilewright::simulator
