#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/cpu_kernel.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// On the target cpu a left factor that a loop reads again and again is copied where its rows lie
// multiples of 1 KB apart. That changes no bit.
namespace tilewright::compiler {
namespace {

constexpr std::int64_t kRows = 32, kTerms = 64, kColumns = 64, kBlock = 16;

// C = A B^T, by blocks of rows of B.
ir::Kernel products() {
  Kernel kernel("products");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor A = kernel.in("A", f32, {rows, kTerms}), B = kernel.in("B", f32, {columns, kTerms});
  const Tensor C = kernel.out("C", f32, {rows, columns});
  const auto [x] = kernel.grid(ceil_div(rows, kRows));
  const Block of_a = rows.block(x, kRows);
  const Tile a = load(A(of_a, all));
  for (const Index j : range(ceil_div(columns, kBlock))) {
    const Block of_b = columns.block(j, kBlock);
    store(C(of_a, of_b), dot(a, load(B(of_b, all)).T()));
  }
  return kernel.finish();
}

// Of an A whose last terms are 0 in all rows, where B has an infinity in one row.
std::vector<float> run(std::int64_t floats_to_next_row) {
  const auto compiled = compile_for_cpu(products());
  HostTensor A = HostTensor::zeros(f32, {kRows, floats_to_next_row});
  HostTensor B = HostTensor::zeros(f32, {kColumns, kTerms});
  HostTensor C = HostTensor::poisoned(f32, {kRows, kColumns});
  constexpr std::int64_t kNotZero = kTerms - 16;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t term = 0; term < kNotZero; ++term) {
      A.set({i, term}, std::sin(static_cast<double>(i * kTerms + term)));
    }
  }
  for (std::int64_t i = 0; i < B.elements(); ++i) {
    B.set({i / kTerms, i % kTerms}, std::cos(static_cast<double>(i)));
  }
  B.set({3, kNotZero}, std::numeric_limits<double>::infinity());
  Arguments arguments;
  arguments.tensors = {{"A", f32, {kRows, kTerms}, {floats_to_next_row, 1}, A.data()},
                       {"B", f32, B.shape(), B.strides(), B.data()},
                       {"C", f32, C.shape(), C.strides(), C.data()}};
  compiled->run(arguments, {.threads = 1});
  std::vector<float> found;
  for (std::int64_t i = 0; i < C.elements(); ++i) {
    found.push_back(static_cast<float>(C.at({i / kColumns, i % kColumns})));
  }
  return found;
}

TEST(CpuCopiesTest, OfLeftFactorsGiveTheSameBits) {
  const std::vector<float> in_place = run(kTerms), copied = run(256);
  ASSERT_EQ(in_place.size(), copied.size());
  for (std::size_t i = 0; i < copied.size(); ++i) {
    const bool is_of_infinity = i % kColumns == 3;
    EXPECT_EQ(std::isnan(copied[i]), is_of_infinity) << i;
    EXPECT_EQ(std::isnan(in_place[i]), is_of_infinity) << i;
    if (!is_of_infinity) {
      EXPECT_EQ(in_place[i], copied[i]) << i;
    }
  }
}

// Whether the load of A may copy.
bool is_read_often(const ir::Kernel& kernel) {
  const auto compiled = compile_for_cpu(kernel);
  for (const cpu::Operation& operation : compiled->program().body) {
    const auto* const load = std::get_if<cpu::Load>(&operation);
    if (load != nullptr && load->box.tensor == 0) return load->is_read_often;
  }
  ADD_FAILURE() << "no load of A";
  return false;
}

// C += A B^T in a condition, and in a loop within one.
ir::Kernel product_in_condition(bool loops) {
  Kernel kernel("products");
  const Dim columns = kernel.dim("columns");
  const Tensor A = kernel.in("A", f32, {kRows, kTerms}), B = kernel.in("B", f32, {columns, kTerms});
  const Tensor C = kernel.out("C", f32, {kRows, columns});
  const auto [x] = kernel.grid(ceil_div(columns, kBlock));
  const Tile a = load(A(all, all));
  const auto multiply = [&, x = x](const Index& j) {
    const Block of_b = columns.block(j, kBlock);
    store(C(all, of_b), dot(a, load(B(of_b, all)).T()));
  };
  when(x < 2, [&] {
    if (!loops) return multiply(x);
    for (const Index j : range(ceil_div(columns, kBlock))) multiply(j);
  });
  return kernel.finish();
}

// C = the sum of A B_j^T B_j A^T, of a block's rows of A or of the first ones.
ir::Kernel product_by_both_sides(bool by_blocks) {
  Kernel kernel("products");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor A = kernel.in("A", f32, {rows, kTerms}), B = kernel.in("B", f32, {columns, kTerms});
  const Tensor C = kernel.out("C", f32, {rows, kRows});
  const auto [x] = kernel.grid(ceil_div(rows, kRows));
  const Tile a = load(A(by_blocks ? rows.block(x, kRows) : rows.block(0, kRows), all));
  Var sum{zeros({kRows, kRows})};
  for (const Index j : range(ceil_div(columns, kBlock))) {
    const Tile b = load(B(columns.block(j, kBlock), all));
    sum = sum + dot(dot(a, b.T()), dot(b, a.T()));
  }
  store(C(rows.block(x, kRows), all), sum);
  return kernel.finish();
}

TEST(CpuCopiesTest, AreOfLeftFactorsInLoops) {
  EXPECT_TRUE(is_read_often(products()));
  EXPECT_FALSE(is_read_often(product_in_condition(false)));
  EXPECT_TRUE(is_read_often(product_in_condition(true)));
}

// Those stay packed from block to block where they lie.
TEST(CpuCopiesTest, AreNotOfRightFactorsThatBlocksShare) {
  EXPECT_TRUE(is_read_often(product_by_both_sides(true)));
  EXPECT_FALSE(is_read_often(product_by_both_sides(false)));
}

}  // namespace
}  // namespace tilewright::compiler
