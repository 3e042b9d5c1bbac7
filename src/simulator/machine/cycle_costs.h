#pragma once

#include <cstdint>

#include "simulator/machine/prepared_kernel.h"

// What an operation takes on the time axis of a trace, in cycles. Figures are of Hopper: "guide" is
// the CUDA programming guide's table of throughputs for a multiprocessor. It is a model to draw
// overlaps by, not a measurement: warps do not slow each other here, except at the tensor cores
// and where bytes pass.
namespace tilewright::simulator {

struct CycleCosts {
  // Of one warp.
  std::int64_t control = 1;
  std::int64_t scalar = 2;
  std::int64_t barrier = 20;       // an arrival, or a wait for what is complete: an assumption
  std::int64_t issue = 8;          // of a copy or a product: an assumption
  std::int64_t float_element = 1;  // add, mul, fma: 128 lanes a cycle, 32 of each scheduler (guide)
  std::int64_t integer_element = 2;    // comparisons, selects, conversions, integers: 64 (guide)
  std::int64_t special_element = 8;    // exp2, rcp, sqrt: 16 (guide)
  std::int64_t shuffle = 4;            // 32 (guide)
  std::int64_t shared_latency = 30;    // of a load by threads: an assumption
  std::int64_t global_latency = 600;   // of a load by threads, or an atomic: an assumption
  std::int64_t multiprocessors = 132;  // of an H100 SXM or H200
  // Of a multiprocessor.
  std::int64_t shared_bytes_per_cycle = 128;  // guide
  std::int64_t copy_bytes_per_cycle = 64;     // the port to the L2 cache
  std::int64_t load_latency = 900;            // of a TMA load: an assumption
  std::int64_t store_latency = 700;           // until a bulk store is complete: an assumption
  // Of a stream: a word or an event, and what a copy takes beside its bytes: an assumption. Between
  // GPUs 450 GB/s in each direction (data sheet of the H100) at 1.83 GHz.
  std::int64_t stream_operation = 100;
  std::int64_t peer_bytes_per_cycle = 245;
  // Multiplications of the four tensor cores in a cycle: 989 TFLOP/s dense of 16-bit products at
  // 132 multiprocessors x 1.83 GHz (data sheet of the H100); of 8-bit ones twice that.
  std::int64_t fma_per_cycle = 2048;
};
inline constexpr CycleCosts kCycleCosts;

// How long the instruction keeps its warp, waits aside.
std::int64_t issue_cycles(const PreparedKernel& kernel, const Instruction& instruction);
// How long the product keeps the tensor cores.
std::int64_t product_cycles(const Product& product);

}  // namespace tilewright::simulator
