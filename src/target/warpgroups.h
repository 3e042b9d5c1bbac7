#pragma once

// What PTX calls a warpgroup: the warps that issue a wgmma together, and the rows of its result.
namespace tilewright::target {

inline constexpr int kGroupRows = 64;
inline constexpr int kGroupWarps = 4;
inline constexpr int kGroupThreads = 128;

}  // namespace tilewright::target
