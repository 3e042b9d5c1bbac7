#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"
#include "tilewright/tensor_ref.h"

// Kernels that add tiles to memory from registers, with their results: for the simulator, and for
// the printed text.
namespace tilewright::test {

inline constexpr int kAddedRows = 16, kAddingCtas = 3, kAddingWarps = 2;

// What CTA 1 does beside its additions.
enum class Beside { nothing, plain_store, plain_load };

// Every warp of every CTA adds a tile of its own to the same rows of Y, all but the last of them.
// `constant_end`: the columns end at a constant, wherever the tensor does. `constant_width`: so
// does the tensor, at `columns`.
inline Kernel add_tiles(int columns, bool constant_end = false, Beside beside = Beside::nothing,
                        bool constant_width = false) {
  Kernel kernel("add_tiles");
  const Dim rows = kernel.dim("rows");
  const Dim width = constant_width ? Dim(columns) : kernel.dim("width");
  const Tensor X = kernel.in("X", f32, {kAddingCtas, kAddingWarps, kAddedRows, columns});
  const Tensor Y = kernel.inout("Y", f32, {rows, width});
  const Tensor D = kernel.out("D", f32, {kAddedRows, columns});
  kernel.ctas(kAddingCtas);
  const auto add = [&](int warp) {
    return [&, warp] {
      const Block block(Index(0), kAddedRows, Index(rows) - 1);
      const Block part =
          constant_end ? Block(Index(0), columns, Index(columns)) : width.block(0, columns);
      const Tile tile = load(X(cta_index(), warp, all, all));
      atomic_add(Y(block, part), tile);
      if (warp != 0 || beside == Beside::nothing) return;
      when(cta_index() == 1, [&] {
        if (beside == Beside::plain_store) store(Y(block, part), tile);
        if (beside == Beside::plain_load) store(D(all, all), load(Y(block, part)));
      });
    };
  };
  kernel.roles({role("first", warps(1), registers(128), add(0)),
                role("second", warps(1), registers(128), add(1))});
  return kernel;
}

// The roles of a kernel that multiplies A {64, depth} and B {columns, depth} once; `use` takes the
// product.
inline void multiply_once(Kernel& kernel, const Tensor& A, const Tensor& B, int columns, int depth,
                          const std::function<void(const Tile& product)>& use) {
  Ring ring(kernel, "operands", stages(1), {{bf16, 64, depth}, {bf16, columns, depth}});
  const auto load = [&] {
    ring.produce([&](const Slot& slot) {
      tma_load(A(all, all), slot[0]);
      tma_load(B(all, all), slot[1]);
    });
  };
  const auto multiply = [&] {
    const Slot slot = ring.consume();
    const Tile product = wait(wgmma(slot[0], slot[1].T()));
    ring.release(slot);
    use(product);
  };
  kernel.roles({role("load", warps(1), registers(24), load),
                role("math", warpgroups(1), registers(240), multiply)});
}

// Where Y lies among other numbers: from element `base`, with rows `stride` apart.
struct SumPlace {
  int columns, rows, width, base, stride;
  bool constant_end = false, constant_width = false;
};

inline Kernel add_tiles(const SumPlace& place) {
  return add_tiles(place.columns, place.constant_end, Beside::nothing, place.constant_width);
}

// Whole vectors, ends that cut one, and places at which no vector of 16 bytes, or none of 8, lies.
// Of a constant width rows that follow each other, some of which do not exist, and others.
inline std::vector<SumPlace> sum_places() {
  return {{32, 17, 32, 0, 32},
          {32, 17, 40, 0, 40},
          {32, 17, 30, 0, 32},
          {32, 12, 29, 0, 36},
          {32, 17, 32, 1, 36},
          {32, 9, 31, 2, 38},
          {32, 17, 32, 0, 33},
          {4, 17, 4, 3, 7},
          {2, 17, 2, 0, 2},
          {1, 5, 1, 1, 3},
          {32, 17, 30, 0, 32, true},
          {32, 17, 32, 0, 32, false, true},
          {32, 12, 32, 0, 32, false, true},
          {32, 17, 32, 1, 32, false, true},
          {32, 17, 32, 0, 36, false, true}};
}

// Small integers: f32 holds their sums exactly, in whatever order they come.
struct SumData {
  explicit SumData(const SumPlace& place)
      : X(HostTensor::zeros(f32, {kAddingCtas, kAddingWarps, kAddedRows, place.columns})),
        memory(HostTensor::zeros(f32, {place.base + (place.rows + 2) * place.stride})) {
    for (std::int64_t i = 0; i < X.elements(); ++i) {
      X.set_flat(i, static_cast<double>(i * 7919 % 101 + 1));
    }
    for (std::int64_t i = 0; i < memory.elements(); ++i) {
      memory.set_flat(i, static_cast<double>(i * 31 % 57) - 28);
    }
    wanted = memory;
    for (int row = 0; row < kAddedRows && row < place.rows - 1; ++row) {
      for (int column = 0; column < place.columns && column < place.width; ++column) {
        const int at = place.base + row * place.stride + column;
        for (int cta = 0; cta < kAddingCtas; ++cta) {
          for (int warp = 0; warp < kAddingWarps; ++warp) {
            wanted.set_flat(at, wanted.flat(at) + X.at({cta, warp, row, column}));
          }
        }
      }
    }
  }
  TensorRef Y(const SumPlace& place) {
    return {memory.data() + sizeof(float) * place.base,
            f32,
            {place.rows, place.width},
            {place.stride, 1}};
  }
  HostTensor X, memory, wanted;
};

}  // namespace tilewright::test
