#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "simulator/machine/world.h"

namespace tilewright::simulator {
namespace {

constexpr std::int64_t kTxLimit = (std::int64_t{1} << 20) - 1;

// Of a barrier, whose record always says it.
Scope scope_of(const Instruction& instruction) { return *ir::info(instruction.op).scope; }

void wake_waiting(Launch& launch, Cta& cta, Warp::State state, int barrier) {
  for (Warp& warp : cta.warps) {
    if (warp.state == state && warp.barrier == barrier) launch.wake(warp);
  }
}

void fault(Launch& launch, const Warp& warp, const Instruction& instruction, int barrier,
           const std::string& what, std::string missing) {
  launch.log.add({"mbarrier", instruction.where(), launch.barrier_array(barrier).where,
                  fmt::format("mbarrier: {} {}\n{}", launch.barrier_name(barrier), what,
                              launch.access("use", instruction, warp)),
                  std::move(missing)});
}

// A parity tells a phase from its neighbours alone. A wait for phase p has to be over before phase
// p + 1 is complete, or it would wait for phase p + 2: an arrival of phase p + 1 knows of it.
void check_waits(Launch& launch, Cta& cta, int barrier) {
  Mbarrier& state = cta.barriers[barrier];
  const Agents& agents = launch.order.agents();
  const Clock &known = state.accumulated.generic, &passed = state.accumulated.passed;
  // Arrivals by way of the cluster do not tell what threads have done, but which phases are known:
  // one of its waits is over. Of other CTAs' arrivals not even that can be asked.
  const int phases = agents.at(cta.cluster_rank(), Agents::Kind::phases, barrier);
  const bool unknown =
      launch.kernel.cluster > 1 && (state.has_remote_arrivals || known[phases] >= state.phase);
  for (const PassedWait& wait : state.waits) {
    const auto epoch = [&](Agents::Kind kind) {
      const int agent = agents.at(cta.cluster_rank(), kind, wait.warp->index);
      return std::max(known[agent], passed[agent]);
    };
    if (epoch(Agents::Kind::lanes) >= wait.lanes) continue;
    if (epoch(Agents::Kind::elected_lane) >= wait.elected) continue;
    if (unknown) {
      launch.timing.complete(cta, barrier, wait);
      continue;
    }
    fault(launch, *wait.warp, *wait.instruction, barrier,
          fmt::format("may complete phase {} before this wait for phase {} looks, which would then "
                      "wait for phase {}",
                      state.phase, static_cast<std::int64_t>(state.phase) - 1, state.phase + 1),
          fmt::format("an arrival behind the wait on what the arrivals of phase {} wait for",
                      state.phase));
  }
  state.waits.clear();
  state.has_remote_arrivals = false;
  state.expects.clear();
  state.issued = 0;
}

void complete_if_due(Launch& launch, Cta& cta, int barrier) {
  Mbarrier& state = cta.barriers[barrier];
  if (state.pending != 0 || state.tx != 0) return;
  if (launch.order.enabled()) check_waits(launch, cta, barrier);
  ++state.phase;
  if (launch.recorder) launch.recorder->phase_completed(cta, barrier);
  state.pending = state.expected;
  state.completed = state.accumulated;
  wake_waiting(launch, cta, Warp::State::mbarrier, barrier);
}

void count_arrival(Launch& launch, const Warp& warp, const Instruction& instruction, Cta& cta,
                   int barrier) {
  Mbarrier& state = cta.barriers[barrier];
  if (state.pending == 0) {
    return fault(launch, warp, instruction, barrier,
                 fmt::format("has got all {} arrivals of phase {}, which waits for {} bytes; one "
                             "more arrives",
                             state.expected, state.phase, state.tx),
                 fmt::format("an arrival count above {}, or one arrival less", state.expected));
  }
  --state.pending;
  if (launch.recorder) launch.recorder->arrived(warp, cta, barrier);
  complete_if_due(launch, cta, barrier);
}

// `remote`: through the cluster's window, perhaps to the warp's own CTA.
void arrive_on(Launch& launch, Warp& warp, const Instruction& instruction, Cta& cta, int barrier,
               bool remote) {
  if (!usable(launch, warp, instruction, cta, barrier)) return;
  Mbarrier& state = cta.barriers[barrier];
  const bool expects = instruction.op == ir::Op::mbarrier_expect_tx;
  launch.timing.arrive(warp, instruction, cta, barrier, expects ? instruction.value : 0);
  if (&cta != warp.cta) {
    state.has_remote_arrivals = true;
    ForeignUse use;
    use.access = launch.order.by_threads(warp, instruction, {});
    use.verb = "arrive";
    use.barrier = launch.order.agents().at(cta.cluster_rank(), Agents::Kind::phases, barrier);
    use.phase = static_cast<Epoch>(state.phase + 1);
    cta.foreign_uses.add(std::move(use));
  }
  if (remote && scope_of(instruction) < Scope::cluster) {
    launch.order.release_beyond_into(state.accumulated, warp, instruction.elected);
  } else {
    launch.order.announce_into(state.accumulated, warp, instruction.elected);
  }
  count_arrival(launch, warp, instruction, cta, barrier);
}

bool add_tx(Mbarrier& state, std::int64_t bytes) {
  state.tx += bytes;
  return std::abs(state.tx) <= kTxLimit;
}

}  // namespace

int find_barrier(Launch& launch, const Warp& warp, const Instruction& instruction, int array,
                 std::int64_t index) {
  const BarrierArray& barriers = launch.kernel.barrier_arrays[array];
  if (index >= 0 && index < barriers.count) return barriers.first + static_cast<int>(index);
  launch.log.add({"out_of_bounds",
                  instruction.where(),
                  barriers.where,
                  fmt::format("out of bounds: {}[{}] of {} barriers\n{}", barriers.name, index,
                              barriers.count, launch.access("use", instruction, warp)),
                  {}});
  return -1;
}

bool usable(Launch& launch, const Warp& warp, const Instruction& instruction, const Cta& cta,
            int barrier) {
  constexpr const char* kFix =
      "mbarrier_init, fence_barrier_init and cta_sync (cluster_sync for other CTAs) before it";
  const Mbarrier& state = cta.barriers[barrier];
  if (!state.initialised) {
    fault(launch, warp, instruction, barrier, "is not initialised", kFix);
    return false;
  }
  if (!launch.order.enabled()) return true;
  if (!launch.order.knows(warp, instruction.elected, state.initialiser, state.initialised_at)) {
    fault(launch, warp, instruction, barrier,
          "is initialised by another warp, with nothing between that orders the two", kFix);
    return false;
  }
  const bool by_copy = ir::info(instruction.op).writes(ir::Memory::barrier, ir::Proxy::async);
  const bool by_other = warp.cta != &cta;
  const bool needs_fence = by_other || (by_copy && !state.seen_by_copies);
  if (needs_fence && !state.published) {
    fault(
        launch, warp, instruction, barrier,
        by_other && state.seen_by_copies
            ? "is used by another CTA, and fence_proxy_async publishes its initialisation to this "
              "CTA's copies alone"
            : "is used by a copy or another CTA, and its initialisation is not published to them",
        kFix);
    return false;
  }
  return true;
}

namespace {

// Of the barriers that the warp has initialised.
void publish_barriers(Launch& launch, Warp& warp, bool Mbarrier::*to) {
  for (Mbarrier& state : warp.cta->barriers) {
    const int by = launch.order.agents().index(state.initialiser);
    if (state.initialised && by == warp.index) state.*to = true;
  }
}

void init_mbarriers(Launch& launch, Warp& warp, const Instruction& instruction) {
  const BarrierArray& array = launch.kernel.barrier_arrays[instruction.object];
  for (int i = array.first; i < array.first + array.count; ++i) {
    Mbarrier& state = warp.cta->barriers[i];
    if (state.initialised) {
      fault(launch, warp, instruction, i, "is initialised a second time", "one mbarrier_init");
    }
    if (instruction.value < 1 || instruction.value > kTxLimit) {
      fault(launch, warp, instruction, i,
            fmt::format("expects {} arrivals, not 1 to {}", instruction.value, kTxLimit), {});
    }
    const Access access = launch.order.by_threads(warp, instruction, {});
    state.initialised = true;
    state.phase = 0;
    state.tx = 0;
    state.expected = state.pending = static_cast<int>(instruction.value);
    state.initialiser = access.agent;
    state.initialised_at = access.epoch;
    state.published = state.seen_by_copies = false;
  }
}

void expect_tx(Launch& launch, Warp& warp, const Instruction& instruction) {
  const int barrier =
      find_barrier(launch, warp, instruction, instruction.object, warp.integer(instruction.a));
  if (barrier < 0 || !usable(launch, warp, instruction, *warp.cta, barrier)) return;
  if (!add_tx(warp.cta->barriers[barrier], instruction.value)) {
    fault(launch, warp, instruction, barrier,
          fmt::format("expects more than {} bytes in one phase", kTxLimit), {});
  }
  arrive_on(launch, warp, instruction, *warp.cta, barrier, /*remote=*/false);
}

// The only arrival of a phase tells its own threads that the phase is complete.
void arrive_here(Launch& launch, Warp& warp, const Instruction& instruction, int barrier) {
  const Mbarrier& state = warp.cta->barriers[barrier];
  const std::uint64_t phase = state.phase;
  arrive_on(launch, warp, instruction, *warp.cta, barrier, /*remote=*/false);
  if (state.expected != 1 || state.phase != phase + 1 || !launch.order.enabled()) return;
  const int agent =
      launch.order.agents().at(warp.cta->cluster_rank(), Agents::Kind::phases, barrier);
  if (!launch.order.knows(warp, instruction.elected, agent, static_cast<Epoch>(phase))) return;
  launch.order.complete(warp, instruction.elected, Agents::Kind::phases, barrier,
                        static_cast<std::int64_t>(state.phase));
  launch.timing.know(warp, instruction.elected, barrier, state.phase);
}

void arrive(Launch& launch, Warp& warp, const Instruction& instruction) {
  const int barrier =
      find_barrier(launch, warp, instruction, instruction.object, warp.integer(instruction.a));
  if (barrier < 0) return;
  if (!instruction.value) return arrive_here(launch, warp, instruction, barrier);
  const std::int64_t rank = warp.integer(instruction.b);
  const auto& ctas = warp.cta->cluster->ctas;
  if (rank < 0 || rank >= static_cast<std::int64_t>(ctas.size())) {
    return fault(launch, warp, instruction, barrier,
                 fmt::format("of CTA {} of a cluster of {}", rank, ctas.size()), {});
  }
  Cta& cta = *ctas[rank];
  if (cta.live == 0) {
    launch.log.add(
        {"exit", instruction.where(), launch.barrier_array(barrier).where,
         fmt::format("exit: {} of CTA {}, which has ended\n{}", launch.barrier_name(barrier),
                     cta.index, launch.access("arrive", instruction, warp)),
         "cluster_sync before the kernel ends"});
    return;
  }
  arrive_on(launch, warp, instruction, cta, barrier, /*remote=*/true);
}

// Notes that the wait passes, and faults where it may do so two phases early: who waits for phase p
// has to know that phase p - 1 is complete, since before that the parity is that of phase p - 2.
void pass(Launch& launch, Warp& warp, const Instruction& instruction, int barrier) {
  Mbarrier& state = warp.cta->barriers[barrier];
  const Agents& agents = launch.order.agents();
  const std::int64_t rank = warp.cta->cluster_rank();
  const Epoch known =
      warp.view(instruction.elected).generic[agents.at(rank, Agents::Kind::phases, barrier)];
  if (state.phase > known + std::uint64_t{1}) {
    fault(launch, warp, instruction, barrier,
          fmt::format("has completed phase {}, and nothing but the parity tells this wait that it "
                      "is not for phase {}",
                      state.phase - 1, static_cast<std::int64_t>(state.phase) - 3),
          fmt::format("a wait for phase {} before it, by this warp or by one that signals to it",
                      state.phase - 2));
  }
  PassedWait passed;
  passed.instruction = &instruction;
  passed.warp = &warp;
  passed.lanes = warp.lanes.generic[agents.at(rank, Agents::Kind::lanes, warp.index)];
  passed.elected = warp.elected.generic[agents.at(rank, Agents::Kind::elected_lane, warp.index)];
  launch.timing.pass(warp, instruction, barrier, passed);
  const auto same = std::find_if(state.waits.begin(), state.waits.end(),
                                 [&](const PassedWait& each) { return each.warp == &warp; });
  if (same == state.waits.end()) {
    state.waits.push_back(passed);
  } else {
    *same = passed;
  }
}

void wait_mbarrier(Launch& launch, Warp& warp, const Instruction& instruction) {
  const int barrier =
      find_barrier(launch, warp, instruction, instruction.object, warp.integer(instruction.a));
  if (barrier < 0 || !usable(launch, warp, instruction, *warp.cta, barrier)) {
    ++warp.pc;
    return;
  }
  const Mbarrier& state = warp.cta->barriers[barrier];
  const std::int64_t parity = warp.integer(instruction.b);
  if (parity != 0 && parity != 1) {
    fault(launch, warp, instruction, barrier, fmt::format("is asked for parity {}", parity),
          "a parity of 0 or 1: the number of the phase modulo 2");
    ++warp.pc;
    return;
  }
  const bool resumed = warp.waits_at == &instruction;
  if (resumed && state.phase > warp.awaited_phase + 1) {
    fault(launch, warp, instruction, barrier,
          fmt::format("completed phases {} to {} while a warp waits for phase {}",
                      static_cast<std::int64_t>(warp.awaited_phase), state.phase - 1,
                      static_cast<std::int64_t>(warp.awaited_phase)),
          "an arrival of the waiting warp between these phases");
  }
  const std::uint64_t current = state.phase & 1;
  if (current != static_cast<std::uint64_t>(parity)) {
    if (launch.world.schedule.times_out()) {
      warp.waits_at = &instruction;
      warp.awaited_phase = state.phase - 1;
      return;
    }
    warp.waits_at = nullptr;
    if (launch.order.enabled()) pass(launch, warp, instruction, barrier);
    launch.order.acquire(warp, instruction.elected, state.completed, scope_of(instruction));
    launch.order.complete(warp, instruction.elected, Agents::Kind::phases, barrier,
                          static_cast<std::int64_t>(state.phase));
    ++warp.pc;
    return;
  }
  warp.barrier = barrier;
  warp.parity = parity;
  warp.awaited_phase = state.phase;
  launch.block(warp, Warp::State::mbarrier, instruction);
}

}  // namespace

void execute_mbarrier(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::MbarrierOp>(instruction.op)) {
    case ir::MbarrierOp::mbarrier_init:
      init_mbarriers(launch, warp, instruction);
      break;
    case ir::MbarrierOp::mbarrier_expect_tx:
      expect_tx(launch, warp, instruction);
      break;
    case ir::MbarrierOp::mbarrier_arrive:
      arrive(launch, warp, instruction);
      break;
    case ir::MbarrierOp::mbarrier_wait:  // steps on by itself
      return wait_mbarrier(launch, warp, instruction);
  }
  ++warp.pc;
}

