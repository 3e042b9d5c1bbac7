#include "target/verify.h"

#include <algorithm>

#include "ir/verifier.h"
#include "ir/verifier_context.h"
#include "target/target.h"
#include "target/verify_core.h"

namespace tilewright::target {
namespace {

using ir::Key;
using ir::Memory;
using ir::Op;
using ir::Operation;
using ir::VerifierContext;

struct Range {
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool barriers = false;

  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

bool uses_warpgroups(const Operation& operation) {
  bool found = false;
  for (const ir::Block& block : operation.blocks) {
    ir::for_each(block, [&found](const Operation& inner) {
      found |= ir::info(inner.op).agent == ir::Agent::warpgroup && inner.op != ir::Op::store_tile;
    });
  }
  return found;
}

void verify_budget(const VerifierContext& context, const TargetLimits& limits, std::int64_t count) {
  context.require(count >= limits.least_role_registers && count <= limits.most_role_registers &&
                      count % limits.register_unit == 0,
                  "{} registers a thread, expected a multiple of {} from {} to {}", count,
                  limits.register_unit, limits.least_role_registers, limits.most_role_registers);
}

void verify_role(VerifierContext& context, const TargetLimits& limits, const Operation& role,
                 std::vector<Range>& roles) {
  context.enter(role);
  const std::string& name = role.attributes.text(Key::name);
  const std::int64_t first = context.integer(Key::first_warp);
  const std::int64_t count = context.integer(Key::warps);
  const std::int64_t available = context.kernel().threads / limits.lanes;
  context.require(first >= 0 && count >= 1 && first + count <= available,
                  "{} has warps {} to {}, but the CTA has {}", name, first, first + count - 1,
                  available);
  context.require(context.kernel().threads % limits.group_threads() == 0,
                  "a CTA of {} threads, expected a multiple of {} where there are roles",
                  context.kernel().threads, limits.group_threads());
  const std::int64_t registers = context.integer(Key::registers);
  if (registers != 0) verify_budget(context, limits, registers);
  const std::int64_t group = limits.group_warps;
  context.require(!uses_warpgroups(role) || (first % group == 0 && count % group == 0),
                  "{} works by warpgroups but has {} warps from warp {}, expected multiples of {}",
                  name, count, first, group);
  const Range range{name, first, first + count};
  for (const Range& other : roles) {
    context.require(!range.overlaps(other), "{} and {} share warps: {} to {} and {} to {}", name,
                    other.name, range.begin, range.end - 1, other.begin, other.end - 1);
  }
  roles.push_back(range);
  ir::for_each(role.blocks[0], [&](const Operation& inner) {
    if (inner.op != Op::set_max_registers || !inner.attributes.has(Key::first_warp)) return;
    context.enter(inner);
    context.fail("in a role with first_warp, expected it before the roles");
  });
}

// Before the roles it says whose registers it sets; in one they are those of its warps.
void verify_registers_of_group(VerifierContext& context, const TargetLimits& limits,
                               const Operation& set) {
  context.enter(set);
  const std::int64_t first = context.integer(Key::first_warp, -1);
  context.require(first >= 0 && first % limits.group_warps == 0 &&
                      first < context.kernel().threads / limits.lanes,
                  "outside the roles with first_warp {}, expected the first warp of a warpgroup",
                  first);
}

void verify_roles(VerifierContext& context, const TargetLimits& limits) {
  std::vector<Range> roles;
  std::int64_t registers = 0;
  for (const Operation& operation : context.kernel().body.body) {
    if (operation.op == Op::set_max_registers) {
      verify_registers_of_group(context, limits, operation);
    }
    if (operation.op != Op::role) continue;
    verify_role(context, limits, operation, roles);
    registers += context.integer(Key::registers) * context.integer(Key::warps) * limits.lanes;
    context.require(registers <= limits.registers, "the roles so far take {} registers of {}",
                    registers, limits.registers);
  }
}

void verify_shared_memory(VerifierContext& context, const TargetLimits& limits) {
  const ir::Kernel& kernel = context.kernel();
  std::vector<Range> ranges;
  for (const Operation& operation : kernel.body.body) {
    if ((operation.op != Op::shared && operation.op != Op::mbarriers) ||
        !operation.attributes.has(Key::offset)) {
      continue;
    }
    context.enter(operation);
    const bool barriers = operation.op == Op::mbarriers;
    const std::int64_t bytes =
        barriers ? limits.barrier_bytes * context.result().elements()
                 : operation.attributes.shared_layout().size_bytes() * context.integer(Key::stages);
    const std::int64_t begin = context.integer(Key::offset);
    const Range range{operation.attributes.text(Key::name), begin, begin + bytes, barriers};
    context.require(range.end <= kernel.shared_bytes,
                    "{} ends at byte {} of shared memory, which has {}", range.name, range.end,
                    kernel.shared_bytes);
    // Tiles may share memory where their lifetimes allow; a barrier lives as long as the kernel.
    for (const Range& other : ranges) {
      context.require(!(range.barriers || other.barriers) || !range.overlaps(other),
                      "{} and {} overlap: bytes {} to {} and {} to {}", range.name, other.name,
                      range.begin, range.end - 1, other.begin, other.end - 1);
    }
    ranges.push_back(range);
  }
}

// All of them may be held at once. Before allocate_shared that is an author's mistake, which this
// pass tells; behind it there is the word that gets the address.
void verify_tensor_memory(VerifierContext& context, const TargetLimits& limits) {
  if (context.kernel().shared_bytes == 0) return;
  std::int64_t taken = 0;
  for (const Operation& operation : context.kernel().body.body) {
    if (operation.op != Op::tensor_memory) continue;
    context.enter(operation);
    const std::int64_t columns = context.result().shape[0];
    taken += columns;
    context.require(columns >= limits.least_tensor_columns,
                    "{} has {} columns of tensor memory, expected at least {}",
                    operation.attributes.text(Key::name), columns, limits.least_tensor_columns);
    context.require(taken <= limits.tensor_columns,
                    "{} and what stands before it take {} columns of tensor memory, which has {}",
                    operation.attributes.text(Key::name), taken, limits.tensor_columns);
  }
}

void verify_header(const VerifierContext& context, const Target& target) {
  const ir::Kernel& kernel = context.kernel();
  const TargetLimits& limits = target.limits;
  context.require(kernel.threads >= limits.lanes && kernel.threads <= limits.threads &&
                      kernel.threads % limits.lanes == 0,
                  "{} threads, expected a multiple of {} from {} to {}", kernel.threads,
                  limits.lanes, limits.lanes, limits.threads);
  context.require(kernel.cluster >= 1 && kernel.cluster <= limits.cluster,
                  "a cluster of {} CTAs, expected 1 to {}", kernel.cluster, limits.cluster);
  context.require(!kernel.cta_pairs || limits.tensor_columns > 0,
                  "cta_pairs, and {} has no tensor memory", target.name);
  const std::int64_t registers = kernel.resident * kernel.threads * limits.least_role_registers;
  context.require(kernel.resident >= 1 && registers <= limits.registers,
                  "{} CTAs of {} threads share {} registers, expected at least {} a thread",
                  kernel.resident, kernel.threads, limits.registers, limits.least_role_registers);
  const Space& shared = target.space(Memory::shared);
  context.require(kernel.shared_bytes >= 0 && kernel.shared_bytes <= shared.bytes,
                  "{} bytes of {}, expected at most {}", kernel.shared_bytes, shared.name,
                  shared.bytes);
}

void verify_box(const VerifierContext& context, const TargetLimits& limits) {
  const std::string& name = context.attributes().text(Key::name);
  const std::vector<std::int64_t>& box = context.attributes().integers(Key::box);
  context.require(static_cast<std::int64_t>(box.size()) <= limits.copy_axes,
                  "{}: a box of rank {}, expected at most {}", name, box.size(), limits.copy_axes);
  const std::int64_t widest = *std::max_element(box.begin(), box.end());
  context.require(widest <= limits.copy_extent, "{}: an extent of {}, expected 1 to {}", name,
                  widest, limits.copy_extent);
  const std::int64_t row =
      box.back() * size_of(context.tensor_of(context.operation().operands[0]).dtype);
  context.require(row % limits.copy_bytes == 0, "{}: rows of {} bytes, expected a multiple of {}",
                  name, row, limits.copy_bytes);
}

void verify_named_barrier(const VerifierContext& context, const TargetLimits& limits) {
  const std::int64_t first = context.integer(Key::first), last = limits.named_barriers - 1;
  const std::int64_t end = first + context.integer(Key::count, 1) - 1;
  context.require(end <= last, "barriers {} to {}, expected 1 to {} (0 is cta_sync's)", first, end,
                  last);
  const std::int64_t index = context.constant_operand(0).value_or(0);
  context.require(first + index <= last, "barrier {} + {}, expected 1 to {}", first, index, last);
}

void verify_columns(const VerifierContext& context, const TargetLimits& limits, std::int64_t n) {
  const std::int64_t unit = limits.product_column_unit;
  context.require(n >= unit && n <= limits.product_columns && n % unit == 0,
                  "n is {}, expected a multiple of {} up to {}", n, unit, limits.product_columns);
}

// The operation alone against the record.
void verify_operation(const VerifierContext& context, const Target& target) {
  const Operation& operation = context.operation();
  const ir::OpInfo& record = ir::info(operation.op);
  context.require(target.has(record), "{} has no such operation", target.name);
  if (const std::optional<Move> move = target.missing_move(record)) {
    context.fail("{} moves nothing from {} to {}", target.name, target.space(move->from).name,
                 target.space(move->to).name);
  }
  if (operation.op == Op::tensor_map) verify_box(context, target.limits);
  if (record.is_asynchronous_product()) {
    context.require(context.result().shape[0] % target.limits.group_rows == 0,
                    "m is {}, expected a multiple of {}", context.result().shape[0],
                    target.limits.group_rows);
    verify_columns(context, target.limits, context.result().shape[1]);
  }
  if (record.family == ir::Family::product) {
    verify_columns(context, target.limits, context.integer(Key::n));
  }
  if (record.family == ir::Family::named_barrier) verify_named_barrier(context, target.limits);
  if (record.family == ir::Family::register_budget) {
    verify_budget(context, target.limits, context.integer(Key::count));
  }
}

// Of the forms past the tile form. Operations know who defines their operands only once these have
// been seen.
void verify_block(VerifierContext& context, const Target& target, const ir::Block& block) {
  for (const Operation& operation : block.body) {
    context.enter(operation);
    verify_operation(context, target);
    for (const ir::ValueId result : operation.results) context.define(result, operation);
    for (const ir::Block& inner : operation.blocks) verify_block(context, target, inner);
  }
}

}  // namespace

void verify(const ir::Kernel& kernel, ErrorKind kind) {
  ir::verify(kernel, kind);
  if (kernel.form == ir::Form::tile) return;
  const Target& target = target_of(kernel);
  VerifierContext context(kernel, kind);
  if (target.core) return verify_core(context, target);
  verify_header(context, target);
  verify_block(context, target, kernel.body);
  verify_roles(context, target.limits);
  verify_shared_memory(context, target.limits);
  verify_tensor_memory(context, target.limits);
}

}  // namespace tilewright::target
