#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "ptx/matrix.h"
#include "ptx/typed.h"
#include "simulator/machine/fragment_product.h"
#include "support/number_formats.h"

// wgmma and mma: descriptors are taken apart as the PTX manual has them, and the terms of a product
// are added as the simulator adds them. A product is done when it is issued; that its registers are
// left alone until a wait covers it is looked at where they are read.
namespace tilewright::ptx {
namespace {

constexpr int kRows = 16;  // of 64, of each of the four warps

// f32 in registers, and as the simulator's products take them.
void floats_of(const Lanes& lanes, float* to) {
  std::uint32_t bits[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) bits[lane] = static_cast<std::uint32_t>(lanes[lane]);
  std::memcpy(to, bits, sizeof(bits));
}
void set_floats(Lanes& lanes, const float* from) {
  std::uint32_t bits[kLanes];
  std::memcpy(bits, from, sizeof(bits));
  for (int lane = 0; lane < kLanes; ++lane) lanes[lane] = bits[lane];
}

bool immediate(Execution& x, std::size_t operand) {
  const std::uint64_t value = x.uniform(operand);
  if (value > 1) x.fail("wgmma", fmt::format("with {} as operand {}", value, operand));
  return value == 1;
}

// Writes of threads to what a product takes or gives in registers are ordered by a fence.
void check_fenced(Execution& x, const Operand& registers) {
  for (const Operand& each : registers.parts) {
    if (each.kind != Operand::Kind::reg) continue;
    if (x.warp.fence_of[each.index] > x.warp.product_fences) {
      x.fail("wgmma", "takes a register with no wgmma.fence behind what wrote it");
    }
  }
}

// Packed elements of registers, as spread_registers takes them.
std::vector<float> values_of(Execution& x, const Operand& registers, Type type) {
  const int element = size_of(type), packed = 4 / element;
  std::vector<float> values(registers.parts.size() * static_cast<std::size_t>(packed) * kLanes);
  for (std::size_t r = 0; r < registers.parts.size(); ++r) {
    const Lanes& lanes = x.read(registers.parts[r], 0);
    for (int e = 0; e < packed; ++e) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const std::uint64_t bits = lanes[lane] >> 8 * element * e;
        decode_elements(type, reinterpret_cast<const std::byte*>(&bits), 1,
                        &values[(r * packed + e) * kLanes + lane]);
      }
    }
  }
  return values;
}

void product(Execution& x) {
  x.need_whole_warp();
  const Instruction& i = x.instruction;
  const Type type = i.second;
  if (i.type != Type::f32 || (type != Type::bf16 && type != Type::f16 && type != Type::e4m3)) {
    x.unsupported();
  }
  const Operand &d = x.operand(0), &a = x.operand(1);
  const int element = size_of(type), n = i.n, k = i.k;
  const bool from_registers = a.kind == Operand::Kind::vector;
  if (d.kind != Operand::Kind::vector || static_cast<int>(d.parts.size()) != n / 2 ||
      k * element != 32 || (from_registers && a.parts.size() != 4)) {
    x.unsupported();
  }
  const bool accumulate = x.uniform(3) & 1;
  if (x.uniform(4) != 1 || x.uniform(5) != 1) x.unsupported();
  // Of 8-bit operands both are K-major, and nothing says so.
  const bool has_majors = element == 2;
  const bool transposed_a = has_majors && !from_registers && immediate(x, 6);
  const bool transposed_b = has_majors && immediate(x, from_registers ? 6 : 7);
  const std::uint64_t b_descriptor = x.uniform(2);
  const Matrix b_matrix = decode_matrix(x, b_descriptor, transposed_b, element);
  std::vector<float> b(static_cast<std::size_t>(n) * k), rows(simulator::spread_a(0, k));
  read_matrix(x, x.cta(), type, b_matrix, 0, n, k, [&](int column, int at, float value) {
    b[simulator::spread_b(n, column, at)] = value;
  });
  std::uint64_t a_descriptor = 0;
  check_fenced(x, d);
  if (from_registers) {
    check_fenced(x, a);
    simulator::spread_registers(4 / element, values_of(x, a, type).data(), rows.data());
  } else {
    a_descriptor = x.uniform(1);
    const Matrix a_matrix = decode_matrix(x, a_descriptor, transposed_a, element);
    read_matrix(x, x.cta(), type, a_matrix, x.warp.index % 4 * kRows, kRows, k,
                [&](int row, int at, float value) {
                  for (int copy = 0; copy < 4; ++copy)
                    rows[simulator::spread_a(row, at) + copy] = value;
                });
  }
  std::vector<float> sums(static_cast<std::size_t>(n / 2) * kLanes);
  for (std::size_t r = 0; accumulate && r < d.parts.size(); ++r) {
    floats_of(x.warp.registers[d.parts[r].index], &sums[r * kLanes]);
  }
  simulator::multiply_fragment(n, k, rows.data(), b.data(), accumulate, sums.data());
  for (std::size_t r = 0; r < d.parts.size(); ++r) {
    set_floats(x.target(d.parts[r]), &sums[r * kLanes]);
    x.warp.product_of[d.parts[r].index] = x.warp.product_groups;
    x.warp.fence_of[d.parts[r].index] = 0;
  }
  x.warp.last_product = x.warp.product_groups;
  x.warp.product_line = i.line;
  const auto signed_of = [](std::uint64_t bits) { return static_cast<std::int64_t>(bits); };
  x.record(EventKind::product, {n, k, static_cast<std::int64_t>(type), from_registers,
                                signed_of(a_descriptor), signed_of(b_descriptor), accumulate});
}

