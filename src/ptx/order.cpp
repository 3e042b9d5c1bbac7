#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// Happens-before among the warps of a launch: barriers, and words of global memory
// (order_global.cpp), hand on what a warp has done, and an access has to know of those before it.
// Lanes of one warp are taken as one.
// Products and bulk stores read shared memory until their group is waited for, and what threads
// wrote they find behind a proxy fence. A thread's copy writes until its group is waited for, as
// if the thread stored there then.
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

std::uint32_t epoch_of(const Warp& warp) {
  return warp.clock.empty() ? 0 : warp.clock[static_cast<std::size_t>(warp.launch_number)];
}

void land(const Warp& warp, const ThreadCopy& copy, std::uint32_t epoch) {
  std::vector<Touched>& touched = warp.cta->touched;
  if (touched.empty()) return;
  for (std::int64_t byte = 0; byte < copy.bytes; ++byte) {
    Touched& each = touched[copy.to + static_cast<std::uint64_t>(byte)];
    each = {warp.number, epoch, copy.instruction->line};
  }
}

void fence_accesses(Execution& x, Agent fenced) {
  Clock& clock = x.warp.clock;
  const std::size_t warps = clock.size() / kAgents;
  const std::size_t first = static_cast<std::size_t>(fenced) * warps;
  for (std::size_t warp = 0; warp < warps; ++warp) {
    clock[first + warp] = std::max(clock[first + warp], clock[warp]);
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
  const bool by_thread =
      by == Accessor::load || by == Accessor::store || by == Accessor::thread_copy;
  const bool writes =
      by == Accessor::store || by == Accessor::thread_copy || by == Accessor::bulk_load;
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
    std::uint32_t* reads = cta.reads.data() + byte * warps * kReaders;
    if (touched.writer >= 0) {
      const auto writer = static_cast<std::size_t>(touched.writer);
      if (known(Agent::threads, writer) < touched.epoch) {
        refuse("race", "writes", writer, touched.write_line, byte, "barrier");
      }
      if (touched.in_flight) {
        refuse("race", "copies to", writer, touched.write_line, byte, "wait for its group");
      }
      if (!by_thread && !touched.by_copy && known(Agent::fenced, writer) < touched.epoch) {
        refuse("proxy", "writes", writer, touched.write_line, byte, "fence.proxy.async");
      }
    }
    if (!writes) {
      reads[static_cast<std::size_t>(reader) * warps + own] =
          by_thread ? known(Agent::threads, own) : group;
      touched.read_line = x.instruction.line;
      continue;
    }
    for (std::size_t agent = 0; agent < kReaders; ++agent, reads += warps) {
      const std::uint32_t* const over = x.warp.clock.data() + agent * all + base;
      for (std::size_t warp = 0; warp < warps; ++warp) {
        if (reads[warp] > over[warp]) {
          refuse("race", "reads", warp, touched.read_line, byte,
                 static_cast<Agent>(agent) == Agent::threads ? "barrier" : "wait for its group");
        }
      }
    }
    touched.writer = x.warp.number;
    touched.epoch = known(Agent::threads, own);
    touched.write_line = x.instruction.line;
    touched.by_copy = by == Accessor::bulk_load;
    touched.in_flight = by == Accessor::thread_copy;
  }
}

}  // namespace tilewright::ptx
