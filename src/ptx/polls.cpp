#include <bit>
#include <string_view>

#include "ptx/machine.h"
#include "support/hash.h"

// Loops that poll a word or a barrier until it changes. Lanes in such a loop count as waiting.
// Otherwise some lane could always run on, and copies that end only when nothing else can go on
// would never end.
namespace tilewright::ptx {
namespace {

template <typename T>
std::uint64_t hash_of(const T* begin, std::size_t count, std::uint64_t seed) {
  return hash64({reinterpret_cast<const char*>(begin), count * sizeof(T)}, seed);
}

// A hash of everything except memory that decides what the warp does next.
std::uint64_t state_of(const Warp& warp, std::uint64_t seed) {
  for (const Path& path : warp.paths) {
    const std::uint64_t place[] = {path.lanes, static_cast<std::uint64_t>(path.pc)};
    seed = hash_of(place, 2, seed);
  }
  return hash_of(warp.registers.data(), warp.registers.size(), seed);
}

}  // namespace

bool polls_in_vain(Execution& x, const void* answer, std::size_t bytes) {
  const std::uint64_t seen = hash_of(static_cast<const char*>(answer), bytes, 0);
  for (Poll& poll : x.warp.polls) {
    if (poll.pc != x.path.pc || poll.lanes != x.lanes) continue;
    x.again = poll.seen == seen;
    poll.seen = seen;
    return x.again;
  }
  x.warp.polls.push_back({x.path.pc, x.lanes, seen});
  return false;
}

bool Machine::poll_again() {
  bool polled = false;
  std::uint64_t state = 0;
  for (const auto& cluster : clusters_) {
    for (const auto& cta : cluster->ctas) {
      for (Warp& warp : cta->warps) {
        if (warp.live == 0) continue;
        polled = polled || !warp.polls.empty();
        warp.polls.clear();
        state = state_of(warp, state);
      }
    }
  }
  if (!polled || state == stuck_state_) return false;
  // Brent's algorithm finds a cycle of any length: each state is compared with the one at the last
  // power of two.
  if (std::has_single_bit(++stuck_)) stuck_state_ = state;
  return true;
}

}  // namespace tilewright::ptx
