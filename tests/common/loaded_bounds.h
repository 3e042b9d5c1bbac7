#pragma once

#include <cstdint>
#include <vector>

#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// Kernels that a list tells where to access X {128, 64}.
namespace tilewright::test {

inline HostTensor list_of(const std::vector<int>& numbers) {
  HostTensor tensor = HostTensor::zeros(i32, {static_cast<std::int64_t>(numbers.size())});
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    tensor.set_flat(static_cast<std::int64_t>(i), numbers[i]);
  }
  return tensor;
}

inline Kernel rows_by_index() {
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
inline Kernel blocks_by_number(bool products) {
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
inline Kernel sequence() {
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

// Sums of the sequences of X, a packed axis whose offsets the list has.
inline Kernel packed_sums() {
  Kernel kernel("packed_sums");
  const Dim sequences = kernel.dim("sequences"), rows = kernel.dim("rows");
  const Tensor ends = kernel.in("ends", i32, {sequences + 1});
  const Tensor X = kernel.in("X", bf16, {rows, 64}), Y = kernel.out("Y", f32, {sequences, 64});
  const auto [i] = kernel.grid(sequences);
  const Ragged packed(rows, ends);
  Var sum{zeros({1, 64})};
  for (Block own : blocks(packed.of(i), 32)) {
    sum = sum + reduce_sum(load(X(own, all)).cast(f32), 0);
  }
  store(Y(i, all), Tile(sum).reshape({64}));
  return kernel;
}

}  // namespace tilewright::test
