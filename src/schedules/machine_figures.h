#pragma once

// What the model knows of one GPU, an H200. Ranks hang on ratios of these, and hardly on one of
// them alone.
namespace tilewright::schedules {

struct MachineFigures {
  int multiprocessors = 132;
  double clock = 1.75e9;             // Hz, under load
  double fma_per_cycle = 2048;       // of 16-bit products, dense, a multiprocessor: 989 TFLOP/s at
                                     // 132 x 1.83 GHz (NVIDIA's data sheet)
  double product_efficiency = 0.87;  // 809 TFLOP/s of gemm 8192^3 (docs/performance.md)
  double shared_bytes_per_cycle = 128;  // a multiprocessor (CUDA programming guide)
  double l2_bytes_per_cycle = 56;       // a multiprocessor: gemm 8192^3 sustains 41 (the same), its
                                        // port has 64
  double memory_bytes_per_second = 4.2e12;  // of 4.8 TB/s (data sheet), what copies reach
  double l2_bytes = 50e6;         // of 60 MB, what stays usable beside the other partition's copies
  int shared_bytes = 227 * 1024;  // of all CTAs of a multiprocessor, each with 1 KB of its own
  int shared_bytes_of_system = 1024;
  int registers = 65536;
  int threads = 2048;
  double launch_seconds = 2.5e-6;  // from the event before an empty kernel to the one behind it
  double load_latency = 900;       // cycles of a TMA load from memory to its barrier's phase
  double store_latency = 700;      // cycles until a bulk store is complete

  // Cycles in which a scheduler issues one instruction of a warp: 32 lanes over the units of a
  // quarter of a multiprocessor (CUDA programming guide, throughput of native instructions).
  double issue_float = 1;    // add, mul, fma: 128 a cycle
  double issue_alu = 2;      // comparisons, minimum, select, integers: 64
  double issue_special = 8;  // exp2, rcp, log2: 16
  double issue_shuffle = 4;  // 32
  double wait_cycles = 20;   // a barrier that is open already
};

}  // namespace tilewright::schedules
