#include "target/sm_90a.h"

#include "target/warpgroups.h"

// "guide": the CUDA C++ programming guide, 13.0; "PTX": the PTX ISA, 9.0.
namespace tilewright::target {
namespace {

TargetLimits limits() {
  TargetLimits l;
  // Guide, table "technical specifications per compute capability", 9.0.
  l.shared_bytes = 227 << 10;
  l.multiprocessor_shared_bytes = 228 << 10;
  l.reserved_shared_bytes = 1 << 10;
  l.registers = 64 << 10;
  l.thread_registers = 255;
  l.lanes = 32;
  l.threads = 1024;
  l.multiprocessor_threads = 2048;
  l.shared_alignment = 1024;    // PTX, "shared memory matrix layout": of a 128-byte swizzle
  l.barrier_bytes = 8;          // PTX, "mbarrier object": 64 bits
  l.register_unit = 8;          // PTX, setmaxnreg; so does ptxas share them out
  l.least_role_registers = 24;  // PTX, setmaxnreg
  l.most_role_registers = 256;  // PTX, setmaxnreg
  l.group_warps = kGroupWarps;  // PTX, wgmma: "warpgroup"
  l.group_rows = kGroupRows;    // PTX, wgmma: m64
  l.named_barriers = 16;        // PTX, bar
  l.cluster = 16;               // guide, "thread block clusters": more than 8 are asked for
  l.copy_axes = 5;              // CUDA driver API, cuTensorMapEncodeTiled
  l.copy_extent = 256;          // the same
  l.copy_bytes = 16;            // the same
  return l;
}

Rates rates() {
  Rates r;
  // Guide, "throughput of native arithmetic instructions", 9.0: 32 lanes over the units of one of
  // the four schedulers.
  r.issue_float = 1;    // 128 results a cycle
  r.issue_integer = 2;  // 64
  r.issue_special = 8;  // 16
  r.issue_shuffle = 4;  // 32
  r.issue_control = 1;
  r.issue_scalar = 2;
  // Assumptions.
  r.issue_asynchronous = 8;
  r.barrier = 20;
  r.shared_latency = 30;
  r.global_latency = 600;
  r.copy_latency = 900;
  r.store_latency = 700;
  r.shared_bytes = 128;  // guide, "shared memory": 32 banks of 4 bytes
  r.l2_port_bytes = 64;
  r.fma = 2048;  // data sheet of the H100: 989 TFLOP/s at 132 multiprocessors x 1.83 GHz
  return r;
}

}  // namespace

Target sm_90a() {
  Target t;
  t.name = "sm_90a";
  t.chips = "NVIDIA Hopper: H100, H200, GH200";
  t.limits = limits();
  t.rates = rates();
  return t;
}

}  // namespace tilewright::target
