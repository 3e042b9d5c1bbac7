#include <algorithm>
#include <cstring>

#include "ptx/typed.h"

// Cluster launch control. An answer of 16 bytes is there when it is asked for. Which clusters are
// taken over is said by the launch (LaunchInput::taken), so that it is that of another execution.
namespace tilewright::ptx {
namespace {

// The first half of an answer, which is all that a register of 128 bits keeps: whether there is a
// cluster, and its first CTA.
constexpr std::uint64_t kBytes = 16, kIsOne = 1;
std::uint64_t answer_of(std::int64_t first) {
  return first < 0 ? 0 : kIsOne | static_cast<std::uint64_t>(first) << 32;
}

void ask(Execution& x) {
  const auto lane = static_cast<int>(x.first_lane());
  const std::uint64_t address = x.addresses(x.operand(0))[lane];
  if (address % kBytes != 0) x.fail("misaligned", "of an answer of 16 bytes");
  const auto [own, at] = x.machine.shared(x, address, static_cast<std::int64_t>(kBytes));
  const BarrierPlace place = barrier_place(x, x.operand(1), lane);
  const std::uint64_t answer = answer_of(x.machine.take_over(*x.cta().cluster));
  for (const auto& cta : x.cta().cluster->ctas) {
    if (!x.instruction.has(Modifier::multicast_all) && cta.get() != own) continue;
    std::memset(cta->shared.data() + at, 0, kBytes);
    std::memcpy(cta->shared.data() + at, &answer, sizeof answer);
    std::fill_n(cta->held.begin() + static_cast<std::ptrdiff_t>(at), kBytes, 1);
    Mbarrier& barrier = barrier_at(x, {cta.get(), place.at});
    release(x, barrier.arriving);
    barrier.bytes -= static_cast<std::int64_t>(kBytes);
    complete_if_due(barrier);
  }
}

void is_cancelled(Execution& x) {
  const Lanes& answer = x.read(1);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = answer[lane] & kIsOne; });
}

// PTX says nothing of it where there is none.
void first_cta(Execution& x) {
  const Lanes& answer = x.read(1);
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) {
    if (!(answer[lane] & kIsOne)) x.fail("launch_control", "of an answer of none");
    d[lane] = answer[lane] >> 32;
  });
}

constexpr Record kLaunchControlRecords[] = {
    {"clusterlaunchcontrol.try_cancel.async", "aa",
     "shared::cta mbarrier::complete_tx::bytes multicast::cluster::all", "b128", ask},
    {"clusterlaunchcontrol.query_cancel.is_canceled", "ds", "", "pred b128", is_cancelled},
    {"clusterlaunchcontrol.query_cancel.get_first_ctaid::x", "ds", "", "b32 b128", first_cta},
};

}  // namespace

std::span<const Record> launch_control_records() { return kLaunchControlRecords; }

}  // namespace tilewright::ptx
