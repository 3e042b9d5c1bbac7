#include <algorithm>
#include <utility>

#include "simulator/machine/world.h"

// Order between clusters, launches and ranks: what words of global memory hand on.
namespace tilewright::simulator {
namespace {

using Known = std::shared_ptr<const Beyond>;

constexpr std::size_t kMissed = 16;

bool acquires(Semantics semantics) {
  return semantics == Semantics::acquire || semantics == Semantics::acq_rel;
}
bool releases(Semantics semantics) {
  return semantics == Semantics::release || semantics == Semantics::acq_rel;
}

FenceState& fences_of(Warp& warp) {
  if (!warp.fences) warp.fences = std::make_unique<FenceState>();
  return *warp.fences;
}

bool reaches(const Access& from, const Access& to) {
  return includes(from.scope, from, to) && includes(to.scope, to, from);
}

}  // namespace

Order::Verdict Order::judge_beyond(const Beyond* beyond, const Access& earlier,
                                   const Access& access) const {
  const World& world = launch_.world;
  if (!world.is_known(beyond, earlier)) return Verdict::race;
  // What another CTA has done, through whichever proxy, a copy sees behind a fence of its own CTA.
  if (!access.async || !(earlier.write || strict_)) return Verdict::ordered;
  return world.is_fenced(beyond, earlier) ? Verdict::ordered : Verdict::proxy;
}

bool Order::fenced_globally(const View& view, const Access& earlier) const {
  if (!view.beyond) return false;
  const Beyond::Cluster* own = view.beyond->find(earlier.cluster);
  return own && own->fenced[earlier.agent] >= earlier.epoch;
}

void Order::fence_proxy_global(Warp& warp, bool elected) const {
  if (!enabled_) return;
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = warp.view(lane);
    auto fenced = view.beyond ? std::make_shared<Beyond>(*view.beyond) : std::make_shared<Beyond>();
    fenced->at(warp.cta->cluster->number).known = view.generic;
    fenced->fence();
    view.beyond = std::move(fenced);
    ++view.generic[own_agent(warp, lane)];
  }
}

Known Order::known(const Warp& warp, bool elected) const {
  const View& view = warp.view(elected);
  auto known = view.beyond ? std::make_shared<Beyond>(*view.beyond) : std::make_shared<Beyond>();
  known->at(warp.cta->cluster->number).known = view.generic;
  known->forget_fences();
  return known;
}

void Order::acquire_beyond(Warp& warp, bool elected, const Known& known) const {
  const Beyond::Cluster* own = known->find(warp.cta->cluster->number);
  for (const bool lane : {true, false}) {
    if (elected && !lane) continue;
    View& view = warp.view(lane);
    view.join_beyond(known);
    if (own) view.generic.join(own->known);
  }
}

void Order::word(Warp& warp, const Instruction& instruction, const WordUse& use) {
  if (!enabled_) return;
  const bool atomic = use.order.semantics != Semantics::weak;
  Access access = by_threads(warp, instruction, {use.writes, /*async=*/false, atomic});
  access.scope = use.order.scope;
  if (is_written(use.word)) {
    launch_.timing.word(warp, access, use.word);
    bytes.add(reinterpret_cast<std::uint64_t>(use.word), use.bytes);
    global(warp, access, bytes);
  }
  if (use.reads && atomic) read_word(warp, instruction.elected, access, use);
  if (use.writes) write_word(warp, instruction.elected, access, use);
}

void Order::read_word(Warp& warp, bool elected, const Access& access, const WordUse& use) const {
  for (const Handed& handed : launch_.world.memory.handed(use.word)) {
    if (handed.released && reaches(handed.by, access)) {
      if (acquires(use.order.semantics)) {
        acquire_beyond(warp, elected, handed.known);
        continue;
      }
      fences_of(warp).seen.push_back(handed);
    }
    std::vector<Handed>& missed = fences_of(warp).missed;
    if (missed.size() == kMissed) missed.erase(missed.begin());
    missed.push_back(handed);
  }
}

void Order::write_word(Warp& warp, bool elected, const Access& access, const WordUse& use) const {
  std::vector<Handed>& handed = launch_.world.memory.handed(use.word);
  // An atomic that reads as well carries on what was handed on before.
  if (!use.reads) handed.clear();
  if (use.order.semantics == Semantics::weak) return;
  const auto add = [&](Known known, Scope scope, bool released) {
    Access by = access;
    by.scope = scope;
    const auto same = std::find_if(handed.begin(), handed.end(), [&](const Handed& each) {
      return each.by.cluster == by.cluster && each.by.cta == by.cta && each.by.scope == by.scope &&
             each.by.agent == by.agent && each.released == released;
    });
    // What the same threads hand on later has in it what they handed on before.
    if (same != handed.end()) handed.erase(same);
    handed.push_back({std::move(known), by, released});
  };
  if (releases(use.order.semantics)) {
    add(known(warp, elected), use.order.scope, true);
    ++warp.view(elected).generic[own_agent(warp, elected)];
    return;
  }
  if (warp.fences) {
    for (const FenceState::Released& fence : warp.fences->released) {
      if (!elected && !fence.by_all) continue;
      add(elected ? fence.elected : fence.all, std::min(fence.scope, use.order.scope), true);
    }
  }
  add(known(warp, elected), use.order.scope, false);
}

void Order::fence(Warp& warp, bool elected, Scope scope) {
  if (!enabled_) return;
  FenceState& fences = fences_of(warp);
  const auto acquired = [&](const Handed& seen) {
    Access here = by_threads(warp, *seen.by.instruction, {});
    here.scope = scope;
    if (!reaches(here, seen.by)) return false;
    acquire_beyond(warp, elected, seen.known);
    return true;
  };
  fences.seen.erase(std::remove_if(fences.seen.begin(), fences.seen.end(), acquired),
                    fences.seen.end());
  if (scope >= Scope::cluster) fence_cluster(warp, elected);
  const auto same = std::find_if(fences.released.begin(), fences.released.end(),
                                 [&](const auto& each) { return each.scope == scope; });
  if (same != fences.released.end()) fences.released.erase(same);
  fences.released.push_back(
      {scope, !elected, elected ? nullptr : known(warp, false), known(warp, true)});
  count_up(warp);
}

}  // namespace tilewright::simulator
