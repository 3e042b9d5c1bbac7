#include <gmock/gmock.h>

#include <algorithm>
#include <string>

#include "common/error_text.h"
#include "compiler/compile_to_machine.h"
#include "ir/program.h"
#include "schedules/two_ways.h"
#include "target/target.h"
#include "tilewright/kernel.h"
#include "tilewright/kernels/attention.h"

// What the automatic schedule keeps in shared memory fits, whatever else turns out to lie there.
namespace tilewright {
namespace {

using ::testing::HasSubstr;

// The chunked scan of a state-space model (Dao and Gu, 2024): within a chunk of 128 steps by
// products, from chunk to chunk by a state. `columns`: the sums of decays that lie along columns
// are reduced over rows, which takes shared memory of its own. `by_rows`: the inputs are weighted,
// not the keys.
Kernel chunk_scan(int dim, bool columns, bool by_rows, DType dtype) {
  constexpr int kChunk = 128, kState = 128;
  Kernel kernel("chunk_scan");
  const Dim length = kernel.dim("length"), heads = kernel.dim("heads");
  const Tensor X = kernel.in("X", bf16, {length, heads, dim});
  const Tensor A = kernel.in("A", f32, {heads, length});
  const Tensor B = kernel.in("B", bf16, {length, kState});
  const Tensor C = kernel.in("C", bf16, {length, kState});
  const Tensor Y = kernel.out("Y", dtype, {length, heads, dim});
  const auto [h] = kernel.grid(heads);
  const Tile step = iota({kChunk, 1}, 0), other = iota({1, kChunk}, 1);
  Var state{zeros({kState, dim})};
  for (Index i : range(ceil_div(length, kChunk))) {
    const Block rows = length.block(i, kChunk);
    const Tile x = load(X(rows, h, all)), b = load(B(rows, all)), c = load(C(rows, all));
    const Tile a = load(A(h, rows));
    const Tile down = reduce_sum(where(step >= other, a.reshape({1, kChunk}), 0.0), 1);
    const Tile across =
        columns ? reduce_sum(where(step <= other, a.reshape({kChunk, 1}), 0.0), 0) : down.T();
    const Tile last = reduce_sum(a.reshape({1, kChunk}), 1);
    const Tile scores = where(step >= other, dot(c, b.T()) * exp(down - across), 0.0);
    const Tile before = state;
    const Tile y = dot(scores.cast(bf16), x) + dot(c, before.cast(bf16)) * exp(down);
    store(Y(rows, h, all), y.cast(dtype));
    const Tile weights = exp(last - down);
    const Tile added = by_rows ? dot(b.T(), (x.cast(f32) * weights).cast(bf16))
                               : dot((b.cast(f32) * weights).cast(bf16).T(), x);
    state = before * exp(last) + added;
  }
  return kernel;
}

struct Scan {
  int dim;
  bool columns, by_rows;
  DType dtype;
};

TEST(SharedRoom, IsFoundForWhateverReductionsAndConversionsTake) {
  const std::int64_t limit = target::find_target("sm_90a").limits.shared_bytes;
  for (const int dim : {32, 64, 96, 128}) {
    for (const bool columns : {false, true}) {
      for (const bool by_rows : {false, true}) {
        for (const DType dtype : {bf16, f32}) {
          SCOPED_TRACE(std::to_string(dim) + (columns ? " columns" : "") +
                       (by_rows ? " by_rows" : "") + (dtype == f32 ? " f32" : ""));
          const ir::Kernel machine =
              compiler::compile_to_machine(chunk_scan(dim, columns, by_rows, dtype).finish(),
                                           "sm_90a")
                  .kernel;
          EXPECT_LE(machine.shared_bytes, limit);
        }
      }
    }
  }
}

TEST(SharedRoom, AScanThatHasToShortenItsRingsIsRight) {
  HostTensor decays = HostTensor::zeros(f32, {1, 200});
  for (int i = 0; i < 200; ++i) decays.set_flat(i, -0.01 * (i % 7));
  const auto random = [](std::vector<std::int64_t> shape, std::uint64_t seed) {
    return HostTensor::random_normal(bf16, std::move(shape), seed);
  };
  test::expect_two_ways(chunk_scan(32, true, false, f32),
                        {random({200, 1, 32}, 1), decays, random({200, 128}, 2),
                         random({200, 128}, 3), HostTensor::poisoned(f32, {200, 1, 32})},
                        4, 2e-2);
}

// Of dQ and dK of 256 columns nothing is left for staging beside a second stage of one ring. dV has
// room for both.
TEST(SharedRoom, StoresLeaveItToTheStagesOfLoops) {
  kernels::Attention a;
  a.dim = a.dim_v = 256;
  const ir::Program program =
      kernels::attention_backward(kernels::with_backward_blocks(a)).finish();
  const auto compiled = [&](std::size_t kernel) {
    const compiler::MachineForm form =
        compiler::compile_to_machine(*program.kernels[kernel], "sm_90a");
    int copies = 0;
    ir::for_each(form.kernel.body,
                 [&](const ir::Operation& o) { copies += o.op == ir::Op::tma_store; });
    const auto stages = std::find_if(form.schedule.begin(), form.schedule.end(),
                                     [](const auto& field) { return field.name == "stages"; });
    return stages->value + (copies > 0 ? ", stored by TMA" : "");
  };
  EXPECT_EQ(compiled(1), "K 2, V 1");
  EXPECT_EQ(compiled(2), "Q 2, dO 1, D 4, L 4");
  EXPECT_EQ(compiled(3), "Q 2, L 4, dO 2, stored by TMA");
}

// Tiles of one stage each fit, and what a reduction takes beside them does not: the list has all of
// it, with lines.
TEST(SharedRoom, WhatNeverFitsIsListed) {
  target::Target small = target::find_target("sm_90a");
  small.name = "sm_90a_116";
  small.limits.shared_bytes = 116 << 10;
  for (target::Space& space : small.spaces) {
    if (space.memory == ir::Memory::shared) space.bytes = small.limits.shared_bytes;
  }
  const target::AddedTarget added(small);
  const std::string text = test::usage_error_of([] {
    compiler::compile_to_machine(chunk_scan(32, true, false, f32).finish(), "sm_90a_116");
  });
  EXPECT_THAT(text, HasSubstr("bytes of shared memory; a CTA has 118784 on sm_90a_116"));
  for (const char* taken : {"32768 bytes: C (1 stages) at ", "32768 bytes: B (1 stages) at ",
                            "8192 bytes: X (1 stages) at ", "bytes: reduction0 (1 stages) at "}) {
    EXPECT_THAT(text, HasSubstr(taken));
  }
  EXPECT_THAT(text, HasSubstr("fix: use smaller tiles or fewer stages"));
}

}  // namespace
}  // namespace tilewright
