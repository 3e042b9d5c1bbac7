#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "simulator/machine/shadow.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// What is known of the memory outside of CTAs, for all launches of a world.
class GlobalMemory {
 public:
  // The whole of a tensor's memory, whatever the signs of its strides.
  struct Range {
    const std::byte *begin = nullptr, *end = nullptr;
    bool has(const std::byte* data) const { return data >= begin && data < end; }
  };
  static Range range_of(const TensorArgument& tensor);

  // Memory that something in the world writes: accesses to other memory are not looked at.
  void add_written(Range range) { written_.push_back(range); }
  bool is_written(const std::byte* data) const {
    for (const Range& range : written_) {
      if (range.has(data)) return true;
    }
    return false;
  }

  // Of the 1024 bytes from this address on.
  ShadowBlock& shadow(std::uint64_t block) { return shadow_[block / ShadowBlock::kBytes]; }

 private:
  std::vector<Range> written_;
  std::unordered_map<std::uint64_t, ShadowBlock> shadow_;
};

}  // namespace tilewright::simulator
