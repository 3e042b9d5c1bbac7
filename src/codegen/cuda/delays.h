#pragma once

#include <cstdint>

#include "codegen/cuda/cuda_printer.h"

namespace tilewright::codegen {

// The kernel with a sleep before every operation that synchronises or issues asynchronous work, to
// show on a GPU what depends on timing. Three of four sleeps take no time, most others up to 2 us,
// one of 64 up to 33 us: each execution draws it from the clock, the CTA, the warp, the place and
// the seed, the same for all lanes. Nothing else differs from print_cuda().
CudaSource print_cuda_with_delays(const ir::Kernel& machine, std::uint64_t seed);

}  // namespace tilewright::codegen