// The product of one warp, whose registers lie as a warp's share of wgmma does: lane l has of B the
// elements 2 (l % 4) and the next, and those 8 further, of column l / 4.
void warp_product(Execution& x) {
  x.need_whole_warp();
  const Instruction& i = x.instruction;
  const Type type = i.second;
  const Operand &d = x.operand(0), &a = x.operand(1), &b = x.operand(2), &c = x.operand(3);
  const bool whole = i.has(Modifier::m16n8k16);
  const std::size_t b_parts = whole ? 2 : 1;
  if (i.type != Type::f32 || (type != Type::f16 && type != Type::bf16) || d.parts.size() != 4 ||
      c.parts.size() != 4 || a.parts.size() != 2 * b_parts || b.parts.size() != b_parts) {
    x.unsupported();
  }
  constexpr int kColumns = 8, kDepth = 16;
  // Of a product of half the depth the other half is 0.
  std::vector<float> from_a = values_of(x, a, type), rows(simulator::spread_a(0, kDepth));
  from_a.resize(std::size_t{8} * kLanes);
  simulator::spread_registers(2, from_a.data(), rows.data());
  const std::vector<float> from_b = values_of(x, b, type);
  std::vector<float> columns(static_cast<std::size_t>(kColumns) * kDepth);
  for (std::size_t r = 0; r < from_b.size() / kLanes; ++r) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int k = lane % 4 * 2 + static_cast<int>(r % 2) + static_cast<int>(r / 2) * 8;
      columns[simulator::spread_b(kColumns, lane / 4, k)] = from_b[r * kLanes + lane];
    }
  }
  std::vector<float> sums(std::size_t{4} * kLanes);
  for (std::size_t r = 0; r < 4; ++r) floats_of(x.read(c.parts[r], 0), &sums[r * kLanes]);
  simulator::multiply_fragment(kColumns, kDepth, rows.data(), columns.data(), true, sums.data());
  for (std::size_t r = 0; r < 4; ++r) set_floats(x.target(d.parts[r]), &sums[r * kLanes]);
}

void fence_products(Execution& x) {
  x.need_whole_warp();
  x.record(EventKind::product_fence);
  ++x.warp.product_fences;
}

void commit_products(Execution& x) {
  x.need_whole_warp();
  x.record(EventKind::product_commit);
  ++x.warp.product_groups;
}

void wait_products(Execution& x) {
  x.need_whole_warp();
  const auto pending = static_cast<std::int64_t>(x.uniform(0));
  x.record(EventKind::product_wait, {pending});
  x.warp.groups_over = std::max(x.warp.groups_over, x.warp.product_groups - 1 - pending);
  complete_groups(x, Agent::products, x.warp.groups_over);
}

constexpr Record kProductRecords[] = {
    {"wgmma.mma_async", "vvssss?ss", "sync aligned", "f32 f16 bf16 e4m3", product},
    {"mma.sync", "vvvv", "aligned m16n8k8 m16n8k16 row col", "f32 f16 bf16", warp_product},
    {"wgmma.fence", "", "sync aligned", "", fence_products},
    {"wgmma.commit_group", "", "sync aligned", "", commit_products},
    {"wgmma.wait_group", "s", "sync aligned", "", wait_products},
};

}  // namespace

std::span<const Record> product_records() { return kProductRecords; }

}  // namespace tilewright::ptx
