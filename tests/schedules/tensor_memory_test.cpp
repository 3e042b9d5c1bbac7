#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "codegen/nvrtc_build.h"
#include "common/error_text.h"
#include "compiler/build.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "schedules/two_ways.h"
#include "tilewright/schedule.h"

// The automatic schedule of kernels with products for sm_100a: results are in tensor memory. No
// such GPU has run them.
namespace tilewright {
namespace {

using ir::Op;
using test::expect_two_ways;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kSimulated = "sim:sm_100a";
constexpr double kBound = 4e-3;  // of results that are rounded to 16 bits

HostTensor normal(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  return HostTensor::random_normal(dtype, std::move(shape), seed);
}
HostTensor poisoned(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor::poisoned(dtype, std::move(shape));
}

// C = A B^T in blocks of `rows` x `columns`.
Kernel product(int rows, int columns, DType stored = bf16) {
  Kernel kernel("product");
  const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  const Tensor C = kernel.out("C", stored, {m, n});
  const auto [i, j] = kernel.grid(ceil_div(m, rows), ceil_div(n, columns));
  const Block at_row = m.block(i, rows), at_column = n.block(j, columns);
  Var sum{zeros({at_row, at_column})};
  for (Block depth : blocks(k, 64)) {
    sum = sum + dot(load(A(at_row, depth)), load(B(at_column, depth)).T());
  }
  store(C(at_row, at_column), Tile(sum).cast(stored));
  return kernel;
}

// By the schedule that is stated.
Kernel stated(Kernel kernel, const Schedule& schedule) {
  kernel.schedule(schedule);
  return kernel;
}

void check_product(const Kernel& kernel, std::int64_t m, std::int64_t n, std::int64_t k) {
  SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
  expect_two_ways(kernel,
                  {normal(bf16, {m, k}, 1), normal(bf16, {n, k}, 2), poisoned(bf16, {m, n})}, 2,
                  kBound, kSimulated);
}

// With one, two and three warpgroups, and ends that are no multiple of anything.
TEST(TensorMemorySchedule, ASumStaysInTensorMemory) {
  check_product(product(64, 64), 65, 72, 136);
  check_product(product(128, 128), 200, 136, 200);
  check_product(stated(product(128, 128), {.partition = Partition::rows}), 200, 136, 200);
  check_product(product(192, 32), 193, 40, 64);
  check_product(product(128, 64), 1, 8, 8);
  check_product(product(128, 64), 1, 8, 0);
}

// Behind the loop a second value is the sum of all steps but the last, or is the sum, too.
TEST(TensorMemorySchedule, ASumIsKeptTwice) {
  for (const bool before : {false, true}) {
    SCOPED_TRACE(before);
    Kernel kernel("kept_twice");
    const Dim k = kernel.dim("k");
    const Tensor A = kernel.in("A", bf16, {128, k}), B = kernel.in("B", bf16, {64, k});
    const Tensor C = kernel.out("C", bf16, {128, 64}), D = kernel.out("D", bf16, {128, 64});
    kernel.grid(1);
    Var sum{zeros({128, 64})}, kept{zeros({128, 64})};
    for (Block depth : blocks(k, 64)) {
      if (before) kept = Tile(sum);
      sum = sum + dot(load(A(all, depth)), load(B(all, depth)).T());
      if (!before) kept = Tile(sum);
    }
    store(C(all, all), Tile(sum).cast(bf16));
    store(D(all, all), (Tile(kept) * 0.5).cast(bf16));
    expect_two_ways(kernel,
                    {normal(bf16, {128, 136}, 1), normal(bf16, {64, 136}, 2),
                     poisoned(bf16, {128, 64}), poisoned(bf16, {128, 64})},
                    2, kBound, kSimulated);
  }
}

ir::Kernel machine_of(const Kernel& kernel) {
  return compiler::compile_to_machine(kernel.finish(), "sm_100a").kernel;
}

int count_in_loops(const ir::Block& block, Op op, bool in_loop = false) {
  int count = 0;
  for (const ir::Operation& o : block.body) {
    count += in_loop && o.op == op;
    const bool loop = o.op == Op::for_loop;
    for (const ir::Block& inner : o.blocks) count += count_in_loops(inner, op, in_loop || loop);
  }
  return count;
}

// Tiles are dealt out in a loop, in which one load stands for each 64 columns of the result.
TEST(TensorMemorySchedule, ALoopOfProductsLoadsNoResult) {
  const ir::Kernel machine = machine_of(product(128, 128));
  EXPECT_EQ(count_in_loops(machine.body, Op::tcgen05_ld), 2);
  EXPECT_GT(count_in_loops(machine.body, Op::tcgen05_mma_ss), 0);
}

// One head: O is rescaled in registers, P is stored to tensor memory. `wide`: of O.
Kernel attention(int rows, int dim, int wide) {
  Kernel kernel("attention");
  const Dim queries = kernel.dim("queries"), keys = kernel.dim("keys");
  const Tensor Q = kernel.in("Q", bf16, {queries, dim}), K = kernel.in("K", bf16, {keys, dim}),
               V = kernel.in("V", bf16, {keys, wide});
  const Tensor O = kernel.out("O", bf16, {queries, wide});
  const auto [i] = kernel.grid(ceil_div(queries, rows));
  const Block own = queries.block(i, rows);
  const Tile q = load(Q(own, all));
  Var o{zeros({rows, wide})}, most{full({rows, 1}, -1e30)}, sum{zeros({rows, 1})};
  for (Block seen : blocks(keys, 64)) {
    const Tile s = dot(q, load(K(seen, all)).T()) * 0.125;
    const Tile now = max(most, reduce_max(s, 1)), scale = exp2(most - now), p = exp2(s - now);
    sum = sum * scale + reduce_sum(p, 1);
    o = o * scale + dot(p.cast(bf16), load(V(seen, all)));
    most = now;
  }
  store(O(own, all), (o / sum).cast(bf16));
  return kernel;
}

void check_attention(int rows, int dim, int wide, std::int64_t queries, std::int64_t keys,
                     const Schedule& schedule = {}) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << dim << " and " << wide);
  expect_two_ways(stated(attention(rows, dim, wide), schedule),
                  {normal(bf16, {queries, dim}, 1), normal(bf16, {keys, dim}, 2),
                   normal(bf16, {keys, wide}, 3), poisoned(bf16, {queries, wide})},
                  3, 2e-2, kSimulated);
}

