#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// A kernel of TMA's reductions to global memory with its result, for the simulator and for GPUs.
namespace tilewright {

inline constexpr int kRows = 64, kColumns = 64, kCtas = 3;

// What a kernel leaves out, or does beside its reductions.
enum class Mistake { none, fence, read_wait, plain_load, plain_store, tma_store };

// Every CTA adds its 64 rows of X to Y, or takes the smaller or larger elements.
inline Kernel accumulate(DType dtype, Reduction how, int columns, Mistake mistake = Mistake::none) {
  Kernel kernel("accumulate");
  const Tensor X = kernel.in("X", dtype, {kCtas * kRows, columns});
  const Tensor Y = kernel.inout("Y", dtype, {kRows, columns});
  const Tensor D = kernel.out("D", dtype, {kCtas * kRows, columns});
  kernel.ctas(kCtas);
  const SharedTile staging(kernel, "staging", dtype, kRows, columns);
  NamedBarrier written(kernel, 128);
  kernel.roles({role("math", warpgroups(1), registers(240), [&] {
    const Block own = Dim(kCtas * kRows).block(cta_index(), kRows);
    const Tile tile = load(X(own, all));
    store(staging, tile);
    if (mistake != Mistake::fence) fence_proxy_async();
    written.sync();
    when(warp_index() == 0, [&] {
      tma_reduce(Y(all, all), staging, how);
      bulk_commit();
      if (mistake != Mistake::read_wait) bulk_wait_read(0);
      warp_sync();
    });
    written.sync();
    // The staging buffer is used again.
    store(staging, tile + tile);
    fence_proxy_async();
    written.sync();
    when(warp_index() == 0, [&] {
      if (mistake == Mistake::tma_store) {
        tma_store(Y(all, all), staging);
      } else {
        tma_store(D(own, all), staging);
      }
      bulk_commit();
      bulk_wait(0);
    });
    when(cta_index() == 1, [&] {
      if (mistake == Mistake::plain_store) store(Y(all, all), tile);
      if (mistake == Mistake::plain_load) store(D(own, all), load(Y(all, all)));
    });
  })});
  return kernel;
}

inline HostTensor numbers(DType dtype, std::vector<std::int64_t> shape, std::uint64_t seed) {
  if (is_float(dtype)) return HostTensor::random_normal(dtype, std::move(shape), seed);
  HostTensor made = HostTensor::zeros(dtype, std::move(shape));
  for (std::int64_t i = 0; i < made.elements(); ++i) {
    made.set_flat(
        i, static_cast<double>((i * 7919 + static_cast<std::int64_t>(seed) * 31) % 2001 - 1000));
  }
  return made;
}

inline double combined(Reduction how, double a, double b) {
  switch (how) {
    case Reduction::add:
      return a + b;
    case Reduction::min:
      return std::fmin(a, b);
    case Reduction::max:
      return std::fmax(a, b);
  }
  return a;
}

struct ReductionCase {
  DType dtype;
  Reduction how;
  int columns;
  double unit;  // of rounding
};

inline std::vector<ReductionCase> reduction_cases() {
  // 64 columns of f32 are two panels with a swizzle of 128 bytes; 4 of them have none.
  return {{f32, Reduction::add, 64, 0x1p-24}, {f32, Reduction::add, 4, 0x1p-24},
          {f32, Reduction::add, 32, 0x1p-24}, {f16, Reduction::add, 64, 0x1p-11},
          {bf16, Reduction::add, 64, 0x1p-8}, {i32, Reduction::add, 32, 0},
          {f16, Reduction::min, 64, 0},       {bf16, Reduction::max, 64, 0},
          {i32, Reduction::min, 32, 0},       {i32, Reduction::max, 32, 0}};
}

inline void expect_reduced(const HostTensor& X, const HostTensor& before, const HostTensor& Y,
                           const ReductionCase& each) {
  for (std::int64_t row = 0; row < kRows; ++row) {
    for (std::int64_t column = 0; column < each.columns; ++column) {
      double wanted = before.at({row, column}), magnitude = std::abs(wanted);
      for (std::int64_t cta = 0; cta < kCtas; ++cta) {
        const double x = X.at({cta * kRows + row, column});
        wanted = combined(each.how, wanted, x);
        magnitude += std::abs(x);
      }
      ASSERT_NEAR(Y.at({row, column}), wanted,
                  each.how == Reduction::add ? kCtas * each.unit * magnitude : 0)
          << row << ", " << column;
    }
  }
}

}  // namespace tilewright
