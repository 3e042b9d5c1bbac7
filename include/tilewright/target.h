#pragma once

#include <cstdint>
#include <string_view>

#include "tilewright/error.h"

// What a target gives to a kernel, for those that plan by hand: src/target has the rest of its
// record.
namespace tilewright {

// Of the architecture, alike in all of its chips. 0 where a target has no such thing.
struct TargetLimits {
  // Shared memory, in bytes.
  std::int64_t shared_bytes = 0;                 // of a CTA, at most
  std::int64_t multiprocessor_shared_bytes = 0;  // of all CTAs of a multiprocessor together
  std::int64_t reserved_shared_bytes = 0;        // of these, taken by the system for each CTA
  std::int64_t shared_alignment = 0;             // after which swizzled tiles repeat
  std::int64_t barrier_bytes = 0;                // of an mbarrier

  // Registers of 32 bits. Those of a thread are allotted in whole units.
  std::int64_t registers = 0;  // of a multiprocessor, and of a CTA at most
  std::int64_t register_unit = 0;
  std::int64_t thread_registers = 0;  // that a thread's instructions can name
  std::int64_t least_role_registers = 0,
               most_role_registers = 0;  // of a thread, that a role may ask for

  // Threads.
  std::int64_t lanes = 0;        // of a warp
  std::int64_t group_warps = 0;  // of a warpgroup
  std::int64_t group_rows = 0;   // of the product of a warpgroup
  std::int64_t threads = 0;      // of a CTA, at most
  std::int64_t multiprocessor_threads = 0;
  std::int64_t named_barriers = 0;  // of a CTA, with that which all of its threads share
  std::int64_t cluster = 0;         // CTAs of a cluster, at most

  // Products of a warpgroup: of group_rows rows, in whole units of columns.
  std::int64_t product_columns = 0, product_column_unit = 0;
  std::int64_t product_depth_bytes = 0;  // of a row of its first operand
  std::int64_t product_groups = 0;       // that a wait for products can leave in flight, at most

  // Tensor memory: columns of 32 bits in each lane. Allocations are powers of two of columns.
  std::int64_t tensor_lanes = 0;
  std::int64_t tensor_columns = 0;        // of all CTAs of a multiprocessor together
  std::int64_t least_tensor_columns = 0;  // of an allocation

  // Copies by the asynchronous unit.
  std::int64_t copy_axes = 0;    // of a tensor
  std::int64_t copy_extent = 0;  // elements of a copy along one axis, at most
  std::int64_t copy_bytes = 0;   // of which rows and strides are whole multiples

  std::int64_t group_threads() const { return lanes * group_warps; }
  std::int64_t warps() const { return threads / lanes; }
};

// An unknown name is a usage error that lists the known ones.
const TargetLimits& target_limits(std::string_view target, SourceLocation where = {});

// Registers of each thread of a CTA of 1 to TargetLimits::threads from its launch on: a
// multiprocessor's, in whole units. The assembler allots them as if roles had none of their own.
int launch_registers(const TargetLimits& limits, std::int64_t threads);

// What a warpgroup that loads gives of them to so many warpgroups that compute, a thread, in each
// of so many CTAs of a multiprocessor. One that computes alone there has as many as each of two: no
// instruction could name the rest.
struct RoleRegisters {
  int loading = 0, computing = 0;
};
RoleRegisters role_registers(const TargetLimits& limits, std::int64_t computing_groups,
                             std::int64_t ctas = 1);

}  // namespace tilewright
