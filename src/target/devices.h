#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tilewright/dtype.h"

// What chips of a target have: they differ in how much, and run the same programs.
namespace tilewright::target {

struct Device {
  std::string name;    // "H200 SXM"
  std::string target;  // "sm_90a"
  std::string source;
  int multiprocessors = 0;
  double clock = 0;          // Hz, at which the peaks below hold
  double memory_bytes = 0;   // a second
  double peer_bytes = 0;     // a second, to other GPUs in one direction
  std::int64_t l2_size = 0;  // bytes
  // Peaks of a second, without sparsity.
  double half_flops = 0;     // products of bf16 and f16 on the tensor cores
  double quarter_flops = 0;  // of f8 and i8
  double single_flops = 0;   // f32 outside of the tensor cores

  double flops(DType dtype) const;

  // What kernels were seen to reach: what the model of costs takes for the device.
  struct Reached {
    double clock = 0;           // Hz, under load
    double product_share = 0;   // of the tensor cores' peak
    double l2_bytes = 0;        // a cycle and multiprocessor
    double remote_bytes = 0;    // a cycle and multiprocessor, from another CTA's shared memory
    double memory_bytes = 0;    // a second
    double launch_seconds = 0;  // with cold caches, that of code among them
  } reached;
};

const std::vector<Device>& devices();
// The first of the target's.
const Device& device_of(std::string_view target);

}  // namespace tilewright::target
