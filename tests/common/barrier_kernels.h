#pragma once

#include <cstdint>

#include "tilewright/hopper.h"
#include "tilewright/program.h"
#include "tilewright/ranks.h"

// Kernels whose CTAs meet at a barrier of the grid, or of all ranks.
namespace tilewright::test {

inline constexpr int kMeetingCtas = 3, kMeetingRows = 64, kMeetingColumns = 32;

// Each CTA stores its rows of X into its own rank's memory, and then loads those of the next CTA of
// the next rank: of its own rank without `everywhere`. Twice in a launch.
template <typename Barrier>
Kernel pass_on(bool everywhere, int syncs) {
  Kernel kernel("pass_on");
  const Tensor X = kernel.in("X", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
  const Tensor Y = kernel.out("Y", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
  const Tensor board =
      kernel.symmetric("board", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
  Barrier met(kernel, "met");
  const Index turn = kernel.epoch();
  kernel.ctas(kMeetingCtas);
  kernel.roles({role("all", warpgroups(1), registers(128), [&] {
    const Index me = cta_index(), next = (me + 1) % kMeetingCtas;
    store(board(me, all, all), load(X(me, all, all)));
    if (syncs > 0) met.sync(2 * turn - 1);
    const Index from = everywhere ? (kernel.rank() + 1) % kernel.ranks() : kernel.rank();
    store(Y(me, all, all), load(board.at(from)(next, all, all)));
    if (syncs > 1) met.sync(2 * turn);  // the next launch stores again
  })});
  return kernel;
}

struct PassOn {
  PassOn(const Kernel& kernel, int ranks) : program("pass_on", ranks) {
    x = program.buffer("x", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
    y = program.buffer("y", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
    const Buffer board =
        program.buffer("board", f32, {kMeetingCtas, kMeetingRows, kMeetingColumns});
    program.on_each_rank([&](const Rank& rank) { rank.stream().launch(kernel, {x, y, board}); });
  }
  // Whether each CTA has what the next one of that rank had.
  bool is_passed(ProgramMemory& memory, int rank, int from) const {
    const HostTensor &got = memory.at(y, rank), &sent = memory.at(x, from);
    for (std::int64_t i = 0; i < got.elements(); ++i) {
      if (got.flat(i) != sent.flat((i + kMeetingRows * kMeetingColumns) % got.elements()))
        return false;
    }
    return true;
  }
  Program program;
  Buffer x, y;
};

}  // namespace tilewright::test
