#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tilewright {

// 128 bits as 32 hexadecimal digits: the same on every machine, so that it may name files.
std::string content_hash(std::string_view bytes);

uint64_t hash64(std::string_view bytes, uint64_t seed = 0);

}  // namespace tilewright
