#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "check/machine_events.h"
#include "compiler/compile_to_machine.h"
#include "compiler/simulation.h"
#include "schedules/two_ways.h"
#include "simulator/machine/machine.h"
#include "tilewright/host_tensor.h"
#include "tilewright/kernel.h"

// In which order a CTA takes the tiles of the automatic schedule.
namespace tilewright {
namespace {

constexpr std::int64_t kRowBlocks = 4, kHeads = 2;
constexpr int kTileRows = 64;

// Products of a block of rows with the blocks of B from `first` to `last` of the block's number.
using End = std::function<Index(const Index& block)>;
Kernel triangle(const End& first, const End& last) {
  Kernel kernel("triangle");
  const Dim n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {kHeads, n, 64}), B = kernel.in("B", bf16, {kHeads, n, 64});
  const Tensor C = kernel.out("C", f32, {kHeads, n, 64});
  const auto [x, h] = kernel.grid(ceil_div(n, kTileRows), kHeads);
  const Block rows = n.block(x, kTileRows);
  const Tile a = load(A(h, rows, all));
  Var sum{zeros({rows, 64})};
  for (Index step : range(first(x), last(x))) {
    sum = dot(a, load(B(h, n.block(step, kTileRows), all)), sum);
  }
  store(C(h, rows, all), sum);
  return kernel;
}

// How many blocks of B each tile loads, in the order in which the only CTA takes the tiles.
std::vector<int> lengths(const Kernel& kernel, std::int64_t rows_of_b = kRowBlocks * kTileRows) {
  const ir::Kernel machine =
      compiler::compile_to_machine(kernel.finish(), ir::default_target()).kernel;
  std::vector<HostTensor> tensors;
  const std::int64_t rows = kRowBlocks * kTileRows;
  for (const auto& [dtype, size] : {std::pair(bf16, rows), {bf16, rows_of_b}, {f32, rows}}) {
    tensors.push_back(HostTensor::zeros(dtype, {kHeads, size, 64}));
  }
  Arguments arguments;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    HostTensor& tensor = tensors[i];
    arguments.tensors.push_back({machine.parameters[i].name, tensor.dtype(), tensor.shape(),
                                 tensor.strides(), tensor.data()});
  }
  checks::MachineEvents events;
  simulator::MachineOptions options;
  options.multiprocessors = 1;
  options.control_only = true;
  options.recorder = &events;
  EXPECT_TRUE(compiler::simulate(machine, arguments, options).ok());
  std::vector<int> lengths;
  for (const std::vector<ptx::Event>& of_warp : events.events) {
    for (const ptx::Event& event : of_warp) {
      if (event.kind != ptx::EventKind::tensor_load) continue;
      const std::int64_t map = event.values[0];
      if (map == 0) lengths.push_back(0);
      if (map != 0) ++lengths.back();
    }
  }
  return lengths;
}

// Those of the last rows are the longest, or those of the first: of all heads these come first.
TEST(TileOrder, LongTilesComeFirst) {
  const std::vector<int> falling{4, 4, 3, 3, 2, 2, 1, 1};
  const auto blocks = [](const Index&) { return Index(kRowBlocks); };
  EXPECT_EQ(lengths(triangle([](const Index&) { return Index(0); },
                             [](const Index& x) { return x + 1; })),
            falling);
  EXPECT_EQ(lengths(triangle([](const Index& x) { return x; }, blocks)), falling);
}

// Heads whose B has 32 MB together are taken at a time. The second one's tiles are the longer.
TEST(TileOrder, HeadsThatStayInL2TogetherTakeTurns) {
  Kernel kernel("heads");
  const Dim m = kernel.dim("m"), n = kernel.dim("n");
  const Tensor A = kernel.in("A", bf16, {kHeads, m, 64}), B = kernel.in("B", bf16, {kHeads, n, 64});
  const Tensor C = kernel.out("C", f32, {kHeads, m, 64});
  const auto [x, h] = kernel.grid(ceil_div(m, kTileRows), kHeads);
  const Block rows = m.block(x, kTileRows);
  const Tile a = load(A(h, rows, all));
  Var sum{zeros({rows, 64})};
  for (Index step : range(h + 1)) {
    sum = dot(a, load(B(h, n.block(step, kTileRows), all)), sum);
  }
  store(C(h, rows, all), sum);
  constexpr std::int64_t kMost = (32 << 20) / kHeads / (64 * 2);  // rows
  EXPECT_EQ(lengths(kernel, kMost), (std::vector<int>{2, 1, 2, 1, 2, 1, 2, 1}));
  EXPECT_EQ(lengths(kernel, kMost + 1), (std::vector<int>{2, 2, 2, 2, 1, 1, 1, 1}));
}

// Bands are of each plane of the other axes.
TEST(TileOrder, ProductsOfABatchHaveAllTheirTiles) {
  constexpr std::int64_t kBatch = 3, m = 140, n = 130, k = 64;
  Kernel kernel("batched");
  const Tensor A = kernel.in("A", bf16, {kBatch, m, k}), B = kernel.in("B", bf16, {kBatch, n, k});
  const Tensor C = kernel.out("C", f32, {kBatch, m, n});
  const auto [x, y, z] = kernel.grid(ceil_div(Dim(n), 64), ceil_div(Dim(m), 64), kBatch);
  const Block rows = Dim(m).block(y, 64), columns = Dim(n).block(x, 64);
  Var sum{zeros({rows, columns})};
  for (Block depth : blocks(Dim(k), 32)) {
    sum = dot(load(A(z, rows, depth)), load(B(z, columns, depth)).T(), sum);
  }
  store(C(z, rows, columns), sum);
  test::expect_two_ways(kernel,
                        {HostTensor::random_normal(bf16, {kBatch, m, k}, 1),
                         HostTensor::random_normal(bf16, {kBatch, n, k}, 2),
                         HostTensor::poisoned(f32, {kBatch, m, n})},
                        2, 0.01);
}

}  // namespace
}  // namespace tilewright
