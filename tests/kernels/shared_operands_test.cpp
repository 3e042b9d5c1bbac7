#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <string>
#include <vector>

#include "common/printing.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Tiles between registers and the shared memory that products read, on the simulated GPU: computed
// operands of products, transposed ones of several warpgroups, and loaded tiles in arithmetic.
namespace tilewright {
namespace {

constexpr int kGroups = 2, kSharedRows = 64 * kGroups;

// Small integers, whose products and sums every dtype holds exactly: no order of summation shows.
HostTensor integers(DType dtype, std::int64_t rows, std::int64_t columns, unsigned seed) {
  HostTensor tensor = HostTensor::zeros(dtype, {rows, columns});
  std::mt19937 random(seed);
  for (std::int64_t i = 0; i < tensor.elements(); ++i) {
    tensor.set_flat(i, static_cast<double>(random() % 9) - 4);
  }
  return tensor;
}

// The first element of C that differs from `wanted(row, column)`; "" for none.
std::string first_wrong(const HostTensor& C,
                        const std::function<double(std::int64_t, std::int64_t)>& wanted) {
  for (std::int64_t i = 0; i < C.shape()[0]; ++i) {
    for (std::int64_t j = 0; j < C.shape()[1]; ++j) {
      if (C.at({i, j}) == wanted(i, j)) continue;
      return "row " + std::to_string(i) + ", column " + std::to_string(j) + " is " +
             std::to_string(C.at({i, j})) + ", expected " + std::to_string(wanted(i, j));
    }
  }
  return "";
}

// A kernel of one CTA: A {rows, columns} and B {b_rows, b_columns} are loaded once, and kGroups
// warpgroups run the body, each on its own 64 rows of the result.
struct Shapes {
  DType dtype = bf16;
  int a_rows, a_columns, b_rows, b_columns, c_columns;
};
Kernel on_two_groups(
    const Shapes& s,
    const std::function<std::function<Tile(const Slot&, const Index&)>(Kernel&)>& make) {
  Kernel kernel("on_two_groups");
  const Tensor A = kernel.in("A", s.dtype, {s.a_rows, s.a_columns});
  const Tensor B = kernel.in("B", s.dtype, {s.b_rows, s.b_columns});
  const Tensor C = kernel.out("C", f32, {kSharedRows, s.c_columns});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(1),
            {{s.dtype, s.a_rows, s.a_columns}, {s.dtype, s.b_rows, s.b_columns}});
  const auto body = make(kernel);
  const auto load_role = [&] {
    ring.produce([&](const Slot& slot) {
      tma_load(A(all, all), slot[0]);
      tma_load(B(all, all), slot[1]);
    });
  };
  const auto math_role = [&](const Index& group) {
    const Slot slot = ring.consume();
    const Block rows = Dim(kSharedRows).block(0, kSharedRows).part(group, 64);
    store(C(rows, all), body(slot, group));
    ring.release(slot);
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(kGroups), registers(160), math_role)});
  return kernel;
}

HostTensor run(const Kernel& kernel, const Shapes& s, HostTensor& A, HostTensor& B) {
  HostTensor C = HostTensor::poisoned(f32, {kSharedRows, s.c_columns});
  compile(kernel, "sim:sm_90a").run({ref(A), ref(B), ref(C)});
  return C;
}

// C = A^T B: a warpgroup's rows of A^T are columns of A, which only the kernel knows.
TEST(SharedOperands, ATransposedOverWarpgroups) {
  for (const DType dtype : {bf16, f16}) {
    const Shapes s{dtype, 48, kSharedRows, 48, 40, 40};
    HostTensor A = integers(dtype, 48, kSharedRows, 1), B = integers(dtype, 48, 40, 2);
    const Kernel kernel = on_two_groups(s, [](Kernel&) {
      return [](const Slot& slot, const Index& group) {
        return wait(wgmma(slot[0].column_part(group, 64).T(), slot[1]));
      };
    });
    EXPECT_EQ(first_wrong(run(kernel, s, A, B),
                          [&](std::int64_t i, std::int64_t j) {
                            double sum = 0;
                            for (int k = 0; k < 48; ++k) sum += A.at({k, i}) * B.at({k, j});
                            return sum;
                          }),
              "");
  }
}

