#include <fmt/format.h>

#include "ptx/typed.h"

// mbarriers.
namespace tilewright::ptx {

BarrierPlace barrier_place(Execution& x, const Operand& operand, int lane) {
  const std::uint64_t address = x.addresses(operand)[lane];
  if (address % 8 != 0) x.fail("misaligned", fmt::format("of a barrier at {:#x}", address));
  const auto [cta, at] = x.machine.shared(x, address, 8);
  return {cta, at};
}

Mbarrier& barrier_at(Execution& x, BarrierPlace place) {
  const auto found = place.cta->barriers.find(place.at);
  if (found == place.cta->barriers.end()) {
    x.fail("mbarrier",
           fmt::format("of shared {:#x}, where no barrier is initialised", place.at + kSharedBase));
  }
  return found->second;
}

void complete_if_due(Mbarrier& barrier) {
  if (barrier.pending != 0 || barrier.bytes != 0) return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  barrier.complete = barrier.arriving;
}

void arrive_on(Execution& x, BarrierPlace place, std::int64_t count) {
  Mbarrier& barrier = barrier_at(x, place);
  if (barrier.pending < count) {
    x.fail("mbarrier", fmt::format("of shared {:#x}, which has got all {} arrivals of phase {}",
                                   place.at + kSharedBase, barrier.expected, barrier.phase));
  }
  barrier.pending -= count;
  release(x, barrier.arriving);
  complete_if_due(barrier);
}

namespace {

using Place = BarrierPlace;

// Calls `f(lane, value)` for each lane, with the value of an operand.
template <typename F>
void for_values(Execution& x, std::size_t operand, std::int64_t otherwise, F f) {
  Lanes values;
  values.fill(static_cast<std::uint64_t>(otherwise));
  if (x.has(operand)) values = x.read(operand);
  for_lanes(x.lanes,
            [&](int lane) { f(lane, static_cast<std::int64_t>(values[lane] & 0xffffffff)); });
}

void init(Execution& x) {
  for_values(x, 1, 0, [&](int lane, std::int64_t count) {
    const Place place = barrier_place(x, x.operand(0), lane);
    x.record(EventKind::mbarrier_init, {static_cast<std::int64_t>(place.at), count});
    if (count < 1 || count > kMostPending) {
      x.fail("mbarrier", fmt::format("with {} arrivals", count));
    }
    if (place.cta->barriers.contains(place.at)) {
      x.fail("mbarrier", fmt::format("of shared {:#x} a second time", place.at + kSharedBase));
    }
    Mbarrier& made = place.cta->barriers[place.at];
    made.expected = made.pending = count;
  });
}

void invalidate(Execution& x) {
  for_lanes(x.lanes, [&](int lane) {
    const Place place = barrier_place(x, x.operand(0), lane);
    barrier_at(x, place);
    place.cta->barriers.erase(place.at);
  });
}

// The state that an arrival gives is the number of the phase to which it belongs.
void give_state(Execution& x, Place place, int lane) {
  if (x.operand(0).kind == Operand::Kind::sink) return;
  x.target(0)[lane] = static_cast<std::uint64_t>(barrier_at(x, place).phase);
}

void arrive(Execution& x) {
  const bool remote = x.instruction.has(Modifier::shared_cluster);
  for_values(x, 2, 1, [&](int lane, std::int64_t count) {
    const Place place = barrier_place(x, x.operand(1), lane);
    give_state(x, place, lane);
    if (remote) {
      x.record(EventKind::mbarrier_arrive_remote,
               {static_cast<std::int64_t>(place.at), place.cta->rank});
    } else {
      x.record(EventKind::mbarrier_arrive, {static_cast<std::int64_t>(place.at), count});
    }
    arrive_on(x, place, count);
  });
}

void expect(Execution& x, Place place, std::int64_t bytes) {
  Mbarrier& barrier = barrier_at(x, place);
  barrier.bytes += bytes;
  if (barrier.bytes > kMostPending) x.fail("mbarrier", fmt::format("of {} bytes", barrier.bytes));
}

void arrive_expect(Execution& x) {
  for_values(x, 2, 0, [&](int lane, std::int64_t bytes) {
    const Place place = barrier_place(x, x.operand(1), lane);
    give_state(x, place, lane);
    x.record(EventKind::mbarrier_expect_tx, {static_cast<std::int64_t>(place.at), bytes});
    expect(x, place, bytes);
    arrive_on(x, place, 1);
  });
}

void expect_alone(Execution& x) {
  for_values(x, 1, 0, [&](int lane, std::int64_t bytes) {
    const Place place = barrier_place(x, x.operand(0), lane);
    x.record(EventKind::mbarrier_expect_tx, {static_cast<std::int64_t>(place.at), bytes});
    expect(x, place, bytes);
  });
}

// A try may end without success. It does so once in a row, which a loop around it has to bear;
// tried again it waits, so that who never comes is seen.
void wait_for_phase(Execution& x) {
  const bool by_parity = x.instruction.has(Modifier::parity);
  const std::uint32_t first = x.first_lane();
  const Place place = barrier_place(x, x.operand(1), static_cast<int>(first));
  const std::uint64_t state = x.uniform(2);
  const auto parity = static_cast<std::int64_t>(by_parity ? state & 0xffffffff : state & 1);
  const Lanes addresses = x.addresses(x.operand(1));
  for_lanes(x.lanes, [&](int lane) {
    if (addresses[lane] != addresses[first]) x.fail("divergence", "waits for several barriers");
  });
  if (parity > 1) x.fail("mbarrier", fmt::format("for parity {}", parity));
  const Mbarrier& barrier = barrier_at(x, place);
  if (!by_parity && state > static_cast<std::uint64_t>(barrier.phase)) {
    x.fail("mbarrier", "for a state that no arrival has given");
  }
  if (!by_parity && state + 1 < static_cast<std::uint64_t>(barrier.phase)) {
    x.fail("mbarrier", "for a state from before the last phase");
  }
  const bool complete = static_cast<std::int64_t>(barrier.phase & 1) != parity;
  const std::uint64_t phase[] = {addresses[first], barrier.phase};
  if (!complete && polls_in_vain(x, phase, sizeof(phase))) return;
  if (complete) {
    x.record(EventKind::mbarrier_wait, {static_cast<std::int64_t>(place.at), parity});
    acquire(x, barrier.complete);
  }
  Lanes& p = x.target(0);
  for_lanes(x.lanes, [&](int lane) { p[lane] = complete; });
}

constexpr std::string_view kBarrier =
    "shared shared::cta shared::cluster release relaxed cta cluster";
constexpr Record kMbarrierRecords[] = {
    {"mbarrier.init", "as", "shared shared::cta", "b64", init},
    {"mbarrier.inval", "a", "shared shared::cta", "b64", invalidate},
    {"mbarrier.arrive", "da?s", kBarrier, "b64", arrive},
    {"mbarrier.arrive.expect_tx", "das", kBarrier, "b64", arrive_expect},
    {"mbarrier.expect_tx", "as", kBarrier, "b64", expect_alone},
    {"mbarrier.try_wait", "das?s", "parity shared shared::cta acquire relaxed cta cluster", "b64",
     wait_for_phase},
    {"mbarrier.test_wait", "das", "parity shared shared::cta acquire relaxed cta cluster", "b64",
     wait_for_phase},
};

}  // namespace

std::span<const Record> mbarrier_records() { return kMbarrierRecords; }

}  // namespace tilewright::ptx
