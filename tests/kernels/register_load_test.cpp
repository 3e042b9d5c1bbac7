#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "codegen/nvrtc_build.h"
#include "common/error_text.h"
#include "compiler/build.h"
#include "tilewright/compile.h"
#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// Loads from global memory to registers at the explicit level, on the simulated GPU beside the tile
// level on the interpreter, and through NVRTC.
namespace tilewright {
namespace {

HostTensor poison(DType dtype, std::vector<std::int64_t> shape) {
  return HostTensor::poisoned(dtype, std::move(shape));
}

// C = (A B^T + bias) * scale + alpha * C, where bias is a row, scale a column and C is read.
struct Epilogue {
  Kernel kernel;
  Dim m = kernel.dim("m"), n = kernel.dim("n"), k = kernel.dim("k");
  Tensor A = kernel.in("A", bf16, {m, k}), B = kernel.in("B", bf16, {n, k});
  Tensor bias = kernel.in("bias", f32, {n}), scale = kernel.in("scale", bf16, {m});
  Tensor C = kernel.inout("C", f32, {m, n});
  Scalar alpha = kernel.scalar("alpha", f32);

  explicit Epilogue(const char* name) : kernel(name) {}
  void finish(const Block& rows, const Block& cols, const Tile& product) const {
    const Tile row = load(bias(cols)).reshape({1, cols.size()});
    const Tile column = load(scale(rows)).cast(f32).reshape({rows.size(), 1});
    store(C(rows, cols), (product + row) * column + alpha * load(C(rows, cols)));
  }
};

Kernel tile_gemm() {
  Epilogue e("gemm_epilogue");
  const auto [x, y] = e.kernel.grid(ceil_div(e.m, 64), ceil_div(e.n, 64));
  const Block rows = e.m.block(x, 64), cols = e.n.block(y, 64);
  Var acc{zeros({64, 64})};
  for (Block depth : blocks(e.k, 64)) {
    acc = acc + dot(load(e.A(rows, depth)), load(e.B(cols, depth)).T());
  }
  e.finish(rows, cols, acc);
  return std::move(e.kernel);
}

Kernel explicit_gemm() {
  Epilogue e("gemm_epilogue");
  const Dim columns = ceil_div(e.n, 64);
  e.kernel.ctas(ceil_div(e.m, 64) * columns);
  Ring ring(e.kernel, "ab", stages(2), {{bf16, 64, 64}, {bf16, 64, 64}});
  e.kernel.roles({role("load", warps(1), registers(24),
                       [&] {
                         for (Block depth : blocks(e.k, 64)) {
                           ring.produce([&](const Slot& slot) {
                             tma_load(e.A(e.m.block(cta_index() / columns, 64), depth), slot[0]);
                             tma_load(e.B(e.n.block(cta_index() % columns, 64), depth), slot[1]);
                           });
                         }
                       }),
                  role("math", warpgroups(1), registers(240), [&] {
                    Var acc{zeros({64, 64})};
                    for ([[maybe_unused]] Index step : range(ceil_div(e.k, 64))) {
                      const Slot slot = ring.consume();
                      acc = wait(wgmma(slot[0], slot[1].T(), acc));
                      ring.release(slot);
                    }
                    e.finish(e.m.block(cta_index() / columns, 64),
                             e.n.block(cta_index() % columns, 64), acc);
                  })});
  return std::move(e.kernel);
}

TEST(RegisterLoads, EpilogueOfAProduct) {
  for (const auto& [m, n, k] : {std::array<std::int64_t, 3>{1, 8, 8}, {65, 100, 72}, {64, 64, 0}}) {
    SCOPED_TRACE(testing::Message() << m << " x " << n << " x " << k);
    HostTensor a = HostTensor::random_normal(bf16, {m, k}, 1);
    HostTensor b = HostTensor::random_normal(bf16, {n, k}, 2);
    HostTensor bias = HostTensor::random_normal(f32, {n}, 3);
    HostTensor scale = HostTensor::random_normal(bf16, {m}, 4);
    HostTensor want = HostTensor::random_normal(f32, {m, n}, 5), got = want;
    compile(tile_gemm(), "interpreter")
        .run({ref(a), ref(b), ref(bias), ref(scale), ref(want)}, {-0.75});
    compile(explicit_gemm(), "sim:sm_90a")
        .run({ref(a), ref(b), ref(bias), ref(scale), ref(got)}, {-0.75});
    for (std::int64_t i = 0; i < want.elements(); ++i) {
      ASSERT_NEAR(got.flat(i), want.flat(i), 1e-4 * (1 + std::abs(want.flat(i)))) << i;
    }
  }
}

TEST(RegisterLoads, EpilogueBuilds) {
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const compiler::GpuProgram program =
      compiler::translate(explicit_gemm().finish(), ir::default_target());
  codegen::expect_builds(program.source);
}

// 64 rows a warpgroup of `columns` columns of a tensor of three axes, copied: nothing but the copy
// says how the tile lies.
Kernel copy(DType dtype, int columns) {
  Kernel kernel("copy");
  const Dim heads = kernel.dim("heads"), rows = kernel.dim("rows"), width = kernel.dim("width");
  const Tensor X = kernel.in("X", dtype, {rows, heads, width});
  const Tensor Y = kernel.out("Y", dtype, {rows, heads, width});
  kernel.ctas(ceil_div(rows, 128) * heads);
  kernel.roles({role("copy", warpgroups(2), registers(64), [&](const Index& group) {
    const Block own = rows.block(cta_index() / heads, 128).part(group, 64);
    for (Block cols : blocks(width, columns)) {
      store(Y(own, cta_index() % heads, cols), load(X(own, cta_index() % heads, cols)));
    }
  })});
  return kernel;
}

TEST(RegisterLoads, CopyOfEveryType) {
  for (const DType dtype : {f32, bf16, f16, i32, f8e4m3, i8, u8, u32}) {
    for (const std::int64_t width : {1, 37, 64, 96}) {
      SCOPED_TRACE(testing::Message() << name_of(dtype) << " " << width);
      HostTensor x = dtype == i32 ? HostTensor::zeros(i32, {130, 3, width})
                                  : HostTensor::random_normal(dtype, {130, 3, width}, 1);
      if (dtype == i32) {
        for (std::int64_t i = 0; i < x.elements(); ++i) x.set_flat(i, double(i * 7919 - 99));
      }
      HostTensor y = poison(dtype, {130, 3, width});
      compile(copy(dtype, 32), "sim:sm_90a").run({ref(x), ref(y)});
      for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(y.flat(i), x.flat(i)) << i;
    }
  }
}

// A thread with many vectors asks once whether all of them exist, one with few asks each.
TEST(RegisterLoads, ManyVectorsAreLoadedWithoutAskingEach) {
  const auto unasked = [](int columns) {
    const std::string text =
        compiler::translate(copy(f32, columns).finish(), ir::default_target()).source.text;
    return text.find(", true);") != std::string::npos;
  };
  EXPECT_FALSE(unasked(64));
  EXPECT_TRUE(unasked(128));
}

TEST(RegisterLoads, CopyBuildsAndLoadsVectors) {
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  for (const DType dtype : {f32, bf16, f16, i32, f8e4m3, i8, u8, u32}) {
    const compiler::GpuProgram program =
        compiler::translate(copy(dtype, 64).finish(), ir::default_target());
    EXPECT_NE(program.source.text.find("load_vector_16("), std::string::npos);
    codegen::expect_builds(program.source);
  }
}

// By vectors, and by elements where rows begin anywhere.
TEST(RegisterLoads, EvictedFirst) {
  Kernel kernel("streamed");
  const Dim rows = kernel.dim("rows"), columns = kernel.dim("columns");
  const Tensor X = kernel.in("X", bf16, {rows, columns}),
               Y = kernel.out("Y", bf16, {rows, columns});
  const auto [x, y] = kernel.grid(ceil_div(columns, 64), ceil_div(rows, 16));
  const Block own = rows.block(y, 16), cols = columns.block(x, 64);
  store(Y(own, cols), load(X(own, cols), Cache::evict_first));
  for (const std::int64_t width : {128, 77}) {
    HostTensor from = HostTensor::random_normal(bf16, {21, width}, 1);
    for (const char* target : {"interpreter", "cpu", "sim:sm_90a"}) {
      HostTensor to = poison(bf16, {21, width});
      compile(kernel, target).run({ref(from), ref(to)});
      for (std::int64_t i = 0; i < from.elements(); ++i) ASSERT_EQ(to.flat(i), from.flat(i)) << i;
    }
  }
  const compiler::GpuProgram program = compiler::translate(kernel.finish(), ir::default_target());
  EXPECT_NE(program.source.text.find("load_streamed_vector_16("), std::string::npos);
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  codegen::expect_builds(program.source);
}

TEST(RegisterLoads, AHintThatTheyDoNotTakeIsAnError) {
  Kernel kernel("hints");
  const Tensor X = kernel.in("X", f32, {64, 64}), Y = kernel.inout("Y", f32, {64, 64});
  kernel.grid(1);
  const auto error = [](const Tensor& tensor, Cache cache) {
    return test::usage_error_of([&] { load(tensor(all, all), cache); });
  };
  EXPECT_NE(error(X, Cache::evict_last).find("tma_load takes it"), std::string::npos);
  EXPECT_NE(error(Y, Cache::evict_first).find("Y, which the kernel may write"), std::string::npos);
}

// What the kernel has stored is read again, and in that order.
TEST(RegisterLoads, ReadsWhatItHasWritten) {
  Kernel kernel("increment_twice");
  const Dim rows = kernel.dim("rows");
  const Tensor X = kernel.inout("X", f32, {rows, 32});
  kernel.ctas(ceil_div(rows, 64));
  kernel.roles({role("add", warpgroups(1), registers(64), [&] {
    const Block own = rows.block(cta_index(), 64);
    for ([[maybe_unused]] Index i : range(2)) store(X(own, all), load(X(own, all)) + 1);
  })});
  HostTensor x = HostTensor::zeros(f32, {70, 32});
  compile(kernel, "sim:sm_90a").run({ref(x)});
  for (std::int64_t i = 0; i < x.elements(); ++i) ASSERT_EQ(x.flat(i), 2) << i;
}

TEST(RegisterLoads, OutsideOfARoleAreAnError) {
  Kernel kernel("outside");
  const Tensor X = kernel.in("X", f32, {64, 64});
  kernel.ctas(1);
  EXPECT_NE(test::usage_error_of([&] { load(X(all, all)); }).find("load is called outside a role"),
            std::string::npos);
}

// The rows of an accumulator lie in four warps.
TEST(RegisterLoads, ColumnMaximaOfAProduct) {
  Kernel kernel("column_maxima");
  const Dim m = kernel.dim("m");
  const Tensor A = kernel.in("A", bf16, {m, 64}), B = kernel.in("B", bf16, {64, 64});
  const Tensor C = kernel.out("C", f32, {m, 64});
  kernel.ctas(1);
  Ring ring(kernel, "ab", stages(1), {{bf16, 64, 64}, {bf16, 64, 64}});
  const Block rows = m.block(0, 64);
  kernel.roles({role("load", warps(1), registers(24),
                     [&] {
                       ring.produce([&](const Slot& slot) {
                         tma_load(A(rows, all), slot[0]);
                         tma_load(B(all, all), slot[1]);
                       });
                     }),
                role("math", warpgroups(1), registers(240), [&] {
                  const Slot slot = ring.consume();
                  const Tile s = wait(wgmma(slot[0], slot[1].T()));
                  ring.release(slot);
                  store(C(rows, all), s - reduce_max(s, 0));
                })});
  HostTensor a = HostTensor::random_normal(bf16, {64, 64}, 1);
  HostTensor b = HostTensor::random_normal(bf16, {64, 64}, 2), c = poison(f32, {64, 64});
  compile(kernel, "sim:sm_90a").run({ref(a), ref(b), ref(c)});
  for (std::int64_t j = 0; j < 64; ++j) {
    std::vector<double> column(64, 0);
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t d = 0; d < 64; ++d) column[i] += a.at({i, d}) * b.at({j, d});
    }
    const double top = *std::max_element(column.begin(), column.end());
    for (std::int64_t i = 0; i < 64; ++i) ASSERT_NEAR(c.at({i, j}), column[i] - top, 1e-4);
  }
}

