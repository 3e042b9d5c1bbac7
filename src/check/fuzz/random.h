#pragma once

#include <cstdint>

namespace tilewright::checks::fuzz {

// SplitMix64: the same numbers for a seed on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // 0 .. count - 1
  int below(int count) { return static_cast<int>(next() % static_cast<std::uint64_t>(count)); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T, std::size_t N>
  T of(const T (&list)[N]) {
    return list[below(static_cast<int>(N))];
  }

 private:
  std::uint64_t state_;
};

}  // namespace tilewright::checks::fuzz
