#include "ir/verifier_context.h"

// Limits that several operations share: warps, registers, shared memory.
namespace tilewright::ir {
namespace {

constexpr std::int64_t kSharedBytes = 232448;  // of one CTA on sm_90 and sm_100
constexpr std::int64_t kRegisters = 65536;     // of one multiprocessor

struct Range {
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool barriers = false;

  bool overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

bool uses_warpgroups(const Operation& operation) {
  bool found = false;
  for (const Block& block : operation.blocks) {
    for_each(block, [&found](const Operation& inner) {
      found |= info(inner.op).agent == Agent::warpgroup && inner.op != Op::set_max_registers;
    });
  }
  return found;
}

void verify_role(VerifierContext& context, const Operation& role, std::vector<Range>& roles) {
  context.enter(role);
  const std::string& name = role.attributes.text(Key::name);
  const std::int64_t first = context.integer(Key::first_warp);
  const std::int64_t count = context.integer(Key::warps);
  const std::int64_t available = context.kernel().threads / 32;
  context.require(first >= 0 && count >= 1 && first + count <= available,
                  "{} has warps {} to {}, but the CTA has {}", name, first, first + count - 1,
                  available);
  context.require(context.kernel().threads % 128 == 0,
                  "a CTA of {} threads, expected a multiple of 128 where there are roles",
                  context.kernel().threads);
  const std::int64_t registers = context.integer(Key::registers);
  context.require(registers == 0 || (registers >= 24 && registers <= 256 && registers % 8 == 0),
                  "{} has {} registers a thread, expected a multiple of 8 from 24 to 256", name,
                  registers);
  context.require(!uses_warpgroups(role) || (first % 4 == 0 && count % 4 == 0),
                  "{} works by warpgroups but has {} warps from warp {}, expected multiples of 4",
                  name, count, first);
  const Range range{name, first, first + count};
  for (const Range& other : roles) {
    context.require(!range.overlaps(other), "{} and {} share warps: {} to {} and {} to {}", name,
                    other.name, range.begin, range.end - 1, other.begin, other.end - 1);
  }
  roles.push_back(range);
}

void verify_roles(VerifierContext& context) {
  std::vector<Range> roles;
  std::int64_t registers = 0;
  for (const Operation& operation : context.kernel().body.body) {
    if (operation.op != Op::role) continue;
    verify_role(context, operation, roles);
    registers += context.integer(Key::registers) * context.integer(Key::warps) * 32;
    context.require(registers <= kRegisters, "the roles so far take {} registers of {}", registers,
                    kRegisters);
  }
}

void verify_shared_memory(VerifierContext& context) {
  const Kernel& kernel = context.kernel();
  std::vector<Range> ranges;
  for (const Operation& operation : kernel.body.body) {
    if ((operation.op != Op::shared && operation.op != Op::mbarriers) ||
        !operation.attributes.has(Key::offset)) {
      continue;
    }
    context.enter(operation);
    const bool barriers = operation.op == Op::mbarriers;
    const std::int64_t bytes =
        barriers ? 8 * context.result().elements()
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

}  // namespace

void verify_resources(VerifierContext& context) {
  context.leave();
  const std::int64_t bytes = context.kernel().shared_bytes;
  context.require(bytes >= 0 && bytes <= kSharedBytes,
                  "{} bytes of shared memory, expected at most {}", bytes, kSharedBytes);
  verify_roles(context);
  verify_shared_memory(context);
}

}  // namespace tilewright::ir
