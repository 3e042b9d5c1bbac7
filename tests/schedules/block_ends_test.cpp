#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <tuple>
#include <vector>

#include "common/error_text.h"
#include "compiler/build.h"
#include "passes/join_steps.h"
#include "passes/pipeline.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Blocks that begin before their tensor, end behind it or end anywhere, and tiles that exist in
// part and change their shape: against references in float64.
namespace tilewright {
namespace {

using Index3 = std::function<double(std::int64_t, std::int64_t, std::int64_t)>;

// The last of the tensors is the output, {a, b, c}; both the interpreter and the simulated GPU make
// it, and `bound` is relative.
void check(const Kernel& kernel, std::vector<HostTensor> tensors, const Index3& wanted,
           double bound) {
  for (const char* target : {"interpreter", "sim:sm_90a"}) {
    tensors.back() = HostTensor::poisoned(tensors.back().dtype(), tensors.back().shape());
    std::vector<TensorRef> refs;
    for (HostTensor& tensor : tensors) refs.push_back(ref(tensor));
    compile(kernel, target).run(refs);
    const HostTensor& got = tensors.back();
    const std::vector<std::int64_t>& shape = got.shape();
    for (std::int64_t a = 0; a < shape[0]; ++a) {
      for (std::int64_t b = 0; b < shape[1]; ++b) {
        for (std::int64_t c = 0; c < shape[2]; ++c) {
          const double want = wanted(a, b, c);
          ASSERT_NEAR(got.at({a, b, c}), want, bound * (1 + std::abs(want)))
              << target << ": " << a << ", " << b << ", " << c;
        }
      }
    }
  }
}

// 3 x 3, of pixels with zeros around them: which taps are there is the loops' and the blocks'
// doing.
TEST(BlockEnds, AConvolutionReadsZerosAroundTheImage) {
  Kernel kernel("conv2d");
  const Dim h = kernel.dim("h"), w = kernel.dim("w");
  const Tensor X = kernel.in("X", bf16, {h, w, 64}), W = kernel.in("W", bf16, {3, 3, 64, 16});
  const Tensor Y = kernel.out("Y", f32, {h, w, 16});
  const auto [x, y] = kernel.grid(ceil_div(w, 64), h);
  const Block pixels = w.block(x, 64);
  Var sum{zeros({pixels, 16})};
  for (Index dy : range(max(0, 1 - y), min(3, h + 1 - y))) {
    for (Index dx : range(3)) {
      const Block source(64 * x + dx - 1, 64, Index(w + 1));
      sum = sum + dot(load(X(y + dy - 1, source, all)), load(W(dy, dx, all, all)));
    }
  }
  store(Y(y, pixels, all), sum);
  for (const auto& [height, width] : {std::pair(2, 70), {1, 1}, {1, 64}}) {
    const HostTensor image = HostTensor::random_normal(bf16, {height, width, 64}, 1);
    const HostTensor taps = HostTensor::random_normal(bf16, {3, 3, 64, 16}, 2);
    const auto reference = [&, height = height, width = width](std::int64_t i, std::int64_t j,
                                                               std::int64_t f) {
      double wanted = 0;
      for (int tap = 0; tap < 9; ++tap) {
        const std::int64_t r = i + tap / 3 - 1, s = j + tap % 3 - 1;
        if (r < 0 || s < 0 || r >= height || s >= width) continue;
        for (int c = 0; c < 64; ++c) {
          wanted += image.at({r, s, c}) * taps.at({tap / 3, tap % 3, c, f});
        }
      }
      return wanted;
    };
    check(kernel, {image, taps, HostTensor::zeros(f32, {height, width, 16})}, reference, 1e-4);
  }
}

// Five points through registers, each with a block of its own.
Kernel stencil() {
  Kernel kernel("stencil");
  const Dim h = kernel.dim("h"), w = kernel.dim("w");
  const Tensor X = kernel.in("X", f32, {1, h, w}), Y = kernel.out("Y", f32, {1, h, w});
  const auto [x, y] = kernel.grid(ceil_div(w, 64), ceil_div(h, 8));
  const auto moved = [&, x = x, y = y](int down, int right) {
    const Block rows(8 * y + down, 8, Index(h + 1)), columns(64 * x + right, 64, Index(w + 1));
    return load(X(0, rows, columns));
  };
  const Tile around = moved(-1, 0) + moved(1, 0) + moved(0, -1) + moved(0, 1);
  store(Y(0, h.block(y, 8), w.block(x, 64)), around - 4 * moved(0, 0));
  return kernel;
}

TEST(BlockEnds, AStencilReadsZerosAroundThePlane) {
  for (const auto& [h, w] : {std::pair(9, 70), {1, 1}, {8, 64}, {0, 3}}) {
    const HostTensor plane = HostTensor::random_normal(f32, {1, h, w}, 1);
    const auto at = [&, h = h, w = w](std::int64_t i, std::int64_t j) {
      return i < 0 || j < 0 || i >= h || j >= w ? 0.0 : plane.at({0, i, j});
    };
    const auto reference = [&](std::int64_t, std::int64_t i, std::int64_t j) {
      return at(i - 1, j) + at(i + 1, j) + at(i, j - 1) + at(i, j + 1) - 4 * at(i, j);
    };
    check(stencil(), {plane, HostTensor::zeros(f32, {1, h, w})}, reference, 1e-5);
  }
}

// What lies before a row's first element is the end of another CTA's row, which nobody reads.
TEST(BlockEnds, ABlockThatBeginsBeforeItsRowTouchesNoOtherRow) {
  Kernel kernel("moved");
  const Dim h = kernel.dim("h"), w = kernel.dim("w", at_most(32));
  const Tensor Y = kernel.inout("Y", f32, {h, w});
  const auto [y] = kernel.grid(h);
  store(Y(y, w.block(0, 32)), load(Y(y, Block(-1, 32, Index(w)))));
  HostTensor moved = HostTensor::random_normal(f32, {5, 30}, 1);
  const HostTensor before = moved;
  compile(kernel, "sim:sm_90a").run({ref(moved)});
  for (std::int64_t i = 0; i < 5; ++i) {
    for (std::int64_t j = 0; j < 30; ++j) {
      ASSERT_EQ(moved.at({i, j}), j == 0 ? 0 : before.at({i, j - 1})) << i << ", " << j;
    }
  }
}

// What the simulated GPU knows by itself has to be printed for a real one, and only where needed.
TEST(BlockEnds, PrintedLoadsAskWhetherABlockBeginsBefore) {
  const std::string before =
      compiler::translate(stencil().finish(), ir::default_target()).source.text;
  EXPECT_THAT(before, testing::HasSubstr(" >= 0 && "));
  Kernel copy("copy");
  const Dim n = copy.dim("n");
  const Tensor X = copy.in("X", f32, {n}), Y = copy.out("Y", f32, {n});
  const auto [i] = copy.grid(ceil_div(n, 256));
  store(Y(n.block(i, 256)), load(X(n.block(i, 256))));
  EXPECT_THAT(compiler::translate(copy.finish(), ir::default_target()).source.text,
              testing::Not(testing::HasSubstr(" >= 0 && ")));
}

// A block that ends before the others in some turn of the loop: only there could it be said what is
// to be stored.
TEST(BlockEnds, ASumOfBlocksThatEndEarlierIsRefused) {
  Kernel kernel("shifted");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n}), Y = kernel.out("Y", f32, {n});
  const auto [x] = kernel.grid(ceil_div(n, 64));
  Var sum{zeros({64})};
  for (Index i : range(3)) sum = sum + load(X(Block(64 * x + i, 64, Index(n))));
  store(Y(n.block(x, 64)), sum);
  const std::string error = test::usage_error_of([&] { compile(kernel, "sim:sm_90a"); });
  EXPECT_THAT(error, testing::HasSubstr("block_ends_test.cpp"));
  EXPECT_THAT(error, testing::HasSubstr("Block(start, size, limit)"));
}

