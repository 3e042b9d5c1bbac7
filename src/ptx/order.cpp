#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// Happens-before among the warps of a cluster: barriers hand on what a warp has done, and an access
// of shared memory has to know of those before it. Lanes of one warp are taken as one.
namespace tilewright::ptx {

void join(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

void release(Execution& x, Clock& to) {
  Clock& clock = x.warp.clock;
  if (clock.empty()) return;
  join(to, clock);
  ++clock[static_cast<std::size_t>(x.warp.number)];
}

void acquire(Execution& x, const Clock& from) {
  if (!x.warp.clock.empty()) join(x.warp.clock, from);
}

void touch(Execution& x, Cta& cta, std::uint64_t at, std::int64_t bytes, bool writes) {
  if (cta.touched.empty()) return;
  const Clock& clock = x.warp.clock;
  const auto race = [&](const char* verb, int warp, int line, std::uint64_t byte) {
    x.fail("race",
           fmt::format("{}s shared {:#x} of CTA {}, which warp {} of the cluster {} in line "
                       "{}, with no barrier between them",
                       writes ? "write" : "read", byte + kSharedBase, cta.index, warp, verb, line));
  };
  const std::size_t warps = clock.size();
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

}  // namespace tilewright::ptx
