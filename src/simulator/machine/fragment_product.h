#pragma once

#include <cstddef>
#include <vector>

namespace tilewright::simulator {

// One warp's share of a wgmma product: 16 rows of A, n columns of B. The accumulator stays in the
// order of its registers, lane l of register i holding row l / 4 + 8 (i / 2 % 2) and column i / 4 *
// 8 + l % 4 * 2 + i % 2, and the operands are kept so that they meet it without being moved.
//
// A: [k][16 rows][4 times the element], for the four lanes of a row.
constexpr std::size_t spread_a(unsigned row, unsigned k) { return k * 64 + row * 4; }
// B: [k][n / 8][column % 2][column % 8 / 2], for the four lanes.
constexpr std::size_t spread_b(unsigned n, unsigned column, unsigned k) {
  return k * n + column / 8 * 8 + column % 2 * 4 + column % 8 / 2;
}

// A from registers: lane l holds of 32-bit register j (of four) row l / 4 + 8 (j & 1) and the
// `packed` elements from packed * (l % 4) + 4 * packed * (j / 2) on. `registers` is [4 packed][32].
void spread_registers(int packed, const float* registers, float* a);

// accumulator [n / 2][32] += a b, or = a b. Each element adds its k products one after the other,
// ascending. Products of 16-bit and of 8-bit floats are exact in float (unless they are below
// 2^-126), so that machines with and without fused multiply-add give the same bits.
void multiply_fragment(int n, int k, const float* a, const float* b, bool accumulate,
                       float* accumulator);

// The same by each of the vector units that this machine has, the widest first.
using MultiplyGroups = void (*)(int groups, int k, const float* a, const float* b,
                                float* registers);
struct VectorUnit {
  const char* name;
  MultiplyGroups multiply;  // accumulates
};
const std::vector<VectorUnit>& vector_units();

}  // namespace tilewright::simulator
