#include "simulator/machine/link_times.h"

#include <algorithm>
#include <cmath>

namespace tilewright::simulator {

namespace {

// In whole cycles.
std::int64_t up(std::int64_t parts) { return (parts + LinkTimes::kParts - 1) / LinkTimes::kParts; }

}  // namespace

void LinkTimes::begin(std::string_view target, int ranks) {
  device_ = &target::device_of(target);
  clock_ = device_->reached.product_clock;
  ways_.resize(static_cast<std::size_t>(ranks));
}

void LinkTimes::add_memory(const std::byte* first, std::int64_t bytes, int rank) {
  const auto place = std::upper_bound(
      memory_.begin(), memory_.end(), first,
      [](const std::byte* address, const Memory& each) { return address < each.first; });
  memory_.insert(place, {first, first + bytes, rank});
}

int LinkTimes::rank_of(const std::byte* address) const {
  const auto next = std::upper_bound(
      memory_.begin(), memory_.end(), address,
      [](const std::byte* each, const Memory& memory) { return each < memory.first; });
  if (next == memory_.begin() || address >= std::prev(next)->end) return -1;
  return std::prev(next)->rank;
}

std::int64_t LinkTimes::cycles(double seconds) const {
  return static_cast<std::int64_t>(std::llround(seconds * clock_));
}

std::int64_t LinkTimes::send(int from, int to, std::int64_t bytes, double rate,
                             std::int64_t earliest) {
  ways_[from].sent += bytes;
  const auto parts = static_cast<std::int64_t>(
      std::llround(static_cast<double>(bytes) / rate * clock_ * static_cast<double>(kParts)));
  const std::int64_t start = earliest * kParts;
  return up(std::max(ways_[from].out.fill(start, parts), ways_[to].in.fill(start, parts)));
}

std::int64_t LinkTimes::left(int rank, std::int64_t at) const {
  return up(ways_[static_cast<std::size_t>(rank)].out.free_from(at * kParts));
}

}  // namespace tilewright::simulator
