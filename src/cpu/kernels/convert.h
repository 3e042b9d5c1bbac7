#pragma once

#include "cpu/kernels/elementwise.h"

// Between the elements of memory, as support/number_formats.h has them, and what is computed in.
namespace tilewright::cpu::TW_LEVEL {
namespace {

TW_INLINE std::uint32_t word_of(float x) { return __builtin_bit_cast(std::uint32_t, x); }
TW_INLINE float float_of(std::uint32_t x) { return __builtin_bit_cast(float, x); }

// The stored elements that are no numbers of C++.
struct F16 {
  std::uint16_t bits;
};
struct Bf16 {
  std::uint16_t bits;
};
struct F8 {
  std::uint8_t bits;
};
struct Bool {
  std::uint8_t byte;
};

// A finite or infinite magnitude in a format with so many bits of mantissa and that bias of the
// exponent. It does not stop at the format's largest number.
template <int mantissa_bits, int bias>
TW_INLINE std::uint32_t narrow_magnitude(std::uint32_t magnitude) {
  constexpr int kShift = 23 - mantissa_bits;
  constexpr std::uint32_t kSmallestNormal = static_cast<std::uint32_t>(128 - bias) << 23;
  // Adding 2^e, whose unit in the last place is the format's smallest subnormal, rounds to it.
  constexpr std::uint32_t kAligner = static_cast<std::uint32_t>(128 + kShift - bias) << 23;
  const std::uint32_t subnormal = word_of(float_of(magnitude) + float_of(kAligner)) - kAligner;
  const std::uint32_t half = (1u << (kShift - 1)) - 1 + ((magnitude >> kShift) & 1);
  const std::uint32_t normal =
      ((magnitude + half) >> kShift) - (static_cast<std::uint32_t>(127 - bias) << mantissa_bits);
  return magnitude < kSmallestNormal ? subnormal : normal;
}
template <int mantissa_bits, int bias>
TW_INLINE std::uint32_t widen_magnitude(std::uint32_t magnitude) {
  constexpr std::uint32_t kScale = static_cast<std::uint32_t>(254 - bias) << 23;
  return word_of(float_of(magnitude << (23 - mantissa_bits)) * float_of(kScale));
}

constexpr std::uint32_t kSign = 0x80000000, kInfinity = 0x7f800000;

TW_INLINE float widen(float x) { return x; }
TW_INLINE float widen(Bf16 x) { return float_of(static_cast<std::uint32_t>(x.bits) << 16); }
TW_INLINE float widen(F16 x) {
  const std::uint32_t bits = x.bits, magnitude = bits & 0x7fff;
  const std::uint32_t special = kInfinity | (magnitude & 0x3ff) << 13;
  const std::uint32_t finite = widen_magnitude<10, 15>(magnitude);
  return float_of((magnitude >= 0x7c00 ? special : finite) | (bits & 0x8000) << 16);
}
TW_INLINE float widen(F8 x) {
  const std::uint32_t bits = x.bits, magnitude = bits & 0x7f;
  const std::uint32_t finite = widen_magnitude<3, 7>(magnitude);
  return float_of((magnitude == 0x7f ? 0x7fc00000 : finite) | (bits & 0x80) << 24);
}
TW_INLINE float widen(Bool x) { return x.byte; }

TW_INLINE Bf16 narrow_to(Bf16, float x) {
  const std::uint32_t bits = word_of(x);
  const std::uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return {static_cast<std::uint16_t>((bits & ~kSign) > kInfinity ? 0x7fff : rounded)};
}
TW_INLINE F16 narrow_to(F16, float x) {
  const std::uint32_t bits = word_of(x), magnitude = bits & ~kSign;
  const std::uint32_t rounded = narrow_magnitude<10, 15>(magnitude);
  const std::uint32_t limited = rounded < 0x7c00 ? rounded : 0x7c00;
  const std::uint32_t number = limited | (bits >> 16 & 0x8000);
  return {static_cast<std::uint16_t>(magnitude > kInfinity ? 0x7fff : number)};
}
TW_INLINE F8 narrow_to(F8, float x) {
  const std::uint32_t bits = word_of(x), magnitude = bits & ~kSign;
  const std::uint32_t rounded = narrow_magnitude<3, 7>(magnitude);
  const std::uint32_t limited = rounded < 0x7e ? rounded : 0x7e;
  const std::uint32_t number = limited | (bits >> 24 & 0x80);
  return {static_cast<std::uint8_t>(magnitude > kInfinity ? 0x7f : number)};
}
TW_INLINE Bool narrow_to(Bool, float x) { return {static_cast<std::uint8_t>(x != 0 ? 1 : 0)}; }

template <typename T>
constexpr bool kIsFloat = false;
template <>
constexpr bool kIsFloat<float> = true;
template <>
constexpr bool kIsFloat<F16> = true;
template <>
constexpr bool kIsFloat<Bf16> = true;
template <>
constexpr bool kIsFloat<F8> = true;

// The bounds of an integer of so many bits.
template <typename T>
constexpr bool kHasSign = static_cast<T>(-1) < static_cast<T>(0);
template <typename T>
constexpr std::int64_t kHighest = kHasSign<T> ? INT64_MAX >> (64 - 8 * sizeof(T))
                                              : static_cast<std::int64_t>(UINT64_MAX >>
                                                                          (64 - 8 * sizeof(T)));
template <typename T>
constexpr std::int64_t kLowest = kHasSign<T> ? -kHighest<T> - 1 : 0;

// To the nearest number that the integer has; a NaN to 0. Adding kRound leaves whole numbers of a
// double of up to 2^51. Larger floats are whole, and above all 32-bit integers.
template <typename T>
TW_INLINE T nearest_integer(float x) {
  constexpr double kRound = 0x1.8p52;
  constexpr auto kLow = static_cast<double>(kLowest<T>), kHigh = static_cast<double>(kHighest<T>);
  const double exact = x == x ? x : 0.0f;
  if constexpr (sizeof(T) == 8) {
    const double rounded = __builtin_fabs(exact) < 0x1p51 ? (exact + kRound) - kRound : exact;
    return rounded <= kLow ? kLowest<T> : rounded >= kHigh ? kHighest<T> : static_cast<T>(rounded);
  } else {
    const double limited = exact < kLow ? kLow : exact > kHigh ? kHigh : exact;
    const double rounded = (limited + kRound) - kRound;
    if constexpr (sizeof(T) == 4 && !kHasSign<T>) {
      return static_cast<T>(static_cast<std::int64_t>(rounded));
    } else {
      return static_cast<T>(static_cast<std::int32_t>(rounded));
    }
  }
}

// i8, u8 and u32 saturate, the others wrap.
template <typename To, typename From>
TW_INLINE To integer_from(From x) {
  if constexpr (sizeof(To) == 1 || !kHasSign<To>) {
    const std::int64_t wide = static_cast<std::int64_t>(x);
    const std::int64_t raised = wide < kLowest<To> ? kLowest<To> : wide;
    return static_cast<To>(raised > kHighest<To> ? kHighest<To> : raised);
  } else {
    return static_cast<To>(x);
  }
}

template <typename To, typename From>
TW_INLINE To converted(From x) {
  if constexpr (kIsFloat<From>) {
    if constexpr (kIsFloat<To> && sizeof(To) == 4)
      return widen(x);
    else if constexpr (kIsFloat<To>)
      return narrow_to(To{}, widen(x));
    else if constexpr (__is_same(To, Bool))
      return narrow_to(Bool{}, widen(x));
    else
      return nearest_integer<To>(widen(x));
  } else if constexpr (__is_same(From, Bool)) {
    return static_cast<To>(x.byte);
  } else if constexpr (__is_same(To, Bool)) {
    return {static_cast<std::uint8_t>(x != 0 ? 1 : 0)};
  } else if constexpr (kIsFloat<To>) {
    return static_cast<float>(x);
  } else {
    return integer_from<To>(x);
  }
}

// Contiguous elements; nothing behind them is read or written.
template <typename From, typename To>
TW_INLINE void convert_row(const From* from, To* to, std::int64_t count) {
  TW_INDEPENDENT
  for (std::int64_t i = 0; i < count; ++i) to[i] = converted<To>(from[i]);
}

#if defined(__F16C__)
// The machine's own conversions, as many at once as a vector has floats.
#if defined(__AVX512F__)
typedef __m256i Halves;
TW_INLINE Floats widen_halves(Halves x) { return _mm512_cvtph_ps(x); }
TW_INLINE Halves narrow_to_halves(Floats x) {
  return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
#else
typedef __m128i Halves;
TW_INLINE Floats widen_halves(Halves x) { return _mm256_cvtph_ps(x); }
TW_INLINE Halves narrow_to_halves(Floats x) { return _mm256_cvtps_ph(x, 0); }
#endif

template <>
TW_INLINE void convert_row(const F16* from, float* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Halves halves;
    __builtin_memcpy(&halves, from + i, sizeof(halves));
    store(to + i, widen_halves(halves));
  }
  for (; i < count; ++i) to[i] = widen(from[i]);
}
// The machine keeps what bits it can of a NaN: of this one all that f16 has.
template <>
TW_INLINE void convert_row(const float* from, F16* to, std::int64_t count) {
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const Floats x = load(from + i);
    const Halves halves = narrow_to_halves(choose(x == x, x, floats_of(splat_int(0x7fffffff))));
    __builtin_memcpy(to + i, &halves, sizeof(halves));
  }
  for (; i < count; ++i) to[i] = narrow_to(F16{}, from[i]);
}
#endif

#if defined(__AVX512BF16__)
// The instruction takes subnormals for 0, and keeps bits of what is no number.
TW_INLINE __mmask16 rounds_otherwise(Floats value) {
  constexpr int kOthers = 0xa1;
  return _mm512_fpclass_ps_mask(value, kOthers);
}
// False, with nothing stored, where it rounds one of these otherwise.
template <int vectors>
TW_INLINE bool round_to_bf16(const float* from, Bf16* to) {
  __mmask16 others = 0;
  unrolled<vectors>([&](auto i) {
    others = _kor_mask16(others, rounds_otherwise(load(from + i.value * kLanes)));
  });
  if (__builtin_expect(!_kortestz_mask16_u8(others, others), 0)) return false;
  unrolled<vectors>([&](auto i) {
    const auto rounded = _mm512_cvtneps_pbh(load(from + i.value * kLanes));
    __builtin_memcpy(to + i.value * kLanes, &rounded, sizeof(rounded));
  });
  return true;
}
template <>
TW_INLINE void convert_row(const float* from, Bf16* to, std::int64_t count) {
  constexpr std::int64_t kRound = 4 * kLanes;
  std::int64_t i = 0;
  for (; i + kRound <= count; i += kRound) {
    if (round_to_bf16<4>(from + i, to + i)) continue;
    for (std::int64_t j = i; j < i + kRound; ++j) to[j] = narrow_to(Bf16{}, from[j]);
  }
  for (; i < count; ++i) to[i] = narrow_to(Bf16{}, from[i]);
}
#endif

// Vectors of narrower elements, as many as of floats.
template <typename T>
TW_INLINE Floats load_as_floats(const T* from) {
  alignas(TW_VECTOR_BYTES) float wide[kLanes];
  convert_row(from, wide, kLanes);
  return load(wide);
}
template <>
TW_INLINE Floats load_as_floats(const float* from) {
  return load(from);
}
template <>
TW_INLINE Floats load_as_floats(const Bf16* from) {
#if defined(__AVX2__) && !defined(__AVX512BW__)
  // One permutation puts zeros between them. Each half of the vector has all to take from.
  constexpr char kNone = -1;
  const __m256i places = _mm256_setr_epi8(kNone, kNone, 0, 1, kNone, kNone, 2, 3, kNone, kNone, 4,
                                          5, kNone, kNone, 6, 7, kNone, kNone, 8, 9, kNone, kNone,
                                          10, 11, kNone, kNone, 12, 13, kNone, kNone, 14, 15);
  const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  return (Floats)_mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bits), places);
