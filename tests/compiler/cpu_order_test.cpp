#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/error_text.h"
#include "compiler/cpu_kernel.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// On the target cpu several threads begin the longest blocks first.
namespace tilewright::compiler {
namespace {

// Row i is the sum of the first `ends` blocks of X.
template <typename Ends>
ir::Kernel sums(const Ends& ends) {
  Kernel kernel("sums");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", f32, {rows, columns});
  const Tensor lengths = kernel.in("lengths", i32, {rows});
  const Tensor Y = kernel.out("Y", f32, {rows});
  const auto [row] = kernel.grid(rows);
  Var sum{zeros({1, 16})};
  for (const Index j : range(ends(row, columns, lengths))) {
    const Block cols = columns.block(j, 16);
    sum = sum + load(X(row, cols)).reshape({1, 16});
  }
  store(Y(rows.block(row, 1)), reduce_sum(sum, 1).reshape({1}));
  return kernel.finish();
}

// Of one row each, with lengths of 2, 0, 3 and 1 blocks.
std::vector<float> run(const ir::Kernel& kernel, std::vector<std::int64_t>* order) {
  const auto compiled = compile_for_cpu(kernel);
  HostTensor X = HostTensor::zeros(f32, {4, 64}), lengths = HostTensor::zeros(i32, {4});
  HostTensor Y = HostTensor::poisoned(f32, {4});
  for (std::int64_t i = 0; i < X.elements(); ++i) X.set({i / 64, i % 64}, 1);
  const std::vector<double> blocks = {2, 0, 3, 1};
  for (std::int64_t i = 0; i < 4; ++i) lengths.set({i}, blocks[static_cast<std::size_t>(i)]);
  Arguments arguments;
  for (auto& [name, tensor] :
       {std::pair<const char*, HostTensor&>{"X", X}, {"lengths", lengths}, {"Y", Y}}) {
    arguments.tensors.push_back(
        {name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
  }
  if (order != nullptr) *order = compiled->order_of_blocks(arguments, 2);
  compiled->run(arguments, {.threads = 3});
  std::vector<float> sums;
  for (std::int64_t i = 0; i < 4; ++i) sums.push_back(static_cast<float>(Y.at({i})));
  return sums;
}

TEST(CpuOrderTest, LoopsToTheOwnRowMakeLaterBlocksLonger) {
  std::vector<std::int64_t> order;
  const std::vector<float> found =
      run(sums([](const Index& row, const Dim&, const Tensor&) { return row; }), &order);
  EXPECT_EQ(order, (std::vector<std::int64_t>{3, 2, 1, 0}));
  EXPECT_EQ(found, (std::vector<float>{0, 16, 32, 48}));
}

TEST(CpuOrderTest, LoadedLengthsAreRead) {
  std::vector<std::int64_t> order;
  const std::vector<float> found =
      run(sums([](const Index& row, const Dim&, const Tensor& lengths) {
            return load_index(lengths(row));
          }),
          &order);
  EXPECT_EQ(order, (std::vector<std::int64_t>{2, 0, 3, 1}));
  EXPECT_EQ(found, (std::vector<float>{32, 0, 48, 16}));
}

TEST(CpuOrderTest, BlocksOfOneLengthKeepTheirOrder) {
  std::vector<std::int64_t> order;
  const std::vector<float> found = run(sums([](const Index&, const Dim& columns, const Tensor&) {
                                         return Index(ceil_div(columns, 16));
                                       }),
                                       &order);
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(found, (std::vector<float>{64, 64, 64, 64}));
}

// Neighbours read the same memory. Where none keeps a thread for long they stay together.
TEST(CpuOrderTest, ShortBlocksKeepTheirOrder) {
  const auto first_of = [](std::int64_t rows, unsigned threads) {
    const auto compiled = compile_for_cpu(
        sums([](const Index& row, const Dim&, const Tensor&) { return row % 2 + 1; }));
    HostTensor X = HostTensor::zeros(f32, {rows, 32}), lengths = HostTensor::zeros(i32, {rows});
    HostTensor Y = HostTensor::poisoned(f32, {rows});
    Arguments arguments;
    for (auto& [name, tensor] :
         {std::pair<const char*, HostTensor&>{"X", X}, {"lengths", lengths}, {"Y", Y}}) {
      arguments.tensors.push_back(
          {name, tensor.dtype(), tensor.shape(), tensor.strides(), tensor.data()});
    }
    return compiled->order_of_blocks(arguments, threads).front();
  };
  // The longest is 2 long, and 64 of it for each thread are 1.5 of each row.
  EXPECT_EQ(first_of(172, 2), 0);
  EXPECT_EQ(first_of(168, 2), 1);
  EXPECT_EQ(first_of(172, 3), 1);
}

// A number that a loop changes is not what it was before the loop.
TEST(CpuOrderTest, LengthsThatALoopComputesAreNotKnown) {
  std::vector<std::int64_t> order;
  const std::vector<float> found =
      run(sums([](const Index& row, const Dim& columns, const Tensor&) {
            Cell<Index> length{row};
            for ([[maybe_unused]] const Index i : range(ceil_div(columns, 16))) {
              length = 4 - Index(length);
            }
            return Index(length);
          }),
          &order);
  EXPECT_EQ(order, (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(found, (std::vector<float>{0, 16, 32, 48}));
}

// A loop whose condition stays true.
TEST(CpuOrderTest, WhileLoopsEnd) {
  const auto counts_to = [](std::int64_t end) {
    Kernel kernel("counts");
    const Tensor X = kernel.in("X", f32, {16}), Y = kernel.out("Y", f32, {16});
    kernel.grid(1);
    Cell<Index> i{Index(0)};
    Cell<Condition> goes_on{Index(i) < end};
    repeat_while(goes_on, [&] {
      i = Index(i) + 1;
      goes_on = Index(i) < end;
    });
    store(Y(all), load(X(all)) + Tile({16}, Index(i)).cast(f32));
    const auto compiled = compile_for_cpu(kernel.finish());
    HostTensor x = HostTensor::zeros(f32, {16}), y = HostTensor::poisoned(f32, {16});
    Arguments arguments;
    arguments.tensors = {{"X", f32, {16}, {1}, x.data()}, {"Y", f32, {16}, {1}, y.data()}};
    compiled->run(arguments, {.while_limit = 1000});
    return y.at({15});
  };
  EXPECT_EQ(counts_to(1000), 1000);
  EXPECT_THAT(test::usage_error_of([&] { counts_to(1001); }),
              testing::AllOf(testing::HasSubstr("the loop has not ended after 1000 rounds"),
                             testing::HasSubstr("cpu_order_test.cpp")));
}

// Each waits for those before it.
TEST(CpuOrderTest, BlocksThatAddKeepTheirOrder) {
  Kernel kernel("adds");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.in("X", f32, {rows, 16}), Y = kernel.inout("Y", f32, {16});
  const auto [row] = kernel.grid(rows);
  Var sum{zeros({16})};
  for ([[maybe_unused]] const Index i : range(row)) sum = sum + load(X(row, all));
  add(Y(all), Tile(sum), Order::blocks);
  const auto compiled = compile_for_cpu(kernel.finish());
  HostTensor x = HostTensor::zeros(f32, {4, 16}), y = HostTensor::zeros(f32, {16});
  Arguments arguments;
  arguments.tensors = {{"X", f32, x.shape(), x.strides(), x.data()},
                       {"Y", f32, y.shape(), y.strides(), y.data()}};
  EXPECT_EQ(compiled->order_of_blocks(arguments, 2), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

}  // namespace
}  // namespace tilewright::compiler
