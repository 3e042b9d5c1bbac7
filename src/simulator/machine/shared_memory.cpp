#include "simulator/machine/shared_memory.h"

#include <algorithm>
#include <cstring>

namespace tilewright::simulator {
namespace {

constexpr std::uint16_t kWhole = 0xffff;

// Calls `visit(cell, cells, mask)` for the runs of 16-byte cells that the range touches with the
// same bytes.
template <typename Visit>
void for_cells(std::int64_t address, std::int64_t bytes, Visit visit) {
  const std::int64_t end = address + bytes;
  while (address < end) {
    const std::int64_t cell = address / 16, inside = address % 16;
    const std::int64_t whole = inside == 0 ? (end - address) / 16 : 0;
    if (whole > 0) {
      visit(cell, whole, kWhole);
      address += whole * 16;
      continue;
    }
    const std::int64_t stop = std::min(end, (cell + 1) * 16);
    const std::uint32_t below = (1u << (stop - cell * 16)) - 1;
    visit(cell, 1, static_cast<std::uint16_t>(below & ~((1u << inside) - 1)));
    address = stop;
  }
}

// Calls `visit(page, chunks)` for the pages of 64 cells that have some of these.
template <typename Visit>
void for_pages(std::int64_t cell, std::int64_t cells, Visit visit) {
  for (const std::int64_t end = cell + cells; cell < end;) {
    const std::int64_t count = std::min(end - cell, 64 - cell % 64);
    visit(cell / 64, ~std::uint64_t{0} >> (64 - count) << cell % 64);
    cell += count;
  }
}

}  // namespace

SharedMemory::SharedMemory(std::int64_t bytes)
    : size_(bytes),
      bytes_(bytes),
      held_((bytes + 15) / 16, 0),
      whole_(bytes / kPage + 1, 0),
      page_time_(bytes / kPage + 1, 0) {}

bool SharedMemory::initialised(std::int64_t address, std::int64_t bytes) const {
  bool all = true;
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    if (mask == kWhole) {
      for_pages(cell, cells, [&](std::int64_t page, std::uint64_t chunks) {
        all = all && (~whole_[page] & chunks) == 0;
      });
    } else {
      all = all && (~held_[cell] & mask) == 0;
    }
  });
  return all;
}

void SharedMemory::write(std::int64_t address, const std::byte* data, std::int64_t bytes) {
  std::memcpy(bytes_.data() + address, data, bytes);
  hold(address, bytes);
}

void SharedMemory::hold(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    if (mask == kWhole) {
      std::fill_n(held_.begin() + cell, cells, kWhole);
    } else {
      held_[cell] |= mask;
      if (held_[cell] != kWhole) return;
    }
    for_pages(cell, cells,
              [&](std::int64_t page, std::uint64_t chunks) { whole_[page] |= chunks; });
  });
  changed(address, bytes);
}

void SharedMemory::hold(const std::vector<ByteCell>& cells, std::int64_t by) {
  if (cells.empty()) return;
  ++time_;
  for (const ByteCell& cell : cells) {
    const std::uint64_t number = cell.number + by;
    held_[number] |= cell.mask;
    if (held_[number] == kWhole) whole_[number / 64] |= std::uint64_t{1} << number % 64;
    page_time_[number / 64] = time_;
  }
}

void SharedMemory::poison(std::int64_t address, std::int64_t bytes) {
  for_cells(address, bytes, [&](std::int64_t cell, std::int64_t cells, std::uint16_t mask) {
    if (mask == kWhole) {
      std::fill_n(held_.begin() + cell, cells, std::uint16_t{0});
    } else {
      held_[cell] &= static_cast<std::uint16_t>(~mask);
    }
    for_pages(cell, cells,
              [&](std::int64_t page, std::uint64_t chunks) { whole_[page] &= ~chunks; });
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
