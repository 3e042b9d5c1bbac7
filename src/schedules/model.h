#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "ir/binding.h"
#include "ir/ir.h"
#include "target/devices.h"

namespace tilewright::schedules {

// What a launch should take, and why. It is made to rank the variants of one kernel, not to replace
// a clock (docs/schedules.md says how far it is off).
struct Estimate {
  double seconds = 0;
  // What each would take alone, in seconds.
  double products = 0;       // the target's unit for them, or shared memory where that feeds them
  double special = 0;        // exp2 and its like
  double arithmetic = 0;     // of numbers and integers in registers
  double shared = 0;         // shared memory: operands, copies and threads
  double tensor_memory = 0;  // its port, where there is one
  double loads = 0;          // L2 to shared memory, and what other CTAs ask for too
  double zeros = 0;          // of copies for several CTAs, what lies behind a tensor's ends
  double additions = 0;      // to sums in memory, by all CTAs at once
  double stages = 0;         // until a stage of a ring is there, is used and is free again
  double memory = 0;         // every tensor once
  // What the slowest warps do while no products are under way, or, of a kernel without products,
  // their latencies that nothing hides.
  double exposed = 0;
  double turns = 0;   // until those before the last CTA have added to its first sum
  std::string bound;  // which of them it is
  std::int64_t ctas = 0;
  std::int64_t resident = 0;  // CTAs that a multiprocessor holds
  std::int64_t shared_bytes = 0;
};

// The times that each would take alone: their keys in JSON, and their names in a report.
struct EstimatePart {
  double Estimate::*seconds;
  std::string_view key, name;
};
inline constexpr EstimatePart kEstimateParts[] = {
    {&Estimate::products, "products", "tensor cores"},
    {&Estimate::special, "special", "exp2 and its like"},
    {&Estimate::arithmetic, "arithmetic", "arithmetic"},
    {&Estimate::shared, "shared", "shared memory"},
    {&Estimate::tensor_memory, "tensor_memory", "tensor memory"},
    {&Estimate::loads, "loads", "loads from L2"},
    {&Estimate::zeros, "zeros", "copies of what no tensor has"},
    {&Estimate::additions, "additions", "additions to memory"},
    {&Estimate::stages, "stages", "stages of rings"},
    {&Estimate::memory, "memory", "memory"},
    {&Estimate::exposed, "exposed", "pauses"},
    {&Estimate::turns, "turns", "turns of sums"},
};
constexpr bool are_listed_once(const EstimatePart* first, const EstimatePart* end) {
  for (; first != end; ++first) {
    for (const EstimatePart* other = first + 1; other != end; ++other) {
      if (first->seconds == other->seconds) return false;
    }
  }
  return true;
}
static_assert(offsetof(Estimate, bound) == sizeof(double) * (1 + std::size(kEstimateParts)) &&
                  are_listed_once(std::begin(kEstimateParts), std::end(kEstimateParts)),
              "each time of an estimate has its entry");

// By how much it was off, as a root mean square, for variants of an H200 at sizes that nothing was
// fitted to: what is said beside estimates of devices that nothing has run on.
// tests/library/measured_variants_test.cpp holds it.
constexpr double kHeldOutError = 0.1;

// Additions and multiplications of the products that all CTAs of a launch execute: also of what a
// block computes beyond its tensors' ends or behind a mask, and again of what is computed again.
double product_flops(const ir::Kernel& machine, const ir::Binding& binding,
                     const target::Device& device);

// Of a kernel of the machine form, with the dimensions bound.
Estimate estimate(const ir::Kernel& machine, const ir::Binding& binding,
                  const target::Device& device);

}  // namespace tilewright::schedules
