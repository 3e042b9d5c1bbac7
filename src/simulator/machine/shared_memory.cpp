#include "simulator/machine/shared_memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::simulator {
namespace {

// Calls `visit(cell, cells, mask)` for the runs of 16-byte cells that the range touches with the
// same bytes.
template <typename Visit>
void for_cells(std::int64_t address, std::int64_t bytes, Visit visit) {
  const std::int64_t end = address + bytes;
  while (address < end) {
    const std::int64_t cell = address / 16, inside = address % 16;
    const std::int64_t whole = inside == 0 ? (end - address) / 16 : 0;
    if (whole > 0) {
      visit(cell, whole, std::uint16_t{0xffff});
      address += whole * 16;
      continue;
    }
    const std::int64_t stop = std::min(end, (cell + 1) * 16);
    const std::uint32_t below = (1u << (stop - cell * 16)) - 1;
    visit(cell, 1, static_cast<std::uint16_t>(below & ~((1u << inside) - 1)));
    address = stop;
  }
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes)
    : size_(bytes), bytes_(bytes), held_((bytes + 15) / 16, 0), page_time_(bytes / kPage + 1, 0) {}

bool SharedMemory::initialised(std::int64_t address, std::int64_t bytes) const {
  std::uint16_t missing = 0;
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    for (std::int64_t i = 0; i < cells; ++i) {
      missing |= static_cast<std::uint16_t>(~held_[cell + i] & mask);
    }
  });
  return missing == 0;
}

bool SharedMemory::block_initialised(std::int64_t address, std::uint64_t chunks) const {
  const std::int64_t first = address / 16;
  const std::int64_t cells =
      std::min<std::int64_t>(64, static_cast<std::int64_t>(held_.size()) - first);
  if (chunks == ~std::uint64_t{0} && cells == 64) return initialised(address, 1024);
  for (std::int64_t cell = 0; cell < cells; ++cell) {
    if (chunks >> cell & 1 && held_[first + cell] != 0xffff) return false;
  }
  return true;
}

void SharedMemory::write(std::int64_t address, const std::byte* data, std::int64_t bytes) {
  std::memcpy(bytes_.data() + address, data, bytes);
  hold(address, bytes);
}

void SharedMemory::hold(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    for (std::int64_t i = 0; i < cells; ++i) held_[cell + i] |= mask;
  });
  changed(address, bytes);
}

void SharedMemory::poison(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    for (std::int64_t i = 0; i < cells; ++i) held_[cell + i] &= ~mask;
  });
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
