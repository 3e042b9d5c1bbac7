#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/ranks.h"
#include "tilewright/tensor_ref.h"

// Kernels whose tiles are added to memory in an order of PTX, with their results: for the simulator
// and for the printed text.
namespace tilewright::test {

inline constexpr int kOrderedCtas = 3, kOrderedRows = 8;

// Each CTA adds its part of X to the same rows of Y, twice, and stores what it found the first
// time. `columns` of 1 are one element of a vector.
inline Kernel add_in_order(DType dtype, int columns) {
  Kernel kernel("add_in_order");
  const bool element = columns == 1;
  const int rows = element ? 1 : kOrderedRows;
  const Dim width = kernel.dim("width");
  const Tensor X = kernel.in("X", dtype, {kOrderedCtas, rows, columns});
  const Tensor Y =
      element ? kernel.inout("Y", dtype, {width}) : kernel.inout("Y", dtype, {kOrderedRows, width});
  const Tensor B = kernel.out("B", dtype, {kOrderedCtas, rows, columns});
  kernel.ctas(kOrderedCtas);
  kernel.roles({role("add", warps(1), registers(128), [&] {
    constexpr MemoryOrder kBoth{Semantics::acq_rel, Scope::gpu},
        kRelease{Semantics::release, Scope::system};
    const TensorView place = element ? Y(1) : Y(all, width.block(0, columns));
    const Tile tile = load(X(cta_index(), all, all));
    const Tile part = element ? tile.reshape({1}) : tile;
    const Tile before = atom_add(place, part, kBoth);
    red(place, part, kRelease);
    store(B(cta_index(), all, all), element ? before.reshape({1, 1}) : before);
  })});
  return kernel;
}

// Y lies among other numbers: from element `base`, with rows `stride` apart.
struct OrderedPlace {
  int columns, width, base, stride;
};

// Whole pairs, an end that cuts one, rows that begin between two, and one element.
inline std::vector<OrderedPlace> ordered_places() {
  return {{32, 32, 0, 32}, {32, 31, 0, 32}, {32, 40, 1, 41}, {2, 2, 2, 2}, {1, 2, 3, 2}};
}

// Of CTA c all of X is 3^c, so that what is found says who has added how often.
struct OrderedSums {
  OrderedSums(DType dtype, const OrderedPlace& place)
      : place(place),
        rows(place.columns == 1 ? 1 : kOrderedRows),
        X(HostTensor::zeros(dtype, {kOrderedCtas, rows, place.columns})),
        memory(HostTensor::zeros(dtype, {place.base + (rows + 1) * place.stride})),
        before(HostTensor::zeros(dtype, {kOrderedCtas, rows, place.columns})) {
    const std::int64_t part = X.elements() / kOrderedCtas;
    double power = 1;
    for (std::int64_t cta = 0; cta < kOrderedCtas; ++cta, power *= 3) {
      for (std::int64_t i = 0; i < part; ++i) X.set_flat(cta * part + i, power);
    }
    for (std::int64_t i = 0; i < memory.elements(); ++i) {
      memory.set_flat(i, static_cast<double>(i * 31 % 57));
    }
    first = memory;
  }
  // In `memory`, or in a copy of it.
  TensorRef Y(std::byte* copy = nullptr) {
    std::byte* const first = copy ? copy : static_cast<std::byte*>(memory.data());
    std::byte* const data = first + size_of(memory.dtype()) * place.base;
    if (place.columns == 1) return {data, memory.dtype(), {place.width}, {1}};
    return {data, memory.dtype(), {rows, place.width}, {place.stride, 1}};
  }
  std::int64_t at(int row, int column) const {
    return place.base + row * place.stride + column + (place.columns == 1 ? 1 : 0);
  }
  bool exists(int column) const { return place.columns == 1 || column < place.width; }

  // The first element that is wrong, with what it is and should be; empty where none is.
  std::string mistake() const {
    HostTensor wanted = first;
    for (int row = 0; row < rows; ++row) {
      for (int column = 0; column < place.columns; ++column) {
        if (!exists(column)) continue;
        const std::int64_t at = this->at(row, column);
        wanted.set_flat(at, first.flat(at) + 2 * (1 + 3 + 9));
        for (int cta = 0; cta < kOrderedCtas; ++cta) {
          const double found = before.at({cta, row, column}) - first.flat(at);
          if (is_possible(cta, found)) continue;
          return "CTA " + std::to_string(cta) + " found " + std::to_string(found) + " added at " +
                 std::to_string(row) + ", " + std::to_string(column);
        }
      }
    }
    for (std::int64_t i = 0; i < wanted.elements(); ++i) {
      if (memory.flat(i) == wanted.flat(i)) continue;
      return "element " + std::to_string(i) + " is " + std::to_string(memory.flat(i)) + ", not " +
             std::to_string(wanted.flat(i));
    }
    return {};
  }

  // Nothing of its own, and of each other once or twice.
  static bool is_possible(int cta, double found) {
    for (int a = 0; a < 3; ++a) {
      for (int b = 0; b < 3; ++b) {
        for (int c = 0; c < 3; ++c) {
          const int own[] = {a, b, c};
          if (own[cta] == 0 && found == a + 3 * b + 9 * c) return true;
        }
      }
    }
    return false;
  }

  OrderedPlace place;
  int rows;
  HostTensor X, memory, before, first;
};

}  // namespace tilewright::test
