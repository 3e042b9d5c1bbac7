#pragma once

// What the model knows of one GPU, an H200. "Fitted" figures are those with which the model comes
// closest to 315 measurements of gemm's variants (docs/schedules.md); the others' sources stand
// beside them.
namespace tilewright::schedules {

struct MachineFigures {
  int multiprocessors = 132;
  double clock = 1.75e9;        // Hz, under load
  double fma_per_cycle = 2048;  // of 16-bit products, dense, a multiprocessor: 989 TFLOP/s at 132 x
                                // 1.83 GHz (NVIDIA's data sheet)
  double product_efficiency = 0.95;     // fitted
  double shared_bytes_per_cycle = 128;  // a multiprocessor (CUDA programming guide)
  double l2_bytes_per_cycle = 56;       // a multiprocessor: gemm 8192^3 takes 41 in the time that
                                        // docs/performance.md has for it, the port has 64
  double memory_bytes_per_second = 3.5e12;  // fitted; 4.8e12 by the data sheet
  double remote_bytes_per_cycle = 2.5;      // fitted: from another CTA's shared memory, a
                                            // multiprocessor
  double launch_seconds = 6e-6;             // fitted: with cold caches, that of code among them
  double exposed = 0.1;  // of what is not the bottleneck, that shows where a pipeline fills and
                         // drains: an assumption, which ranks equals
  double load_latency = 900;   // cycles of a TMA load to its barrier's phase: an assumption
  double store_latency = 700;  // cycles until a bulk store is complete: an assumption

  // Of all CTAs of a multiprocessor (CUDA programming guide).
  int shared_bytes = 228 * 1024;
  int shared_bytes_of_system = 1024;  // for each CTA
  int registers = 65536;
  int threads = 2048;

  // Cycles in which a scheduler issues one instruction of a warp: 32 lanes over the units of a
  // quarter of a multiprocessor (CUDA programming guide, throughput of native instructions).
  double issue_float = 1;    // add, mul, fma: 128 a cycle
  double issue_alu = 2;      // comparisons, minimum, select, integers: 64
  double issue_special = 8;  // exp2, rcp, log2: 16
  double issue_shuffle = 4;  // 32
  double wait_cycles = 20;   // a barrier that is open already: an assumption
};

}  // namespace tilewright::schedules
