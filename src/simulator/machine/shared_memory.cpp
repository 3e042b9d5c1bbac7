#include "simulator/machine/shared_memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::simulator {
namespace {

// Calls `visit(cell, mask)` for each cell of 16 bytes that the range touches.
template <typename Visit>
void for_cells(std::int64_t address, std::int64_t bytes, Visit visit) {
  const std::int64_t end = address + bytes;
  while (address < end) {
    if (address % 16 == 0 && address + 16 <= end) {
      visit(address / 16, std::uint16_t{0xffff});
      address += 16;
      continue;
    }
    const std::int64_t cell = address / 16;
    const std::int64_t stop = std::min(end, (cell + 1) * 16);
    const std::uint32_t below = (1u << (stop - cell * 16)) - 1;
    const std::uint32_t mask = below & ~((1u << (address - cell * 16)) - 1);
    visit(cell, static_cast<std::uint16_t>(mask));
    address = stop;
  }
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes)
    : size_(bytes), bytes_(bytes), held_((bytes + 15) / 16, 0), page_time_(bytes / kPage + 1, 0) {}

bool SharedMemory::initialised(std::int64_t address, std::int64_t bytes) const {
  std::uint16_t missing = 0;
  for_cells(address, bytes, [&](std::int64_t cell, std::uint16_t mask) {
    missing |= static_cast<std::uint16_t>(~held_[cell] & mask);
  });
  return missing == 0;
}

void SharedMemory::write(std::int64_t address, const std::byte* data, std::int64_t bytes) {
  std::memcpy(bytes_.data() + address, data, bytes);
  hold(address, bytes);
}

void SharedMemory::hold(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::uint16_t mask) { held_[cell] |= mask; });
  changed(address, bytes);
}

void SharedMemory::poison(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::uint16_t mask) { held_[cell] &= ~mask; });
  changed(address, bytes);
}

std::uint64_t SharedMemory::last_change(std::int64_t first, std::int64_t last) const {
  return *std::max_element(page_time_.begin() + first / kPage,
                           page_time_.begin() + last / kPage + 1);
}

void SharedMemory::changed(std::int64_t address, std::int64_t bytes) {
  ++time_;
  for (std::int64_t page = address / kPage; page <= (address + bytes - 1) / kPage; ++page) {
    page_time_[page] = time_;
  }
}

}  // namespace tilewright::simulator
