#pragma once

#include <gtest/gtest.h>

#include "tilewright/hopper.h"
#include "tilewright/host_tensor.h"

// A kernel whose CTAs exchange tiles of shared memory in pairs, for the simulator and for GPUs.
namespace tilewright {

inline constexpr int kExchangedRows = 64, kExchangedColumns = 64, kPairedCtas = 4, kTurns = 5;

// What a kernel lacks: the fence between the threads' writes and the copy, the second place to copy
// from, the fence between reads of the stage and its release.
enum class ExchangeMistake { none, written_fence, second_source, read_fence };

// In each turn a CTA writes 64 rows of X to shared memory, sends them to the other CTA of its pair,
// and stores to Y what it gets itself. Of more columns each half comes where the other one was.
inline Kernel exchange(ExchangeMistake mistake = ExchangeMistake::none,
                       int columns = kExchangedColumns) {
  Kernel kernel("exchange");
  const Dim rows = kPairedCtas * kTurns * kExchangedRows;
  const Tensor X = kernel.in("X", bf16, {rows, columns});
  const Tensor Y = kernel.out("Y", bf16, {rows, columns});
  kernel.ctas(kPairedCtas, 2);
  const SharedTile own(kernel, "own", bf16, 2 * kExchangedRows, columns);
  Ring others(kernel, "others", stages(1), {{bf16, kExchangedRows, columns}});
  others.multicast();
  NamedBarrier written(kernel, 128 + 32);
  // Whoever has consumed the copy of the turn before knows that the one before that was consumed by
  // the other CTA: this one's warp waited for it before it expected more.
  const int sources = mistake == ExchangeMistake::second_source ? 1 : 2;
  const auto own_stage = [&](const Index& turn) {
    return own.rows(turn % sources * kExchangedRows, kExchangedRows);
  };
  const int part = columns == kExchangedColumns ? columns : columns / 2;
  const auto send = [&] {
    for (Index turn : range(kTurns)) {
      written.sync();
      others.produce([&](const Slot& slot) {
        for (int first = 0; first < columns; first += part) {
          cluster_copy(own_stage(turn).columns(first, part),
                       slot[0].columns(columns - part - first, part), 1 - cluster_rank());
        }
      });
    }
  };
  const auto math = [&] {
    for (Index turn : range(kTurns)) {
      const Block block = rows.block(cta_index() * kTurns + turn, kExchangedRows);
      store(own_stage(turn), load(X(block, all)));
      if (mistake != ExchangeMistake::written_fence) fence_proxy_async();
      written.arrive();
      const Slot slot = others.consume();
      store(Y(block, all), load(slot));
      if (mistake != ExchangeMistake::read_fence) fence_proxy_async();
      others.release(slot);
    }
  };
  kernel.roles({role("send", warps(1), registers(24), send),
                role("math", warpgroups(1), registers(240), math)});
  return kernel;
}

// The rows of the pair's other CTA, in the same order, perhaps with their halves exchanged.
inline void expect_exchanged(const HostTensor& X, const HostTensor& Y) {
  const std::int64_t of_cta = kTurns * kExchangedRows, columns = X.shape()[1];
  const std::int64_t shift = columns == kExchangedColumns ? 0 : columns / 2;
  for (std::int64_t row = 0; row < kPairedCtas * of_cta; ++row) {
    const std::int64_t other = row / of_cta % 2 == 0 ? row + of_cta : row - of_cta;
    for (std::int64_t column = 0; column < columns; ++column) {
      ASSERT_EQ(Y.at({row, column}), X.at({other, (column + shift) % columns}))
          << row << ", " << column;
    }
  }
}

}  // namespace tilewright
