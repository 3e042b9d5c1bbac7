#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// Happens-before through global memory, by the rules of PTX: a release hands on what its warp
// knows, and so does a relaxed write behind a fence. An acquire takes it, and so does a fence
// behind a relaxed read. The scopes of both have to include the other's CTA. Bulk copies write
// until their group is waited for, and what threads wrote they find behind a proxy fence.
namespace tilewright::ptx {
namespace {

constexpr int kCtaScope = 0, kClusterScope = 1, kGpuScope = 2;

// The narrowest scope that has both CTAs.
int least_scope(const Machine& machine, std::int64_t a, std::int64_t b) {
  if (a == b) return kCtaScope;
  return a / machine.input.cluster == b / machine.input.cluster ? kClusterScope : kGpuScope;
}

void hand_on(std::vector<Handed>& handed, std::int64_t cta, int scope, const Clock& clock) {
  for (Handed& each : handed) {
    if (each.cta == cta && each.scope == scope) return join(each.clock, clock);
  }
  handed.push_back({cta, scope, clock});
}

// Of one access to a word.
class WordAccess {
 public:
  WordAccess(Execution& x, const GlobalAccess& access, std::uint64_t word)
      : x_(x), access_(access), word_(word), touched_(x.machine.touched[word]) {
    const std::uint64_t end = access.address + static_cast<std::uint64_t>(access.bytes);
    for (std::uint64_t byte = 0; byte < 4; ++byte) {
      const bool inside = word * 4 + byte >= access.address && word * 4 + byte < end;
      mask_ |= static_cast<std::uint8_t>(inside << byte);
    }
  }

  void run() {
    if ((touched_.write.mask & mask_) != 0) after_write();
    if (!access_.writes) return void(touched_.read = made());
    const TouchedBytes& read = touched_.read;
    if ((read.mask & mask_) != 0 && !both_strong(read) && is_unordered(read)) {
      race("reads", read, "and nothing orders them");
    }
    touched_.write = made();
  }

 private:
  int own() const { return x_.warp.launch_number; }
  std::int64_t cta_of(int warp) const {
    return warp / static_cast<std::int64_t>(x_.cta().warps.size());
  }
  TouchedBytes made() const {
    return {own(),          epoch_of(x_.warp), x_.instruction.line, mask_,
            access_.strong, access_.scope,     access_.bulk,        access_.bulk && access_.writes,
            access_.reduces};
  }
  bool is_unordered(const TouchedBytes& before) const {
    return before.warp != own() &&
           x_.warp.clock[static_cast<std::size_t>(before.warp)] < before.epoch;
  }
  bool both_strong(const TouchedBytes& before) const {
    return access_.strong && before.strong &&
           std::min(access_.scope, before.scope) >=
               least_scope(x_.machine, x_.cta().index, cta_of(before.warp));
  }
  void after_write() const {
    const TouchedBytes& before = touched_.write;
    if (before.in_flight) {
      if (before.reduces && access_.reduces) return;
      race("writes", before, "with no wait for its group between them");
    }
    if (!both_strong(before) && is_unordered(before)) {
      race("writes", before, "and nothing orders them");
    }
    const std::size_t fenced =
        static_cast<std::size_t>(Agent::fenced_global) * (x_.warp.clock.size() / kAgents);
    if (access_.bulk && !before.bulk &&
        x_.warp.clock[fenced + static_cast<std::size_t>(before.warp)] < before.epoch) {
      fail("proxy", "writes", before, "with no fence.proxy.async of global memory between them");
    }
  }
  [[noreturn]] void race(const char* verb, const TouchedBytes& before, const char* why) const {
    fail("race", verb, before, why);
  }
  [[noreturn]] void fail(const char* kind, const char* verb, const TouchedBytes& before,
                         const char* why) const {
    x_.fail(kind,
            fmt::format("{}s global {}, which warp {} of CTA {} {} in line {}, {}",
                        access_.writes ? "write" : "read", x_.machine.describe_global(word_ * 4),
                        before.warp % static_cast<int>(x_.cta().warps.size()), cta_of(before.warp),
                        verb, before.line, why));
  }

  Execution& x_;
  const GlobalAccess& access_;
  const std::uint64_t word_;
  TouchedWord& touched_;
  std::uint8_t mask_ = 0;
};

}  // namespace

void touch_global(Execution& x, const GlobalAccess& access) {
  if (x.warp.clock.empty() || access.bytes == 0) return;
  const std::uint64_t end = access.address + static_cast<std::uint64_t>(access.bytes);
  for (std::uint64_t word = access.address / 4; word * 4 < end; ++word) {
    WordAccess(x, access, word).run();
  }
}

void land_global(Execution& x, std::uint64_t address, std::int64_t bytes) {
  if (x.warp.clock.empty() || bytes == 0) return;
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  for (std::uint64_t word = address / 4; word * 4 < end; ++word) {
    TouchedBytes& write = x.machine.touched[word].write;
    // Another reduction may have come behind this one.
    if (!write.in_flight || write.warp != x.warp.launch_number) continue;
    write.in_flight = false;
    write.epoch = epoch_of(x.warp);
  }
}

void take_from_word(Execution& x, std::uint64_t address, const WordOrder& order) {
  Warp& warp = x.warp;
  if (warp.clock.empty()) return;
  for (const Handed& each : x.machine.handed[address / 4]) {
    const int least = least_scope(x.machine, each.cta, x.cta().index);
    if (std::min(each.scope, order.scope) < least) continue;
    if (order.acquires) acquire(x, each.clock);
    join(warp.observed[static_cast<std::size_t>(least)], each.clock);
  }
}

void hand_on_by_word(Execution& x, std::uint64_t address, const WordOrder& order) {
  Warp& warp = x.warp;
  if (warp.clock.empty()) return;
  std::vector<Handed>& handed = x.machine.handed[address / 4];
  const std::int64_t own = x.cta().index;
  if (!order.updates) handed.clear();  // what is overwritten hands nothing on
  if (order.releases) {
    Clock known;
    release(x, known);
    hand_on(handed, own, order.scope, known);
  }
  for (std::size_t scope = 0; scope < warp.fenced.size(); ++scope) {
    if (warp.fenced[scope].empty()) continue;
    hand_on(handed, own, std::min(order.scope, static_cast<int>(scope)), warp.fenced[scope]);
  }
}

void fence_words(Execution& x, int scope) {
  Warp& warp = x.warp;
  if (warp.clock.empty()) return;
  for (int least = 0; least <= std::min(scope, kGpuScope); ++least) {
    acquire(x, warp.observed[static_cast<std::size_t>(least)]);
  }
  release(x, warp.fenced[static_cast<std::size_t>(scope)]);
}

}  // namespace tilewright::ptx
