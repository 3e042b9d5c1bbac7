#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "simulator/machine/timetable.h"
#include "target/devices.h"

namespace tilewright::simulator {

// When bytes between the memories of ranks are where they go (target::Link). Each rank has a way
// out and a way in, on which what is sent takes turns.
class LinkTimes {
 public:
  // The wire is finer than cycles.
  static constexpr std::int64_t kParts = 64;

  // Of a program: without, all memory is one rank's.
  void begin(std::string_view target, int ranks);
  void add_memory(const std::byte* first, std::int64_t bytes, int rank);
  // Whose memory it is; -1 for memory that has no name.
  int rank_of(const std::byte* address) const;

  int ranks() const { return static_cast<int>(ways_.size()); }
  const target::Device& device() const { return *device_; }
  const target::Link& link() const { return device_->link; }
  std::int64_t cycles(double seconds) const;
  double seconds(std::int64_t cycles) const { return static_cast<double>(cycles) / clock_; }

  // The end on the wire of so many bytes that are there from `earliest` on, at the rate of their
  // kind.
  std::int64_t send(int from, int to, std::int64_t bytes, double rate, std::int64_t earliest);

  // When all that is on the rank's way out at that time has left.
  std::int64_t left(int rank, std::int64_t at) const;

  // What has left the rank.
  std::int64_t sent(int rank) const { return ways_[rank].sent; }

 private:
  struct Ways {
    Timetable out, in;
    std::int64_t sent = 0;
  };
  struct Memory {
    const std::byte *first = nullptr, *end = nullptr;
    int rank = 0;
  };
  const target::Device* device_ = nullptr;
  double clock_ = 1;
  std::vector<Ways> ways_;
  std::vector<Memory> memory_;  // in order
};

}  // namespace tilewright::simulator