// It tells that the products are over, and what asynchronous work came before them. Of what threads
// have done it tells nothing, but which waits are over.
void arrive_by_commit(Launch& launch, Warp& warp, const TensorWork& work, Cta& receiver) {
  if (launch.order.enabled()) {
    const Agents& agents = launch.order.agents();
    View over(agents.count());
    for (int first = 0; first < agents.count(); first += agents.per_cta()) {
      over.generic.join(work.known.generic, first + agents.threads(),
                        agents.per_cta() - agents.threads());
    }
    over.generic[agents.at(warp.cta->cluster_rank(), Agents::Kind::tensor_products, warp.index)] =
        work.commits;
    over.timed = work.known.timed;
    over.passed = work.known.generic;
    over.passed.join(work.known.passed);
    receiver.barriers[work.barrier].accumulated.join(over);
  }
  launch.timing.commit(work.known.timed, *work.instruction, receiver, work.barrier);
  if (&receiver != warp.cta) receiver.barriers[work.barrier].has_remote_arrivals = true;
  count_arrival(launch, warp, *work.instruction, receiver, work.barrier);
}

void execute_fence(Launch& launch, Warp& warp, const Instruction& instruction) {
  Order& order = launch.order;
  switch (ir::as<ir::FenceOp>(instruction.op)) {
    case ir::FenceOp::fence_proxy_async:
      order.fence_proxy(warp, instruction.elected);
      return publish_barriers(launch, warp, &Mbarrier::seen_by_copies);
    case ir::FenceOp::fence_proxy_async_global:
      return order.fence_proxy_global(warp, instruction.elected);
    case ir::FenceOp::fence_barrier_init:
      return publish_barriers(launch, warp, &Mbarrier::published);
    case ir::FenceOp::fence_cluster:
      return order.fence_cluster(warp, instruction.elected);
    case ir::FenceOp::fence:
      return order.fence(warp, instruction.elected, static_cast<Scope>(instruction.value));
  }
}