#else
  HalfWords bits;
  __builtin_memcpy(&bits, from, sizeof(bits));
#if defined(__AVX512BW__)
  // One permutation puts zeros between them.
  alignas(64) constexpr std::uint16_t kPlaces[] = {0, 0,  0, 1,  0, 2,  0, 3,  0, 4, 0,
                                                   5, 0,  6, 0,  7, 0,  8, 0,  9, 0, 10,
                                                   0, 11, 0, 12, 0, 13, 0, 14, 0, 15};
  const __m512i all = _mm512_castsi256_si512((__m256i)bits);
  return (Floats)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_load_si512(kPlaces), all);
#else
  return reinterpret_cast<Floats>(__builtin_convertvector(bits, Words) << 16);
#endif
#endif
}

// An integer of so many bytes.
template <std::size_t bytes>
struct BitsOf;
template <>
struct BitsOf<1> {
  using Type = std::uint8_t;
};
template <>
struct BitsOf<2> {
  using Type = std::uint16_t;
};
template <>
struct BitsOf<4> {
  using Type = std::uint32_t;
};
template <>
struct BitsOf<8> {
  using Type = std::uint64_t;
};

template <typename From, typename To>
void convert(Shape shape, const Operand& source, Result result) {
  for (std::int64_t row = 0; row < shape.rows; ++row) {
    const From* const from = row_of<From>(source, row);
    To* const to = row_of<To>(result, row);
    if (source.repeats) {
      using Bits = typename BitsOf<sizeof(To)>::Type;
      const auto bits = __builtin_bit_cast(Bits, converted<To>(*from));
      repeat(bits, reinterpret_cast<Bits*>(to), shape.columns);
    } else {
      convert_row(from, to, shape.columns);
    }
  }
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
