#pragma once

// TW_VECTOR_CLONES before a function compiles it for the vectors of several generations of x86-64,
// of which the loader picks what the machine has; TW_INLINE before what it calls makes that part of
// each clone. TW_INDEPENDENT before a loop says that its iterations write what no other one reads.
// There are no clones under the thread sanitizer: the loader asks which to take before the
// sanitizer has begun, and what it asks is instrumented too.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TW_THREAD_SANITIZER
#endif
#elif defined(__SANITIZE_THREAD__)
#define TW_THREAD_SANITIZER
#endif

#if !defined(__x86_64__) || defined(TW_THREAD_SANITIZER)
#define TW_VECTOR_CLONES
#elif defined(__clang__)
#define TW_VECTOR_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TW_VECTOR_CLONES \
  __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#endif

#define TW_INLINE inline __attribute__((always_inline))

#if defined(__clang__)
#define TW_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TW_INDEPENDENT _Pragma("GCC ivdep")
#endif