void commit_group(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::CommitOp>(instruction.op)) {
    case ir::CommitOp::bulk_commit:
      return bulk_commit(warp);
    case ir::CommitOp::wgmma_commit:
      return commit_products(launch, warp);
  }
}

void wait_for_groups(Launch& launch, Warp& warp, const Instruction& instruction) {
  switch (ir::as<ir::GroupWaitOp>(instruction.op)) {
    case ir::GroupWaitOp::bulk_wait:
      return bulk_wait(launch, warp, instruction);
    case ir::GroupWaitOp::wgmma_wait:
      return wait_products(launch, warp, instruction);
  }
}

void complete_tx(Launch& launch, const Event& event, std::int64_t bytes, bool early) {
  Cta& cta = *event.signalled;
  Mbarrier& state = cta.barriers[event.barrier];
  if (state.phase != event.phase) {
    return fault(launch, *event.issuer, *event.instruction, event.barrier,
                 fmt::format("was in phase {} when a copy of {} bytes began and is in phase {} "
                             "when it ends",
                             event.phase, bytes, state.phase),
                 "an expect_tx of all bytes that the copies of the phase write");
  }
  // Another CTA's copy may arrive before this one's expect_tx; its own must not.
  if (!early && state.tx < bytes) {
    return fault(launch, *event.issuer, *event.instruction, event.barrier,
                 fmt::format("expects {} bytes more in phase {}, a copy brings {}", state.tx,
                             state.phase, bytes),
                 "an expect_tx, before the copies, of all bytes that they write");
  }
  add_tx(state, -bytes);
  state.accumulated.timed.join(event.timed);
  complete_if_due(launch, cta, event.barrier);
}

