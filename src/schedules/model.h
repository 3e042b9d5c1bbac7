#pragma once

#include <cstdint>
#include <string>

#include "ir/binding.h"
#include "ir/ir.h"
#include "target/devices.h"

namespace tilewright::schedules {

// What a launch should take, and why. It is made to rank the variants of one kernel, not to replace
// a clock (docs/schedules.md says how far it is off).
struct Estimate {
  double seconds = 0;
  // What each would take alone; the largest decides.
  double products = 0;      // the target's unit for them
  double instructions = 0;  // the schedulers
  double loads = 0;         // L2 to shared memory
  double chain = 0;         // what the slowest warps do one after the other
  double memory = 0;        // every tensor once
  std::string bound;        // which of them it is
  std::int64_t ctas = 0;
  std::int64_t resident = 0;  // CTAs that a multiprocessor holds
  std::int64_t shared_bytes = 0;
};

// Additions and multiplications of the products that all CTAs of a launch execute: also of what a
// block computes beyond its tensors' ends or behind a mask, and again of what is computed again.
double product_flops(const ir::Kernel& machine, const ir::Binding& binding,
                     const target::Device& device);

// Of a kernel of the machine form, with the dimensions bound.
Estimate estimate(const ir::Kernel& machine, const ir::Binding& binding,
                  const target::Device& device);

}  // namespace tilewright::schedules
