#include <fmt/format.h>

#include <algorithm>

#include "ptx/machine.h"

// What an address of PTX stands for: windows of a generic one, shared memory of a rank of the
// cluster, tensors in global memory.
namespace tilewright::ptx {

std::uint64_t Machine::address_of(const Warp& warp, int number) const {
  const Variable& symbol = kernel.symbols[number];
  const std::uint64_t cluster =
      input.cluster > 1 ? static_cast<std::uint64_t>(warp.cta->rank) << kRankShift : 0;
  switch (symbol.space) {
    case Space::global:
      return reinterpret_cast<std::uint64_t>(variables_[number].data());
    case Space::shared: {
      const std::int64_t dynamic =
          (kernel.static_shared_bytes + symbol.alignment - 1) / symbol.alignment * symbol.alignment;
      return cluster + static_cast<std::uint64_t>(kSharedBase +
                                                  (symbol.bytes == 0 ? dynamic : symbol.offset));
    }
    case Space::local:
    case Space::param:
    case Space::generic:
      break;
  }
  return static_cast<std::uint64_t>(symbol.offset);
}

std::byte* Machine::find(std::uint64_t address, std::int64_t bytes) const {
  auto next =
      std::upper_bound(memory_.begin(), memory_.end(), address,
                       [](std::uint64_t at, const Region& region) { return at < region.begin; });
  // Regions may lie in each other, such as parts of one tensor.
  while (next != memory_.begin()) {
    --next;
    if (address + static_cast<std::uint64_t>(bytes) <= next->end) {
      return reinterpret_cast<std::byte*>(address);
    }
  }
  return nullptr;
}

std::string Machine::describe_outside(std::uint64_t address, std::int64_t bytes) const {
  std::string nearest = "no tensor lies near";
  for (const Region& region : memory_) {
    if (address >= region.begin && address < region.end + (1 << 20)) {
      nearest = fmt::format("{} has {} bytes, and this is byte {}", region.name,
                            region.end - region.begin, address - region.begin);
    }
  }
  return fmt::format("of {} bytes at {:#x}: {}", bytes, address, nearest);
}

std::string Machine::describe_global(std::uint64_t address) const {
  for (const Region& region : memory_) {
    if (address >= region.begin && address < region.end) {
      return fmt::format("{} +{:#x}", region.name, address - region.begin);
    }
  }
  return fmt::format("{:#x}", address);
}

std::pair<Cta*, std::uint64_t> Machine::shared(Execution& by, std::uint64_t address,
                                               std::int64_t bytes) {
  const std::uint64_t rank = address >> kRankShift;
  const std::uint64_t at = (address & kSharedMask) - kSharedBase;
  const auto& ctas = by.cta().cluster->ctas;
  if (rank >= ctas.size() || at > static_cast<std::uint64_t>(shared_bytes_) ||
      at + static_cast<std::uint64_t>(bytes) > static_cast<std::uint64_t>(shared_bytes_)) {
    by.fail("out_of_bounds",
            fmt::format("of {} bytes at shared {:#x}, which has {:#x} from {:#x} on", bytes,
                        address, shared_bytes_, kSharedBase));
  }
  return {ctas[rank].get(), at};
}

std::byte* Machine::memory(Execution& by, Space space, std::uint64_t address, std::int64_t bytes,
                           int lane) {
  if (space == Space::generic) {
    const std::uint64_t window = address & ~kWindowMask;
    space = window == kSharedWindow  ? Space::shared
            : window == kLocalWindow ? Space::local
            : window == kParamWindow ? Space::param
                                     : Space::global;
    if (space != Space::global) address &= kWindowMask;
  }
  if (address % static_cast<std::uint64_t>(bytes) != 0) {
    by.fail("misaligned", fmt::format("of {} bytes at {:#x}", bytes, address));
  }
  const auto inside = [&](std::vector<std::byte>& all) {
    if (address + static_cast<std::uint64_t>(bytes) > all.size()) {
      by.fail("out_of_bounds",
              fmt::format("of {} bytes at {:#x} of {}", bytes, address, all.size()));
    }
    return all.data() + address;
  };
  switch (space) {
    case Space::global:
      if (std::byte* const found = find(address, bytes)) return found;
      by.fail("out_of_bounds", describe_outside(address, bytes));
    case Space::shared: {
      const auto [cta, at] = shared(by, address, bytes);
      return cta->shared.data() + at;
    }
    case Space::param:
      return inside(parameters);
    case Space::local:
      if (by.warp.local.empty())
        by.fail("out_of_bounds", "of local memory, which there is none of");
      return inside(by.warp.local[lane]);
    case Space::generic:
      break;
  }
  by.unsupported();
}

}  // namespace tilewright::ptx
