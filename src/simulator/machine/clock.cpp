#include "simulator/machine/clock.h"

#include <algorithm>

#include "simulator/vector_clones.h"

namespace tilewright::simulator {
namespace {

TW_VECTOR_CLONES void raise_all(std::size_t count, const Epoch* least, Epoch* to) {
  TW_INDEPENDENT
  for (std::size_t i = 0; i < count; ++i) to[i] = to[i] > least[i] ? to[i] : least[i];
}

TW_VECTOR_CLONES bool any_above(std::size_t count, const Epoch* some, const Epoch* others) {
  Epoch any = 0;
  for (std::size_t i = 0; i < count; ++i) any |= static_cast<Epoch>(some[i] > others[i]);
  return any != 0;
}

}  // namespace

void Clock::raise(std::size_t count, const Epoch* least, Epoch* to) { raise_all(count, least, to); }

bool Clock::covers(const Clock& other) const {
  const std::size_t both = std::min(size(), other.size());
  if (any_above(both, other.epochs_.data(), epochs_.data())) return false;
  return std::all_of(other.epochs_.begin() + static_cast<std::ptrdiff_t>(both), other.epochs_.end(),
                     [](Epoch epoch) { return epoch == 0; });
}

void Beyond::join(const Beyond& other) {
  for (const Cluster& theirs : other.clusters) {
    Cluster& ours = at(theirs.number);
    ours.known.join(theirs.known);
    ours.fenced.join(theirs.fenced);
  }
  streams.join(other.streams);
  fenced_streams.join(other.fenced_streams);
}

bool Beyond::covers(const Beyond& other) const {
  if (other.clusters.size() > clusters.size()) return false;
  auto ours = clusters.begin();
  for (const Cluster& theirs : other.clusters) {
    while (ours != clusters.end() && ours->number < theirs.number) ++ours;
    if (ours == clusters.end() || ours->number != theirs.number ||
        !ours->known.covers(theirs.known) || !ours->fenced.covers(theirs.fenced)) {
      return false;
    }
  }
  return streams.covers(other.streams) && fenced_streams.covers(other.fenced_streams);
}

const Beyond::Cluster* Beyond::find(std::uint32_t cluster) const {
  const auto place = std::lower_bound(
      clusters.begin(), clusters.end(), cluster,
      [](const Cluster& each, std::uint32_t number) { return each.number < number; });
  return place != clusters.end() && place->number == cluster ? &*place : nullptr;
}

Beyond::Cluster& Beyond::at(std::uint32_t cluster) {
  const auto place = std::lower_bound(
      clusters.begin(), clusters.end(), cluster,
      [](const Cluster& each, std::uint32_t number) { return each.number < number; });
  if (place != clusters.end() && place->number == cluster) return *place;
  return *clusters.insert(place, Cluster{cluster, {}, {}});
}

void Beyond::fence() {
  for (Cluster& cluster : clusters) cluster.fenced.join(cluster.known);
  fenced_streams.join(streams);
}

void Beyond::forget_fences() {
  for (Cluster& cluster : clusters) cluster.fenced = {};
  fenced_streams = {};
}

void View::join_beyond(const std::shared_ptr<const Beyond>& other) {
  if (!beyond || other->covers(*beyond)) {
    beyond = other;
  } else if (!beyond->covers(*other)) {
    auto both = std::make_shared<Beyond>(*beyond);
    both->join(*other);
    beyond = std::move(both);
  }
}

}  // namespace tilewright::simulator
