#pragma once

#include <cstdint>
#include <vector>

#include "ir/binding.h"
#include "ir/ir.h"
#include "target/devices.h"

namespace tilewright::schedules {

// What one CTA does at given sizes, in cycles of a multiprocessor that it has for itself.
struct CtaTimeline {
  double products = 0;  // of the tensor cores, by all warps together
  double chain = 0;     // of the slowest role, whose warps are in step: instructions and products
  double exposed = 0;   // of its latencies, those that nothing hides
  // Of the role that pauses longest: what its warps do while none of their products is under way.
  // What they do in each turn of a loop the products of others hide, but not the latencies there.
  double pauses = 0;
  double stages = 0;         // waits for copies, each divided by the stages of its ring
  double product_waits = 0;  // of a warpgroup for products that it has issued
  double loads = 0;          // of the port to L2
  double load_bytes = 0;     // the same in bytes
  double store_bytes = 0;
  double added_bytes = 0;  // to sums in memory
  double fma = 0;          // multiplications and additions of all products
  // Of units, by all warps together.
  double arithmetic = 0;      // of each scheduler's
  double special = 0;         // the same of exp2, rcp and log2
  double shared = 0;          // of shared memory: operands, copies, what threads read and write
  double tensor_memory = 0;   // of the port of tensor memory: sums, loads and stores
  bool counts_tiles = false;  // whoever is free takes the next: all CTAs end at about the same time
  std::int64_t taken = 0;     // so many, the first of which is the CTA's own
  bool takes_ahead = false;   // the next one as it begins a tile, not when it has loaded it
  std::vector<double> tiles;  // the products of each, in their order
  bool counts_for_cluster = false;  // by one CTA: what it tells the others is not followed
  double received_bytes = 0;  // by copies, also by those that another CTA of the cluster asks for
  double remote_bytes = 0;    // read from other CTAs' shared memory
  // Of copies for several CTAs, the bytes of rows behind a tensor's ends.
  double shared_zeros = 0;
  // Of those that add to a sum in turn, how many come before this CTA's first addition.
  double turns = 0;
};

// Follows the warps of CTA `cta` of `ctas` through a kernel of the machine form: scalars are
// computed, tiles are not. Each role runs in order, without waiting for the others; a tile counter
// in memory hands out tiles in turn. What hangs on a tile's values counts as taken.
CtaTimeline follow_cta(const ir::Kernel& machine, const ir::Binding& binding, std::int64_t cta,
                       std::int64_t ctas, const target::Device& device);

}  // namespace tilewright::schedules
