#include "cpu/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "cpu/layout.h"
#include "cpu/pool.h"

namespace tilewright::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// The shortest of several rounds, in each of which every thread does the work once.
template <typename Work>
double shortest(unsigned threads, int rounds, const Work& work) {
  double least = 1e30;
  for (int round = 0; round < rounds; ++round) {
    const Clock::time_point start = Clock::now();
    parallel_for(threads, threads, [&](std::size_t i, unsigned) { work(i); });
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

double flops_of(const Kernels& kernels, Element element, Rounding rounding, unsigned threads) {
  constexpr std::int64_t kSide = 128, kProducts = 20, kBytesApart = 64;
  constexpr int kRounds = 8;
  const std::int64_t row = kSide * bytes_of(element);
  const std::int64_t factor = kSide * row, result = kSide * kSide * 4;
  const std::int64_t scratch = kernels.product_scratch(kSide, kSide, kSide, element);
  std::vector<std::vector<char>> memory(threads);
  const double seconds = shortest(threads, kRounds, [&](std::size_t i) {
    std::vector<char>& own = memory[i];
    own.resize(static_cast<std::size_t>(2 * factor + result + scratch + kBytesApart));
    const auto past = reinterpret_cast<std::uintptr_t>(own.data()) % kBytesApart;
    char* const a = own.data() + (kBytesApart - past) % kBytesApart;
    const Matrix left{a, row, bytes_of(element)}, right{a + factor, row, bytes_of(element)};
    for (int product = 0; product < kProducts; ++product) {
      kernels.product({kSide,
                       kSide,
                       kSide,
                       left,
                       right,
                       element,
                       {a + 2 * factor, kSide * 4},
                       /*accumulates=*/true,
                       rounding,
                       a + 2 * factor + result});
    }
  });
  return 2.0 * kSide * kSide * kSide * kProducts * threads / seconds;
}

double bytes_of_memory(unsigned threads) {
  constexpr std::size_t kBytes = std::size_t{32}
                                 << 20;  // of each thread, once read and once written
  constexpr int kRounds = 3;
  std::vector<std::vector<char>> memory(threads);
  const double seconds = shortest(threads, kRounds, [&](std::size_t i) {
    memory[i].resize(2 * kBytes);
    std::memcpy(memory[i].data(), memory[i].data() + kBytes, kBytes);
  });
  return 2.0 * static_cast<double>(kBytes) * threads / seconds;
}

}  // namespace

Peaks measure_peaks(const Kernels& kernels, Element element, Rounding rounding) {
  const unsigned threads = std::min(thread_count(), 16u);
  Peaks peaks{thread_count(), flops_of(kernels, element, rounding, threads),
              bytes_of_memory(threads)};
  peaks.flops_per_second *= static_cast<double>(peaks.threads) / threads;
  return peaks;
}

}  // namespace tilewright::cpu