void named_barrier(Launch& launch, Warp& warp, const Instruction& instruction) {
  const bool sync = instruction.op != ir::Op::named_arrive;
  const std::int64_t index = warp.integer(instruction.a);
  const std::int64_t number = instruction.detail + index;
  const auto report = [&](const std::string& what, SourceLocation second, std::string missing) {
    launch.log.add({"named_barrier", instruction.where(), second,
                    fmt::format("named barrier {}: {}\n{}", number, what,
                                launch.access(sync ? "sync" : "arrive", instruction, warp)),
                    std::move(missing)});
  };
  ++warp.pc;
  // The printed code compares the index with each of its barriers, and meets at none else.
  const int count = instruction.object;
  if (count != 0 && (index < 0 || index >= count)) {
    return report(fmt::format("index {} of {} barriers", index, count), {},
                  fmt::format("an index from 0 to {}", count - 1));
  }
  if (number < 0 || number > 15) return report("not one of 0 to 15", {}, {});
  if (instruction.value < 32 || instruction.value % 32 != 0) {
    return report(fmt::format("{} threads, not a multiple of 32", instruction.value), {}, {});
  }
  NamedBarrier& barrier = warp.cta->named[number];
  if (barrier.threads == 0) {
    barrier.threads = instruction.value;
    barrier.first = instruction.where();
  } else if (barrier.threads != instruction.value) {
    return report(fmt::format("{} threads here, {} in the arrival that it would join",
                              instruction.value, barrier.threads),
                  barrier.first, "the same thread count wherever the barrier is used");
  }
  launch.timing.meet(warp, instruction, barrier);
  barrier.arrived += 32;
  // Every lane takes part, so that a barrier hands on what each of them knows.
  View lanes = warp.lanes;
  lanes.join(warp.elected);
  barrier.handed.join(lanes);
  if (sync) launch.order.meet(warp);
  if (!sync) launch.order.count_up(warp);
  if (barrier.arrived == barrier.threads) {
    const NamedBarrier over = std::exchange(barrier, {});
    barrier.handed = launch.order.nothing();
    barrier.before = over.arrivals;
    for (Warp* other : over.waiting) {
      launch.order.acquire(*other, /*elected=*/false, over.handed, scope_of(instruction));
      launch.wake(*other);
    }
    if (sync) launch.order.acquire(warp, /*elected=*/false, over.handed, scope_of(instruction));
  } else if (sync) {
    barrier.waiting.push_back(&warp);
    warp.barrier = static_cast<int>(number);
    launch.block(warp, Warp::State::named, instruction);
  }
}