// Products of rows that begin and end where they are told.
using Bound = std::function<Index(const Index& block, const Index& loaded)>;
Kernel product_of_rows(const Bound& start, const Bound& end) {
  Kernel kernel("shifted");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), W = kernel.in("W", bf16, {64, 64});
  const Tensor Length = kernel.in("Length", i32, {1}), Y = kernel.out("Y", f32, {n, 64});
  const auto [x] = kernel.grid(ceil_div(n, 64));
  const Index loaded = load_index(Length(0));
  const Tile rows = load(X(Block(start(x, loaded), 64, end(x, loaded)), all));
  store(Y(n.block(x, 64), all), dot(rows, load(W(all, all))));
  return kernel;
}
Index as_loaded(const Index&, const Index& loaded) { return loaded; }

// Of rows before the tensor TMA knows nothing where a block ends before it does.
TEST(BlockEnds, OperandsThatReachOutOnBothSidesAreRefused) {
  const Dim n = Dim::symbol("n");
  const Bound starts[] = {
      [](const Index& x, const Index&) { return 64 * x - 3; },
      [](const Index& x, const Index& loaded) { return 64 * x - loaded; },
      [&](const Index& x, const Index&) { return 64 * x + (n - 100); },
      [](const Index& x, const Index&) { return 64 * x + -64; },
      [](const Index& x, const Index&) { return 64 * (x - 1); },
      [](const Index& x, const Index& loaded) { return select(x < 2, loaded, 0 - loaded); },
      [](const Index& x, const Index& loaded) { return min(64 * x, loaded - 70) / 2; },
  };
  for (const Bound& start : starts) {
    EXPECT_NO_THROW(compile(
        product_of_rows(start, [&](const Index&, const Index&) { return n + 3; }), "sim:sm_90a"));
    const std::string error =
        test::usage_error_of([&] { compile(product_of_rows(start, as_loaded), "sim:sm_90a"); });
    EXPECT_THAT(error, testing::HasSubstr("may begin before the tensor and end before it does"));
    EXPECT_THAT(error, testing::HasSubstr("block_ends_test.cpp"));
  }
}

