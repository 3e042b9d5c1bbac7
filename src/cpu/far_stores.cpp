#include "cpu/far_stores.h"

#include <algorithm>

namespace tilewright::cpu {
namespace {

// Of the last-level cache. Others use it too.
constexpr double kShareOfCache = 0.75;

}  // namespace

FarStores::FarStores(const LaunchBytes& bytes, std::int64_t blocks, unsigned threads,
                     std::int64_t cache) {
  const double room = kShareOfCache * static_cast<double>(cache);
  if (cache == 0 || bytes.all <= room || blocks == 0) return;
  blocks_ = blocks;
  near_ = 0;
  if (threads < 2 || blocks < 2 || bytes.stored <= 0) return;
  const double near = std::max(room - (bytes.all - bytes.stored), 0.0);
  near_ = static_cast<std::int64_t>(static_cast<double>(blocks) * near / bytes.stored);
}

}  // namespace tilewright::cpu
