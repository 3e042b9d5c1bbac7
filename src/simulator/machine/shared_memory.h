#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "simulator/machine/shadow.h"

namespace tilewright::simulator {

// The shared memory of one CTA: bytes and which of them hold something. Address 0 is the start of
// the dynamic shared memory, which is aligned to 1024 bytes.
class SharedMemory {
 public:
  explicit SharedMemory(std::int64_t bytes);

  std::int64_t size() const { return size_; }
  const std::byte* at(std::int64_t address) const { return bytes_.data() + address; }
  bool initialised(std::int64_t address, std::int64_t bytes) const;
  // As `initialised`, of the 16 bytes at an address that is a multiple of 16.
  bool chunk_initialised(std::int64_t address) const {
    return whole_[address / kPage] >> address % kPage / 16 & 1;
  }
  // As `chunk_initialised`, of `pages` times 1024 bytes, and of these the chunks whose bits are
  // set.
  bool chunks_initialised(std::int64_t page, std::int64_t pages, std::uint64_t chunks) const {
    std::uint64_t missing = 0;
    for (std::int64_t i = page; i < page + pages; ++i) missing |= ~whole_[i] & chunks;
    return missing == 0;
  }
  // Of the cells, `by` cells further.
  bool initialised(const std::vector<ByteCell>& cells, std::int64_t by) const {
    std::uint32_t missing = 0;
    for (const ByteCell& cell : cells) missing |= ~held_[cell.number + by] & cell.mask;
    return missing == 0;
  }
  void write(std::int64_t address, const std::byte* data, std::int64_t bytes);
  // Before `hold` of what they belong to.
  void put(std::int64_t address, const std::byte* data, std::int64_t bytes) {
    std::memcpy(bytes_.data() + address, data, bytes);
  }
  // 16 bytes at an address that is a multiple of 16, before `hold` of what they belong to.
  void put_chunk(std::int64_t address, const std::byte* data) {
    std::memcpy(bytes_.data() + address, data, 16);
  }
  // As `write`, of bytes whose values do not matter.
  void hold(std::int64_t address, std::int64_t bytes);
  void hold(const std::vector<ByteCell>& cells, std::int64_t by);
  // What is there is no longer to be read.
  void poison(std::int64_t address, std::int64_t bytes);

  // Grows with each change, so that what was decoded from a range may be used again while
  // last_change(range) is not past the time of decoding.
  std::uint64_t time() const { return time_; }
  std::uint64_t last_change(std::int64_t first, std::int64_t last) const;

 private:
  static constexpr std::int64_t kPage = 1024;

  void changed(std::int64_t address, std::int64_t bytes);

  std::int64_t size_ = 0;
  std::vector<std::byte> bytes_;
  std::vector<std::uint16_t> held_;   // a bit for each byte of 16
  std::vector<std::uint64_t> whole_;  // of each page: a bit for each 16 bytes that hold something
  std::vector<std::uint64_t> page_time_;
  std::uint64_t time_ = 0;
};

}  // namespace tilewright::simulator