// Starts that are less by something, and yet inside.
TEST(BlockEnds, OperandsThatBeginInsideMayEndEarlier) {
  const Dim n = Dim::symbol("n");
  const Bound starts[] = {
      [](const Index& x, const Index& loaded) { return max(64 * x - loaded, 0); },
      [&](const Index& x, const Index&) { return Index(n) - min(64 * x + 64, n); },
      [](const Index& x, const Index& loaded) { return loaded + 64 * x; },
  };
  for (const Bound& start : starts) {
    EXPECT_NO_THROW(compile(product_of_rows(start, as_loaded), "sim:sm_90a"));
  }
}

// An index that a loop carries, and one that a loop counts.
TEST(BlockEnds, OperandsThatALoopMovesBackAreRefused) {
  const auto kernel = [](int first, int step) {
    Kernel kernel("moving");
    const Dim n = kernel.dim("n");
    const Tensor X = kernel.in("X", bf16, {n, 64}), W = kernel.in("W", bf16, {64, 64});
    const Tensor Length = kernel.in("Length", i32, {1}), Y = kernel.out("Y", f32, {64, 64});
    kernel.grid(1);
    const Index length = load_index(Length(0));
    const Tile w = load(W(all, all));
    Cell<Index> at(Index(0));
    Var sum{zeros({64, 64})};
    for (Index i : range(first, 4)) {
      sum = dot(w, load(X(Block(at + 64 * i, 64, length), all)), sum);
      at = at + step;
    }
    store(Y(all, all), sum);
    return kernel;
  };
  EXPECT_NO_THROW(compile(kernel(0, 64), "sim:sm_90a"));
  for (const auto& [first, step] : {std::pair(-1, 64), {0, -64}}) {
    const std::string error =
        test::usage_error_of([&] { compile(kernel(first, step), "sim:sm_90a"); });
    EXPECT_THAT(error, testing::HasSubstr("may begin before the tensor and end before it does"));
  }
}

// Rows that are stored from shared memory where they lie inside; TMA would write before the tensor.
TEST(BlockEnds, WhatIsStoredMayBeginBeforeAndEndEarlier) {
  Kernel kernel("shifted");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), W = kernel.in("W", bf16, {64, 64});
  const Tensor Shape = kernel.in("Shape", i32, {2}), Y = kernel.inout("Y", bf16, {1, n, 64});
  const auto [x] = kernel.grid(ceil_div(n, 64));
  const Tile rows = dot(load(X(n.block(x, 64), all)), load(W(all, all)));
  const Block to(64 * x - load_index(Shape(0)), 64, load_index(Shape(1)));
  store(Y(0, to, all), rows);
  const HostTensor in = HostTensor::random_normal(bf16, {130, 64}, 1),
                   weights = HostTensor::random_normal(bf16, {64, 64}, 2);
  for (const auto& [shift, end] : {std::pair(3, 90), {64, 64}, {70, 20}}) {
    for (const char* target : {"interpreter", "sim:sm_90a"}) {
      HostTensor y = HostTensor::zeros(bf16, {1, 130, 64});
      HostTensor shape = HostTensor::from_values(i32, {2}, {1.0 * shift, 1.0 * end});
      HostTensor x_in = in, w_in = weights;
      compile(kernel, target).run({ref(x_in), ref(w_in), ref(shape), ref(y)});
      for (std::int64_t i = 0; i < 130; ++i) {
        // Row i comes from row i + shift of a block that ends there.
        const std::int64_t from = i + shift;
        double wanted = 0;
        for (std::int64_t k = 0; i < end && from < 130 && k < 64; ++k) {
          wanted += in.at({from, k}) * weights.at({k, 5});
        }
        ASSERT_NEAR(y.at({0, i, 5}), wanted, 1e-2 * (1 + std::abs(wanted)))
            << target << ", row " << i << " of " << shift << ", " << end;
      }
    }
  }
}