// C = A B, each warpgroup with its own half of B's columns: the first row of C's halves differ.
TEST(SharedOperands, ColumnsOfBOverWarpgroups) {
  const Shapes s{bf16, 64, 32, 32, 256, 128};
  HostTensor A = integers(bf16, 64, 32, 3), B = integers(bf16, 32, 256, 4);
  const Kernel kernel = on_two_groups(s, [](Kernel&) {
    return [](const Slot& slot, const Index& group) {
      return wait(wgmma(slot[0], slot[1].column_part(group, 128)));
    };
  });
  EXPECT_EQ(first_wrong(run(kernel, s, A, B),
                        [&](std::int64_t i, std::int64_t j) {
                          const std::int64_t column = i / 64 * 128 + j;
                          double sum = 0;
                          for (int k = 0; k < 32; ++k) sum += A.at({i % 64, k}) * B.at({k, column});
                          return sum;
                        }),
            "");
}

// C = A f(B) or A f(B)^T with f(x) = 2 x + 1 computed in registers: every warpgroup makes 64 rows
// of it, and reads all.
Kernel times_computed(const Shapes& s, DType dtype, int columns, bool transposed) {
  return on_two_groups(s, [=](Kernel& k) {
    const SharedTile computed(k, "computed", dtype, kSharedRows, columns);
    const auto written = std::make_shared<NamedBarrier>(k, 128 * kGroups);
    return [=](const Slot& slot, const Index& group) {
      const Tile b = load(slot[1].rows(64 * group, 64));
      store(computed.rows(64 * group, 64), b * 2 + 1);
      fence_proxy_async();
      written->sync();
      const SharedView operand = transposed ? computed.T() : SharedView(computed);
      return wait(wgmma(slot[0].rows(64 * group, 64), operand));
    };
  });
}

class ComputedOperand : public testing::TestWithParam<std::pair<DType, int>> {};
INSTANTIATE_TEST_SUITE_P(Widths, ComputedOperand,
                         testing::Values(std::pair(bf16, 16), std::pair(bf16, 32),
                                         std::pair(f16, 48), std::pair(bf16, 64),
                                         std::pair(f16, 96), std::pair(bf16, 128)));

TEST_P(ComputedOperand, OfRowsAlongK) {
  const auto [dtype, n] = GetParam();
  const Shapes s{dtype, kSharedRows, kSharedRows, kSharedRows, n, n};
  HostTensor A = integers(dtype, kSharedRows, kSharedRows, 5),
             B = integers(dtype, kSharedRows, n, 6);
  const Kernel kernel = times_computed(s, dtype, n, false);
  EXPECT_EQ(first_wrong(run(kernel, s, A, B),
                        [&](std::int64_t i, std::int64_t j) {
                          double sum = 0;
                          for (int k = 0; k < kSharedRows; ++k) {
                            sum += A.at({i, k}) * (2 * B.at({k, j}) + 1);
                          }
                          return sum;
                        }),
            "");
}

TEST_P(ComputedOperand, OfRowsAlongN) {
  const auto [dtype, depth] = GetParam();
  const Shapes s{dtype, kSharedRows, depth, kSharedRows, depth, kSharedRows};
  HostTensor A = integers(dtype, kSharedRows, depth, 7), B = integers(dtype, kSharedRows, depth, 8);
  const Kernel kernel = times_computed(s, dtype, depth, true);
  EXPECT_EQ(first_wrong(run(kernel, s, A, B),
                        [&, &depth = depth](std::int64_t i, std::int64_t j) {
                          double sum = 0;
                          for (int k = 0; k < depth; ++k) {
                            sum += A.at({i, k}) * (2 * B.at({j, k}) + 1);
                          }
                          return sum;
                        }),
            "");
}

// A loaded tile in f32 arithmetic, with a sum of its rows, and as an operand once more: what a
// normalisation before a product does.
TEST_P(ComputedOperand, FromALoadedTile) {
  const auto [dtype, depth] = GetParam();
  const Shapes s{dtype, kSharedRows, depth, 24, depth, 24};
  HostTensor A = integers(dtype, kSharedRows, depth, 9), B = integers(dtype, 24, depth, 10);
  const Kernel kernel = on_two_groups(s, [&, &dtype = dtype](Kernel&) {
    return [&dtype](const Slot& slot, const Index& group) {
      const Tile a = load(slot[0].rows(64 * group, 64)).cast(f32);
      const Tile shifted = a + where(reduce_sum(a, 1) > 0, full({64, 1}, 1), -1);
      return wait(wgmma(shifted.cast(dtype), slot[1].T()));
    };
  });
  EXPECT_EQ(first_wrong(run(kernel, s, A, B),
                        [&, &depth = depth](std::int64_t i, std::int64_t j) {
                          double row = 0, sum = 0;
                          for (int k = 0; k < depth; ++k) row += A.at({i, k});
                          for (int k = 0; k < depth; ++k) {
                            sum += (A.at({i, k}) + (row > 0 ? 1 : -1)) * B.at({j, k});
                          }
                          return sum;
                        }),
            "");
}

}  // namespace
}  // namespace tilewright
