#pragma once

#include <cstdint>

// How the registers of a multiprocessor of sm_90 are divided among warpgroups.
namespace tilewright::analysis {

inline constexpr int kGroupRows = 64;  // of a wgmma, so of a warpgroup
inline constexpr int kGroupWarps = 4;
inline constexpr int kGroupThreads = 128;

// Registers of a thread where so many warpgroups compute beside one that loads: what a CTA starts
// with, which is 65536 by its threads in multiples of 8. ptxas allots them as if roles had none of
// their own.
constexpr int start_registers(std::int64_t groups) {
  return static_cast<int>(65536 / (kGroupThreads * (groups + 1)) / 8 * 8);
}
// What roles make of them.
constexpr int math_registers(std::int64_t groups) {
  return groups > 3 ? 112 : groups > 2 ? 160 : 240;
}
constexpr int load_registers(std::int64_t groups) { return groups > 2 ? 32 : 24; }

}  // namespace tilewright::analysis
