#include <fmt/format.h>

#include <bit>

#include "ptx/typed.h"

// Branches, what the lanes of a warp do together, barriers of CTAs and clusters, fences.
namespace tilewright::ptx {
namespace {

void branch(Execution&) {}  // Machine::step takes it
void end(Execution& x) { x.ends = true; }

void trap(Execution& x) { x.fail("trap", "is executed"); }
void no_effect(Execution&) {}

// The lanes that an instruction with this mask waits for have to be here: what has parted before
// meets again at its join and nowhere else.
std::uint32_t members(Execution& x, std::size_t operand) {
  const auto mask = static_cast<std::uint32_t>(x.uniform(operand)) & x.warp.live;
  if (mask & ~x.lanes) {
    x.fail("divergence", fmt::format("of lanes {:#x} is executed by lanes {:#x}", mask, x.lanes));
  }
  return mask;
}

void warp_sync(Execution& x) {
  members(x, 0);
  x.record(EventKind::warp_sync);
}

// Operand 0 is the value, perhaps with whether the source lane exists.
void shuffle(Execution& x) {
  members(x, 4);
  const Instruction& i = x.instruction;
  const Lanes values = x.read(1), by = x.read(2), limits = x.read(3);
  const Operand& to = x.operand(0);
  Lanes& d = x.target(to);
  Lanes* const p = to.second >= 0 ? &x.warp.registers[to.second] : nullptr;
  for_lanes(x.lanes, [&](int lane) {
    const auto segment = static_cast<int>(limits[lane] >> 8 & 31);
    const auto clamp = static_cast<int>(limits[lane] & 31);
    const auto amount = static_cast<int>(by[lane] & 31);
    const int low = lane & segment, high = low | (clamp & ~segment);
    int from = lane;
    bool exists = true;
    if (i.has(Modifier::up)) {
      from = lane - amount;
      exists = from >= high;
    } else if (i.has(Modifier::down)) {
      from = lane + amount;
      exists = from <= high;
    } else if (i.has(Modifier::bfly)) {
      from = lane ^ amount;
      exists = from <= high;
    } else {
      from = low | (amount & ~segment);
      exists = from <= high;
    }
    if (!exists) from = lane;
    if (!(x.lanes >> from & 1)) {
      x.fail("divergence", fmt::format("of lane {}, which is not here", from));
    }
    d[lane] = values[from] & 0xffffffff;
    if (p) (*p)[lane] = exists;
  });
}

void vote(Execution& x) {
  const std::uint32_t mask = members(x, 2);
  const Instruction& i = x.instruction;
  const Lanes& p = x.read(1);
  std::uint32_t set = 0;
  for_lanes(mask, [&](int lane) { set |= static_cast<std::uint32_t>(p[lane] & 1) << lane; });
  const bool all = set == mask;
  const std::uint64_t result = i.has(Modifier::any)   ? set != 0
                               : i.has(Modifier::all) ? all
                               : i.has(Modifier::uni) ? all || set == 0
                                                      : set;
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = result; });
}

void elect(Execution& x) {
  const std::uint32_t mask = members(x, 1);
  const auto chosen = static_cast<std::uint64_t>(std::countr_zero(mask));
  const Operand& to = x.operand(0);
  if (to.kind == Operand::Kind::reg) {
    Lanes& d = x.target(to);
    for_lanes(x.lanes, [&](int lane) { d[lane] = chosen; });
  }
  if (to.second < 0) return;
  Lanes& p = x.warp.registers[to.second];
  for_lanes(x.lanes, [&](int lane) { p[lane] = static_cast<std::uint64_t>(lane) == chosen; });
}

void active_mask(Execution& x) {
  Lanes& d = x.target(0);
  for_lanes(x.lanes, [&](int lane) { d[lane] = x.lanes; });
}

// One value out of all lanes.
void reduce_lanes(Execution& x) {
  const std::uint32_t mask = members(x, 2);
  const Instruction& i = x.instruction;
  with_integer(x, i.type, [&]<typename T>(T) {
    const Lanes& a = x.read(1);
    std::uint64_t result = a[std::countr_zero(mask)];
    for_lanes(mask & (mask - 1), [&](int lane) {
      const T u = from_bits<T>(result), v = from_bits<T>(a[lane]);
      result = i.has(Modifier::add)    ? result + a[lane]
               : i.has(Modifier::and_) ? result & a[lane]
               : i.has(Modifier::or_)  ? result | a[lane]
               : i.has(Modifier::xor_) ? result ^ a[lane]
               : i.has(Modifier::min)  ? to_bits(u < v ? u : v)
                                       : to_bits(u < v ? v : u);
    });
    Lanes& d = x.target(0);
    for_lanes(x.lanes, [&](int lane) { d[lane] = result & 0xffffffff; });
  });
}

