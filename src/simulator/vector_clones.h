#pragma once

// TW_VECTOR_CLONES before a function compiles it for the vectors of several generations of x86-64,
// of which the loader picks what the machine has; TW_INLINE before what it calls makes that part of
// each clone. TW_INDEPENDENT before a loop says that its iterations write what no other one reads.
#if defined(__x86_64__) && defined(__clang__)
#define TW_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#elif defined(__x86_64__)
#define TW_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define TW_VECTOR_CLONES
#endif

#define TW_INLINE inline __attribute__((always_inline))

#if defined(__clang__)
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif
