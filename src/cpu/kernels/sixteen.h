#pragma once

#include "cpu/kernels/vectors.h"

// Sixteen numbers, of which each lane of a vector takes one.
namespace tilewright::cpu::TW_LEVEL {
namespace {

#if defined(__AVX2__) && !defined(__AVX512F__)
// One instruction finds bytes among sixteen. So the numbers' first bytes lie together, then their
// second ones, and so on.
struct Sixteen {
  constexpr Sixteen(const float (&numbers)[16]) {
    for (int i = 0; i < 64; ++i) {
      const auto number = __builtin_bit_cast(std::uint32_t, numbers[i % 16]);
      bytes[i / 16][i % 16] = static_cast<std::uint8_t>(number >> (8 * (i / 16)));
    }
  }
  alignas(16) std::uint8_t bytes[4][16] = {};
};

// Where the lanes of one vector find theirs, or those of four. Of a place the last four bits count.
template <int count>
class Places {
 public:
  static_assert(count == 1 || count == 4);
  TW_INLINE explicit Places(const Ints (&places)[count]) {
    const auto words = [&](int i) {
      return _mm256_packus_epi32((__m256i)(places[i % count] & 15),
                                 (__m256i)(places[(i + 1) % count] & 15));
    };
    places_ = _mm256_packus_epi16(words(0), words(2));
  }
  TW_INLINE void take(const Sixteen& from, Floats (&to)[count]) const {
    __m256i found[4];
    unrolled<4>([&](auto i) {
      const auto* const bytes = reinterpret_cast<const __m128i*>(from.bytes[i.value]);
      const __m256i table = _mm256_broadcastsi128_si256(_mm_load_si128(bytes));
      found[i.value] = _mm256_shuffle_epi8(table, places_);
    });
    const __m256i low = _mm256_unpacklo_epi8(found[0], found[1]);
    const __m256i high = _mm256_unpacklo_epi8(found[2], found[3]);
    to[0] = (Floats)_mm256_unpacklo_epi16(low, high);
    if constexpr (count == 4) {
      to[1] = (Floats)_mm256_unpackhi_epi16(low, high);
      const __m256i last_low = _mm256_unpackhi_epi8(found[0], found[1]);
      const __m256i last_high = _mm256_unpackhi_epi8(found[2], found[3]);
      to[2] = (Floats)_mm256_unpacklo_epi16(last_low, last_high);
      to[3] = (Floats)_mm256_unpackhi_epi16(last_low, last_high);
    }
  }

 private:
  __m256i places_;
};
#else
struct Sixteen {
  alignas(64) float numbers[16];
};

template <int count>
class Places {
 public:
  TW_INLINE explicit Places(const Ints (&places)[count]) {
    unrolled<count>([&](auto i) { places_[i.value] = places[i.value]; });
  }
  TW_INLINE void take(const Sixteen& from, Floats (&to)[count]) const {
    unrolled<count>([&](auto i) { to[i.value] = one_of(from.numbers, places_[i.value]); });
  }

 private:
  TW_INLINE static Floats one_of(const float (&numbers)[16], Ints places) {
#if defined(__AVX512F__)
    return _mm512_permutexvar_ps((__m512i)places, _mm512_loadu_ps(numbers));
#else
    Floats result;
    for (int i = 0; i < kLanes; ++i) result[i] = numbers[places[i] & 15];
    return result;
#endif
  }
  Ints places_[count];
};
#endif

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