void arrive_at(Execution& x, bool waits) {
  const std::uint64_t number = x.uniform(0);
  if (number >= x.cta().named.size()) x.fail("named_barrier", fmt::format("{}", number));
  NamedBarrier& barrier = x.cta().named[number];
  Path& path = x.path;
  if (path.ticket != 0) {
    x.again = path.ticket > barrier.generation;
    if (x.again) return;
    path.ticket = 0;
    return acquire(x, barrier.complete);
  }
  x.need_whole_warp();
  const auto& block = x.machine.input.block;
  const std::int64_t whole = (block[0] * block[1] * block[2] + kLanes - 1) / kLanes * kLanes;
  const std::int64_t threads = x.has(1) ? static_cast<std::int64_t>(x.uniform(1)) : whole;
  x.record(waits ? EventKind::named_sync : EventKind::named_arrive,
           {static_cast<std::int64_t>(number), threads});
  if (threads < kLanes || threads % kLanes != 0) {
    x.fail("named_barrier", fmt::format("{} of {} threads", number, threads));
  }
  if (barrier.threads != 0 && barrier.threads != threads) {
    x.fail("named_barrier", fmt::format("{} of {} threads, and others arrive with {}", number,
                                        threads, barrier.threads));
  }
  barrier.threads = threads;
  barrier.arrived += kLanes;
  release(x, barrier.arriving);
  if (barrier.arrived == threads) {
    barrier.threads = barrier.arrived = 0;
    barrier.complete = barrier.arriving;
    ++barrier.generation;
    if (waits) acquire(x, barrier.complete);
    return;
  }
  if (!waits) return;
  path.ticket = barrier.generation + 1;
  x.again = true;
}

void barrier_sync(Execution& x) { arrive_at(x, true); }
void barrier_arrive(Execution& x) { arrive_at(x, false); }

void cluster_arrive(Execution& x) {
  x.need_whole_warp();
  Cluster& cluster = *x.cta().cluster;
  if (x.warp.cluster_ticket != 0)
    x.fail("cluster_barrier", "a second time, without a wait between");
  x.record(EventKind::cluster_arrive);
  x.warp.cluster_ticket = cluster.generation + 1;
  cluster.arrived += std::popcount(x.lanes);
  release(x, cluster.arriving);
  if (cluster.arrived < cluster.live) return;
  cluster.arrived = 0;
  cluster.complete = cluster.arriving;
  ++cluster.generation;
}

void cluster_wait(Execution& x) {
  x.need_whole_warp();
  if (x.warp.cluster_ticket == 0) x.fail("cluster_barrier", "a wait without an arrival before it");
  x.again = x.warp.cluster_ticket > x.cta().cluster->generation;
  if (x.again) return;
  x.warp.cluster_ticket = 0;
  acquire(x, x.cta().cluster->complete);
  x.record(EventKind::cluster_wait);
}

void fence_of(Execution& x, int scope) {
  x.record(EventKind::fence, {scope});
  fence_words(x, scope);
}

void fence_scope(Execution& x) {
  const Instruction& i = x.instruction;
  const int scope = i.has(Modifier::cta)       ? 0
                    : i.has(Modifier::cluster) ? 1
                    : i.has(Modifier::gpu)     ? 2
                                               : 3;
  fence_of(x, scope);
}
void fence_gpu(Execution& x) { fence_of(x, 2); }
void fence_cta(Execution& x) { fence_of(x, 0); }
void fence_system(Execution& x) { fence_of(x, 3); }
void fence_barrier_init(Execution& x) { x.record(EventKind::fence_barrier_init); }
void fence_proxy(Execution& x) {
  const bool shared = x.instruction.has(Modifier::shared_cta);
  const bool global = x.instruction.has(Modifier::global);
  if (!global) {
    x.record(EventKind::fence_proxy_async);
    fence_accesses(x, Agent::fenced);
  }
  if (shared) return;
  x.record(EventKind::fence_proxy_async_global);
  fence_accesses(x, Agent::fenced_global);
}

void set_registers(Execution& x) {
  x.need_whole_warp();
  const bool increases = x.instruction.has(Modifier::inc);
  x.record(EventKind::registers, {static_cast<std::int64_t>(x.uniform(0)), increases});
}

constexpr Record kControlRecords[] = {
    {"bra", "l", "uni", "", branch},
    {"ret", "", "uni", "", end},
    {"exit", "", "", "", end},
    {"trap", "", "", "", trap},
    {"brkpt", "", "", "", trap},
    {"nanosleep", "s", "", "u32", no_effect},
    {"bar.warp.sync", "s", "", "", warp_sync},
    {"shfl.sync", "psss s", "up down bfly idx", "b32", shuffle},
    {"vote.sync", "dss", "all any uni ballot", "pred b32", vote},
    {"elect.sync", "ds", "", "", elect},
    {"activemask", "d", "", "b32", active_mask},
    {"redux.sync", "dss", "add and or xor min max", "b32 s32 u32", reduce_lanes},
    {"bar.sync", "s?s", "", "", barrier_sync},
    {"bar.arrive", "ss", "", "", barrier_arrive},
    {"barrier.sync", "s?s", "aligned", "", barrier_sync},
    {"barrier.arrive", "ss", "aligned", "", barrier_arrive},
    {"barrier.cluster.arrive", "", "release relaxed aligned", "", cluster_arrive},
    {"barrier.cluster.wait", "", "acquire aligned", "", cluster_wait},
    {"fence", "", "acq_rel sc cta cluster gpu sys", "", fence_scope},
    {"membar.cta", "", "", "", fence_cta},
    {"membar.gl", "", "", "", fence_gpu},
    {"membar.sys", "", "", "", fence_system},
    {"fence.mbarrier_init", "", "release cluster", "", fence_barrier_init},
    {"fence.proxy.async", "", "shared::cta global", "", fence_proxy},
    {"setmaxnreg", "s", "inc dec sync aligned", "u32", set_registers},
};

}  // namespace

std::span<const Record> control_records() { return kControlRecords; }

}  // namespace tilewright::ptx