// The last one by columns, more than registers hold beside what they are added to.
TEST(TensorMemorySchedule, AComputedOperandIsStoredThere) {
  check_attention(128, 64, 64, 130, 200);
  check_attention(64, 32, 512, 65, 72);
}

// An allocation has 32 columns at least.
TEST(TensorMemorySchedule, AFewColumnsAreAllocated) {
  const Kernel kernel = product(64, 16);
  const ir::Kernel machine = machine_of(kernel);
  int memories = 0;
  ir::for_each(machine.body, [&](const ir::Operation& o) {
    if (o.op != Op::tensor_memory) return;
    ++memories;
    EXPECT_EQ(machine.type(o.results[0]).shape[0], 32);
  });
  EXPECT_EQ(memories, 1);
  check_product(kernel, 65, 24, 72);
}

// The product of a turn reads its operand's columns until it is over, and the next turn stores
// there. No other product of the turn is waited for.
TEST(TensorMemorySchedule, AComputedOperandIsNotReplacedUntilItsProductIsOver) {
  for (const int products : {1, 2}) {
    SCOPED_TRACE(products);
    Kernel kernel("doubled");
    const Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
    const Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
    const Tensor C = kernel.out("C", bf16, {m, n});
    const auto [i, j] = kernel.grid(ceil_div(m, 64), ceil_div(n, 64));
    const Block rows = m.block(i, 64), columns = n.block(j, 64);
    Var sum{zeros({rows, columns})};
    for (Block depth : blocks(k, 64)) {
      for (int product = 0; product < products; ++product) {
        sum = sum +
              dot((load(A(rows, depth)) * (2 + product)).cast(bf16), load(B(columns, depth)).T());
      }
    }
    store(C(rows, columns), Tile(sum).cast(bf16));
    check_product(kernel, 65, 72, 200);
  }
}

