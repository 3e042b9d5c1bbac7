#include "compiler/written_tensors.h"

#include <gtest/gtest.h>

#include <vector>

#include "tilewright/kernel.h"

namespace tilewright::compiler {
namespace {

// What a kernel may write is put back, and nothing beside it.
TEST(WrittenTensors, ArePutBack) {
  Kernel kernel("written");
  const Dim n = kernel.dim("n");
  const Tensor X = kernel.in("X", f32, {n, 2}), Y = kernel.out("Y", f32, {n, 2});
  const Tensor Z = kernel.inout("Z", f32, {n, 2});
  kernel.grid(1);
  store(Y(n.block(0, 8), all), load(X(n.block(0, 8), all)));
  store(Z(n.block(0, 8), all), load(Z(n.block(0, 8), all)) * 2);
  const ir::Kernel traced = kernel.finish();
  // Three rows of two elements, each row followed by one that is no part of the tensor.
  std::vector<std::vector<float>> memory(3);
  Arguments arguments;
  for (std::vector<float>& each : memory) {
    for (int i = 0; i < 9; ++i) each.push_back(static_cast<float>(i));
    arguments.tensors.push_back(
        {"t", f32, {3, 2}, {3, 1}, reinterpret_cast<std::byte*>(each.data())});
  }
  const std::vector<float> before = memory[0];
  const WrittenTensors written(traced, arguments);
  for (std::vector<float>& each : memory) each.assign(9, -1);
  written.restore();
  EXPECT_EQ(memory[0], std::vector<float>(9, -1));  // the input is not its
  for (const std::size_t stored : {1u, 2u}) {
    for (std::size_t i = 0; i < 9; ++i) {
      const bool inside = i % 3 != 2;
      if (!inside) continue;
      EXPECT_EQ(memory[stored][i], before[i]) << stored << " " << i;
    }
    EXPECT_EQ(memory[stored][8], -1) << "behind the last element";
  }
}

}  // namespace
}  // namespace tilewright::compiler
