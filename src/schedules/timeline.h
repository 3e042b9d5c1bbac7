#pragma once

#include <cstdint>

#include "ir/binding.h"
#include "ir/ir.h"
#include "target/devices.h"

namespace tilewright::schedules {

// What one CTA does at given sizes, in cycles of a multiprocessor that it has for itself.
struct CtaTimeline {
  double products = 0;    // of the tensor cores, by all warps together
  double issue = 0;       // of each of the four schedulers, by all warps together
  double chain = 0;       // of the slowest warp: its instructions and the products it waits for
  double load_bytes = 0;  // from L2
  double store_bytes = 0;
  double fma = 0;  // multiplications and additions of all products
};

// Follows the warps of CTA `cta` of `ctas` through a kernel of the machine form: scalars are
// computed, tiles are not. Each role runs in order, without waiting for the others; a tile counter
// in memory hands out tiles in turn. What hangs on a tile's values counts as taken.
CtaTimeline follow_cta(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t cta,
                       std::int64_t ctas, const target::Device& device);

}  // namespace tilewright::schedules
