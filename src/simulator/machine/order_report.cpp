#include <fmt/format.h>

#include <algorithm>

#include "ir/memory_order.h"
#include "simulator/machine/world.h"
#include "support/diagnostic.h"

// What a fault of order says.
namespace tilewright::simulator {

using Kind = Agents::Kind;

std::string Order::describe_global(std::uint64_t block, Bytes bytes) const {
  const auto [first, last] = bytes.extent();
  const auto* begin = reinterpret_cast<const std::byte*>(block + first);
  const std::string named = launch_.world.memory.describe(begin, last - first + 1);
  if (!named.empty()) return "global " + named;
  for (const TensorArgument& tensor : launch_.arguments.tensors) {
    const GlobalMemory::Range range = GlobalMemory::range_of(tensor);
    if (!range.has(begin)) continue;
    const std::int64_t offset = begin - range.begin;
    return fmt::format("global {} +{:#x}..{:#x}", tensor.name, offset, offset + last - first);
  }
  return "global memory";
}

void Order::report(const Warp& warp, const Access& earlier, const Access& access, Verdict verdict,
                   const std::string& what, std::int64_t stage) const {
  const World& world = launch_.world;
  Fault fault;
  fault.kind = verdict == Verdict::proxy ? "proxy" : "race";
  fault.first = earlier.instruction->where();
  fault.second = access.instruction->where();
  fault.message = fmt::format("{}: {}\n{}\n{}", fault.kind, what, world.access_line(earlier),
                              world.access_line(access));
  fault.missing = verdict == Verdict::proxy ? missing_fence(earlier, access, stage)
                                            : missing(warp, earlier, access, stage);
  launch_.log.add(std::move(fault));
}

std::string Order::missing_fence(const Access& earlier, const Access& access,
                                 std::int64_t stage) const {
  const bool shared = stage >= 0;
  if (shared) return "fence_proxy_async between them, by the threads that made the first access";
  return earlier.cluster == access.cluster
             ? "fence_proxy_async_global between them, by the threads that made the first access"
             : "fence_proxy_async_global in the CTA of the second, behind what orders it behind "
               "the "
               "first";
}

std::string Order::missing_beyond(const Warp& warp, const Access& earlier,
                                  const Access& access) const {
  const World& world = launch_.world;
  if (warp.fences) {
    for (const Handed& missed : warp.fences->missed) {
      if (world.is_known(missed.known.get(), earlier)) return world.why_missed(missed, access);
    }
  }
  const World::Actor& actor = world.actor(earlier.cluster);
  if (actor.launch && warp.elected.beyond) {
    // What the issuer of a copy did is known, but not that the copy is over.
    const Agents& agents = actor.launch->order.agents();
    const Beyond::Cluster* cluster = warp.elected.beyond->find(earlier.cluster);
    const int issuer = agents.at(earlier.agent / agents.per_cta(), Kind::elected_lane,
                                 agents.index(earlier.agent));
    if (agents.kind(earlier.agent) == Kind::store_writes && cluster && cluster->known.size() > 0 &&
        cluster->known[issuer] >= earlier.issued) {
      return "bulk_commit and bulk_wait, not bulk_wait_read, between the first and what tells of "
             "it";
    }
  }
  if (actor.launch == &launch_) {
    return "blocks of one launch are not ordered: what one writes, another may use only behind a "
           "release of the first and an acquire of the second, on a word of global memory";
  }
  return world.missing_between(earlier, access);
}

std::string Order::missing(const Warp& warp, const Access& earlier, const Access& access,
                           std::int64_t stage) const {
  if (earlier.atomic && access.atomic && earlier.async == access.async) {
    const Access& narrow = includes(earlier.scope, earlier, access) ? access : earlier;
    return fmt::format("a wider scope than {} at {}: it does not have the threads of the other",
                       ir::name_of(narrow.scope), format_location(narrow.instruction->where()));
  }
  if (earlier.cluster != access.cluster) return missing_beyond(warp, earlier, access);
  const bool elected = access.instruction->elected;
  const std::int64_t rank = earlier.agent / agents_.per_cta();
  const Cta& owner_cta = *warp.cta->cluster->ctas[rank];
  const Kind kind = agents_.kind(earlier.agent);
  if (kind == Kind::phases) {
    const std::string phase = fmt::format(
        "{} phase {}", launch_.barrier_name(agents_.index(earlier.agent)), earlier.epoch - 1);
    if (access.agent == earlier.agent && access.epoch == earlier.epoch) {
      return "another place for one of the two: both are copies of " + phase +
             ", as of one produce, and nothing orders them";
    }
    return "a wait for " + phase + " between them";
  }
  const Warp& owner = owner_cta.warps[agents_.index(earlier.agent)];
  const int hands_on = agents_.at(rank, Kind::elected_lane, owner.index);
  const bool handed_on = &owner == &warp || knows(warp, elected, hands_on, earlier.issued);
  if (handed_on && kind == Kind::products) {
    return fmt::format("wait or retire of this product in {}, before the warp signals or goes on",
                       launch_.describe(earlier.role, earlier.warp, earlier.cta));
  }
  if (handed_on && kind == Kind::tensor_products) {
    return "tcgen05_commit behind the product, on the barrier that is waited for: an arrival does "
           "not wait for it (Ring::release_behind_products in place of release)";
  }
  if (handed_on && kind == Kind::store_reads) {
    return "bulk_commit and bulk_wait_read between them";
  }
  if (handed_on && kind == Kind::store_writes) {
    return "bulk_commit and bulk_wait between them: bulk_wait_read waits for the source alone";
  }
  if (&owner == &warp) return "warp_sync between them: one lane does not wait for the others";
  if (handed_on && kind == Kind::lanes) {
    return fmt::format(
        "warp_sync in {} between its access and its arrival: one lane does not wait for the others",
        launch_.describe(earlier.role, earlier.warp, earlier.cta));
  }
  if (&owner_cta != warp.cta) {
    return "cluster_sync between them, or fence_cluster before the arrival at the other CTA's "
           "barrier and fence_cluster behind the wait for it";
  }
  return missing_barrier(warp, earlier, stage);
}

std::string Order::missing_barrier(const Warp& warp, const Access& earlier,
                                   std::int64_t stage) const {
  const PreparedKernel& kernel = launch_.kernel;
  const Cta& cta = *warp.cta;
  const auto named = [&](int barrier, std::uint64_t phase) {
    return fmt::format("a wait for {} phase {} between them", launch_.barrier_name(barrier), phase);
  };
  const auto has = [](const std::vector<int>& roles, int role) {
    return std::find(roles.begin(), roles.end(), role) != roles.end();
  };
  // What others alone wait for, such as a ring of theirs, has to do with other memory.
  const auto may_wait = [&](const BarrierArray& array) {
    return array.waiters.empty() || has(array.waiters, warp.role);
  };
  // A phase that is handed on already, or is being so.
  for (int barrier = 0; barrier < kernel.barriers; ++barrier) {
    const Mbarrier& state = cta.barriers[barrier];
    if (!state.initialised || !may_wait(launch_.barrier_array(barrier))) continue;
    if (state.completed.generic[earlier.agent] >= earlier.epoch) {
      return named(barrier, state.phase - 1);
    }
    if (state.accumulated.generic[earlier.agent] >= earlier.epoch) {
      return named(barrier, state.phase);
    }
  }
  // One on which the earlier warp's role is to arrive: at best the one that this role waits for.
  const BarrierArray* best = nullptr;
  for (const BarrierArray& array : kernel.barrier_arrays) {
    if (!may_wait(array) || !has(array.signallers, earlier.role)) continue;
    if (has(array.signallers, warp.role)) continue;
    if (!best || has(array.waiters, warp.role)) best = &array;
  }
  if (!best) return "a barrier between them: an arrival behind the first, a wait before the second";
  const int index = stage >= 0 && stage < best->count ? static_cast<int>(stage) : 0;
  return named(best->first + index, cta.barriers[best->first + index].phase);
}

}  // namespace tilewright::simulator
