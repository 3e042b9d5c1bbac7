#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "common/error_text.h"
#include "tilewright/compile.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Indices, blocks and ends that a launch gives, by a list or as a scalar, and that lie outside.
namespace tilewright {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

HostTensor list_of(const std::vector<int>& numbers) {
  HostTensor tensor = HostTensor::zeros(i32, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    tensor.set_flat(static_cast<std::int64_t>(i), numbers[i]);
  }
  return tensor;
}

// What `target` says of the kernel, launched with the list, X {128, 64} and Y {rows, 64}; empty if
// nothing.
std::string said(const Kernel& kernel, const char* target, const std::vector<int>& numbers,
                 std::int64_t rows) {
  HostTensor names = list_of(numbers), X = HostTensor::random_normal(bf16, {128, 64}, 1);
  HostTensor Y = HostTensor::zeros(f32, {rows, 64});
  try {
    compile(kernel, target).run({ref(names), ref(X), ref(Y)});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

Kernel rows_by_index() {
  Kernel kernel("rows_by_index");
  const Dim count = kernel.dim("count"), rows = kernel.dim("rows");
  const Tensor names = kernel.in("names", i32, {count}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {count, 64});
  const auto [i] = kernel.grid(count);
  const Index name = load_index(names(i));
  store(Y(i, all), load(X(name, all)).cast(f32));
  return kernel;
}

// Sums of blocks of 64 rows that the list names; by products, the block is copied by TMA.
Kernel blocks_by_number(bool products) {
  Kernel kernel("blocks_by_number");
  const Dim count = kernel.dim("count"), rows = kernel.dim("rows");
  const Tensor names = kernel.in("names", i32, {count}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {64, 64});
  kernel.grid(1);
  Var sum{zeros({64, 64})};
  for (Index i : range(count)) {
    const Index name = load_index(names(i));
    const Tile x = load(X(rows.block(name, 64), all));
    if (products) {
      sum = dot(x.T(), x, sum);
    } else {
      sum = sum + reduce_sum(x.cast(f32), 0);
    }
  }
  store(Y(all, all), sum);
  return kernel;
}

// A sequence that begins and ends where the list says.
Kernel sequence() {
  Kernel kernel("sequence");
  const Dim rows = kernel.dim("rows"), out_rows = kernel.dim("out_rows");
  const Tensor ends = kernel.in("ends", i32, {2}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {out_rows, 64});
  const auto [i] = kernel.grid(1);
  const Index begin = load_index(ends(i)), end = load_index(ends(i + 1));
  Var sum{zeros({1, 64})};
  for (Index row : range(begin, end, 32)) {
    sum = sum + reduce_sum(load(X(Block(row, 32, end), all)).cast(f32), 0);
  }
  store(Y(Block(0, 1, 1), all), sum);
  return kernel;
}

struct BoundsTarget {
  const char* target;
  const char* what;  // how messages of the target begin
};
constexpr BoundsTarget kBoundsTargets[] = {{"interpreter", "error: load: "},
                                           {"sim:sm_90a", "out of bounds: "}};

TEST(LoadedBounds, ARowThatIsNotThere) {
  const Kernel kernel = rows_by_index();
  for (const auto& [target, what] : kBoundsTargets) {
    SCOPED_TRACE(target);
    EXPECT_EQ(said(kernel, target, {3, 127, 0}, 3), "");
    EXPECT_THAT(said(kernel, target, {3, 128, 0}, 3),
                AllOf(HasSubstr(std::string(what) + "index 128 on axis 0 of X, which has 128"),
                      HasSubstr("loaded_bounds_test.cpp:47")));
    EXPECT_THAT(said(kernel, target, {3, -1, 0}, 3), HasSubstr("index -1 on axis 0 of X"));
  }
  EXPECT_THAT(said(kernel, "interpreter", {3, 9999, 0}, 3),
              HasSubstr("computed from 9999, which is loaded at"));
}

TEST(LoadedBounds, ABlockThatIsNotThere) {
  for (const bool products : {false, true}) {
    const Kernel kernel = blocks_by_number(products);
    for (const auto& [target, what] : kBoundsTargets) {
      SCOPED_TRACE(std::string(target) + (products ? " with products" : ""));
      EXPECT_EQ(said(kernel, target, {1, 0, 1}, 64), "");
      EXPECT_THAT(said(kernel, target, {1, -1}, 64),
                  HasSubstr(std::string(what) +
                            "a block that begins at -64 on axis 0 of X, which has 128"));
      EXPECT_THAT(said(kernel, target, {1, 2}, 64), HasSubstr("begins at 128 on axis 0 of X"));
    }
  }
}

TEST(LoadedBounds, ASequenceThatEndsBehindItsTensor) {
  const Kernel kernel = sequence();
  for (const auto& [target, what] : kBoundsTargets) {
    SCOPED_TRACE(target);
    EXPECT_EQ(said(kernel, target, {100, 128}, 1), "");
    EXPECT_EQ(said(kernel, target, {128, 128}, 1), "");
    EXPECT_THAT(said(kernel, target, {100, 130}, 1),
                HasSubstr(std::string(what) +
                          "a block from 100 that ends at 130 on axis 0 of X, which has 128"));
    EXPECT_THAT(said(kernel, target, {-3, 100}, 1), HasSubstr("begins at -3 on axis 0 of X"));
  }
}

// Halos and blocks that exist whole reach out of their tensor, and are right.
TEST(LoadedBounds, ReachingOutOnPurposeStaysLegal) {
  Kernel kernel("halo");
  const Dim count = kernel.dim("count"), rows = kernel.dim("rows"), out = kernel.dim("out");
  const Tensor names = kernel.in("names", i32, {count}), X = kernel.in("X", bf16, {rows, 64});
  const Tensor Y = kernel.out("Y", f32, {out, 64});
  const auto [i] = kernel.grid(1);
  const Index first = load_index(names(i));
  Var sum{zeros({32, 64})};
  for (Index shift : range(4)) {
    const Index start = first + shift - 3;
    sum = sum + load(X(Block(start, 32, start + 32), all)).cast(f32);
  }
  store(Y(Block(0, 32, 32), all), sum);
  for (const auto& [target, what] : kBoundsTargets) {
    SCOPED_TRACE(target);
    EXPECT_EQ(said(kernel, target, {0}, 32), "");
    EXPECT_EQ(said(kernel, target, {120}, 32), "");
  }
}

}  // namespace
}  // namespace tilewright