// Blocks that exist whole are summed column by column, and the columns are summed behind the loop.
TEST(BlockEnds, ColumnsAreSummedBehindTheirLoop) {
  Kernel kernel("columns");
  const Dim m = kernel.dim("m");
  const Tensor X = kernel.in("X", f32, {3, m}), Y = kernel.out("Y", f32, {3});
  const auto [row] = kernel.grid(3);
  Var sums{zeros({1, 64})};
  for (Index s : range(ceil_div(m, 64))) {
    sums = sums + load(X(Block(row, 1, row + 1), Block(64 * s, 64, 64 * s + 64)));
  }
  store(Y(Block(row, 1, 3)), reduce_sum(sums, 1).reshape({1}));
  for (const int columns : {1, 64, 150}) {
    HostTensor x = HostTensor::zeros(f32, {3, columns});
    for (std::int64_t i = 0; i < x.elements(); ++i) x.set_flat(i, i % 7);
    for (const char* target : {"interpreter", "cpu", "sim:sm_90a", "sim:sm_100a", "sim:incore"}) {
      HostTensor y = HostTensor::poisoned(f32, {3});
      compile(kernel, target).run({ref(x), ref(y)});
      for (std::int64_t i = 0; i < 3; ++i) {
        double wanted = 0;
        for (std::int64_t c = 0; c < columns; ++c) wanted += x.at({i, c});
        EXPECT_EQ(y.at({i}), wanted) << target << ", " << columns << " columns, row " << i;
      }
    }
  }
}

// A loop downwards over blocks of a sequence.
TEST(BlockEnds, BlocksThatDescendMayEndEarlier) {
  Kernel kernel("descending");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), W = kernel.in("W", bf16, {64, 64});
  const Tensor Length = kernel.in("Length", i32, {1}), Y = kernel.out("Y", f32, {64, 64});
  kernel.grid(1);
  const Index length = load_index(Length(0)), count = ceil_div(length, 64);
  const Tile w = load(W(all, all));
  Var sum{zeros({64, 64})};
  for (Index i : range(count)) {
    sum = dot(w, load(X(Block(64 * (count - 1 - i), 64, length), all)), sum);
  }
  store(Y(all, all), sum);
  EXPECT_NO_THROW(compile(kernel, "sim:sm_90a"));
}

// The same where an author copies it himself.
void copy_from_and_to(int from, int to) {
  Kernel kernel("copy");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", bf16, {n, 64}), Y = kernel.out("Y", bf16, {n, 64});
  kernel.ctas(1);
  Ring ring(kernel, "x", stages(1), {{bf16, 64, 64}});
  const auto part = [&](int start) { return Block(Index(start), 64, Index(n) - 30); };
  const auto load_role = [&] {
    ring.produce([&](const Slot& slot) { tma_load(X(part(from), all), slot); });
  };
  const auto store_role = [&] {
    const Slot slot = ring.consume();
    tma_store(Y(part(to), all), slot);
    bulk_commit();
    bulk_wait(0);
    ring.release(slot);
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("store", warps(1), registers(24), store_role)});
  HostTensor x = HostTensor::random_normal(bf16, {100, 64}, 1),
             y = HostTensor::zeros(bf16, {100, 64});
  compile(kernel, "sim:sm_90a").run({ref(x), ref(y)});
}