// The sum of rows that several warps share goes through shared memory.
Kernel centre(int columns) {
  Kernel kernel("centre");
  const Dim rows = kernel.dim("rows"), width = kernel.dim("width");
  const Tensor X = kernel.in("X", f32, {rows, width});
  const Tensor Y = kernel.out("Y", f32, {rows, width});
  kernel.ctas(ceil_div(rows, 4));
  kernel.roles({role("centre", warpgroups(2), registers(64), [&](const Index& group) {
    const Block own = rows.block(cta_index(), 4).part(group, 2);
    Var mean{zeros({own, 1})};
    for (Block cols : blocks(width, columns)) mean = mean + reduce_sum(load(X(own, cols)), 1);
    const Tile centred = Tile(mean) * (1.0 / 300);
    for (Block cols : blocks(width, columns)) {
      store(Y(own, cols), load(X(own, cols)) - centred);
    }
  })});
  return kernel;
}

TEST(RegisterLoads, SumsAcrossWarps) {
  HostTensor x = HostTensor::random_normal(f32, {7, 300}, 1);
  for (const int seed : {0, 1}) {
    HostTensor y = poison(f32, {7, 300});
    compile(centre(seed == 0 ? 512 : 128), "sim:sm_90a").run({ref(x), ref(y)});
    for (std::int64_t row = 0; row < 7; ++row) {
      double mean = 0;
      for (std::int64_t i = 0; i < 300; ++i) mean += x.at({row, i}) / 300;
      for (std::int64_t i = 0; i < 300; ++i) {
        ASSERT_NEAR(y.at({row, i}), x.at({row, i}) - mean, 1e-5) << row << " " << i;
      }
    }
  }
}

TEST(RegisterLoads, SumsAcrossWarpsBuild) {
  if (const std::string why = codegen::why_no_nvrtc(); !why.empty()) GTEST_SKIP() << why;
  const compiler::GpuProgram program =
      compiler::translate(centre(512).finish(), ir::default_target());
  EXPECT_NE(program.source.text.find("bar.sync"), std::string::npos);
  codegen::expect_builds(program.source);
}

}  // namespace
}  // namespace tilewright
