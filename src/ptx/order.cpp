#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// Happens-before among the warps of a launch: barriers, and words of global memory, hand on what a
// warp has done, and an access has to know of those before it. Lanes of one warp are taken as one.
// Products and bulk stores read shared memory until their group is waited for, and what threads
// wrote they find behind a proxy fence.
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

void fence_accesses(Execution& x) {
  Clock& clock = x.warp.clock;
  const std::size_t warps = clock.size() / kAgents;
  const auto fenced = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(Agent::fenced) * warps);
  for (std::size_t warp = 0; warp < warps; ++warp) {
    std::uint32_t& known = *(clock.begin() + fenced + static_cast<std::ptrdiff_t>(warp));
    known = std::max(known, clock[warp]);
  }
  if (!clock.empty()) ++clock[static_cast<std::size_t>(x.warp.launch_number)];
}

void complete_groups(Execution& x, Agent agent, std::int64_t groups) {
  Clock& clock = x.warp.clock;
  if (clock.empty() || groups <= 0) return;
  const std::size_t warps = clock.size() / kAgents;
  std::uint32_t& over = clock[static_cast<std::size_t>(agent) * warps +
                              static_cast<std::size_t>(x.warp.launch_number)];
  over = std::max(over, static_cast<std::uint32_t>(groups));
}

void touch(Execution& x, Cta& cta, std::uint64_t at, std::int64_t bytes, Accessor by,
           std::uint32_t group) {
  if (cta.touched.empty()) return;
  // Of the warps of the cluster, which have numbers in a row.
  const auto base = static_cast<std::size_t>(x.warp.launch_number - x.warp.number);
  const std::size_t all = x.warp.clock.size() / kAgents;
  const auto known = [&](Agent agent, std::size_t warp) {
    return x.warp.clock[static_cast<std::size_t>(agent) * all + base + warp];
  };
  const bool writes = by == Accessor::store || by == Accessor::bulk_load;
  const bool by_unit = by != Accessor::load && by != Accessor::store;
  const Agent reader = by == Accessor::product      ? Agent::products
                       : by == Accessor::bulk_store ? Agent::bulk_stores
                                                    : Agent::threads;
  const auto refuse = [&](const char* kind, const char* verb, std::size_t warp, int line,
                          std::uint64_t byte, const char* missing) {
    x.fail(kind, fmt::format("{}s shared {:#x} of CTA {}, which warp {} of the cluster {} in line "
                             "{}, with no {} between them",
                             writes ? "write" : "read", byte + kSharedBase, cta.index, warp, verb,
                             line, missing));
  };
  const std::size_t warps = cta.reads.size() / cta.touched.size() / kReaders;
  const auto own = static_cast<std::size_t>(x.warp.number);
  for (std::uint64_t byte = at; byte < at + static_cast<std::uint64_t>(bytes); ++byte) {
    Touched& touched = cta.touched[byte];
    std::uint32_t* const reads = cta.reads.data() + byte * warps * kReaders;
    if (touched.writer >= 0) {
      const auto writer = static_cast<std::size_t>(touched.writer);
      if (known(Agent::threads, writer) < touched.epoch) {
        refuse("race", "writes", writer, touched.write_line, byte, "barrier");
      }
      if (by_unit && !touched.by_copy && known(Agent::fenced, writer) < touched.epoch) {
        refuse("proxy", "writes", writer, touched.write_line, byte, "fence.proxy.async");
      }
    }
    if (!writes) {
      reads[static_cast<std::size_t>(reader) * warps + own] =
          by_unit ? group : known(Agent::threads, own);
      touched.read_line = x.instruction.line;
      continue;
    }
    for (std::size_t i = 0; i < warps * kReaders; ++i) {
      const auto agent = static_cast<Agent>(i / warps);
      if (reads[i] > known(agent, i % warps)) {
        refuse("race", "reads", i % warps, touched.read_line, byte,
               agent == Agent::threads ? "barrier" : "wait for its group");
      }
      reads[i] = 0;
    }
    touched.writer = x.warp.number;
    touched.epoch = known(Agent::threads, own);
    touched.write_line = x.instruction.line;
    touched.by_copy = by == Accessor::bulk_load;
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
