// What is computed in vectors: the same bits by each unit of this machine, and what the plain
// formula gives.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include "simulator/evaluate_elementwise.h"
#include "simulator/machine/fragment_product.h"
#include "support/number_formats.h"

namespace tilewright::simulator {
namespace {

std::vector<float> random_values(std::size_t count, DType dtype, std::uint32_t seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = round_to(dtype, normal(engine));
  return values;
}

// By the definition: row, column and order of each accumulator's sum.
std::vector<float> product(int n, int k, const std::vector<float>& a, const std::vector<float>& b,
                           std::vector<float> registers) {
  for (int i = 0; i < n / 2; ++i) {
    for (int lane = 0; lane < 32; ++lane) {
      const int row = lane / 4 + (i % 4 >= 2 ? 8 : 0), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
      float& sum = registers[i * 32 + lane];
      for (int j = 0; j < k; ++j) sum += a[row * k + j] * b[j * n + column];
    }
  }
  return registers;
}

TEST(VectorUnits, MultiplyToTheSameBits) {
  for (const auto& [n, k, dtype] : {std::tuple{8, 16, DType::bf16},
                                    {24, 16, DType::f16},
                                    {128, 16, DType::bf16},
                                    {48, 32, DType::f8e4m3}}) {
    const std::vector<float> a = random_values(16 * k, dtype, 1),
                             b = random_values(k * n, dtype, 2);
    const std::vector<float> before = random_values(n * 16, DType::f32, 3);
    const std::vector<float> expected = product(n, k, a, b, before);
    std::vector<float> spread(spread_a(0, k)), columns(spread_b(n, 0, k));
    for (int j = 0; j < k; ++j) {
      for (int row = 0; row < 16; ++row) {
        for (int copy = 0; copy < 4; ++copy) spread[spread_a(row, j) + copy] = a[row * k + j];
      }
      for (int column = 0; column < n; ++column)
        columns[spread_b(n, column, j)] = b[j * n + column];
    }
    for (const VectorUnit& unit : vector_units()) {
      std::vector<float> registers = before;
      unit.multiply(n / 8, k, spread.data(), columns.data(), registers.data());
      EXPECT_EQ(registers, expected) << unit.name << " n " << n << " k " << k;
    }
    std::vector<float> replaced(before.size(), std::numeric_limits<float>::quiet_NaN());
    multiply_fragment(n, k, spread.data(), columns.data(), /*accumulate=*/false, replaced.data());
    EXPECT_EQ(replaced, product(n, k, a, b, std::vector<float>(before.size(), 0.0f)));
  }
}

TEST(VectorUnits, SpreadTheRowsOfAFragment) {
  for (const int packed : {2, 4}) {
    const std::vector<float> registers = random_values(4 * packed * 32, DType::f32, 4);
    std::vector<float> a(spread_a(0, 8 * packed));
    spread_registers(packed, registers.data(), a.data());
    for (int i = 0; i < 4 * packed; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        const int j = i / packed;
        const int row = lane / 4 + 8 * (j & 1);
        const int k = packed * (lane % 4) + 4 * packed * (j / 2) + i % packed;
        for (int copy = 0; copy < 4; ++copy) {
          ASSERT_EQ(a[spread_a(row, k) + copy], registers[i * 32 + lane]) << row << ' ' << k;
        }
      }
    }
  }
}

float exp2_in_simulator(float x) {
  const float* const operands[] = {&x};
  float y = 0;
  evaluate({ir::Op::exp2, DType::f32, {}}, 1, operands, &y);
  return y;
}

TEST(Exp2, IsWithin501ThousandthsOfTheLastPlace) {
  double worst = 0;
  std::vector<float> x;
  for (float value = -126; value < 128; value += 0.00137f) x.push_back(value);
  std::vector<float> y(x.size());
  const float* const operands[] = {x.data()};
  evaluate({ir::Op::exp2, DType::f32, {}}, x.size(), operands, y.data());
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double exact = std::exp2(static_cast<double>(x[i]));
    const double last_place = std::ldexp(1.0, std::ilogb(exact) - 23);
    worst = std::max(worst, std::abs(static_cast<double>(y[i]) - exact) / last_place);
  }
  EXPECT_LE(worst, 0.501);
  EXPECT_GT(worst, 0.49);  // of so many, some lie between two floats
}

TEST(Exp2, AtTheEdges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(exp2_in_simulator(kInfinity), kInfinity);
  EXPECT_EQ(exp2_in_simulator(128), kInfinity);
  EXPECT_EQ(exp2_in_simulator(3e38f), kInfinity);
  EXPECT_EQ(exp2_in_simulator(-kInfinity), 0.0f);
  EXPECT_EQ(exp2_in_simulator(-3e38f), 0.0f);
  EXPECT_EQ(exp2_in_simulator(-151), 0.0f);
  EXPECT_TRUE(std::isnan(exp2_in_simulator(std::numeric_limits<float>::quiet_NaN())));
  for (int i = -149; i < 128; ++i) {
    EXPECT_EQ(exp2_in_simulator(static_cast<float>(i)), std::ldexp(1.0f, i)) << i;
  }
}

}  // namespace
}  // namespace tilewright::simulator
