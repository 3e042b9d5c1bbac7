#include "distributed/regions.h"

#include <functional>
#include <utility>

namespace tilewright::distributed {

std::int64_t Regions::add(std::string name, std::vector<std::byte*> blocks, int own,
                          std::size_t bytes) {
  const std::lock_guard lock(mutex_);
  regions_[next_] = {std::move(name), std::move(blocks), own, bytes};
  return next_++;
}

void Regions::remove(std::int64_t number) {
  const std::lock_guard lock(mutex_);
  regions_.erase(number);
}

std::optional<Regions::Place> Regions::find(const std::byte* first, std::size_t bytes) const {
  const std::lock_guard lock(mutex_);
  for (const auto& [number, region] : regions_) {
    const std::byte* const block = region.blocks[static_cast<std::size_t>(region.own)];
    // Pointers into different blocks have no order but that of std::less.
    if (std::less<>()(first, block)) continue;
    const auto offset = static_cast<std::size_t>(first - block);
    if (offset > region.bytes || bytes > region.bytes - offset) continue;
    Place place{number, region.name, offset, region.blocks};
    for (std::byte*& rank : place.ranks) {
      if (rank != nullptr) rank += offset;
    }
    return place;
  }
  return {};
}

}  // namespace tilewright::distributed
