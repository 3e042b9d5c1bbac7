#pragma once

#include "cpu/kernels.h"

namespace tilewright::cpu {

// What this machine reaches at best, measured in some hundredth of a second.
struct Peaks {
  unsigned threads = 1;         // thread_count()
  double flops_per_second = 0;  // of all of them, in products of tiles
  double bytes_per_second = 0;  // of all of them, read and written, where no cache holds it
};
Peaks measure_peaks(const Kernels& kernels, Element element, Rounding rounding);

}  // namespace tilewright::cpu
