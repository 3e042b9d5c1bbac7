#include "kernels/reference_vectors.h"

// The loader picks what the machine has, but under the thread sanitizer: it asks before the
// sanitizer has begun.
#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
#define TW_ROW_CLONES __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define TW_ROW_CLONES
#endif

namespace tilewright::kernels {

// Independent sums, so that a term need not wait for the one before it.
TW_ROW_CLONES
double product_of_rows(const double* a, const double* b, std::int64_t count) {
  constexpr std::int64_t kSums = 32;
  double sums[kSums] = {};
  std::int64_t i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (std::int64_t j = 0; j < kSums; ++j) sums[j] += a[i + j] * b[i + j];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

TW_ROW_CLONES
void add_times(double factor, const double* __restrict row, double* __restrict sums,
               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * row[i];
}

}  // namespace tilewright::kernels
