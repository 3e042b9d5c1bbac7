#pragma once

#include <cstddef>
#include <cstdint>

#include "cpu/kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

// Vectors of one instruction set, as GCC and Clang have them as types. The headers of this folder
// are compiled once for each set, each time into a namespace of its own (TW_LEVEL), with internal
// linkage: what the linker could merge would bring instructions to a machine that lacks them. So
// they call nothing of the standard library but C functions.
#define TW_INLINE inline __attribute__((always_inline))
// What is called seldom, or runs long, and would double each of its callers.
#define TW_APART __attribute__((noinline))
// Before a loop: its iterations write what no other one reads.
#if defined(__clang__)
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace tilewright::cpu::TW_LEVEL {
namespace {

#if defined(__AVX512F__)
#define TW_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define TW_VECTOR_BYTES 32
#else
#define TW_VECTOR_BYTES 16
#endif

// Rows of tiles have room for whole vectors of any set: kBlock elements.
constexpr int kBlock = 16;
constexpr int kLanes = TW_VECTOR_BYTES / 4;
constexpr int kVectors = kBlock / kLanes;  // in a block

// Sets of machines that are rare go without what makes them faster alone, and takes much code.
#if defined(__AVX2__) || defined(__aarch64__)
constexpr bool kIsUsual = true;
#else
constexpr bool kIsUsual = false;
#endif

// A number that the compiler knows.
template <int n>
struct Count {
  static constexpr int value = n;
};

// Calls visit(Count<i>) for all i below n. What arrays are indexed by is then known from the start,
// so that their elements become registers.
template <int n, typename Visit>
TW_INLINE void unrolled(Visit visit) {
  if constexpr (n > 0) {
    unrolled<n - 1>(visit);
    visit(Count<n - 1>{});
  }
}

// One value, `count` times.
template <typename T>
TW_APART void repeat(T value, T* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = value;
}

typedef float Floats __attribute__((vector_size(TW_VECTOR_BYTES)));
typedef std::int32_t Ints __attribute__((vector_size(TW_VECTOR_BYTES)));
typedef std::uint32_t Words __attribute__((vector_size(TW_VECTOR_BYTES)));
typedef std::uint16_t HalfWords __attribute__((vector_size(TW_VECTOR_BYTES / 2)));
typedef double Doubles __attribute__((vector_size(TW_VECTOR_BYTES)));
typedef float Floats4 __attribute__((vector_size(16)));
// In memory, wherever it lies: pairs of 16 bits too.
typedef Floats StoredFloats __attribute__((aligned(2), may_alias));
typedef Floats4 StoredFloats4 __attribute__((aligned(2), may_alias));

TW_INLINE Floats load(const float* p) { return *reinterpret_cast<const StoredFloats*>(p); }
TW_INLINE void store(float* p, Floats x) { *reinterpret_cast<StoredFloats*>(p) = x; }
TW_INLINE Floats4 load4(const float* p) { return *reinterpret_cast<const StoredFloats4*>(p); }

// The same past the caches, for a multiple of the vector's bytes. No line is read to be written.
TW_INLINE void store_far(float* p, Floats x) {
#if defined(__AVX512F__)
  _mm512_stream_ps(p, x);
#elif defined(__AVX2__)
  _mm256_stream_ps(p, x);
#elif defined(__x86_64__)
  _mm_stream_ps(p, x);
#else
  store(p, x);
#endif
}
TW_INLINE void store_far(void* p, HalfWords x) {
#if defined(__AVX512F__)
  _mm256_stream_si256(static_cast<__m256i*>(p), (__m256i)x);
#elif defined(__AVX2__)
  _mm_stream_si128(static_cast<__m128i*>(p), (__m128i)x);
#elif defined(__x86_64__)
  _mm_stream_si64(static_cast<long long*>(p), (long long)x);
#else
  __builtin_memcpy(p, &x, sizeof(x));
#endif
}
// Others see what was stored so.
TW_INLINE void wait_for_far_stores() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

TW_INLINE Floats splat(float x) { return x - Floats{}; }  // -0 - 0 is -0
TW_INLINE Ints splat_int(std::int32_t x) { return x + Ints{}; }
TW_INLINE Ints bits_of(Floats x) { return reinterpret_cast<Ints>(x); }
TW_INLINE Floats floats_of(Ints x) { return reinterpret_cast<Floats>(x); }

// 0, 1, 2, ...
TW_INLINE Ints lane_numbers() {
  Ints result;
  for (int i = 0; i < kLanes; ++i) result[i] = i;
  return result;
}

TW_INLINE bool is_zero(Ints x) {
#if defined(__AVX512F__)
  return _mm512_test_epi32_mask((__m512i)x, (__m512i)x) == 0;
#elif defined(__AVX2__)
  return _mm256_testz_si256((__m256i)x, (__m256i)x) != 0;
#elif defined(__x86_64__)
  return _mm_testz_si128((__m128i)x, (__m128i)x) != 0;
#elif defined(__aarch64__)
  return vmaxvq_u32((uint32x4_t)x) == 0;
#else
  std::int32_t any = 0;
  for (int i = 0; i < kLanes; ++i) any |= x[i];
  return any == 0;
#endif
}

// A condition's lanes are 0 or all ones.
TW_INLINE Floats choose(Ints condition, Floats yes, Floats no) { return condition ? yes : no; }

// a * b + c, rounded once where the machine can: on x86-64-v2 the product is rounded too.
TW_INLINE Floats fused(Floats a, Floats b, Floats c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__aarch64__)
  return vfmaq_f32(c, a, b);
#else
  return a * b + c;
#endif
}
TW_INLINE Floats fused(Floats a, float b, Floats c) { return fused(a, splat(b), c); }
TW_INLINE Floats fused(Floats a, Floats b, float c) { return fused(a, b, splat(c)); }

TW_INLINE float fused(float a, float b, float c) {
#if defined(__FMA__) || defined(__aarch64__)
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}

TW_INLINE Floats square_root(Floats x) {
#if defined(__AVX512F__)
  return _mm512_sqrt_ps(x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#elif defined(__x86_64__)
  return _mm_sqrt_ps(x);
#elif defined(__aarch64__)
  return vsqrtq_f32(x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

enum class Whole { nearest, down, up };

// To a whole number; ties to even.
template <Whole direction>
TW_INLINE Floats whole(Floats x) {
#if defined(__x86_64__)
  constexpr int kMode = (direction == Whole::nearest ? _MM_FROUND_TO_NEAREST_INT
                         : direction == Whole::down  ? _MM_FROUND_TO_NEG_INF
                                                     : _MM_FROUND_TO_POS_INF) |
                        _MM_FROUND_NO_EXC;
#endif
#if defined(__AVX512F__)
  return _mm512_roundscale_ps(x, kMode);
#elif defined(__AVX2__)
  return _mm256_round_ps(x, kMode);
#elif defined(__x86_64__)
  return _mm_round_ps(x, kMode);
#elif defined(__aarch64__)
  return direction == Whole::nearest ? vrndnq_f32(x)
         : direction == Whole::down  ? vrndmq_f32(x)
                                     : vrndpq_f32(x);
#else
  for (int i = 0; i < kLanes; ++i) {
    x[i] = direction == Whole::nearest ? __builtin_rintf(x[i])
           : direction == Whole::down  ? __builtin_floorf(x[i])
                                       : __builtin_ceilf(x[i]);
  }
  return x;
#endif
}

// Of whole numbers. Others become anything.
TW_INLINE Ints to_ints(Floats x) {
#if defined(__AVX512F__)
  return (Ints)_mm512_cvtps_epi32(x);
#elif defined(__AVX2__)
  return (Ints)_mm256_cvtps_epi32(x);
#elif defined(__x86_64__)
  return (Ints)_mm_cvtps_epi32(x);
#elif defined(__aarch64__)
  return vcvtq_s32_f32(x);
#else
  return __builtin_convertvector(x, Ints);
#endif
}
TW_INLINE Floats to_floats(Ints x) { return __builtin_convertvector(x, Floats); }

// b where they are equal or either is a NaN: as the machine has it.
TW_INLINE Floats greater_or(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#elif defined(__x86_64__)
  return _mm_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
TW_INLINE Floats less_or(Floats a, Floats b) {
#if defined(__AVX512F__)
  return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#elif defined(__x86_64__)
  return _mm_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}
// A NaN where x is one.
TW_INLINE Floats at_least(Floats x, float low) { return greater_or(splat(low), x); }
TW_INLINE Floats at_most(Floats x, float high) { return less_or(splat(high), x); }

// As PTX: a NaN is ignored. Of two that are equal the second.
TW_INLINE Floats smaller(Floats a, Floats b) { return ((a < b) | (b != b)) ? a : b; }
TW_INLINE Floats larger(Floats a, Floats b) { return ((a > b) | (b != b)) ? a : b; }
TW_INLINE float smaller(float a, float b) { return a < b || b != b ? a : b; }
TW_INLINE float larger(float a, float b) { return a > b || b != b ? a : b; }

TW_INLINE Floats magnitude(Floats x) { return floats_of(bits_of(x) & 0x7fffffff); }
TW_INLINE Floats with_sign(Floats magnitude, Floats sign) {
  return floats_of(bits_of(magnitude) | (bits_of(sign) & INT32_MIN));
}

// x * 2^n for a normal x near 1 and whole n from -200 to 200, rounded once.
TW_INLINE Floats scaled(Floats x, Floats n) {
#if defined(__AVX512F__)
  return _mm512_scalef_ps(x, n);
#else
  const Ints exponent = to_ints(n), half = exponent >> 1;
  return x * floats_of((half + 127) << 23) * floats_of((exponent - half + 127) << 23);
#endif
}

}  // namespace
}  // namespace tilewright::cpu::TW_LEVEL
