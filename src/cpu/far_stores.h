#pragma once

#include <cstdint>

namespace tilewright::cpu {

// Bytes of a launch's tensors.
struct LaunchBytes {
  double all = 0, stored = 0;
};

// Which blocks of a launch store past the caches what nobody reads in it. Where the caches hold all
// of its tensors, none does. What goes past them takes one way to memory, which one thread does not
// fill and several wait for: theirs store as much of it near as the caches have room for beside
// what is read.
class FarStores {
 public:
  FarStores() = default;
  // `cache`: bytes of the last level, or 0 where they are not known.
  FarStores(const LaunchBytes& bytes, std::int64_t blocks, unsigned threads, std::int64_t cache);

  // Blocks of both kinds take turns, so that threads seldom wait for the same.
  bool of(std::int64_t block) const { return block * near_ % blocks_ + near_ < blocks_; }

 private:
  std::int64_t blocks_ = 1, near_ = 1;
};

}  // namespace tilewright::cpu
