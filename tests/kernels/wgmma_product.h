#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

namespace tilewright::test {

// Products of a {64, k} and b {k, n} with each operand in each place that it may have. Tensors of
// 8-bit elements have no transposed form: the hardware transposes 16-bit elements alone.
struct WgmmaCase {
  DType dtype = bf16;
  int n = 64, k = 64;
  bool transposes() const { return size_of(dtype) == 2; }
  std::vector<std::string> products() const {
    if (!transposes()) return {"shared a x b^T", "registers a x b^T"};
    return {"shared a x b^T",  "registers a x b^T", "shared a x b",
            "registers a x b", "shared a^T x b^T",  "shared a^T x b"};
  }
  std::string name() const {
    return std::string(name_of(dtype)) + "_n" + std::to_string(n) + "_k" + std::to_string(k);
  }
};
inline void PrintTo(const WgmmaCase& each, std::ostream* out) { *out << each.name(); }

// A {64, k} and B {n, k} are contiguous along k, At and Bt are their transposes: K-major and
// MN-major operands. C holds one matrix for each product, and each CTA computes one: ptxas keeps
// the accumulators of products that only follow each other all at once.
inline Kernel wgmma_products(const WgmmaCase& c) {
  Kernel kernel("wgmma_products");
  const Tensor A = kernel.in("A", c.dtype, {64, c.k}), B = kernel.in("B", c.dtype, {c.n, c.k});
  const Tensor At = kernel.in("At", c.dtype, {c.k, 64}), Bt = kernel.in("Bt", c.dtype, {c.k, c.n});
  const Tensor C = kernel.out("C", f32, {static_cast<int>(c.products().size()), 64, c.n});
  kernel.ctas(static_cast<int>(c.products().size()));
  std::vector<TileShape> tiles = {{c.dtype, 64, c.k}, {c.dtype, c.n, c.k}};
  if (c.transposes()) {
    tiles.push_back({c.dtype, c.k, 64});
    tiles.push_back({c.dtype, c.k, c.n});
  }
  Ring ring(kernel, "operands", stages(1), tiles);
  const auto load_role = [&] {
    ring.produce([&](const Slot& slot) {
      tma_load(A(all, all), slot[0]);
      tma_load(B(all, all), slot[1]);
      if (!c.transposes()) return;
      tma_load(At(all, all), slot[2]);
      tma_load(Bt(all, all), slot[3]);
    });
  };
  const auto math_role = [&] {
    const Slot slot = ring.consume();
    const SharedView &a = slot[0], b = slot[1].T();
    int next = 0;
    const auto save = [&](const auto& product) {
      when(cta_index() == next, [&] { store(C(next, all, all), wait(product())); });
      ++next;
    };
    save([&] { return wgmma(a, b); });
    save([&] { return wgmma(load(a), b); });
    if (c.transposes()) {
      const SharedView a_mn = slot[2].T(), &b_mn = slot[3];
      save([&] { return wgmma(a, b_mn); });
      save([&] { return wgmma(load(a), b_mn); });
      save([&] { return wgmma(a_mn, b); });
      save([&] { return wgmma(a_mn, b_mn); });
    }
    ring.release(slot);
  };
  kernel.roles({role("load", warps(1), registers(24), load_role),
                role("math", warpgroups(1), registers(240), math_role)});
  return kernel;
}

// Small integers, whose products and sums every dtype holds exactly: no order of summation shows.
struct WgmmaData {
  explicit WgmmaData(const WgmmaCase& c)
      : a(HostTensor::zeros(c.dtype, {64, c.k})),
        b(HostTensor::zeros(c.dtype, {c.n, c.k})),
        at(HostTensor::zeros(c.dtype, {c.k, 64})),
        bt(HostTensor::zeros(c.dtype, {c.k, c.n})) {
    std::mt19937 random(static_cast<unsigned>(c.n * 1000 + c.k));
    const auto fill = [&](HostTensor& tensor, HostTensor& transposed) {
      for (std::int64_t i = 0; i < tensor.shape()[0]; ++i) {
        for (std::int64_t j = 0; j < tensor.shape()[1]; ++j) {
          const double value = static_cast<double>(random() % 17) - 8;
          tensor.set({i, j}, value);
          transposed.set({j, i}, value);
        }
      }
    };
    fill(a, at);
    fill(b, bt);
    for (std::int64_t i = 0; i < 64; ++i) {
      for (std::int64_t j = 0; j < c.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < c.k; ++k) sum += a.at({i, k}) * b.at({j, k});
        product.push_back(sum);
      }
    }
  }
  HostTensor a, b, at, bt;
  std::vector<double> product;  // {64, n}
};

// The products that differ from the reference, each with its first wrong element; "" for none.
inline std::string wrong_products(const WgmmaCase& c, const WgmmaData& data,
                                  const HostTensor& result) {
  std::string wrong;
  const auto count = static_cast<std::int64_t>(data.product.size());
  std::int64_t first = 0;
  for (const std::string& name : c.products()) {
    for (std::int64_t i = 0; i < count; ++i) {
      const double got = result.flat(first + i), wanted = data.product[static_cast<std::size_t>(i)];
      if (got == wanted) continue;
      wrong += name + ": row " + std::to_string(i / c.n) + ", column " + std::to_string(i % c.n) +
               " is " + std::to_string(got) + ", expected " + std::to_string(wanted) + "\n";
      break;
    }
    first += count;
  }
  return wrong;
}

}  // namespace tilewright::test