TEST(BlockEnds, TheSimulatedGpuReportsACopyThatReachesOutOnBothSides) {
  EXPECT_NO_THROW(copy_from_and_to(0, 0));
  for (const auto& [from, to, fault] : {std::tuple(-3, 0, "row -3 of X"), {0, -5, "row -5 of Y"}}) {
    try {
      copy_from_and_to(from, to);
      ADD_FAILURE() << "no fault";
    } catch (const Error& error) {
      EXPECT_THAT(test::without_source_lines(error.what()), testing::HasSubstr(fault));
      EXPECT_THAT(test::without_source_lines(error.what()), testing::HasSubstr("out of bounds"));
      EXPECT_THAT(test::without_source_lines(error.what()),
                  testing::HasSubstr("block_ends_test.cpp"));
    }
  }
}

// Y = the sum over steps of A and the step's page, of which the last one has fewer rows: the others
// of its stage are whole, and what lies behind its end is read as zeros.
TEST(BlockEnds, EachPageOfAStageEndsWhereItsRowsDo) {
  constexpr int kSlots = 16, kSteps = 8, kPages = 9, kThere = kSlots * kSteps - 5;
  Kernel kernel("sum_of_pages");
  const Dim pages = kernel.dim("pages");
  const Tensor T = kernel.in("T", i32, {kSteps}), N = kernel.in("N", i32, {1});
  const Tensor A = kernel.in("A", bf16, {64, kSlots}),
               P = kernel.in("P", bf16, {pages, kSlots, 64});
  const Tensor Y = kernel.out("Y", f32, {1, 64, 64});
  kernel.grid(1);
  const Index there = load_index(N(0));
  const Tile a = load(A(all, all));
  Var sum{zeros({64, 64})};
  for (Index i : range(kSteps)) {
    const Block rows(Index(0), kSlots, min(there - kSlots * i, kSlots));
    sum = sum * 0.5 + dot(a, load(P(load_index(T(i)), rows, all)));
  }
  store(Y(0, all, all), sum);
  ir::Kernel joined = kernel.finish();
  joined.target = "sm_90a";
  passes::simplify_kernel(joined);
  ASSERT_EQ(passes::join_steps(joined), 1);
  const std::vector<double> table{1, 6, 0, 3, 8, 2, 5, 4};
  const HostTensor p = HostTensor::random_normal(bf16, {kPages, kSlots, 64}, 2);
  const HostTensor weights = HostTensor::random_normal(bf16, {64, kSlots}, 1);
  check(
      kernel,
      {HostTensor::from_values(i32, {kSteps}, table), HostTensor::from_values(i32, {1}, {kThere}),
       weights, p, HostTensor::poisoned(f32, {1, 64, 64})},
      [&](std::int64_t, std::int64_t row, std::int64_t column) {
        double wanted = 0;
        for (std::int64_t step = 0; step < kSteps; ++step) {
          wanted *= 0.5;
          const auto page = static_cast<std::int64_t>(table[static_cast<std::size_t>(step)]);
          for (std::int64_t k = 0; k < kSlots && kSlots * step + k < kThere; ++k) {
            wanted += weights.at({row, k}) * p.at({page, k, column});
          }
        }
        return wanted;
      },
      1e-4);
}

// Butterflies: rows that exist in part are split into halves of themselves and joined again.
TEST(BlockEnds, RowsThatExistInPartAreSplitAndJoined) {
  Kernel kernel("hadamard");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {1, n, 64}), Y = kernel.out("Y", f32, {1, n, 64});
  const auto [i] = kernel.grid(ceil_div(n, 4));
  const Block rows = n.block(i, 4);
  Tile x = load(X(0, rows, all));
  for (int half = 1; half < 64; half *= 2) {
    const int pairs = 4 * 64 / (2 * half);
    const Tile p = x.reshape({pairs, 2, half});
    const Tile a = p.slice({0, 0, 0}, {pairs, 1, half}), b = p.slice({0, 1, 0}, {pairs, 1, half});
    const Tile first = iota({pairs, 2, half}, 1) == 0;
    x = where(first == (iota({pairs, 2, half}, 1) != 1), where(first, a + b, a - b), 0);
    x = x.reshape({4, 64});
  }
  store(Y(0, rows, all), x);
  for (const std::int64_t count : {5, 1, 0}) {
    const HostTensor in = HostTensor::random_normal(f32, {1, count, 64}, 1);
    const auto reference = [&](std::int64_t, std::int64_t row, std::int64_t column) {
      double wanted = 0;
      for (std::int64_t c = 0; c < 64; ++c) {
        int ones = 0;
        for (std::int64_t both = c & column; both != 0; both >>= 1) ones += both & 1;
        wanted += (ones % 2 == 0 ? 1 : -1) * in.at({0, row, c});
      }
      return wanted;
    };
    check(kernel, {in, HostTensor::zeros(f32, {1, count, 64})}, reference, 1e-4);
  }
}

