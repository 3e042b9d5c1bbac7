#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// Happens-before among the warps of a launch: barriers, and words of global memory, hand on what a
// warp has done, and an access has to know of those before it. Lanes of one warp are taken as one.
namespace tilewright::ptx {

void join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void release(Execution& x, Clock& to) {
  Clock& clock = x.warp.clock;
  if (clock.empty()) return;
  join(to, clock);
  ++clock[static_cast<std::size_t>(x.warp.launch_number)];
}

void acquire(Execution& x, const Clock& from) {
  if (!x.warp.clock.empty()) join(x.warp.clock, from);
}

void touch(Execution& x, Cta& cta, std::uint64_t at, std::int64_t bytes, bool writes) {
  if (cta.touched.empty()) return;
  // Of the warps of the cluster, which have numbers in a row.
  const auto base = static_cast<std::size_t>(x.warp.launch_number - x.warp.number);
  const std::uint32_t* const clock = x.warp.clock.data() + base;
  const auto race = [&](const char* verb, int warp, int line, std::uint64_t byte) {
    x.fail("race",
           fmt::format("{}s shared {:#x} of CTA {}, which warp {} of the cluster {} in line "
                       "{}, with no barrier between them",
                       writes ? "write" : "read", byte + kSharedBase, cta.index, warp, verb, line));
  };
  const std::size_t warps = cta.reads.size() / cta.touched.size();
  const auto own = static_cast<std::size_t>(x.warp.number);
  for (std::uint64_t byte = at; byte < at + static_cast<std::uint64_t>(bytes); ++byte) {
    Touched& touched = cta.touched[byte];
    std::uint32_t* const reads = cta.reads.data() + byte * warps;
    if (touched.writer >= 0 && clock[static_cast<std::size_t>(touched.writer)] < touched.epoch) {
      race("writes", touched.writer, touched.write_line, byte);
    }
    if (!writes) {
      reads[own] = clock[own];
      touched.read_line = x.instruction.line;
      continue;
    }
    for (std::size_t warp = 0; warp < warps; ++warp) {
      if (reads[warp] > clock[warp]) {
        race("reads", static_cast<int>(warp), touched.read_line, byte);
      }
      reads[warp] = 0;
    }
    touched.writer = x.warp.number;
    touched.epoch = clock[own];
    touched.write_line = x.instruction.line;
  }
}

void touch_global(Execution& x, const GlobalAccess& access) {
  const Clock& clock = x.warp.clock;
  if (clock.empty()) return;
  const int own = x.warp.launch_number;
  const auto warps = static_cast<int>(x.cta().warps.size());
  const auto is_unordered = [&](int warp, std::uint32_t epoch) {
    return warp >= 0 && warp != own && clock[static_cast<std::size_t>(warp)] < epoch;
  };
  const auto race = [&](const char* verb, int warp, int line, std::uint64_t word) {
    x.fail("race",
           fmt::format("{}s global {}, which warp {} of CTA {} {} in line {}, and nothing "
                       "orders them",
                       access.writes ? "write" : "read", x.machine.describe_global(word * 4),
                       warp % warps, warp / warps, verb, line));
  };
  const std::uint64_t end = access.address + static_cast<std::uint64_t>(access.bytes);
  for (std::uint64_t word = access.address / 4; word * 4 < end; ++word) {
    std::uint8_t mask = 0;
    for (std::uint64_t byte = 0; byte < 4; ++byte) {
      const bool inside = word * 4 + byte >= access.address && word * 4 + byte < end;
      mask |= static_cast<std::uint8_t>(inside << byte);
    }
    TouchedWord& touched = x.machine.touched[word];
    const bool both = access.strong && touched.write_is_strong;
    if ((touched.written & mask) != 0 && !both &&
        is_unordered(touched.writer, touched.write_epoch)) {
      race("writes", touched.writer, touched.write_line, word);
    }
    const std::uint32_t epoch = clock[static_cast<std::size_t>(own)];
    if (!access.writes) {
      touched.reader = own;
      touched.read_epoch = epoch;
      touched.read_line = x.instruction.line;
      touched.read = mask;
      touched.read_is_strong = access.strong;
      continue;
    }
    if ((touched.read & mask) != 0 && !(access.strong && touched.read_is_strong) &&
        is_unordered(touched.reader, touched.read_epoch)) {
      race("reads", touched.reader, touched.read_line, word);
    }
    touched.writer = own;
    touched.write_epoch = epoch;
    touched.write_line = x.instruction.line;
    touched.written = mask;
    touched.write_is_strong = access.strong;
  }
}

void meet_at_word(Execution& x, std::uint64_t address, bool reads, bool writes) {
  if (x.warp.clock.empty()) return;
  Clock& handed = x.machine.handed[address / 4];
  if (reads) acquire(x, handed);
  if (writes) release(x, handed);
}

}  // namespace tilewright::ptx