// Products of 128 rows: of wide sums that warpgroups share, and where it is stated that they do so
// or that there are fewer of them.
TEST(TensorMemorySchedule, ProductsOf128Rows) {
  const Schedule one{.warpgroups = 1}, two{.warpgroups = 2},
      shared{.warpgroups = 2, .partition = Partition::columns};
  check_product(stated(product(128, 64), one), 200, 136, 200);
  check_product(stated(product(128, 64), one), 1, 8, 0);
  check_product(stated(product(128, 64), shared), 129, 136, 72);
  check_product(stated(product(256, 32), two), 300, 40, 64);
  check_attention(128, 64, 64, 130, 200, one);
  check_attention(256, 32, 32, 257, 72, two);
  for (const Kernel& kernel :
       {product(128, 128), stated(product(128, 64), shared), stated(attention(128, 64, 64), one)}) {
    ir::for_each(machine_of(kernel).body, [](const ir::Operation& o) {
      if (o.op != Op::tcgen05_mma_ss && o.op != Op::tcgen05_mma_ts) return;
      EXPECT_EQ(o.attributes.integer(ir::Key::m), 128);
    });
  }
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  codegen::expect_builds(
      compiler::choose_form(stated(attention(128, 64, 64), one).finish(), "sm_100a").source,
      /*exact=*/false, "sm_100a");
}

// Two sums that a loop carries, of operands that are computed: one of them transposed, which goes
// through shared memory. Sums of other kinds on one result wait for each other.
TEST(TensorMemorySchedule, ProductsOfSeveralKindsAddToOneResult) {
  constexpr int kRows = 128;
  Kernel kernel("kinds");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, kRows}), Y = kernel.in("Y", f16, {n, kRows}),
               M = kernel.in("M", bf16, {kRows, kRows});
  const Tensor S = kernel.out("S", f32, {kRows, kRows}), T = kernel.out("T", f32, {kRows, kRows});
  kernel.grid(1);
  const Tile turn = load(M(all, all));
  Var s{zeros({kRows, kRows})}, t{zeros({kRows, kRows})};
  for (Block depth : blocks(n, kRows)) {
    const Tile x = load(X(depth, all));
    s = s + dot(x.T(), x);
    s = s + dot((dot(turn, x.T()) * 0.1).cast(f16), load(Y(depth, all)));
    t = t + dot((dot(x, turn) * 0.1).cast(bf16).T(), x);
  }
  store(S(all, all), s);
  store(T(all, all), t);
  for (const std::int64_t rows : {1, 130, 300}) {
    expect_two_ways(kernel,
                    {normal(bf16, {rows, kRows}, 1), normal(f16, {rows, kRows}, 2),
                     normal(bf16, {kRows, kRows}, 3), poisoned(f32, {kRows, kRows}),
                     poisoned(f32, {kRows, kRows})},
                    3, 2e-3, kSimulated);
  }
}

// Three results of 128 x 256 by two warpgroups, which share the columns, or have 64 rows each.
TEST(TensorMemorySchedule, TooManyColumnsAreListed) {
  const auto error = [](const Schedule& schedule) {
    return test::usage_error_of([&] {
      Kernel kernel("many");
      kernel.schedule(schedule);
      const Dim k = kernel.dim("k");
      const Tensor A = kernel.in("A", bf16, {128, k}), B = kernel.in("B", bf16, {3, 256, k});
      const Tensor C = kernel.out("C", bf16, {128, 256});
      kernel.grid(1);
      Var x{zeros({128, 256})}, y{zeros({128, 256})}, z{zeros({128, 256})};
      for (Block depth : blocks(k, 64)) {
        const Tile a = load(A(all, depth));
        x = x + dot(a, load(B(0, all, depth)).T());
        y = y + dot(a, load(B(1, all, depth)).T());
        z = z + dot(a, load(B(2, all, depth)).T());
      }
      store(C(all, all), ((x + y) * z).cast(bf16));
      machine_of(kernel);
    });
  };
  EXPECT_THAT(error({}), AllOf(HasSubstr("tensor_memory_test.cpp"),
                               HasSubstr("products take 768 columns of tensor memory, 384 for each "
                                         "warpgroup, and a CTA has 512"),
                               HasSubstr("128 columns, from 256 on: results"),
                               HasSubstr("use fewer rows or columns in a block")));
  EXPECT_THAT(error({.partition = Partition::rows}),
              AllOf(HasSubstr("products take 768 columns of tensor memory, and a CTA has 512"),
                    HasSubstr("256 columns, from 512 on: results")));
}

}  // namespace
}  // namespace tilewright
