#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::distributed {

// The arenas of a group that are alive in this process. By them a caller's tensor is found in every
// rank. Arenas are made by all ranks in one order, and so have the same numbers in all of them.
class Regions {
 public:
  // `blocks`: of each rank, the first byte of its memory in this process; null for those of other
  // nodes. The region's number.
  std::int64_t add(std::string name, std::vector<std::byte*> blocks, int own, std::size_t bytes);
  void remove(std::int64_t number);

  struct Place {
    std::int64_t number = 0;
    std::string name;
    std::size_t offset = 0;
    std::vector<std::byte*> ranks;  // where the byte lies that each rank has at this offset
  };
  // Of these bytes of this rank; nothing where no region holds all of them.
  std::optional<Place> find(const std::byte* first, std::size_t bytes) const;

 private:
  struct Region {
    std::string name;
    std::vector<std::byte*> blocks;
    int own = 0;
    std::size_t bytes = 0;
  };
  mutable std::mutex mutex_;
  std::int64_t next_ = 0;
  std::map<std::int64_t, Region> regions_;
};

}  // namespace tilewright::distributed
