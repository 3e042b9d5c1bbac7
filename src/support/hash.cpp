#include "support/hash.h"

#include <fmt/core.h>

// Inlined, so that a program that links the installed static libraries needs no libxxhash.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace tilewright {

std::string content_hash(std::string_view bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
}

uint64_t hash64(std::string_view bytes, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}

}  // namespace tilewright
