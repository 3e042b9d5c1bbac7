#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace tilewright {

// SplitMix64: the same numbers for a seed on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // As after so many next().
  void skip(std::uint64_t count) { state_ += count * 0x9e3779b97f4a7c15u; }
  // 0 .. count - 1
  template <std::integral T>
  T below(T count) {
    return static_cast<T>(next() % static_cast<std::uint64_t>(count));
  }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T, std::size_t N>
  T of(const T (&list)[N]) {
    return list[below(N)];
  }
  // Between 0 and 1, and neither.
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace tilewright