// Parts of a block end where it ends, also before the tensor does: the rows behind it are not
// written.
TEST(BlockEnds, PartsOfABlockEndWithIt) {
  Kernel kernel("parts");
  const Dim n = kernel.dim("n"), used = kernel.dim("used");
  const Tensor X = kernel.in("X", f32, {n, 16}), U = kernel.in("U", f32, {used});
  const Tensor Y = kernel.inout("Y", f32, {n, 16});
  kernel.grid(1);
  (void)U;
  const Block rows(0, 64, Index(used));
  for (int i = 0; i < 4; ++i) {
    const Block part = rows.part(i, 16);
    store(Y(part, all), load(X(part, all)));
  }
  for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
    const HostTensor x = HostTensor::random_normal(f32, {50, 16}, 1);
    HostTensor y = HostTensor::zeros(f32, {50, 16}), in = x, u = HostTensor::zeros(f32, {37});
    compile(kernel, target).run({ref(in), ref(u), ref(y)});
    for (std::int64_t row = 0; row < 50; ++row) {
      EXPECT_EQ(y.at({row, 3}), row < 37 ? x.at({row, 3}) : 0) << target << " row " << row;
    }
  }
}

// Which the sum of all rows must leave out, split or not.
TEST(BlockEnds, PartsOfRowsThatDoNotExistAreNotSummed) {
  Kernel kernel("sums");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 64}), Y = kernel.out("Y", f32, {1, 1, 32});
  kernel.grid(1);
  const Tile parts = exp(load(X(n.block(0, 16), all))).reshape({32, 32});
  store(Y(0, all, all), reduce_sum(parts, 0));
  const HostTensor in = HostTensor::random_normal(f32, {5, 64}, 1);
  const auto reference = [&](std::int64_t, std::int64_t, std::int64_t column) {
    double wanted = 0;
    for (std::int64_t row = 0; row < 5; ++row) {
      wanted += std::exp(in.at({row, column})) + std::exp(in.at({row, column + 32}));
    }
    return wanted;
  };
  check(kernel, {in, HostTensor::zeros(f32, {1, 1, 32})}, reference, 1e-5);
}

// Columns that end where a tensor says: TMA ends rows there alone, registers anything.
TEST(BlockEnds, WhatIsAddedToAProductEndsAnywhere) {
  Kernel kernel("scores");
  const Dim n = kernel.dim("n", multiple_of(8));
  const Tensor A = kernel.in("A", bf16, {64, 64}), B = kernel.in("B", bf16, {n, 64});
  const Tensor Bias = kernel.in("Bias", bf16, {64, n}), Length = kernel.in("Length", i32, {1});
  const Tensor Y = kernel.out("Y", f32, {1, 64, 1});
  kernel.grid(1);
  const Index length = load_index(Length(0));
  const Tile a = load(A(all, all));
  Var sum{zeros({64, 1})};
  for (Index i : range(ceil_div(length, 64))) {
    const Block columns(64 * i, 64, length);
    const Tile s = dot(a, load(B(columns, all)).T()) + load(Bias(all, columns)).cast(f32);
    sum = sum + reduce_sum(s, 1);
  }
  store(Y(0, all, all), sum);
  for (const std::int64_t length : {70, 1, 0}) {
    const HostTensor left = HostTensor::random_normal(bf16, {64, 64}, 1),
                     right = HostTensor::random_normal(bf16, {136, 64}, 2);
    const HostTensor bias = HostTensor::random_normal(bf16, {64, 136}, 3);
    const auto reference = [&](std::int64_t, std::int64_t row, std::int64_t) {
      double wanted = 0;
      for (std::int64_t j = 0; j < length; ++j) {
        wanted += bias.at({row, j});
        for (std::int64_t k = 0; k < 64; ++k) wanted += left.at({row, k}) * right.at({j, k});
      }
      return wanted;
    };
    check(kernel,
          {left, right, bias, HostTensor::from_values(i32, {1}, {static_cast<double>(length)}),
           HostTensor::zeros(f32, {1, 64, 1})},
          reference, 1e-3);
  }
}

}  // namespace
}  // namespace tilewright
