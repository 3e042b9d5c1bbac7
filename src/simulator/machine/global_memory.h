#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "simulator/machine/clock.h"
#include "simulator/machine/shadow.h"
#include "support/arguments.h"

namespace tilewright::simulator {

// What an access to a word of global memory has handed on, or would have, had it released.
struct Handed {
  std::shared_ptr<const Beyond> known;
  Access by;
  bool released = false;
};

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
  void add_written(Range range);
  bool is_written(const std::byte* data) const {
    for (const Range& range : written_) {
      if (range.has(data)) return true;
    }
    return false;
  }

  // What those hand on that have written the word since it was last written by who hands on
  // nothing of theirs.
  std::vector<Handed>& handed(const std::byte* word) { return handed_[word]; }
  const std::vector<Handed>& handed(const std::byte* word) const {
    static const std::vector<Handed> nothing;
    const auto found = handed_.find(word);
    return found == handed_.end() ? nothing : found->second;
  }

  // Memory that faults name, such as "x of rank 1".
  void add_name(Range range, std::string name) { names_.push_back({range, std::move(name)}); }
  // "x of rank 1 +0x0..0xf"; empty where the memory has no name.
  std::string describe(const std::byte* first, std::int64_t bytes) const;

  // Of the 1024 bytes from this address on.
  ShadowBlock& shadow(std::uint64_t block) {
    const std::uint64_t number = block / ShadowBlock::kBytes, page = number / kPage;
    if (page != page_ || !blocks_) {
      page_ = page;
      blocks_ = shadow_[page].data();
    }
    return blocks_[number % kPage];
  }
  // Of every 16 bytes of the range, which ones have been written.
  std::vector<std::uint16_t> written(Range range) const;

 private:
  struct Named {
    Range range;
    std::string name;
  };
  std::vector<Range> written_;
  std::vector<Named> names_;
  std::unordered_map<const std::byte*, std::vector<Handed>> handed_;
  // In pages of blocks, of which the last one that was asked for is at hand: one access follows
  // the other there.
  static constexpr std::uint64_t kPage = 64;
  std::unordered_map<std::uint64_t, std::array<ShadowBlock, kPage>> shadow_;
  std::uint64_t page_ = 0;
  ShadowBlock* blocks_ = nullptr;
};

}  // namespace tilewright::simulator