void cluster_sync(Launch& launch, Warp& warp, const Instruction& instruction) {
  Cluster& cluster = *warp.cta->cluster;
  ++warp.pc;
  const std::size_t warps = cluster.ctas.size() * launch.kernel.warps;
  View lanes = warp.lanes;
  lanes.join(warp.elected);
  cluster.handed.join(lanes);
  launch.order.meet(warp);
  if (cluster.waiting.size() + 1 == warps) {
    const std::vector<Warp*> waiting = std::exchange(cluster.waiting, {});
    const View handed = std::exchange(cluster.handed, launch.order.nothing());
    for (Warp* other : waiting) {
      launch.order.acquire(*other, /*elected=*/false, handed, scope_of(instruction));
      launch.wake(*other);
    }
    launch.order.acquire(warp, /*elected=*/false, handed, scope_of(instruction));
    return;
  }
  cluster.waiting.push_back(&warp);
  launch.block(warp, Warp::State::cluster, instruction);
}

void set_max_registers(Launch& launch, Warp& warp, const Instruction& instruction) {
  const TargetLimits& limits = launch.kernel.target->limits;
  const auto group_warps = static_cast<int>(limits.group_warps);
  if (instruction.object >= 0 && warp.index / group_warps != instruction.object / group_warps) {
    ++warp.pc;
    return;
  }
  const int count = static_cast<int>(instruction.value);
  const bool increase = instruction.detail != 0;
  const auto report = [&](const std::string& what) {
    launch.log.add(
        {"registers",
         instruction.where(),
         {},
         fmt::format("set_max_registers: {}\n{}", what, launch.access("set", instruction, warp)),
         {}});
    ++warp.pc;
  };
  if (count < limits.least_role_registers || count > limits.most_role_registers ||
      count % limits.register_unit != 0) {
    return report(fmt::format("{}, not a multiple of {} from {} to {}", count, limits.register_unit,
                              limits.least_role_registers, limits.most_role_registers));
  }
  if (increase ? count < warp.registers : count > warp.registers) {
    return report(fmt::format("{} is no {} from {}", count, increase ? "increase" : "decrease",
                              warp.registers));
  }
  const int wanted = (count - warp.registers) * kLanes;
  if (wanted > warp.cta->register_pool) {
    return launch.block(warp, Warp::State::pool, instruction);
  }
  launch.timing.registers(warp, instruction);
  warp.cta->register_pool -= wanted;
  warp.registers = count;
  warp.waits_at = nullptr;
  ++warp.pc;
  if (wanted < 0) {
    for (Warp& other : warp.cta->warps) {
      if (other.state == Warp::State::pool) launch.wake(other);
    }
  }
}

}  // namespace tilewright::simulator
